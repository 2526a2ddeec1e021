"""Places for the nodes and curves for the bundles, in pixels. Pure arithmetic, no drawing."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from fabric.interop.diagram.model import TIERS, Bundle, Node, Panel
from fabric.plan import EDGE, LEAF, SERVER, SPINE

GUTTER = 150
MARGIN = 28
MIN_WIDTH = 1180
_SLOT = 132
_GAP = 14
_BOX = {SPINE: (150, 58), LEAF: (150, 62), SERVER: (168, 76), EDGE: (150, 46)}
_BELOW = {SPINE: 150, LEAF: 120, SERVER: 70, EDGE: 0}
_HEAD = 74
_FOOT = 26
# labels on single bundles only where there are few of them
MOST_LABELS = 12
# half the width of a label's letter, and the height of its line
_LETTER = 3.4
_LINE = 13.0
Point = tuple[float, float]
Label = tuple[float, float, float]


@dataclass(frozen=True, slots=True)
class Box:
    """A placed node; x and y are its upper left corner."""

    node: Node
    x: float
    y: float
    width: float
    height: float

    @property
    def middle(self) -> float:
        """The x of its centre."""
        return self.x + self.width / 2


@dataclass(frozen=True, slots=True)
class Curve:
    """A placed bundle: an SVG path, a stroke width, and a label with its place (empty: none)."""

    bundle: Bundle
    path: str
    stroke: float
    label: str
    label_x: float
    label_y: float


@dataclass(frozen=True, slots=True)
class TierLabel:
    """A word in the left gutter: a tier's name, or what a gap carries."""

    text: str
    sub: str
    y: float


@dataclass(frozen=True)
class PlacedPanel:
    """A panel with everything in place, `y` being its upper edge on the page."""

    panel: Panel
    y: float
    height: float
    boxes: list[Box]
    curves: list[Curve]
    labels: list[TierLabel]


@dataclass(frozen=True)
class Page:
    """All panels, one under the other."""

    width: float
    height: float
    panels: list[PlacedPanel]


def lay_out(panels: list[Panel], top: float) -> Page:
    """Place the panels under `top` pixels of header."""
    most = max((len(nodes) for panel in panels for nodes in panel.tiers.values()), default=1)
    width = max(MIN_WIDTH, GUTTER + 2 * MARGIN + most * _SLOT)
    placed, y = [], top
    for panel in panels:
        one = _panel(panel, width, y)
        placed.append(one)
        y += one.height + 20
    return Page(width, y + 4, placed)


def _panel(panel: Panel, width: float, top: float) -> PlacedPanel:
    rows = [tier for tier in TIERS if panel.tiers.get(tier)]
    boxes: dict[str, Box] = {}
    labels = []
    y = top + _HEAD
    for i, tier in enumerate(rows):
        height = _BOX[tier][1]
        for box in _row(panel, tier, boxes, width, y):
            boxes[box.node.id] = box
        labels.append(TierLabel(_tier_word(tier, panel.tiers[tier]), "", y + height / 2))
        if i + 1 < len(rows):
            gap = panel.gaps.get(EDGE if rows[i + 1] == EDGE else tier, "")
            if gap:
                labels.append(TierLabel("", gap, y + height + _BELOW[tier] / 2))
            y += height + _BELOW[tier]
        else:
            y += height
    return PlacedPanel(panel, top, y + _FOOT - top, list(boxes.values()), _curves(panel, boxes), labels)


def _tier_word(tier: str, nodes: list[Node]) -> str:
    kinds = {node.kind for node in nodes}
    if tier == SERVER:
        return "servers, gateways" if len(kinds) > 1 else f"{next(iter(kinds))}s"
    count = sum(len(node.members) for node in nodes)
    word = {SPINE: "spine", LEAF: "leaf", EDGE: "edge router"}[tier]
    many = {SPINE: "spines", LEAF: "leaves", EDGE: "edge routers"}[tier]
    return f"{count} {word if count == 1 else many}"


def _row(panel: Panel, tier: str, above: dict[str, Box], width: float, y: float) -> list[Box]:
    """Place a tier: switches evenly and in order, what hangs below them as near under its switches as room allows."""
    nodes = panel.tiers[tier]
    most, height = _BOX[tier]
    left, room = GUTTER + MARGIN, width - GUTTER - 2 * MARGIN
    slot = room / len(nodes)
    box = min(most, slot - _GAP)
    if tier in {SPINE, LEAF}:
        middles = [left + slot * (i + 0.5) for i in range(len(nodes))]
    else:
        wanted = _wanted(panel, above)
        nodes = sorted(nodes, key=lambda node: wanted.get(node.id, left))
        middles = _spread([wanted.get(node.id, left) for node in nodes], box + _GAP, left, left + room)
    return [Box(node, middle - box / 2, y, box, height) for node, middle in zip(nodes, middles, strict=True)]


