"""The swap solver: what it moves restores the plan, and no smaller set of moves would."""

from __future__ import annotations

import random
from itertools import pairwise, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric.build import load_plan
from validators.cabling.checks import ends_of
from validators.cabling.explain import explain
from validators.cabling.moves import apply, solve
from validators.cabling.names import PortNames, Socket

pytestmark = pytest.mark.unit

PLAN = load_plan("xoc-64")
NAMES = PortNames(PLAN)
LINKS = [link for link in PLAN.links.values() if link.fabric == "backend"]
CABLES = {link.cable: ends_of(link) for link in LINKS}
NUMBER = {end: number for number, ends in CABLES.items() for end in ends}


def both_ways(pairs):
    return {x: y for a, b in pairs for x, y in ((a, b), (b, a))}


PLANNED = both_ways(CABLES.values())


def observed_with(moved: dict[Socket, Socket]):
    """The cabling when the cable end planned in each key is in the value instead."""
    return both_ways((moved.get(a, a), moved.get(b, b)) for a, b in CABLES.values())


def permute(ends, order):
    return dict(zip(ends, order, strict=True))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_moves_restore_the_plan_and_are_as_few_as_wrong_cables(data):
    """Any permutation of any ends, on either side: the moves give the plan back, one per wrong cable."""
    side = data.draw(st.sampled_from((0, 1)))
    ends = data.draw(
        st.lists(st.sampled_from([pair[side] for pair in CABLES.values()]), min_size=2, max_size=24, unique=True)
    )
    seen = observed_with(permute(ends, data.draw(st.permutations(ends))))
    tangles = solve(NAMES, PLANNED, seen)
    assert apply(seen, tangles) == PLANNED
    wrong = sum(1 for a, b in CABLES.values() if seen.get(a) != b)
    assert sum(len(t.moves) for t in tangles) == wrong


@settings(max_examples=150, deadline=None)
@given(st.randoms(use_true_random=False), st.integers(1, 12), st.integers(0, 4))
def test_ends_of_both_sides_mixed_and_cables_pulled_out(rng: random.Random, swaps: int, pulled: int):
    """Ends are exchanged across sides (leaf to leaf happens) and cables go missing: what is left is put right."""
    place = {end: end for end in PLANNED}
    for _ in range(swaps):
        a, b = rng.sample(sorted(PLANNED), 2)
        place[a], place[b] = place[b], place[a]
    gone = set(rng.sample(sorted(CABLES), pulled))
    pairs = [(place[a], place[b]) for number, (a, b) in CABLES.items() if number not in gone]
    seen = both_ways(pairs)
    after = apply(seen, solve(NAMES, PLANNED, seen))
    assert all(PLANNED[a] == b for a, b in after.items())
    assert len(after) == 2 * (len(CABLES) - pulled)


def test_no_smaller_set_of_moves_exists():
    """Brute force on four cables: fewer single-end moves never restore the plan."""
    four = list(CABLES.values())[:4]
    planned = both_ways(four)
    uppers = [b for _, b in four]
    for order in permutations(uppers):
        seen = both_ways((a, b) for (a, _), b in zip(four, order, strict=True))
        tangles = solve(NAMES, planned, seen)
        # each move changes one end, so every cable that is not right needs at least one
        lower_bound = sum(1 for a, b in seen.items() if planned[a] != b) // 2
        assert sum(len(t.moves) for t in tangles) == lower_bound
        assert apply(seen, tangles) == planned


def uplinks(device):
    return [link for link in LINKS if link.kind == "fabric" and device in {link.a.device, link.b.device}]


def explained(seen):
    tangles = solve(NAMES, PLANNED, seen)
    return explain(NAMES, tangles, NUMBER)


def test_a_crossed_pair_is_named_with_its_cables_and_ports():
    one, two = uplinks("be-leaf-01")[:2]
    a, b = ends_of(one)[0], ends_of(two)[0]
    (found,) = explained(observed_with({a: b, b: a}))
    assert found.kind == "crossed"
    assert found.cables == tuple(sorted((one.cable, two.cable)))
    assert str(a) in found.text
    assert str(b) in found.text
    assert "crossed" in found.text


def test_a_panel_shifted_by_one_is_one_explanation():
    spine = next(s.name for s in PLAN.switches.values() if s.kind == "spine" and s.fabric == "backend")
    ports = sorted((ends_of(link)[1] for link in uplinks(spine)), key=NAMES.position)[:8]
    switch = PLAN.switches[spine]
    order = sorted(switch.ports, key=lambda p: NAMES.position(Socket(spine, p.name)))
    following = {Socket(spine, p.name): Socket(spine, q.name) for p, q in pairwise(order)}
    run = [ports[0]]
    while following[run[-1]] in PLANNED:
        run.append(following[run[-1]])
    seen = observed_with({port: following[port] for port in run})
    (found,) = explained(seen)
    assert found.kind == "shift"
    assert len(found.moves) == len(run)
    assert "shifted up by 1 place" in found.text


def test_a_ring_within_a_panel_is_a_shift_that_wraps():
    spine = next(s.name for s in PLAN.switches.values() if s.kind == "spine" and s.fabric == "backend")
    ports = sorted((ends_of(link)[1] for link in uplinks(spine)), key=NAMES.position)
    row = [p for p in ports if NAMES.position(p) - NAMES.position(ports[0]) < 6]
    (found,) = explained(observed_with(permute(row, row[1:] + row[:1])))
    assert found.kind == "shift"


def test_rotated_breakout_legs():
    cage = [link for link in LINKS if link.b.device == "be-leaf-01" and link.b.port.startswith("E1/1/")]
    ends = [ends_of(link)[1] for link in cage]
    (found,) = explained(observed_with(permute(ends, ends[1:] + ends[:1])))
    assert found.kind == "rotated-breakout"
    assert "be-leaf-01" in found.text
    assert "E1/1" in found.text


def test_one_end_in_a_spare_port():
    switch = PLAN.switches["be-leaf-01"]
    spare = next((Socket(switch.name, p.name) for p in switch.ports if not p.link), None)
    link = uplinks("be-leaf-01")[0]
    if spare is None:
        spare = Socket(switch.name, "E1/65")
    (found,) = explained(observed_with({ends_of(link)[0]: spare}))
    assert found.kind == "misplugged"
    assert f"move this end to {ends_of(link)[0]}" in found.text


def test_a_cable_between_two_spare_ports_is_extra():
    seen = {**PLANNED, **both_ways([(Socket("be-leaf-01", "x1"), Socket("be-leaf-02", "x2"))])}
    (found,) = explained(seen)
    assert found.kind == "extra"
    assert apply(seen, solve(NAMES, PLANNED, seen)) == PLANNED
