"""What watermarks must say of a switch's lossless buffers: headroom that was used up is loss, or was about to be.

A watermark is the most that was ever held since it was cleared, so two looks say when: what rose between them came from
what ran between them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fabric.qos.headroom import lossless_ports
from fabric.render.sonic_qos import INGRESS_POOL
from validators.counters.watermarks import GROUP_POLL, POOL_POLL, Polling
from validators.results import COMPUTED, Measurement, Result, State

if TYPE_CHECKING:
    from fabric.plan import Headroom, Plan, Port, Qos, Switch, TrafficClass

SHARE, QUEUE_PEAK = "headroom peak of planned headroom", "queue peak"
POOL_SHARE, POOL_PEAK = "shared headroom peak of the pool's", "buffer pool peak"
# Ethernet header and checksum, which an MTU leaves out
_ETHERNET = 18
_CLEAR = "sudo sonic-clear"
_STALE = "watermarks are not polled (`sudo counterpoll watermark enable`), so what they say is old"

Groups = dict[tuple[str, int], int | None]
Pools = dict[str, int | None]


@dataclass(frozen=True, slots=True)
class Look:
    """What a switch's watermarks said at one time, bytes; empty where it did not say."""

    headroom: Groups = field(default_factory=dict)
    queues: Groups = field(default_factory=dict)
    pool_headroom: Pools = field(default_factory=dict)
    pools: Pools = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Peak:
    """A watermark at both looks, the bytes that are planned, and those of the largest frame."""

    before: int | None
    after: int | None
    planned: int
    frame: int
    polled: bool

    @property
    def share(self) -> float:
        """Per cent of what is planned."""
        return 100 * (self.after or 0) / self.planned

    def state(self) -> State:
        """FAIL when no frame fits any more; UNKNOWN when the number is missing, old, or of a part of the run only."""
        if self.after is None:
            return State.UNKNOWN
        if self.after + self.frame > self.planned:
            return State.FAIL
        cleared = self.before is not None and self.after < self.before
        return State.UNKNOWN if cleared or not self.polled else State.PASS

    def told(self, clear: str) -> str:
        """Say what was held and when; `clear` is the command that clears this watermark."""
        if self.after is None:
            return "no watermark (N/A, or not in the table), which is not 0: see `counterpoll show`, or ask the vendor"
        amount = f"peak {self.after:,} of {self.planned:,} planned bytes ({self.share:.3g} %)"
        if self.before is not None and self.after < self.before:
            text = (
                f"{amount}, {self.before:,} at the first look: somebody cleared the watermark meanwhile, or orchagent"
            )
            return f"{text} was started anew, and the peak before that is lost: run again"
        if not self.polled:
            return f"{amount}, but {_STALE}"
        if self.before is None or not self.after:
            return f"{amount} since it was last cleared" if self.after else "no headroom was used"
        if self.after > self.before:
            return f"{amount}, risen in this run from {self.before:,}"
        again = f"; clear it (`{_CLEAR} {clear}`) when nobody else reads it, and run again"
        return f"{amount}, no higher than at the first look{again if self.state() is State.FAIL else ''}"


def judge_groups(
    check: str, plan: Plan, switch: Switch, looks: tuple[Look, Look], polls: dict[str, Polling]
) -> list[Result]:
    """Judge the headroom of every lossless priority of a switch's ports."""
    qos = _qos(plan, switch)
    polled = polls.get(GROUP_POLL, Polling()).enabled
    frame = plan.fabrics[switch.fabric].mtu + _ETHERNET
    found = []
    for port, planned in lossless_ports(plan, switch):
        for item in qos.lossless:
            before, after = (look.headroom.get((port.interface, item.priority)) for look in looks)
            peak = _Peak(before, after, planned.xoff, frame, polled)
            found.append(_group(check, switch, port, planned, item, peak, looks[1].queues))
    return found


def judge_pool(check: str, plan: Plan, switch: Switch, looks: tuple[Look, Look], polls: dict[str, Polling]) -> Result:
    """Judge the headroom that all ports of a switch share, which a plan may promise more than once."""
    qos = _qos(plan, switch)
    polled = polls.get(POOL_POLL, Polling()).enabled
    before, after = (look.pool_headroom.get(INGRESS_POOL) for look in looks)
    peak = _Peak(before, after, qos.pool_xoff, plan.fabrics[switch.fabric].mtu + _ETHERNET, polled)
    state, text = peak.state(), peak.told("headroom-pool watermark")
    if after is None:
        text += "; an ASIC without a headroom pool never has one: then say `pool: false` in the catalog"
    elif state is State.FAIL:
        text = f"the headroom that ports share is used up: {text}. What a paused port still gets is lost then: lower"
        text += (
            " `roce.headroom_ratio` and use fewer lossless ports or shorter cables on this switch, or have the vendor"
        )
        text += " enlarge the pool"
    measured = [Measurement(POOL_SHARE, peak.share, "%", tool="SONiC user watermark")] if after is not None else []
    held = looks[1].pools.get(INGRESS_POOL)
    measured += [Measurement(POOL_PEAK, float(held), "bytes", tool="SONiC user watermark")] if held is not None else []
    place = "" if state is State.PASS else f"{switch.name} {INGRESS_POOL}"
    subject = f"{switch.name} shared headroom"
    return Result(check, subject, state, text, place, tuple(measured), labels={"device": switch.name})


def _group(
    check: str, switch: Switch, port: Port, planned: Headroom, item: TrafficClass, peak: _Peak, queues: Groups
) -> Result:
    state, text = peak.state(), peak.told("priority-group watermark headroom")
    if state is State.FAIL:
        text = (
            f"headroom used up: {text}, and what came after it was lost (`show priority-group drop counters`): compare"
        )
        text += (
            f" the cable and how fast its far end stops with the plan ({port.speed}G, {planned.cable_m} m); a longer"
        )
        text += " length in the fabric's `cables` plans more headroom"
    where = f"{switch.name} {port.name} ({port.interface}) priority {item.priority}"
    labels = {"device": switch.name, "port": port.name, "link": port.link, "priority": str(item.priority)}
    return Result(
        check, f"{switch.name} {port.name} priority {item.priority}", state, text,
        "" if state is State.PASS else where, _measured(peak, queues.get((port.interface, item.queue))), labels=labels,
    )  # fmt: skip


def _measured(peak: _Peak, queue: int | None) -> tuple[Measurement, ...]:
    """The peak as a share of the planned headroom, which stands beside it, and the most that the queue held."""
    found = [Measurement("planned headroom", float(peak.planned), "bytes", origin=COMPUTED)]
    if peak.after is not None:
        found.append(Measurement("headroom peak", float(peak.after), "bytes", tool="SONiC user watermark"))
        found.append(Measurement(SHARE, peak.share, "%", tool="SONiC user watermark"))
    if queue is not None:
        found.append(Measurement(QUEUE_PEAK, float(queue), "bytes", tool="SONiC user watermark"))
    return tuple(found)


def _qos(plan: Plan, switch: Switch) -> Qos:
    qos = plan.fabrics[switch.fabric].qos
    assert qos is not None
    return qos
