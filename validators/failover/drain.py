"""Judge a drain: no established flow cut before its deadline, no new flow on the draining gateway, undo works; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from validators.results import Measurement, Result, State, combine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CHECK = "gateway.drain"


@dataclass(frozen=True)
class OpenFlow:
    """A flow that was established when the drain began; `cut_ns` None: it ended by itself or was never cut."""

    name: str
    gateway: str
    cut_ns: int | None
    longest_silence_ms: float = 0.0


@dataclass(frozen=True)
class NewFlow:
    """A connection opened after the drain began: when, on which gateway it landed (empty: nowhere), if it worked.

    `at_once`: with its first packet, not only when the client asked again.
    """

    opened_ns: int
    gateway: str
    answered: bool
    at_once: bool = True


@dataclass(frozen=True)
class DrainSeen:
    """All times in ns on one clock. `left_at_stop`: entries in the draining gateway's table when it was stopped.

    `may_repeat` is the share of new flows whose first packet may be lost while routes move: a client sends it again. As
    few may land elsewhere after the undo.
    `others` flows were on other gateways while it stopped, `others_cut` of them were cut by that.

    `settle_ms` is how long after `began_ns` new flows may still land (routing has to be told). `stopped_ns` None: the
    gateway was not stopped. `after_undo` are new flows opened after the drain was undone.
    """

    gateway: str
    began_ns: int
    deadline_ns: int
    stopped_ns: int | None
    open_flows: tuple[OpenFlow, ...]
    new_flows: tuple[NewFlow, ...]
    after_undo: tuple[NewFlow, ...] = ()
    left_at_stop: int | None = None
    settle_ms: float = 0.0
    others: int = 0
    others_cut: int = 0
    may_repeat: float = 0.0


def judge(subject: str, seen: DrainSeen, *, labels: Mapping[str, str] | None = None) -> Result:
    """Return one result with a part per promise."""
    parts = (
        _open_flows(subject, seen),
        _landings(subject, seen),
        _service(subject, seen),
        _stop(subject, seen),
        _undo(subject, seen),
    )
    asked = [part.state for part in parts if part.state is not State.SKIPPED]
    state = combine(asked)
    text = "; ".join(part.text for part in parts if part.state is state)
    return Result(CHECK, subject, state, text, parts=parts, labels=dict(labels or {}))


def _open_flows(subject: str, seen: DrainSeen) -> Result:
    name = f"{subject}: established flows"
    mine = [flow for flow in seen.open_flows if flow.gateway == seen.gateway]
    if not mine:
        return Result(CHECK, name, State.ERROR, "no flow was established on the draining gateway: nothing was tested")
    early = [flow for flow in mine if flow.cut_ns is not None and flow.cut_ns < seen.deadline_ns]
    worst = max(flow.longest_silence_ms for flow in mine)
    figure = Measurement("longest silence while draining", round(worst, 1), "ms", len(mine))
    if early:
        first = min(early, key=lambda flow: flow.cut_ns or 0)
        after = ((first.cut_ns or 0) - seen.began_ns) / 1e9
        text = f"{len(early)} of {len(mine)} established flows were cut before the deadline"
        text += f", the first ({first.name}) after {after:.1f} s"
        return Result(CHECK, name, State.FAIL, text, measurements=(figure,))
    return Result(CHECK, name, State.PASS, f"none of {len(mine)} established flows was cut", measurements=(figure,))


def _landings(subject: str, seen: DrainSeen) -> Result:
    name = f"{subject}: new flows"
    from_ns = seen.began_ns + int(seen.settle_ms * 1e6)
    late = [flow for flow in seen.new_flows if flow.opened_ns >= from_ns]
    if not late:
        return Result(CHECK, name, State.ERROR, "no new flow was tried while the gateway drained")
    landed = [flow for flow in late if flow.gateway == seen.gateway and flow.answered]
    state = State.FAIL if landed else State.PASS
    return Result(
        CHECK, name, state, f"{len(landed)} of {len(late)} new flows landed on {seen.gateway} while it drained"
    )


def _service(subject: str, seen: DrainSeen) -> Result:
    """With another gateway in the group, new flows must be served by it."""
    name = f"{subject}: new flows elsewhere"
    others = {flow.gateway for flow in seen.open_flows} | {flow.gateway for flow in seen.new_flows}
    others -= {seen.gateway, ""}
    if not others:
        return Result(CHECK, name, State.SKIPPED, "there is no other gateway to take new flows")
    from_ns = seen.began_ns + int(seen.settle_ms * 1e6)
    late = [flow for flow in seen.new_flows if flow.opened_ns >= from_ns]
    failed = [flow for flow in late if not flow.answered]
    again = [flow for flow in late if flow.answered and not flow.at_once]
    state = State.FAIL if failed or len(again) > seen.may_repeat * len(late) else State.PASS
    text = f"{len(late) - len(failed) - len(again)} of {len(late)} new flows were served at once"
    text += f", {len(again)} when asked again" if again else ""
    return Result(CHECK, name, state, text + (f", {len(failed)} not at all" if failed else ""))


def _stop(subject: str, seen: DrainSeen) -> Result:
    name = f"{subject}: stop"
    if seen.stopped_ns is None:
        return Result(CHECK, name, State.SKIPPED, "the gateway was not stopped")
    if seen.left_at_stop is None:
        return Result(CHECK, name, State.ERROR, "how many flows were left at the stop is not known")
    early = seen.stopped_ns < seen.deadline_ns
    state = State.FAIL if (seen.left_at_stop and early) or seen.others_cut else State.PASS
    text = f"{seen.left_at_stop} flows were left when {seen.gateway} stopped"
    if seen.others:
        text += f", {seen.others_cut} of {seen.others} flows elsewhere were cut by it"
    return Result(CHECK, name, state, text)


def _undo(subject: str, seen: DrainSeen) -> Result:
    name = f"{subject}: undo"
    if not seen.after_undo:
        return Result(CHECK, name, State.SKIPPED, "the drain was not undone")
    back = [flow for flow in seen.after_undo if flow.gateway == seen.gateway and flow.answered]
    elsewhere = sorted({flow.gateway or "nowhere" for flow in seen.after_undo} - {seen.gateway})
    missing = len(seen.after_undo) - len(back)
    state = State.FAIL if not back or missing > seen.may_repeat * len(seen.after_undo) else State.PASS
    text = f"after undo {len(back)} of {len(seen.after_undo)} new flows landed on {seen.gateway} again"
    return Result(CHECK, name, state, text + (f", the others on {', '.join(elsewhere)}" if missing else ""))


def gateway_of(public: str, owners: Mapping[str, Sequence[str]]) -> str:
    """Return which gateway a public address belongs to; empty when to none."""
    return next((name for name, addresses in owners.items() if public in addresses), "")