def _wanted(panel: Panel, above: dict[str, Box]) -> dict[str, float]:
    """The x of each node that is not placed yet: the middle of what it is joined to."""
    found: dict[str, list[float]] = {}
    for bundle in panel.bundles:
        for near, far in ((bundle.low, bundle.high), (bundle.high, bundle.low)):
            if far in above and near not in above:
                found.setdefault(near, []).append(above[far].middle)
    return {node: sum(places) / len(places) for node, places in found.items()}


def _spread(wanted: list[float], step: float, left: float, right: float) -> list[float]:
    """Places in the same order, at least `step` apart, within the row, and near what is wanted.

    Pushing from the left and pulling from the right both keep the distance, and so does their mean.
    """
    count = len(wanted)
    pushed, pulled = list(wanted), list(wanted)
    for i in range(count):
        low = left + step * (i + 0.5)
        pushed[i] = max(wanted[i], low, pushed[i - 1] + step if i else low)
    for i in reversed(range(count)):
        high = right - step * (count - i - 0.5)
        pulled[i] = min(wanted[i], high, pulled[i + 1] - step if i + 1 < count else high)
    means = [(a + b) / 2 for a, b in zip(pushed, pulled, strict=True)]
    for i in reversed(range(count)):
        means[i] = min(means[i], right - step * (count - i - 0.5))
    for i in range(count):
        means[i] = max(means[i], left + step * (i + 0.5))
    return means


def _curves(panel: Panel, boxes: dict[str, Box]) -> list[Curve]:
    """Curves from the lower box's top to the upper box's bottom, fanned out along both edges."""
    drawn = [(bundle, *_vertical(boxes[bundle.low], boxes[bundle.high])) for bundle in panel.bundles]
    ends: dict[tuple[str, str], list[tuple[float, int]]] = {}
    for i, (_, lower, upper) in enumerate(drawn):
        ends.setdefault((lower.node.id, "top"), []).append((upper.middle, i))
        ends.setdefault((upper.node.id, "bottom"), []).append((lower.middle, i))
    at: dict[tuple[int, str], float] = {}
    for (node, side), fans in ends.items():
        box = boxes[node]
        for place, (_, i) in enumerate(sorted(fans), 1):
            at[i, side] = box.x + box.width * (0.12 + 0.76 * place / (len(fans) + 1))
    siblings = Counter(lower.node.tier for _, lower, _ in drawn)
    taken: list[Label] = []
    curves = []
    for i, (bundle, lower, upper) in enumerate(drawn):
        low, high = (at[i, "top"], lower.y), (at[i, "bottom"], upper.y + upper.height)
        labelled = siblings[lower.node.tier] <= MOST_LABELS
        curves.append(_curve(bundle, low, high, taken if labelled else None))
    return curves


def _vertical(one: Box, other: Box) -> tuple[Box, Box]:
    """The lower and the upper box on the page (gateways stand above the edge routers they uplink to)."""
    return (one, other) if one.y > other.y else (other, one)


def _curve(bundle: Bundle, low: Point, high: Point, taken: list[Label] | None) -> Curve:
    """One bundle; its label goes to the first free place along it. `taken` is None where labels would be too many."""
    (x1, y1), (x2, y2) = low, high
    bend = (y1 - y2) * 0.5
    path = f"M{x1:.1f} {y1:.1f}C{x1:.1f} {y1 - bend:.1f} {x2:.1f} {y2 + bend:.1f} {x2:.1f} {y2:.1f}"
    stroke = min(1.0 + (bundle.rate / 1600) ** 0.5, 7.0)
    place = _free_place(low, high, len(bundle.label) * _LETTER, taken) if taken is not None else None
    label = bundle.label if place else ""
    x, y = place or (0.0, 0.0)
    return Curve(bundle, path, round(stroke, 2), label, round(x, 1), round(y + 3.5, 1))


def _free_place(low: Point, high: Point, half: float, taken: list[Label]) -> Point | None:
    """A point on the curve for a label of that half width; None when there is no room, the tip says it then."""
    (x1, y1), (x2, y2) = low, high
    bend = (y1 - y2) * 0.5
    for t in (0.5, 0.36, 0.64, 0.24, 0.76, 0.16):
        a, b, c, d = (1 - t) ** 3, 3 * t * (1 - t) ** 2, 3 * t * t * (1 - t), t**3
        x = (a + b) * x1 + (c + d) * x2
        y = a * y1 + b * (y1 - bend) + c * (y2 + bend) + d * y2
        if all(abs(x - ox) > half + other or abs(y - oy) > _LINE for ox, oy, other in taken):
            taken.append((x, y, half))
            return x, y
    return None
