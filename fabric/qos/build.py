"""RoCE classes, PFC, ECN and headroom of a fabric, from the inventory's few words and the switch's silicon table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.plan import Headroom, Qos, TrafficClass
from fabric.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.hardware.profiles import SwitchProfile
    from fabric.inventory.load import Inventory
    from fabric.inventory.models import Roce
    from fabric.problem import Problem

WATCHDOG_POLL_MS = 200
_DSCPS = range(64)


def traffic_classes(roce: Roce) -> tuple[TrafficClass, ...]:
    """The three classes: lossless RDMA, congestion notification (strict), and all other traffic in queue 0."""
    queue = roce.priority if roce.queue is None else roce.queue
    lossless = TrafficClass(
        roce.name,
        (roce.dscp,),
        roce.priority,
        queue,
        True,
        roce.weight,
        roce.ecn.min,
        roce.ecn.max,
        roce.ecn.probability,
        roce.ecn.speed,
    )
    notify = TrafficClass("cnp", (roce.cnp_dscp,), roce.cnp_queue, roce.cnp_queue, False, 0)
    rest = tuple(dscp for dscp in _DSCPS if dscp not in (roce.dscp, roce.cnp_dscp))
    return (lossless, notify, TrafficClass("default", rest, 0, 0, False, 100 - roce.weight))


def build_qos(
    inventory: Inventory,
    fabric: str,
    profiles: Iterable[SwitchProfile],
    ports: Iterable[tuple[int, int]],
    problems: list[Problem],
) -> Qos | None:
    """Return a fabric's QoS; `ports` are the (speed Gb/s, cable m) of its lossless ports. Adds problems it finds."""
    roce = inventory.site.roce
    profile = max(profiles, key=lambda p: len(p.headroom))
    rows: dict[tuple[int, int], Headroom] = {}
    for speed, length in sorted(set(ports)):
        fitting = [row for row in profile.headroom if row.speed == speed and row.cable_m >= length]
        if not fitting:
            text = f"no headroom figure for {speed}G over {length} m on {profile.model}"
            fix = "shorten the cable, or add a row to the hardware profile"
            problems.append(inventory.problem("qos.headroom", ("cables",), f"fabric {fabric}", text, fix))
            continue
        row = min(fitting, key=lambda r: r.cable_m)
        rows[row.speed, row.cable_m] = row
    return Qos(
        classes=traffic_classes(roce),
        watchdog_detection_ms=roce.watchdog,
        watchdog_restoration_ms=roce.restoration,
        watchdog_poll_ms=min(WATCHDOG_POLL_MS, max(100, roce.watchdog)),
        watchdog_action=roce.watchdog_action,
        headroom=tuple(rows[key] for key in sorted(rows)),
        pool_size=profile.pool_size,
        pool_xoff=profile.pool_xoff,
        hash_qpn=roce.qpn_hash and profile.features.get("qpn_hash", False),
        headroom_ratio=roce.headroom_ratio,
    )


def _clash(what: str, value: int, rdma: tuple[str, int], cnp: tuple[str, int]) -> tuple[str, str, str]:
    """(field, text, fix) of a number that RDMA and CNP share: the one that left its default gets it back."""
    field, default = rdma if value == cnp[1] else cnp
    return field, f"{what} {value} is both RDMA and CNP", f"use `{field}: {default}`"


def check_roce(inventory: Inventory, problems: list[Problem]) -> None:
    """Add what is wrong with the inventory's `roce`, where a fabric carries RDMA."""
    site = inventory.site
    roce = site.roce
    if site.profile != "distributed" or not any(f.managed and "backend" in f.carries for f in site.fabrics.values()):
        return
    queue = roce.priority if roce.queue is None else roce.queue
    both = [name for name in ("queue", "priority") if getattr(roce, name) == roce.cnp_queue]
    wrong = (
        (
            roce.dscp == roce.cnp_dscp,
            *_clash("DSCP", roce.dscp, ("dscp", 26), ("cnp_dscp", 48)),
        ),
        *((True, *_clash(name, roce.cnp_queue, (name, 3), ("cnp_queue", 6))) for name in both),
        (0 in (queue, roce.priority), "priority", "queue and priority 0 carry all other traffic", "use priority 3"),
        (
            roce.ecn.min >= roce.ecn.max,
            "ecn.min",
            f"{roce.ecn.min} is not below the maximum {roce.ecn.max}",
            "lower it",
        ),
        (not 100 <= roce.watchdog <= 5000, "watchdog", f"{roce.watchdog} ms is outside 100 to 5000 ms", "use 200ms"),
        (
            not 100 <= roce.restoration <= 60000,
            "restoration",
            f"{roce.restoration} ms is outside 100 to 60000 ms",
            "use 400ms",
        ),
    )
    found = [
        inventory.problem(f"qos.{name.partition('.')[0]}", ("roce", *name.split(".")), "roce", text, fix)
        for is_wrong, name, text, fix in wrong
        if is_wrong
    ]
    if roce.restoration < roce.watchdog:
        text = "the watchdog restores sooner than it detects: it will flap"
        fix = "set restoration to twice the detection time"
        found.append(inventory.problem("qos.watchdog", ("roce",), "roce", text, fix, Severity.WARNING))
    problems += [problem for problem in found if problem not in problems]
