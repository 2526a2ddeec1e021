"""Drain in a lab: `gatewayctl drain` under live flows, then the gateway stops, returns and takes traffic again.

Three watches, each with flows of its own: while it drains (established flows go on there, new ones land elsewhere; then
the clients leave), while it stops (flows elsewhere must not notice), and after the undo (new flows land there again).
"""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from validators.connections.in_lab import quiet
from validators.connections.lab_stand import Stand
from validators.failover import judge as failover
from validators.failover.drain import CHECK, DrainSeen, NewFlow, OpenFlow, gateway_of, judge
from validators.failover.in_lab import first_tenant, mend, not_back, settled, unsettled
from validators.failover.lanes import Lane, Rates, Traffic, lay
from validators.results import Result, State, combine

if TYPE_CHECKING:
    from collections.abc import Callable

    from fabric.plan import Plan
    from labs.client import Process, Running
    from validators.failover.lanes import Layout
    from validators.failover.observed import FlowsSeen, SlotSeen

    Say = Callable[[str], None]
    Watched = dict[str, FlowsSeen]

_WATCH_S = 4.0
_STOPPED_S = 3.5  # what the stop cuts shows at once, and a new flow is given up after it was asked for again
_LEASE_S = 300.0
_MAY_REPEAT = 0.05  # of new flows: one CPU, and routes that move twice
_MOST_SILENCE_MS = 1500.0  # a static flow may lose what was under way when its routes moved


def run_drain(
    plan: Plan,
    lab: Running,
    *,
    tenant: str = "",
    exposure: str = "",
    deadline_s: float = 60.0,
    rates: Rates | None = None,
    say: Say = quiet,
) -> list[Result]:
    """Drain the preferred gateway of a tenant (the first that exposes anything), stop it, bring it back.

    Disruptive. Returns a result an exposure, and one that fails when the gateway does not come back. Raises InputError
    for names that do not exist and CouldNotRunError when the lab is not well before.
    """
    layout = lay(plan, lab, tenant or first_tenant(plan), exposure, rates)
    settled(lab)
    results = [
        Result(CHECK, target.subject, State.SKIPPED, why, labels=target.labels) for target, why in layout.left_out
    ]
    with Stand(plan, lab, layout.places, layout.blocks) as stand:
        drain = _Drain(plan, lab, stand, layout, deadline_s, say)
        try:
            drain.run()
        finally:
            drain.undo()
    gone = not_back(CHECK, layout.gateway, "drain", drain.missing)
    return [*results, *(drain.judged(lane) for lane in layout.lanes), *gone]


