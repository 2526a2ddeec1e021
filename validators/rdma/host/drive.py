"""The driving end: connects, moves, measures and checks. One request is one flow between two NICs."""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from validators.rdma.host import hardware_counters, stamp
from validators.rdma.host.backend import DeviceError, OpenSpec, QpSettings
from validators.rdma.host.chains import clock_cost_s
from validators.rdma.host.channel import ChannelError, dial
from validators.rdma.host.meeting import wait_for_start
from validators.rdma.host.memory import Buffer
from validators.rdma.host.registry import open_device
from validators.rdma.host.stats import summary
from validators.rdma.host.workload import Workload

if TYPE_CHECKING:
    from collections.abc import Callable

    from validators.rdma.host.backend import Connection, Device, Prepared, Region, Times
    from validators.rdma.host.channel import Channel

_KEPT = 1_000
"""Raw times kept per flow."""
_PER_TIMED_POSTS = 4
"""Measured transfers per transfer in which the time inside posts is taken."""
_MOST_TIMED_POSTS = 50
_PREPARING_S = 2.0
"""Most seconds spent on measuring how long preparation takes."""


class Driver:
    """Both ends of one flow as the driving end sees them."""

    def __init__(self, device: Device, backend: str, channel: Channel, request: dict[str, Any]) -> None:
        self.device, self.backend, self.channel, self.request = device, backend, channel, request
        self.settings = QpSettings(**request.get("settings", {}))
        self.work = Workload.from_dict(request["workload"])
        self.verb: str = request.get("verb", "read")
        self.qps, self.depth = int(request.get("qps", 1)), int(request.get("depth", 64))
        self.deadline_s = float(request.get("transfer_deadline_s", 30.0))
        self.peer = channel.ask("hello")
        self.kind = stamp.checksum_kind(stamp.has_numpy() and bool(self.peer["numpy"]), self.work.total)
        self.identity: dict[str, Any] = dict(request["identity"])
        self.buffer = Buffer(self.work.total)
        start = time.perf_counter()
        self.region: Region = device.register("main", self.buffer, "local")
        self.registration_s = time.perf_counter() - start

    def connect(self, name: str, domain: str, far_gid: str = "", cq_entries: int = 0) -> Connection:
        """Make a connection named `name` whose far end is in the peer's protection domain `domain`.

        `far_gid` and `cq_entries` are for scenarios that want them wrong. Raises DeviceError.
        """
        connection = self.device.connect("main", self.qps, self.depth, self.settings, cq_entries)
        arguments: dict[str, Any] = {"qps": self.qps, "depth": self.depth, "settings": asdict(self.settings)}
        try:
            answer = self.channel.ask("connect", name=name, domain=domain, peer=connection.local_info(), **arguments)
            connection.establish({**answer["info"], "gid": far_gid} if far_gid else answer["info"])
        except (DeviceError, ChannelError):
            connection.close()
            raise
        return connection

    def allocate(self, region: str, domain: str = "main") -> dict[str, int]:
        """Allocate the peer's region for the verb; returns its address and key."""
        return self.channel.ask("allocate", region=region, domain=domain, size=self.work.total, access=self.verb)

    def prepare(self, connection: Connection, remote: dict[str, int]) -> Prepared:
        """Build the descriptors of the workload."""
        return connection.prepare(self.verb, self.work.pieces(self.verb == "write"), self.region, remote)

    def fill(self, region: str, **changes: Any) -> None:
        """Write stamped blocks at the owner, and zeros where they will arrive."""
        identity = {**self.identity, **changes}
        workload = self.request["workload"]
        if self.verb == "read":
            self.channel.ask("fill", 120.0, region=region, workload=workload, identity=identity, kind=self.kind)
            self.buffer.clear()
        else:
            with self.buffer.view() as view:
                stamp.fill(view, self.work.owner_runs(), stamp.Identity.from_dict(identity), self.kind)
            self.channel.ask("clear", 120.0, region=region)

    def check(self, region: str) -> dict[str, Any]:
        """Check the blocks where they arrived against the identity that was asked for."""
        if self.verb == "write":
            workload = self.request["workload"]
            asked: dict[str, Any] = {"workload": workload, "identity": self.identity, "kind": self.kind}
            found = self.channel.ask("check", 120.0, region=region, **asked)
        else:
            with self.buffer.view() as view:
                identity = stamp.Identity.from_dict(self.identity)
                counts, bad = stamp.check(view, self.work.receiver_runs(), identity, self.kind)
            found = {"counts": counts, "bad": bad}
        return {"generation": self.identity["generation"], **found}

    def counters(self) -> dict[str, dict[str, int]]:
        """Counters of both ends."""
        mine = self.device.describe()
        local = hardware_counters.read(mine["device"], mine.get("port", 1), mine["netdev"])
        return {"local": local, "remote": self.channel.ask("counters")["counters"]}

    def about(self) -> dict[str, Any]:
        """What both ends are, for every result."""
        mine = self.device.describe()
        return {
            "backend": self.backend,
            "transport": self.device.transport,
            "verb": self.verb,
            "local": {**mine, "driver": hardware_counters.driver(mine["device"])},
            "remote": {**self.peer["device"], "driver": self.peer["driver"]},
            "wanted": {**asdict(self.settings), "gid_type": self.request["open"].get("gid_type", "RoCE v2")},
            "detection_s": self.settings.detection_s,
            "qps": self.qps,
            "depth": self.depth,
            "pieces": self.work.count,
            "bytes": self.work.total,
            "groups": list(self.work.groups),
            "clock_offset_s": self.peer["time"] - time.time(),
        }


