"""What counters must say after lossless traffic met congestion (after sonic-mgmt's RoCEv2 incast rules).

No loss, no NAK, pause on every lossless priority and on no lossy one; and the counters must exist, so that a device
that counts nothing cannot pass.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from validators.counters.readings import DROPS, NAKS, PAUSE, Key, MissingCounterError
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fabric.plan import Plan
    from validators.counters.readings import Readings


@dataclass(frozen=True, slots=True)
class Surface:
    """Which counters of a device must exist and obey: its ports, lossless priorities, and whether it is a host.

    `congested` is true where pause is expected; elsewhere pause on a lossless priority is only reported.
    """

    ports: tuple[str, ...]
    lossless: tuple[int, ...]
    host: bool = False
    congested: bool = True


def incast_rules(before: Readings, after: Readings, surface: Surface, labels: dict[str, str] | None = None) -> Result:
    """Judge one device. ERROR when a counter is missing, FAIL with every rule that was broken."""
    pauses = [Key(port, PAUSE, way, p) for port in surface.ports for way in ("rx", "tx") for p in range(8)]
    others = [Key(port, NAKS) for port in surface.ports] if surface.host else []
    others += [
        Key(port, DROPS, *(("",) if surface.host else ("tx", p))) for port in surface.ports for p in _queues(surface)
    ]
    subject = f"{before.device} {' '.join(surface.ports)}"
    known = pauses if not surface.host else [k for k in pauses if k.priority in surface.lossless]
    try:
        grown = before.delta(after, [*known, *others])
    except MissingCounterError as error:
        return Result("counters.incast", subject, State.ERROR, str(error), labels=labels or {})
    broken = _broken(grown, surface)
    text = "; ".join(broken) or "no loss, no NAK, pause on lossless priorities only"
    evidence = {str(key): value for key, value in grown.items() if value}
    state = State.FAIL if broken else State.PASS
    return Result("counters.incast", subject, state, text, labels=labels or {}, evidence=evidence)


def _queues(surface: Surface) -> Sequence[int]:
    return (-1,) if surface.host else surface.lossless


def _broken(grown: dict[Key, int], surface: Surface) -> list[str]:
    broken = [f"{key} +{n}" for key, n in grown.items() if n and key.what in {DROPS, NAKS}]
    lossy = [f"{key} +{n} on a lossy priority" for key, n in grown.items() if n and _lossy(key, surface)]
    silent = [
        f"no pause on lossless priority {priority}"
        for priority in surface.lossless
        if surface.congested and not any(n for k, n in grown.items() if k.what == PAUSE and k.priority == priority)
    ]
    return broken + lossy + silent


def _lossy(key: Key, surface: Surface) -> bool:
    return key.what == PAUSE and key.priority not in surface.lossless


def plan_labels(plan: Plan, device: str, interface: str) -> dict[str, str]:
    """Return what the plan knows of a port: device, port, far end, tenant, VRF; only the first two if unknown."""
    link = plan.link_at.get((device, interface))
    labels = {"device": device, "port": interface}
    if link is None:
        return labels
    far = link.far(device)
    labels |= {"port": link.end(device).port, "far": f"{far.device} {far.port}", "link": link.id}
    if link.tenant:
        labels |= {"tenant": link.tenant, "vrf": plan.tenants[link.tenant].vrf}
    return labels