@dataclass
class _Drain:
    plan: Plan
    lab: Running
    stand: Stand
    layout: Layout
    deadline_s: float
    say: Say
    began_ns: int = 0
    settle_ms: float = 0.0
    stopped_ns: int | None = None
    exit_code: int | None = None
    said: str = ""
    missing: str = ""
    left: dict[str, int] = field(default_factory=dict)
    landed: dict[str, int] = field(default_factory=dict)
    returned: dict[str, int] = field(default_factory=dict)
    watches: dict[str, Watched] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.gateway = self.layout.gateway
        self.traffic = Traffic(self.stand, self.layout)

    # ------------------------------------------------------------------ what happens

    def run(self) -> None:
        self.say(f"{CHECK} {self.gateway}: drain")
        self.traffic.begin()
        time.sleep(1.0)
        process = self._start()
        try:
            before = self._new_connections()
            time.sleep(_WATCH_S)
            self.landed = self._since(before)
            self._end("draining", hang_up=True)
            self.say(f"{CHECK} {self.gateway}: the clients leave, then it stops")
            self.traffic.begin()
            self._finish(process)
        finally:
            process.kill()
        self.lab.call("cut", target=self.gateway, how="power", seconds=_LEASE_S)
        self.stopped_ns = self._clock()
        time.sleep(_STOPPED_S)
        self._end("stopping", hang_up=True)
        self.say(f"{CHECK} {self.gateway}: back, and undone")
        self.undo()
        self.missing = unsettled(self.lab)
        before = self._new_connections()
        self.traffic.begin()
        time.sleep(2.0)
        self.returned = self._since(before)
        self._end("undone", hang_up=True)

    def undo(self) -> None:
        """Bring the gateway back and let it take traffic; running it again changes nothing."""
        mend(self.lab, self.gateway)
        deadline = time.monotonic() + 30
        while (done := self.lab.run(self.gateway, ["gatewayctl", "undrain"])).rc and time.monotonic() < deadline:
            time.sleep(1)  # FRR needs a moment until it takes commands
        done.check()

    def _start(self) -> Process:
        self.began_ns = self._clock()
        words = ["gatewayctl", "drain", "--deadline", str(self.deadline_s), "--settle", "2"]
        process = self.lab.start(self.gateway, words)
        process.wait_for("flows open", timeout_s=30)
        self.settle_ms = (self._clock() - self.began_ns) / 1e6
        return process

    def _finish(self, process: Process) -> None:
        done = process.wait(self.deadline_s + 30)
        self.exit_code, self.said = done.rc, done.out.strip()
        status = json.loads(self.lab.run(self.gateway, ["gatewayctl", "status", "--json"]).out)
        self.left = status["flows"]

    def _end(self, phase: str, *, hang_up: bool) -> None:
        self.watches[phase] = {lane.name: seen for lane, seen in self.traffic.end(hang_up=hang_up)}

    def _clock(self) -> int:
        """Return the time on the clock that the agents use."""
        now: int = self.stand.agent(self.gateway).call("hello")["clock_ns"]
        return now

    def _new_connections(self) -> dict[str, int]:
        """Return how many connections the gateway has taken so far, by tenant.exposure."""
        text = self.lab.run(self.gateway, ["nft", "-j", "list", "counters", "table", "ip", "kvfabric"]).check().out
        rows: list[dict[str, Any]] = [item["counter"] for item in json.loads(text)["nftables"] if "counter" in item]
        return {row["name"].removeprefix("new."): row["packets"] for row in rows if row["name"].startswith("new.")}

    def _since(self, before: dict[str, int]) -> dict[str, int]:
        return {name: count - before.get(name, 0) for name, count in self._new_connections().items()}

    # ------------------------------------------------------------------ what it means

    def judged(self, lane: Lane) -> Result:
        labels = {**lane.target.labels, "gateway": self.gateway, "case": "drain"}
        subject = f"{self.gateway} drain: {lane.target.subject}"
        if lane.target.exposure.mode == "static":
            return self._static(lane, subject, labels)
        result = judge(subject, self._seen(lane), labels=labels)
        result.evidence.update({"gatewayctl": self.said.splitlines(), "exit_code": self.exit_code} | self._met(lane))
        return result

    def _static(self, lane: Lane, subject: str, labels: dict[str, str]) -> Result:
        """Static flows follow the routes: they may notice the moment in which those move, and nothing else."""
        declared = failover.Declared("static", _MOST_SILENCE_MS)
        parts = tuple(
            failover.judge(f"{subject} {phase}", self.watches[phase][lane.name], declared, labels=labels)
            for phase in ("draining", "stopping")
        )
        state = combine(part.state for part in parts)
        text = "; ".join(part.text for part in parts)
        return Result(CHECK, subject, state, text, parts=parts, labels=labels, evidence=self._met(lane))

    def _met(self, lane: Lane) -> dict[str, Any]:
        """Return what the lane's flows met while the gateway drained."""
        slots = [asdict(slot) for slot in self.watches["draining"][lane.name].slots]
        return {"slots": slots, "event_ns": self.began_ns}

    def _seen(self, lane: Lane) -> DrainSeen:
        name = lane.name
        draining, stopping, undone = (self.watches[phase][name] for phase in ("draining", "stopping", "undone"))
        return DrainSeen(
            gateway=self.gateway,
            began_ns=self.began_ns,
            deadline_ns=self.began_ns + int(self.deadline_s * 1e9),
            stopped_ns=self.stopped_ns,
            open_flows=tuple(self._open(lane, slot) for slot in draining.slots),
            new_flows=(*self._new(lane, draining, self.landed.get(name, 0)), *self._new(lane, stopping, 0)),
            after_undo=self._new(lane, undone, self.returned.get(name, 0)),
            left_at_stop=self.left.get(name),
            settle_ms=self.settle_ms,
            may_repeat=_MAY_REPEAT,
            others=len(stopping.slots),
            others_cut=sum(not slot.survived for slot in stopping.slots),
        )

    def _open(self, lane: Lane, slot: SlotSeen) -> OpenFlow:
        last = min(slot.towards.last_good_ns, slot.back.last_good_ns)
        where = self._owner(lane, slot.public_before) or self.gateway
        return OpenFlow(f"{lane.name} {slot.slot}", where, None if slot.survived else last, slot.outage_ms)

    def _new(self, lane: Lane, seen: FlowsSeen, landed: int) -> tuple[NewFlow, ...]:
        """Return the canaries, and where each landed: its public address says so, else the gateway's own counter."""
        late = [canary for canary in seen.canaries if canary.opened_ns >= self.began_ns + self.settle_ms * 1e6]
        standby = next(
            (name for name in self.plan.groups[lane.target.exposure.group].gateways if name != self.gateway), ""
        )
        found = []
        for number, canary in enumerate(late):
            where = self._owner(lane, canary.public) or (self.gateway if number < landed else standby)
            where = where if canary.answered else ""
            found.append(NewFlow(canary.opened_ns, where, canary.answered, canary.at_once))
        return tuple(found)

    def _owner(self, lane: Lane, public: str) -> str:
        if lane.target.exposure.mode != "masquerade":
            return ""
        gateways = self.plan.groups[lane.target.exposure.group].gateways
        return gateway_of(public, {name: sorted(lane.target.pool(name)) for name in gateways})
