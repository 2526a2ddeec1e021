"""The checks of the cabling stage."""

from __future__ import annotations

import time
from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from validators.cabling.explain import Explanation, explain
from validators.cabling.moves import solve
from validators.cabling.names import PortNames, Socket
from validators.cabling.observed import Seen, union
from validators.cabling.port_state import PortState, parse_links, parse_speeds
from validators.check import Check, CheckInputs, Context, DeviceInputs, NotJudgedError, Observations, Stage, answer_of
from validators.devices.answers import Answer, Ask, UnreadableError
from validators.results import Result, State, combine, places_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.plan import Link, Plan


class CablingInputs(CheckInputs):
    """`samples` of LLDP are taken `interval_s` seconds apart and put together."""

    fabric: str
    samples: Annotated[int, Field(ge=1, le=60)] = 3
    interval_s: Annotated[float, Field(ge=0, le=60)] = 2.0


class Cabling(Check):
    """Every cable of a fabric runs between the two ports that the plan says.

    LLDP is read on switches, gateways and servers several times and put together, so that a neighbour that comes and
    goes is reported as flapping and not as wrong. Where cables are wrong, the smallest set of moves that explains it is
    worked out, in rack order.

    Pass: each planned cable is seen between its two ports, in every sample.
    Fail: a cable is in another port (with the moves that put it right), dead, flapping, one-way, or in no plan.
    Error: neither device of a cable could be asked.
    Skipped: never; a fabric without answers is an error.
    Example:
        cabling:
          - {fabric: backend, samples: 3, interval_s: 2}
    """

    stage = Stage.CABLING
    Inputs = CablingInputs
    questions = ("links",)

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per fabric."""
        yield from (CablingInputs(fabric=name) for name in plan.fabrics)

    @classmethod
    def subject(cls, inputs: CablingInputs) -> str:
        """The fabric."""
        return inputs.fabric

    @classmethod
    def touches(cls, plan: Plan, inputs: CablingInputs) -> tuple[str, ...]:
        """Every device with a cable in the fabric, except the edge routers, which are not ours to ask."""
        links = [link for link in plan.links.values() if link.fabric == inputs.fabric]
        ends = dict.fromkeys(end.device for link in links for end in (link.a, link.b))
        return tuple(device for device in ends if device not in plan.edges)

    def collect(self, context: Context, inputs: CablingInputs) -> Observations:
        """Sample LLDP over the window."""
        # every device of the site: a cable that ended up in another fabric must look the same from both of them
        plan = context.plan
        asks = [Ask(device, "lldp") for device in plan.kind_of if device in plan.links_of and device not in plan.edges]
        rounds = min(inputs.samples, context.devices.rounds or inputs.samples)
        samples = []
        for number in range(rounds):
            if number and context.devices.rounds is None:
                time.sleep(inputs.interval_s)
            answers = context.gather(asks, fresh=True, sample=number)
            samples.append({ask.device: answer.to_dict() for ask, answer in answers.items()})
        links = context.gather(self.asks(context.plan, inputs))
        return {"samples": samples, "links": {ask.device: answer.to_dict() for ask, answer in links.items()}}

    def judge(self, plan: Plan, inputs: CablingInputs, observations: Observations) -> Result:
        """Compare the union of the samples with the plan and solve what differs."""
        names = PortNames(plan)
        links = [link for link in plan.links.values() if link.fabric == inputs.fabric]
        samples = [{d: Answer.from_dict(a) for d, a in sample.items()} for sample in observations["samples"]]
        seen = union(names, samples)
        planned: dict[Socket, Socket] = {}
        cable_at: dict[Socket, int] = {}
        # all fabrics, because servers see the cables of the others too and a cable can end up in the wrong fabric
        for link in plan.links.values():
            a, b = ends_of(link)
            planned[a], planned[b] = b, a
            cable_at[a] = cable_at[b] = link.cable
        mine = {end for link in links for end in ends_of(link)}
        everything = explain(names, solve(names, planned, seen.cables), cable_at)
        explanations = [one for one in everything if _concerns(plan, inputs.fabric, one, mine)]
        parts = _Parts(plan, seen, explanations, observations.get("links", {})).of(links)
        state = combine([part.state for part in parts] + [State.FAIL for _ in explanations])
        explained = {port for one in explanations for port in one.ports}
        others = [part for link, part in zip(links, parts, strict=True) if explained.isdisjoint(ends_of(link))]
        place = ", ".join(text for text in (_places(explanations), places_of(others)) if text)
        return Result(
            self.name, inputs.fabric, state, _summary(parts, explanations), place, parts=tuple(parts),
            evidence={"explanations": [_as_dict(one) for one in explanations], "silent": seen.silent},
        )  # fmt: skip


def ends_of(link: Link) -> tuple[Socket, Socket]:
    """The two sockets of a planned cable."""
    return Socket(link.a.device, link.a.port), Socket(link.b.device, link.b.port)


def _concerns(plan: Plan, fabric: str, one: Explanation, mine: set[Socket]) -> bool:
    """Whether an explanation is about a fabric: it touches its cables, or a spare port of its switches."""
    devices = {port.device for port in one.ports if port.device in plan.switches}
    return bool(mine.intersection(one.ports)) or any(plan.switches[device].fabric == fabric for device in devices)


class _Parts:
    """Judges cable by cable."""

    def __init__(self, plan: Plan, seen: Seen, explanations: list[Explanation], states: dict[str, Any]) -> None:
        self.plan, self.seen = plan, seen
        self.reason = {port: one.text for one in explanations for port in one.ports}
        self.states = states
        self.ports: dict[str, dict[str, PortState]] = {}

    def of(self, links: list[Link]) -> list[Result]:
        """Return a part per cable."""
        return [self._link(link) for link in links]

    def _link(self, link: Link) -> Result:
        a, b = ends_of(link)
        state, text = self._verdict(link, a, b)
        place = "" if state is State.PASS else f"cable {link.cable}: {a} to {b}"
        if state is State.ERROR:  # the cable may be right: its devices give no answer
            place = ", ".join(end.device for end in (a, b) if end.device in self.seen.silent)
        labels = {"device": b.device, "port": b.port, "link": link.id}
        return Result("cabling", f"{a} -> {b}", state, text, place, labels=labels)

    def _verdict(self, link: Link, a: Socket, b: Socket) -> tuple[State, str]:
        seen = self.seen
        if seen.cables.get(a) == b:
            return self._right(a, b)
        found = {end: far for end in (a, b) if (far := seen.cables.get(end))}
        if found:
            what = "; ".join(f"{end} sees {far}" for end, far in found.items())
            return State.FAIL, f"wrong: {what}. {self._why(a, b)}"
        strangers = [f"{end} sees {seen.strangers[end]}" for end in (a, b) if end in seen.strangers]
        if strangers:
            return State.FAIL, f"wrong: {'; '.join(strangers)}, which is not in the plan"
        silent = [end.device for end in (a, b) if end.device in seen.silent or end.device in self.plan.edges]
        if len(silent) == 2:
            reasons = {seen.silent.get(device, "not ours to ask") for device in silent}
            return State.ERROR, f"neither end could be asked: {'; '.join(sorted(reasons))}"
        return self._absent(link, a, b)

    def _why(self, a: Socket, b: Socket) -> str:
        reason = self.reason.get(a) or self.reason.get(b)
        return reason[0].upper() + reason[1:] if reason else "The plan has no use for that far end"

    def _right(self, a: Socket, b: Socket) -> tuple[State, str]:
        flapping = [f"{end}: {self.seen.flapping[end]}" for end in (a, b) if end in self.seen.flapping]
        if flapping:
            return State.FAIL, f"flapping, in the right ports: {'; '.join(flapping)}"
        if a in self.seen.one_way:
            return State.FAIL, "one-way: only one end sees the other; a fibre of the pair may be broken"
        return State.PASS, "as planned"

    def _absent(self, link: Link, a: Socket, b: Socket) -> tuple[State, str]:
        """Nobody sees this cable: dead when a port says it is down, missing neighbour when both are up."""
        known = {end: self._up(end.device, link.end(end.device).interface) for end in (a, b)}
        down = [str(end) for end, up in known.items() if up is False]
        absent = [str(end) for end, up in known.items() if up is None and end.device not in self.seen.silent]
        if down:
            return State.FAIL, f"dead: {' and '.join(down)} down, no neighbour on either end"
        if any(up for up in known.values()):
            return (
                State.FAIL,
                "no neighbour heard although the port is up: LLDP is off at the far end, or the cable leads elsewhere",
            )
        hint = f" ({' and '.join(absent)} not on the device: another breakout?)" if absent else ""
        return State.FAIL, f"missing: no neighbour heard on either end{hint}"

    def _up(self, device: str, interface: str) -> bool | None:
        if device not in self.ports:
            answer = Answer.from_dict(self.states.get(device, {"error": "not asked"}))
            try:
                self.ports[device] = parse_links(answer.text) if answer.ok else {}
            except UnreadableError:
                self.ports[device] = {}
        state = self.ports[device].get(interface)
        return state.up if state else None


def _summary(parts: list[Result], explanations: list[Explanation]) -> str:
    states = Counter(part.state for part in parts)
    if set(states) == {State.PASS} and not explanations:
        return f"all {len(parts)} cables are as planned"
    counts = ", ".join(f"{n} {state.value}" for state, n in states.items())
    if not explanations:
        first = next(part for part in parts if part.state is not State.PASS)
        return f"{counts} of {len(parts)} cables; first: {first.subject}: {first.text}"
    moves = sum(len(one.moves) for one in explanations)
    return f"{counts} of {len(parts)} cables; {moves} moves put it right: " + "; ".join(
        e.text for e in explanations[:12]
    )


def _places(explanations: list[Explanation]) -> str:
    return ", ".join(dict.fromkeys(str(move.source) for one in explanations for move in one.moves))


def _as_dict(one: Explanation) -> dict[str, Any]:
    moves = [{"from": str(m.source), "to": str(m.target), "keeps": str(m.kept)} for m in one.moves]
    return {"kind": one.kind, "cables": list(one.cables), "text": one.text, "racks": list(one.racks), "moves": moves}


class PortSpeed(Check):
    """Every cabled port of a switch runs at the plan's speed, in the plan's breakout.

    Pass: each planned interface is there with its speed.
    Fail: an interface is missing although its cage is there (wrong breakout), or runs at another speed.
    Error: the switch gives no port list, or no speed.
    Skipped: where ports are virtual.
    Example:
        port-speed:
          - {device: be-leaf-01}
    """

    stage = Stage.CABLING
    Inputs = DeviceInputs
    questions = ("port-speeds",)
    physical = True

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per managed switch."""
        yield from (DeviceInputs(device=s.name) for s in plan.switches.values() if s.managed)

    def judge(self, plan: Plan, inputs: DeviceInputs, observations: Observations) -> Result:
        """Compare port by port."""
        ports = parse_speeds(answer_of(observations, inputs.device, "port-speeds"))
        switch = plan.switches[inputs.device]
        parts = []
        for port in switch.ports:
            if not port.link:
                continue
            state, text = _speed_verdict(port.interface, port.speed, ports)
            breakouts = [one for one in switch.breakouts if one.cage == port.cage]
            if port.interface not in ports and breakouts:
                text += f": set breakout {breakouts[0].mode} on {breakouts[0].parent} ({breakouts[0].interface})"
            place = "" if state is State.PASS else f"{switch.name} {port.name} ({port.interface})"
            labels = {"device": switch.name, "port": port.name}
            parts.append(Result(self.name, f"{switch.name} {port.name}", state, text, place, labels=labels))
        return whole(self.name, inputs.device, parts, "ports run at their planned speed")


