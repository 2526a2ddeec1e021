"""The tables of `kvfabric capacity`, for the terminal and for the page alike."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fabric.analysis.capacity import layers
from fabric.plan_tenants import exposure_title

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fabric.analysis.capacity import Capacity

Section = tuple[str, tuple[str, ...], "Sequence[Sequence[Any]]"]
"""Title, header, rows."""


def sections(answer: Capacity) -> Iterator[Section]:
    """Yield every table that has rows."""
    for section in (_tiers(answer), _patterns(answer), _links(answer), *_gateways(answer), *_growth(answer)):
        if section[2]:
            yield section
    yield "Layers of a disaggregated stack", ("layer", "what the network gives", "from"), layers(answer)


def _tiers(answer: Capacity) -> Section:
    header = ("fabric", "tier", "switches", "above", "NIC ports", "down", "up", "oversubscription", "bisection")
    return (
        "Tiers (Gb/s one way, as cabled)",
        header,
        [
            (t.fabric, t.tier, t.switches, t.above, t.endpoints, t.down, t.up, f"{t.ratio:.2f}:1", t.bisection)
            for t in answer.tiers
        ],
    )


def _patterns(answer: Capacity) -> Section:
    header = ("fabric", "pattern", "pairs", "first hop alike", "QPs", "ideal", "hashed", "of ideal", "slowest pair")
    return (
        "Patterns (Gb/s, sum over pairs)",
        header,
        [
            (
                fabric,
                o.pattern,
                o.pairs,
                f"{o.local:.0%}",
                o.qps,
                f"{o.ideal:.0f}",
                f"{o.hashed:.0f}",
                f"{o.efficiency:.0%}",
                f"{o.worst:.1f}",
            )
            for fabric, o in answer.outcomes
        ],
    )


def _links(answer: Capacity) -> Section:
    """Loads of the links under each pattern with the fewest QPs; JSON and `--qps` have them for every number."""
    few = min((o.qps for _, o in answer.outcomes), default=0)
    return (
        f"Loads on links with {few} QP{'s' * (few > 1)} a pair (Gb/s)",
        ("fabric", "pattern", "tier", "links", "mean", "full", "fullest link", "load", "of"),
        [
            (fabric, o.pattern, t.tier, t.links, f"{t.mean:.1f}", t.full, name, f"{load:.0f}", f"{limit:.0f}")
            for fabric, o in answer.outcomes
            if o.qps == few
            for t in o.loads
            for name, load, limit in t.fullest
        ],
    )


def _gateways(answer: Capacity) -> list[Section]:
    state = ("tenant", "exposure", "addresses", "NAT ports", "idle s", "most at once", "new/s sustained")
    asked = ("tenant", "exposure", "asked/s", "at once", "in handshake", "to first byte ms", "Gb/s", "of", "too small")
    title = f"Gateways: {answer.gateway_gbps} Gb/s and {answer.conntrack} conntrack entries in all"
    found: list[Section] = [
        (
            title,
            state,
            [
                (
                    g.tenant,
                    exposure_title(g.mode, g.exposure),
                    g.addresses,
                    g.nat_ports,
                    g.idle_timeout_s,
                    g.most_at_once,
                    f"{g.new_per_s:.0f}",
                )
                for g in answer.gateways
            ],
        )
    ]
    rows = [
        (
            g.tenant,
            g.exposure,
            f"{g.asked_per_s:.0f}",
            f"{g.at_once:.0f}",
            f"{g.handshaking:.0f}",
            f"{g.handshake_s * 1e3:.0f}",
            f"{g.asked_gbps:.1f}",
            g.gbps,
            g.binds or "-",
        )
        for g in answer.gateways
        if g.asked_per_s
    ]
    return [*found, ("Gateways under the requests asked for", asked, rows)]


def _growth(answer: Capacity) -> list[Section]:
    ports = [(p.fabric, p.kind, p.zone or "not zoned", f"{p.speed}G", p.ports) for p in answer.spare_ports]
    return [
        ("Left in pools", ("pool", "range", "used", "left"), answer.pools),
        ("Ports without a cable", ("fabric", "switches", "zone", "speed", "ports"), ports),
    ]
