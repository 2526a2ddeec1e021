"""The passive end: holds memory and connections, and does what the driving end asks over the control channel."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from validators.rdma.host import hardware_counters, stamp
from validators.rdma.host.backend import DeviceError, OpenSpec, QpSettings
from validators.rdma.host.channel import Channel, ChannelError, accept
from validators.rdma.host.memory import Buffer
from validators.rdma.host.registry import open_device
from validators.rdma.host.workload import Workload

if TYPE_CHECKING:
    from validators.rdma.host.backend import Connection, Device, Region

_CUT = """
import subprocess, sys, time
netdev, after, lasting = sys.argv[1], float(sys.argv[2]), float(sys.argv[3])
time.sleep(after)
def ip(*words):
    return subprocess.run(["ip", *words], capture_output=True, text=True).stdout.splitlines()
back = []
for family in ("-4", "-6"):
    for line in ip(family, "route", "show", "table", "all", "dev", netdev):
        # the kernel makes those of the addresses again by itself
        if not {"local", "broadcast", "multicast", "anycast", "kernel"} & set(line.split()):
            back.append([family, "route", "replace", *line.replace("linkdown", "").split(), "dev", netdev])
for line in ip("-6", "-o", "address", "show", "dev", netdev, "scope", "global"):
    back.insert(0, ["-6", "address", "replace", line.split()[3], "dev", netdev])
try:
    ip("link", "set", "dev", netdev, "down")
    time.sleep(lasting)
finally:
    ip("link", "set", "dev", netdev, "up")
    for words in back:
        ip(*words)
"""
"""Takes a link down and puts it back, with the routes of all tables and the addresses that the kernel takes away with
it, in a process of its own, so that it always comes back."""


class Server:
    """State of one passive end."""

    def __init__(self, device: Device, backend: str) -> None:
        self.device, self.backend = device, backend
        self.buffers: dict[str, Buffer] = {}
        self.regions: dict[str, Region] = {}
        self.connections: dict[str, Connection] = {}

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """Do one operation and return its answer."""
        handler = getattr(self, f"_{message.pop('op')}", None)
        if handler is None:
            return {"error": "no such operation"}
        try:
            answer: dict[str, Any] = handler(**message)
        except (DeviceError, OSError, ValueError, KeyError, TypeError) as error:
            return {"error": f"{type(error).__name__}: {error}"}
        return answer

    def _hello(self) -> dict[str, Any]:
        about = self.device.describe()
        return {
            "backend": self.backend,
            "transport": self.device.transport,
            "device": about,
            "driver": hardware_counters.driver(about["device"]),
            "numpy": stamp.has_numpy(),
            "time": time.time(),
        }

    def _allocate(self, region: str, domain: str, size: int, access: str) -> dict[str, Any]:
        start = time.perf_counter()
        self.buffers[region] = Buffer(size)
        self.regions[region] = self.device.register(domain, self.buffers[region], access)
        made = self.regions[region]
        return {"address": made.address, "key": made.key, "registration_s": time.perf_counter() - start}

    def _fill(self, region: str, workload: dict[str, Any], identity: dict[str, Any], kind: int) -> dict[str, Any]:
        with self.buffers[region].view() as view:
            stamp.fill(view, Workload.from_dict(workload).owner_runs(), stamp.Identity.from_dict(identity), kind)
        return {}

    def _clear(self, region: str) -> dict[str, Any]:
        self.buffers[region].clear()
        return {}

    def _is_clear(self, region: str) -> dict[str, Any]:
        return {"clear": self.buffers[region].is_clear()}

    def _check(self, region: str, workload: dict[str, Any], identity: dict[str, Any], kind: int) -> dict[str, Any]:
        with self.buffers[region].view() as view:
            runs = Workload.from_dict(workload).receiver_runs()
            counts, bad = stamp.check(view, runs, stamp.Identity.from_dict(identity), kind)
        return {"counts": counts, "bad": bad}

    def _connect(
        self, name: str, domain: str, qps: int, depth: int, settings: dict[str, Any], peer: dict[str, Any]
    ) -> dict[str, Any]:
        connection = self.device.connect(domain, qps, depth, QpSettings(**settings))
        self.connections[name] = connection
        info = connection.local_info()
        connection.establish(peer)
        return {"info": info}

    def _in_force(self, name: str) -> dict[str, Any]:
        return {"in_force": self.connections[name].in_force()}

    def _disconnect(self, name: str) -> dict[str, Any]:
        self.connections.pop(name).close()
        return {}

    def _revoke(self, region: str) -> dict[str, Any]:
        self.regions.pop(region).close()
        return {}

    def _counters(self) -> dict[str, Any]:
        about = self.device.describe()
        return {"counters": hardware_counters.read(about["device"], about.get("port", 1), about["netdev"])}

    def _die(self, after_s: float) -> dict[str, Any]:
        # the default action of SIGALRM ends the process as a crash would: nothing is said, nothing is freed by hand
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, after_s)
        return {}

    def _cut(self, after_s: float, lasting_s: float) -> dict[str, Any]:
        netdev = self.device.describe()["netdev"]
        if not netdev:
            raise DeviceError("this back-end has no link to cut")
        command = [sys.executable, "-c", _CUT, netdev, str(after_s), str(lasting_s)]
        subprocess.Popen(command, start_new_session=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        return {"netdev": netdev}

    def _free(self) -> dict[str, Any]:
        for connection in self.connections.values():
            connection.close()
        for region in self.regions.values():
            region.close()
        self.connections, self.regions = {}, {}
        return {"left_open": self.device.open_objects()}


def serve(request: dict[str, Any]) -> dict[str, Any]:
    """Serve one driving end until it says `bye` or goes away; returns what is left open, which must be nothing."""
    backend, device = open_device(request["backend"], OpenSpec(**request["open"]))
    try:
        server = Server(device, backend)
        channel = accept(request["listen"], request["port"], request.get("wait_s", 30.0), request.get("over", ""))
        ended = _loop(server, channel, request.get("idle_s", 120.0))
        left = server.answer({"op": "free"})["left_open"]
    finally:
        device.close()
    return {"role": "serve", "ended": ended, "left_open": left}


def _loop(server: Server, channel: Channel, idle_s: float) -> str:
    while True:
        try:
            message = channel.receive(idle_s)
            if message["op"] == "bye":
                channel.send({})
                return "bye"
            channel.send(server.answer(message))
        except ChannelError as error:
            return str(error)
