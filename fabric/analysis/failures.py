"""What every single and double failure leaves, from the plan alone.

Parts that fail: cables, optics (the ports of one breakout share a transceiver), switches, pipelines (cages that share
one), gateways and racks. After a failure the model is converged routing with equal-cost paths.

- `cut` servers have no working port any more in a fabric where they had one; `split` pairs of leaves have endpoints
  and no spine that joins them.
- `residual` is the worst leaf's bandwidth to the spines against before, `joint` the sum over all.
- `skew` is the busiest equal-cost cable against the mean when each spine gets an equal share of flows but has fewer
  cables to a leaf (1.0 is even). BGP does not weigh paths by what lies behind them.

Left out: see `LEFT_OUT`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from fabric.plan import EXTERNAL_LINK, FABRIC_LINK, SERVER_LINK
from fabric.tiers import require_two_tiers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fabric.plan import Plan, Switch


MODEL = (
    "Converged routing with equal-cost paths after each failure. Cut: no working port left in a fabric. Worst leaf and "
    "fabric: bandwidth to the spines against before. Skew: the busiest equal-cost cable against the mean (1.0 is even)."
)
LEFT_OUT = "how long convergence takes, packets lost meanwhile, load that moves to other links, two cables in one duct"


@dataclass(frozen=True, slots=True)
class Part:
    """Something that fails as one: its kind, its name, and the ids of the links that go with it."""

    kind: str
    name: str
    links: frozenset[str]


@dataclass(frozen=True, slots=True)
class Impact:
    """What a failure leaves; see the module. `tenants` maps tenants to servers that they cannot reach any more."""

    parts: tuple[str, ...]
    kinds: tuple[str, ...]
    cut: tuple[str, ...]
    tenants: dict[str, int]
    split: int
    residual: float
    joint: float
    skew: float
    gateways_left: int
    groups_dead: tuple[str, ...]
    alike: int = 1

    @property
    def badness(self) -> tuple[float, ...]:
        """Sort key, worst first: groups without gateway (their tenants lose the outside), servers cut, the rest."""
        return (-len(self.groups_dead), -len(self.cut), -self.split, self.residual, self.joint, -self.skew)

    def to_dict(self) -> dict[str, Any]:
        """Return the impact as JSON-ready data."""
        return asdict(self)


def parts_of(plan: Plan) -> list[Part]:
    """Return every part of the managed fabrics that can fail."""
    managed = {name for name, f in plan.fabrics.items() if f.managed}
    links = [link for link in plan.links.values() if link.kind == EXTERNAL_LINK or link.fabric in managed]
    touching: dict[str, set[str]] = {}
    for link in links:
        for end in (link.a, link.b):
            touching.setdefault(end.device, set()).add(link.id)
    found = [Part("link", link.id, frozenset({link.id})) for link in links if link.kind != EXTERNAL_LINK]
    for switch in plan.switches.values():
        if switch.fabric in managed:
            found.append(Part("switch", switch.name, frozenset(touching.get(switch.name, ()))))
            found += _cages(switch)
    found += [Part("gateway", name, frozenset(touching.get(name, ()))) for name in plan.gateways]
    return found + _racks(plan, touching)


def _cages(switch: Switch) -> list[Part]:
    """Optics (a cage with more than one cable in use: a breakout shares one transceiver) and pipelines of a switch."""
    from fabric.hardware.profiles import switch_profile

    links_of: dict[int, list[str]] = {}
    for port in switch.ports:
        if port.link:
            links_of.setdefault(port.cage, []).append(port.link)
    groups = [(c, frozenset(i for k in c for i in links_of.get(k, ()))) for c in switch_profile(switch.model).pipelines]
    optics = [
        Part("optic", f"{switch.name} cage {cage}", frozenset(ids)) for cage, ids in links_of.items() if len(ids) > 1
    ]
    return optics + [
        Part("pipeline", f"{switch.name} cages {' and '.join(map(str, cages))}", ids)
        for cages, ids in groups
        if len(ids) > 1
    ]


def _racks(plan: Plan, touching: dict[str, set[str]]) -> list[Part]:
    racks: dict[str, set[str]] = {}
    placed = [(s.name, s.rack) for s in plan.switches.values()] + [(s.name, s.rack) for s in plan.servers.values()]
    placed += [(g.name, g.rack) for g in plan.gateways.values()]
    for name, rack in placed:
        if rack:
            racks.setdefault(rack, set()).update(touching.get(name, ()))
    return [Part("rack", name, frozenset(ids)) for name, ids in racks.items() if ids]


class Sweep:
    """Failure impacts of one plan, on counts that are made once. CouldNotRunError for three tiers."""

    def __init__(self, plan: Plan) -> None:
        require_two_tiers(plan, "failure analysis")
        self.plan = plan
        self.parts = parts_of(plan)
        self._links = plan.links
        self._tenants_of = {s.name: {p.tenant for p in s.ports if p.tenant} for s in plan.servers.values()}
        self._ports = Counter((k.a.device, k.fabric) for k in plan.links.values() if k.kind == SERVER_LINK)
        self._cables: dict[str, Counter[tuple[str, str]]] = {}
        self._speed: dict[str, Counter[str]] = {}
        self._gateway_links = {g.name: (set(g.uplinks), set(g.externals)) for g in plan.gateways.values()}
        for link in plan.links.values():
            if link.kind == FABRIC_LINK and plan.fabrics[link.fabric].managed:
                self._cables.setdefault(link.fabric, Counter())[link.a.device, link.b.device] += 1
                self._speed.setdefault(link.fabric, Counter())[link.a.device] += link.speed
        self._total = {f: sum(speed.values()) for f, speed in self._speed.items()}
        self._leaves = {f: {a for a, _ in c} for f, c in self._cables.items()}
        self._reach = {
            f: {leaf: frozenset(b for a, b in c if a == leaf) for leaf in self._leaves[f]}
            for f, c in self._cables.items()
        }

    @cached_property
    def _sets(self) -> dict[str, Counter[frozenset[str]]]:
        return {fabric: Counter(reach.values()) for fabric, reach in self._reach.items()}

    def impact(self, failed: Iterable[Part], alike: int = 1) -> Impact:
        """Return what the failure of all of `failed` at once leaves, exactly."""
        parts = tuple(failed)
        dead = frozenset().union(*(p.links for p in parts))
        cut = self._cut(dead)
        tenants = Counter(t for server in cut for t in self._tenants_of[server])
        fabrics = {self._links[i].fabric for i in dead if self._links[i].kind == FABRIC_LINK}
        gone = {p.name for p in parts if p.kind == "switch"}
        split, residual, joint, skew = 0, 1.0, 1.0, 1.0
        for fabric in fabrics:
            one = self._fabric(fabric, dead, gone)
            split += one[0]
            residual, joint, skew = min(residual, one[1]), min(joint, one[2]), max(skew, one[3])
        left = {g for g, (ups, outs) in self._gateway_links.items() if ups - dead and (outs - dead or not outs)}
        groups = tuple(n for n, g in self.plan.groups.items() if not left & set(g.gateways))
        return Impact(
            tuple(p.name for p in parts),
            tuple(p.kind for p in parts),
            cut,
            dict(tenants),
            split,
            round(residual, 4),
            round(joint, 4),
            round(skew, 4),
            len(left),
            groups,
            alike,
        )

    def _cut(self, dead: frozenset[str]) -> tuple[str, ...]:
        lost = Counter(
            (self._links[i].a.device, self._links[i].fabric) for i in dead if self._links[i].kind == SERVER_LINK
        )
        return tuple(sorted({device for (device, fabric), n in lost.items() if n >= self._ports[device, fabric]}))

    def _fabric(self, fabric: str, dead: frozenset[str], gone: set[str]) -> tuple[int, float, float, float]:
        """(pairs of leaves split, worst leaf's residual, all leaves' residual, skew) of one fabric."""
        cables, lost, speed = self._cables[fabric], Counter[tuple[str, str]](), Counter[str]()
        for i in dead:
            link = self._links[i]
            if link.kind == FABRIC_LINK and link.fabric == fabric:
                lost[link.a.device, link.b.device] += 1
                speed[link.a.device] += link.speed
        before, reach = self._speed[fabric], self._reach[fabric]
        touched = {leaf for leaf, _ in lost}
        rest = {leaf: 1 - speed[leaf] / before[leaf] for leaf in touched - gone}
        residual = min(rest.values(), default=1.0)
        total = self._total[fabric] - sum(before[leaf] for leaf in gone if leaf in before)
        joint = (total - sum(speed[leaf] for leaf in touched - gone)) / total if total else 0.0
        if gone:
            sets = Counter(spines - gone for leaf, spines in reach.items() if leaf not in touched and leaf not in gone)
        else:
            sets = self._sets[fabric].copy()
            sets.subtract(reach[leaf] for leaf in touched)
            sets = +sets
        skew = 1.0
        for leaf in touched - gone:
            have = {s: cables[leaf, s] - lost[leaf, s] for s in self._reach[fabric][leaf] - gone}
            sets[frozenset(s for s, n in have.items() if n > 0)] += 1
            skew = max(skew, _skew([n for n in have.values() if n > 0]))
        return _apart(sets), residual, joint, skew

    def singles(self) -> list[Impact]:
        """Return the impact of every single failure, worst first."""
        return sorted((self.impact((part,)) for part in self.parts), key=lambda i: (i.badness, i.parts))

    def classes(self) -> dict[tuple[Any, ...], list[Part]]:
        """Group parts that are alike: same kind, same impact alone, same kinds and numbers of links to same roles."""
        groups: dict[tuple[Any, ...], list[Part]] = {}
        for part in self.parts:
            groups.setdefault(self._signature(part), []).append(part)
        return groups

    def _signature(self, part: Part) -> tuple[Any, ...]:
        ends = Counter(
            (self._colour_of_link(i), self._colours[self._links[i].a.device], self._colours[self._links[i].b.device])
            for i in part.links
        )
        alone = self.impact((part,))
        own = (self._colours.get(part.name, 0), tuple(sorted(self._ends_of(part).values())))
        return (part.kind, own, tuple(sorted(ends.items())), *alone.badness, tuple(sorted(alone.tenants)))

    def _colour_of_link(self, link_id: str) -> tuple[Any, ...]:
        link = self._links[link_id]
        return (link.kind, link.fabric, link.speed)

    @cached_property
    def _colours(self) -> dict[str, int]:
        """A colour for each device: two devices with one colour have the same surroundings, four steps deep."""
        plan = self.plan
        groups = {g: tuple(n for n, members in plan.groups.items() if g in members.gateways) for g in plan.gateways}
        first: dict[str, Any] = {
            device: (kind, tuple(sorted(self._tenants_of.get(device, ()))), groups.get(device, ()))
            for device, kind in plan.kind_of.items()
        }
        colours = _numbered(first)
        for _ in range(4):
            around: dict[str, list[tuple[Any, ...]]] = {device: [] for device in colours}
            for link in plan.links.values():
                about = self._colour_of_link(link.id)
                around[link.a.device].append((*about, colours[link.b.device]))
                around[link.b.device].append((*about, colours[link.a.device]))
            colours = _numbered({d: (colours[d], tuple(sorted(near))) for d, near in around.items()})
        return colours

    def doubles(self) -> list[Impact]:
        """Return the impact of double failures, worst first, one for each class of pairs; `alike` counts its pairs.

        Exact where parts of one class can be exchanged, as in a Clos: one member of each class is paired with every
        other part, and pairs are told apart by the devices and gateway groups that both touch.
        """
        found = [self.impact(pair, count) for pair, count in self._pairs()]
        return sorted(found, key=lambda i: (i.badness, i.parts))

    def _pairs(self) -> Iterator[tuple[tuple[Part, Part], int]]:
        classes = list(self.classes().values())
        ends = {part: self._ends_of(part) for part in self.parts}
        for k, members in enumerate(classes):
            first = members[0]
            for others in classes[k:]:
                kinds: dict[tuple[Any, ...], list[Part]] = {}
                for other in others:
                    if other is not first and not (first.links <= other.links or other.links <= first.links):
                        kinds.setdefault(self._relation(ends[first], ends[other]), []).append(other)
                for found in kinds.values():
                    pairs = len(members) * len(found)
                    yield (first, found[0]), pairs // 2 if others is members else pairs

    def _ends_of(self, part: Part) -> Counter[str]:
        """How many of a part's links end at each device."""
        return Counter(e.device for i in part.links for e in (self._links[i].a, self._links[i].b))

    def _relation(self, one: Counter[str], two: Counter[str]) -> tuple[Any, ...]:
        """How two parts meet: colours of the devices where links of both end, and gateway groups that both make up."""
        shared = one.keys() & two.keys()
        meet = tuple(sorted((self._colours[d], one[d], two[d]) for d in shared)) if shared else ()
        if not self.plan.gateways:
            return meet
        gateways = self.plan.gateways.keys() & (one.keys() | two.keys())
        groups = tuple(n for n, g in self.plan.groups.items() if gateways.issuperset(g.gateways)) if gateways else ()
        return (meet, groups)


def _numbered(values: dict[str, Any]) -> dict[str, int]:
    """Number the distinct values, in the order of their text, so that equal values have equal numbers."""
    numbers = {value: k for k, value in enumerate(sorted(set(values.values()), key=repr))}
    return {name: numbers[value] for name, value in values.items()}


def _apart(sets: Counter[frozenset[str]]) -> int:
    """Count pairs of leaves with no spine in common, from how many leaves have each set of spines."""
    kinds = list(sets.items())
    apart = sum(n * (n - 1) // 2 for spines, n in kinds if not spines)
    for k, (one, n) in enumerate(kinds):
        apart += sum(n * m for other, m in kinds[k + 1 :] if one.isdisjoint(other))
    return apart


def _skew(cables: list[int]) -> float:
    """Traffic towards a leaf comes over its spines evenly: the busiest cable against the mean."""
    return max(1 / n for n in cables) * sum(cables) / len(cables) if cables else 1.0