def _speed_verdict(interface: str, speed: int, ports: dict[str, PortState]) -> tuple[State, str]:
    port = ports.get(interface)
    if port is None:
        return State.FAIL, f"wrong breakout: {interface} is not on the device"
    if not port.speed:
        return State.ERROR, f"{interface} does not say its speed"
    if port.speed != speed:
        return State.FAIL, f"wrong speed: {port.speed} Gb/s, the plan says {speed} Gb/s"
    return State.PASS, f"{speed} Gb/s"


def whole(check: str, subject: str, parts: list[Result], good: str) -> Result:
    """Return the result of a whole with its parts, its text naming the first part that is not good.

    What was skipped is never counted among what is good.
    """
    if not parts:
        message = f"the plan has nothing to check on {subject}"
        raise NotJudgedError(message, State.SKIPPED)
    bad = [part for part in parts if part.state not in {State.PASS, State.SKIPPED}]
    if not bad:
        text = _good(parts, good)
        return Result(check, subject, combine(p.state for p in parts), text, parts=tuple(parts))
    more = f" (and {len(bad) - 1} more)" if len(bad) > 1 else ""
    first = next((part for part in bad if part.state is combine(p.state for p in bad)), bad[0])
    text = f"{first.subject}: {first.text}{more}"
    return Result(check, subject, combine(p.state for p in parts), text, first.place, parts=tuple(parts))


def _good(parts: list[Result], good: str) -> str:
    skipped = [part for part in parts if part.state is State.SKIPPED]
    if not skipped:
        return f"all {len(parts)} {good}"
    more = f" (and {len(skipped) - 1} more)" if len(skipped) > 1 else ""
    left = f"{skipped[0].subject}: {skipped[0].text}{more}"
    passed = len(parts) - len(skipped)
    return f"{passed} of {len(parts)} {good}; skipped: {left}" if passed else left
