"""Programs that tests run in nodes of the lab: servers that say who they are, clients that keep calling, RDMA reads."""

from __future__ import annotations

import json
import time
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from labs import balancer, outside

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVE = """
import socket, socketserver, sys
class Name(socketserver.BaseRequestHandler):
    def handle(self):
        self.request.sendall("{} {}\\n".format(socket.gethostname(), self.client_address[0]).encode())
class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 128
server = Server(("0.0.0.0", int(sys.argv[1])), Name)
print("ready", flush=True)
server.serve_forever()
"""

# one new connection each 0.1 s for some seconds: a row each of start, duration, and what the server said
CALL = """
import json, socket, sys, threading, time
target, port, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
rows, begin = [], time.time()
def call():
    start, said = time.time(), ""
    try:
        with socket.create_connection((target, port), 20) as s:
            s.settimeout(20)
            said = s.makefile().readline().strip()
    except OSError as error:
        said = f"error {type(error).__name__}"
    rows.append((start, time.time() - start, said))
threads = []
print("ready", flush=True)
while time.time() < begin + seconds:
    threads.append(threading.Thread(target=call)); threads[-1].start()
    time.sleep(0.1)
for thread in threads: thread.join()
print(json.dumps(sorted(rows)))
"""

# UDP from many ports: many flows
SPRAY = """
import socket, sys, time
source, target, flows, each = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
socks = []
for n in range(flows):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind((source, 20000 + n)); socks.append(s)
for _ in range(each):
    for n, s in enumerate(socks):
        while True:  # a refusal of an earlier packet is told at the next one
            try: s.sendto(b"x" * 100, (target, 30000 + n)); break
            except ConnectionRefusedError: pass
    time.sleep(0.02)
"""

# one TCP connection from a chosen source port, says what the far side saw
ASK = """
import socket, sys
source, port, target, target_port = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
s = socket.socket(); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.settimeout(5); s.bind((source, port))
s.connect((target, target_port)); print(s.makefile().readline().strip())
"""

# RDMA READs whose two ends meet through files, not by TCP: only verbs decide whether they work. A row of how it went.
READ = """
import json, pathlib, sys, time
from validators.rdma.host.backend import OpenSpec, Piece, QpSettings, TransferError
from validators.rdma.host.memory import Buffer
from validators.rdma.host.pyverbs_backend import Backend
role, address, device, folder, settings = sys.argv[1:6]
folder = pathlib.Path(folder); folder.mkdir(exist_ok=True)
other = {"owner": "reader", "reader": "owner"}[role]
def wait(name, limit=120):
    for _ in range(limit * 10):
        if (folder / name).exists(): return (folder / name).read_text()
        time.sleep(0.1)
    sys.exit("the other end did not come")
def put(name, text=""):
    (folder / (name + ".new")).write_text(text); (folder / (name + ".new")).rename(folder / name)
content, buffer = b"KV" * 32768, Buffer(65536)
if role == "owner": buffer.map[:65536] = content
opened = Backend().open(OpenSpec(address, device))
region = opened.register("main", buffer, "read" if role == "owner" else "local")
link = opened.connect("main", 1, 16, QpSettings(**json.loads(settings)))
put(role, json.dumps({"info": link.local_info(), "address": region.address, "key": region.key}))
peer = json.loads(wait(other))
link.establish(peer["info"])
put(role + ".ready")
wait(other + ".ready")
if role == "owner":
    wait("done", 300)
    sys.exit()
row, last = {"status": "SUCCESS", "same": True, "reads": 0, "longest_s": 0.0}, time.time()
print("reading", flush=True)
try:
    read = link.prepare("read", [Piece(0, 0, 65536)], region, {"address": peer["address"], "key": peer["key"]})
    while True:
        buffer.clear()
        read.run(120)
        now = time.time()
        row["reads"] += 1
        row["longest_s"], last = max(row["longest_s"], now - last), now
        row["same"] = row["same"] and bytes(buffer.map[:65536]) == content
        if (folder / "stop").exists(): break
except TransferError as error:
    row.update(status=error.status, same=bytes(buffer.map[:65536]) == content)
print(json.dumps(row))
put("done")
"""


def ping(lab: Any, node: str, target: str, *more: str) -> bool:
    """Whether a node reaches an address: three echoes, one answer is enough."""
    return bool(lab.run(node, ["ping", "-n", "-c3", "-i0.2", "-W1", *more, target]).rc == 0)


def frr(lab: Any, node: str, command: str) -> Any:
    """FRR's JSON answer."""
    return json.loads(lab.run(node, ["vtysh", "-c", f"{command} json"]).check().out)


@contextmanager
def serving(lab: Any, port: int, *nodes: str) -> Iterator[None]:
    """Servers on `port` of the nodes that say their own name and the client's address."""
    servers = [lab.start(node, ["python3", "-c", SERVE, str(port)]) for node in nodes]
    try:
        for server in servers:
            server.wait_for("ready")
        yield
    finally:
        for server in servers:
            server.kill()


def ask(lab: Any, node: str, target: str, port: int, source: str = "0.0.0.0", source_port: int = 0) -> str:
    """What the server at the other end said, empty when nothing."""
    argv = ["python3", "-c", ASK, source, str(source_port), target, str(port)]
    return str(lab.run(node, argv).out.strip())


def wait_until(condition: Any, seconds: float) -> bool:
    """Whether the condition came true in time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.25)
    return True


def backends(lab: Any, service: str) -> list[balancer.Backend]:
    """The backends of a service as the load balancers see them, one after the other."""
    return [backend for node in outside.BALANCERS for backend in balancer.ask(lab, node)[service].backends]


def vip_up(lab: Any, *services: str) -> bool:
    """Whether every backend of the services is up on every load balancer."""
    return all(backend.up for service in services for backend in backends(lab, service))


class Reading:
    """RDMA READs by pyverbs from an owner to a reader, both (server, address), until it is stopped."""

    def __init__(self, lab: Any, owner: tuple[str, str], reader: tuple[str, str], **settings: int) -> None:
        name = uuid.uuid4().hex[:8]
        self.folder = lab.share / "results" / name
        self.ends = []
        for role, (server, address) in (("owner", owner), ("reader", reader)):
            argv = ["python3", "-c", READ, role, address, f"{server}.be0-port0", f"/lab/results/{name}"]
            self.ends.append(lab.start(server, [*argv, json.dumps(settings)]))
        self.owner, self.reader = self.ends

    def started(self) -> None:
        """Wait until the two know each other."""
        self.reader.wait_for("reading", 180)

    def row(self) -> dict[str, Any]:
        """Stop after the READ that runs: status of the last, whether every content was right, how many, the longest."""
        (self.folder / "stop").touch()
        done = self.reader.wait(300)
        self.owner.kill()
        assert done.rc == 0, (done.out, done.err, self.owner.printed())
        found: dict[str, Any] = json.loads(done.out.splitlines()[-1])
        return found


def packets_in(lab: Any, node: str) -> int:
    """Packets that a node's ports have received."""
    links = json.loads(lab.run(node, ["ip", "-j", "-s", "link"]).check().out)
    return sum(link["stats64"]["rx"]["packets"] for link in links if link["ifname"].startswith("Ethernet"))
