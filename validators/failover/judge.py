"""Judge a failover: what the plan declares about each NAT mode against what flows and canaries met; pure.

Stateful modes (masquerade, portForward) share no state between gateways: their flows must die and be made again on
another gateway. Stateless static flows must survive. New connections must work again within the detection time (BFD)
plus what routing needs. A stateful flow that lives through a failover is not good news but a contradiction: the flow
never went through the gateway that failed, or the gateways share state that nobody declared.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from validators.results import Measurement, Result, State, combine

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from validators.failover.observed import FlowsSeen, Silence, SlotSeen

CHECK = "gateway.failover"
STATEFUL = ("masquerade", "portForward")


@dataclass(frozen=True)
class Declared:
    """What is promised: `mode` of the exposure, `within_ms` until new connections work, addresses before and after.

    `before` and `after` are the public addresses of the gateway that fails and of those that take over; empty: any.
    `state_kept`: the event leaves the gateway and its flows where they are (a link of several is lost). `told`: who
    takes over resets TCP flows that it does not know, so that no end waits for its own timers.
    """

    mode: str
    within_ms: float
    before: frozenset[str] = frozenset()
    after: frozenset[str] = frozenset()
    state_kept: bool = False
    told: bool = False

    @property
    def survives(self) -> bool:
        """Stateless flows live on, and all do when their gateway does; stateful ones die with it."""
        return self.state_kept or self.mode not in STATEFUL


def judge(
    subject: str,
    seen: FlowsSeen,
    declared: Declared,
    *,
    longest_pause_ms: float = 1000.0,
    labels: Mapping[str, str] | None = None,
) -> Result:
    """Return one result with parts: the measurement itself, long flows, where they were re-made, new connections.

    A silence is known to the time between two frames, and never taken for shorter than it was: a flow that was silent
    within its limit is proven to be, but one that was not may owe that to frames that are far apart. So the measurement
    is unknown when they are further apart than a quarter of `within_ms`.

    What fails is unknown when a tester's host stood still for longer than `longest_pause_ms`: whatever it then missed
    or sent late would be held against the gateway. What a pause does not explain fails all the same: a silence without
    end that is longer than all of it.
    """
    marks = {**(labels or {}), "mode": declared.mode}
    parts = [_quality(subject, seen, declared.within_ms / 4), _long_flows(subject, seen, declared)]
    if not declared.survives:
        parts.append(_re_made(subject, seen, declared))
    parts.append(_new_connections(subject, seen, declared))
    if seen.pause_ms > longest_pause_ms:
        parts = [_held_up(part, seen.pause_ms) for part in parts]
    state = combine(part.state for part in parts)
    text = "; ".join(part.text for part in parts if part.state is state)
    figures = tuple(figure for part in parts for figure in part.measurements)
    evidence = {
        "slots": [asdict(slot) for slot in seen.slots],
        "declared": {"mode": declared.mode, "within_ms": declared.within_ms},
    }
    return Result(
        CHECK, subject, state, text, measurements=figures, parts=tuple(parts), labels=marks, evidence=evidence
    )


def _held_up(part: Result, pause_ms: float) -> Result:
    if part.state not in (State.FAIL, State.ERROR) or part.evidence.get("certain"):
        return part
    text = f"{part.text}; tester-limited: a tester's host did not let it run for {pause_ms:.0f} ms"
    return replace(part, state=State.UNKNOWN, text=text)


def _quality(subject: str, seen: FlowsSeen, finest_ms: float) -> Result:
    """Say whether the measurement is good enough to judge by."""
    trials = max(1, len(seen.slots))
    figures: tuple[Measurement, ...] = ()
    if math.isfinite(seen.resolution_ms):
        tool = "p99 of send intervals"
        figures = (Measurement("failover resolution", seen.resolution_ms, "ms", trials, tool=tool),)
    name = f"{subject}: measurement"
    if not seen.slots:
        return Result(CHECK, name, State.ERROR, f"none of {seen.never_opened} flows opened before the event")
    troubles = []
    if seen.never_opened:
        troubles.append(f"{seen.never_opened} flows never opened")
    if seen.tester_drops:
        troubles.append(f"the tester lost {seen.tester_drops} frames itself")
    if troubles:
        return Result(CHECK, name, State.ERROR, "; ".join(troubles), measurements=figures)
    if seen.resolution_ms > finest_ms:
        wide = f"{seen.resolution_ms:g} ms" if figures else "half a second and more"
        text = f"tester-limited: {wide} between frames of a flow, {finest_ms:g} ms wanted"
        return Result(CHECK, name, State.UNKNOWN, text, measurements=figures)
    return Result(
        CHECK,
        name,
        State.PASS,
        f"{len(seen.slots)} flows, silence known to {seen.resolution_ms:g} ms",
        measurements=figures,
    )


def _long_flows(subject: str, seen: FlowsSeen, declared: Declared) -> Result:
    lived = [slot for slot in seen.slots if slot.survived]
    died = [slot for slot in seen.slots if not slot.survived]
    name = f"{subject}: long flows"
    total = len(seen.slots)
    if not total:
        return Result(CHECK, name, State.ERROR, "no long flow was open")
    resets = sum(slot.reset for slot in died)
    how = f"{len(died)} of {total} died ({resets} by RST, {len(died) - resets} in silence)"
    if not declared.survives:
        untold = len(died) - resets if declared.told else 0
        state = State.FAIL if lived or untold else State.PASS
        text = f"{declared.mode}: {how}"
        text += f"; {untold} were not told, a reset is declared" if untold else ""
        if lived:
            text += f"; {len(lived)} lived on although the gateway with their state was to lose their traffic"
        return Result(CHECK, name, state, text)
    worst = max((slot.outage_ms for slot in lived), default=0.0)
    late = [slot for slot in lived if slot.outage_ms > declared.within_ms]
    moved = [slot for slot in seen.slots if slot.moved]
    figures = outage_figures(lived)
    text = f"{declared.mode}: {len(lived)} of {total} survived, longest outage {worst:.0f} ms"
    if died:
        text += f"; {how}"
    if late:
        text += f"; {len(late)} were out for more than {declared.within_ms:g} ms"
    if moved:
        text += f"; {len(moved)} changed their public address"
    gone = [way for slot in died for way in (slot.towards, slot.back) if _for_good(way, seen, declared)]
    state = State.FAIL if died or late or moved else State.PASS
    return Result(CHECK, name, state, text, measurements=figures, evidence={"certain": bool(gone)})


def _for_good(silence: Silence, seen: FlowsSeen, declared: Declared) -> bool:
    return silence.first_good_ns is None and silence.outage_ms > declared.within_ms + seen.pause_ms


def outage_figures(slots: Iterable[SlotSeen]) -> tuple[Measurement, ...]:
    """Return median and worst outage of flows that came back."""
    outages = sorted(slot.outage_ms for slot in slots)
    if not outages:
        return ()
    middle = outages[len(outages) // 2]
    return (
        Measurement("outage p50", round(middle, 1), "ms", len(outages)),
        Measurement("outage max", round(outages[-1], 1), "ms", len(outages)),
    )


def _re_made(subject: str, seen: FlowsSeen, declared: Declared) -> Result:
    """Stateful connections must be made again, and elsewhere: on an address of a gateway that took over."""
    name = f"{subject}: re-made connections"
    died = [slot for slot in seen.slots if not slot.survived]
    again = [slot for slot in died if slot.remade_ms is not None]
    wrong = _wrong_addresses(again, declared)
    times = sorted(slot.remade_ms for slot in again if slot.remade_ms is not None)
    figures = (Measurement("re-made max", round(times[-1], 1), "ms", len(times)),) if times else ()
    text = f"{len(again)} of {len(died)} dead connections were made again"
    if times:
        text += f", the last after {times[-1]:.0f} ms"
    if wrong:
        text += f"; {wrong}"
    state = State.FAIL if len(again) < len(died) or wrong else State.PASS if died else State.UNKNOWN
    return Result(CHECK, name, state, text, measurements=figures)


def _wrong_addresses(slots: Sequence[SlotSeen], declared: Declared) -> str:
    if declared.mode != "masquerade":
        return ""
    strangers = {slot.public_before for slot in slots if declared.before and slot.public_before not in declared.before}
    strangers |= {slot.public_after for slot in slots if declared.after and slot.public_after not in declared.after}
    if strangers:
        return f"not on the declared addresses: {', '.join(sorted(strangers)[:4])}"
    return ""


def _new_connections(subject: str, seen: FlowsSeen, declared: Declared) -> Result:
    name = f"{subject}: new connections"
    silence: Silence | None = seen.new_silence
    if silence is None:
        return Result(CHECK, name, State.ERROR, "too few new connections were answered to see a gap")
    figure = Measurement("new connections out", silence.outage_ms, "ms", seen.canaries_opened)
    if silence.first_good_ns is None:
        text = f"new connections never worked again ({silence.outage_ms:.0f} ms until the end)"
        certain = {"certain": _for_good(silence, seen, declared)}
        return Result(CHECK, name, State.FAIL, text, measurements=(figure,), evidence=certain)
    state = State.PASS if silence.outage_ms <= declared.within_ms else State.FAIL
    text = f"new connections were out for {silence.outage_ms:.0f} ms, declared {declared.within_ms:g} ms"
    return Result(CHECK, name, state, text, measurements=(figure,))