def drive(request: dict[str, Any], scenarios: dict[str, Callable[[Driver], dict[str, Any]]]) -> dict[str, Any]:
    """Run the scenario a request names and return its row. Raises the errors of `backend` and `channel`."""
    backend, device = open_device(request["backend"], OpenSpec(**request["open"]))
    try:
        channel = dial(request["peer"], request["port"], request.get("wait_s", 30.0), request.get("over", ""))
        driver = Driver(device, backend, channel, request)
        row = {"role": "drive", "scenario": request["scenario"], **driver.about()}
        row |= scenarios[request["scenario"]](driver)
        driver.region.close()
        row["left_open"] = device.open_objects()
        row["control_bytes"] = channel.sent
        try:
            row["peer_left_open"] = channel.ask("free")["left_open"]
            channel.ask("bye")
        except ChannelError as error:
            row["peer_gone"] = str(error)
        return row
    finally:
        device.close()


def transfer(driver: Driver) -> dict[str, Any]:
    """Move the workload again and again; check the content before and after, with a new generation in between."""
    remote = driver.allocate("blocks")
    connection = driver.connect("main", "main")
    prepared, preparation = _prepare_often(driver, connection, remote)
    content = [_checked(driver, prepared)]
    forced = {"local": connection.in_force(), "remote": driver.channel.ask("in_force", name="main")["in_force"]}
    before = driver.counters()
    repeats = int(driver.request.get("repeats", 20))
    # these warm up as well: asking the time in every post costs as much as the post
    posting = [
        prepared.run(driver.deadline_s, True).posting_s
        for _ in range(max(1, min(_MOST_TIMED_POSTS, repeats // _PER_TIMED_POSTS)))
    ]
    late_s = wait_for_start(driver.request.get("meeting", ""), float(driver.request.get("deadline_s", 120.0)))
    times, began, ended = _repeat(driver, prepared, repeats)
    after = driver.counters()
    driver.identity["generation"] += 1
    content.append(_checked(driver, prepared))
    prepared.close()
    connection.close()
    completion = [t.completion_s for t in times]
    return {
        "in_force": forced,
        "clock_cost_s": clock_cost_s(),
        "registration_s": {"local": driver.registration_s, "remote": remote["registration_s"]},
        "preparation_s": summary(preparation),
        "posting_s": summary(posting),
        "completion_s": summary(completion),
        "completions": completion[:_KEPT],
        "posts": sum(t.posts for t in times),
        "unmeasured": len(posting) + len(content),
        "transfers": len(times),
        "began": began,
        "ended": ended,
        "late_s": late_s,
        "payload_gbps": 8e-9 * driver.work.total * len(times) / (ended - began),
        "content": content,
        "counters": {"before": before, "after": after},
    }


def _prepare_often(driver: Driver, connection: Connection, remote: dict[str, int]) -> tuple[Prepared, list[float]]:
    """Build the descriptors as often as there are transfers, within a time: serving stacks build them every time."""
    times: list[float] = []
    began = time.perf_counter()
    while True:
        start = time.perf_counter()
        prepared = driver.prepare(connection, remote)
        times.append(time.perf_counter() - start)
        if len(times) >= int(driver.request.get("repeats", 20)) or time.perf_counter() - began > _PREPARING_S:
            return prepared, times
        prepared.close()


def _checked(driver: Driver, prepared: Prepared) -> dict[str, Any]:
    driver.fill("blocks")
    prepared.run(driver.deadline_s)
    return driver.check("blocks")


def _repeat(driver: Driver, prepared: Prepared, repeats: int) -> tuple[list[Times], float, float]:
    lasting = float(driver.request.get("duration_s", 0.0))
    times: list[Times] = []
    began = time.time()
    while len(times) < repeats or time.time() - began < lasting:
        times.append(prepared.run(driver.deadline_s))
    return times, began, time.time()
