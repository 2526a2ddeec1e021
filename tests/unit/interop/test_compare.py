"""Comparing says what differs, and nothing when nothing does."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fabric.interop.cable_map import Cable, CableEnd, CableMap, of_plan
from fabric.interop.comparing import compare
from fabric.problem import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from fabric.interop.comparing.finding import Comparison, Finding
    from fabric.plan import Plan

pytestmark = pytest.mark.unit


def given(plan: Plan, change: Callable[[list[Cable]], list[Cable]] = list) -> CableMap:
    cables = [replace(cable, line=n) for n, cable in enumerate(of_plan(plan).cables, 2)]
    return CableMap("map.csv", "11-column", tuple(change(cables)))


def differing(outcome: Comparison) -> list[Finding]:
    return [finding for finding in outcome.findings if finding.differs]


def test_order_of_rows_and_ends_makes_no_difference(lab: Plan) -> None:
    def shuffled(cables: list[Cable]) -> list[Cable]:
        random.Random(7).shuffle(cables)
        return [replace(c, a=c.b, b=c.a) if i % 2 else c for i, c in enumerate(cables)]

    outcome = compare(lab, given(lab, shuffled))
    assert outcome.same
    assert outcome.findings == ()
    assert outcome.equal == len(lab.links)


def test_interface_names_and_explicit_first_subports_are_the_same_ports(lab: Plan) -> None:
    def spelt(cables: list[Cable]) -> list[Cable]:
        links = {link.id: link for link in lab.links.values()}
        return [
            replace(
                c,
                a=CableEnd(c.a.device, links[c.link].a.interface),
                b=CableEnd(c.b.device, c.b.port + "/1" if c.b.port.count("/") == 1 else c.b.port),
            )
            for c in cables
        ]

    assert compare(lab, given(lab, spelt)).same


def test_a_missing_and_an_extra_cable_are_named_with_their_line(lab: Plan) -> None:
    def changed(cables: list[Cable]) -> list[Cable]:
        new = Cable(CableEnd("leaf-01", "E1/15/4"), CableEnd("leaf-02", "E1/15/4"), line=99)
        return [*cables[1:], new]

    outcome = compare(lab, given(lab, changed))
    assert [f.kind for f in differing(outcome)] == ["missing", "extra"]
    missing, extra = differing(outcome)
    assert missing.rows == (str(of_plan(lab).cables[0]),)
    assert "line 99" in extra.rows[0]


def test_a_cable_in_another_port_is_moved_not_missing_and_extra(lab: Plan) -> None:
    def changed(cables: list[Cable]) -> list[Cable]:
        first = cables[0]
        return [replace(first, b=CableEnd(first.b.device, "E1/15/4")), *cables[1:]]

    [finding] = differing(compare(lab, given(lab, changed)))
    assert finding.kind == "moved"
    assert "another port of the planned device" in finding.text
    assert "line 2" in finding.rows[0]


def test_two_cables_crossed_are_one_swap(lab: Plan) -> None:
    def changed(cables: list[Cable]) -> list[Cable]:
        one, two, *rest = cables
        return [replace(one, b=two.b), replace(two, b=one.b), *rest]

    [finding] = differing(compare(lab, given(lab, changed)))
    assert finding.kind == "swapped"
    assert finding.cables == 2


def test_a_family_of_devices_with_another_name_is_only_mentioned(xoc256: Plan) -> None:
    def changed(cables: list[Cable]) -> list[Cable]:
        def end(e: CableEnd) -> CableEnd:
            return replace(e, device=e.device.replace("be-leaf-", "rack_leaf_"))

        return [replace(c, a=end(c.a), b=end(c.b)) for c in cables]

    outcome = compare(xoc256, given(xoc256, changed))
    assert outcome.same, outcome.text()
    assert [f.kind for f in outcome.findings] == ["renamed"]
    assert "rack_leaf_* is called be-leaf-* in the plan (4 devices)" in outcome.findings[0].text


def test_server_ports_with_other_names_are_recognised_by_where_they_are_plugged_in(lab: Plan) -> None:
    def changed(cables: list[Cable]) -> list[Cable]:
        return [replace(c, a=replace(c.a, port=c.a.port.replace("fe-p", "enp2s"))) for c in cables]

    outcome = compare(lab, given(lab, changed))
    assert outcome.same, outcome.text()
    assert any("enp2s0 is fe-p0" in f.text for f in outcome.findings)


def test_one_renamed_device_among_others_is_not_guessed_away(lab: Plan) -> None:
    def changed(cables: list[Cable]) -> list[Cable]:
        return [replace(c, b=replace(c.b, device="leaf-07")) if c.b.device == "leaf-01" else c for c in cables]

    assert not compare(lab, given(lab, changed)).same


def test_a_port_used_twice_and_a_row_given_twice_are_faults_of_the_map(lab: Plan) -> None:
    def changed(cables: list[Cable]) -> list[Cable]:
        clash = replace(cables[1], b=cables[0].b, line=50)
        return [cables[0], replace(cables[0], line=40), clash, *cables[2:]]

    kinds = [f.kind for f in differing(compare(lab, given(lab, changed)))]
    assert kinds[:2] == ["quality", "quality"] or kinds[0] == "quality"
    assert "moved" in kinds


def test_another_speed_is_said(lab: Plan) -> None:
    def changed(cables: list[Cable]) -> list[Cable]:
        return [replace(cables[0], speed=100), *cables[1:]]

    [finding] = differing(compare(lab, given(lab, changed)))
    assert finding.kind == "speed"
    assert "100G in the map, 400G planned" in finding.rows[0]


def test_spread_servers_are_one_sentence_before_all_cables(xoc256: Plan) -> None:
    def changed(cables: list[Cable]) -> list[Cable]:
        ports = {f"be{n}-port0": n for n in range(8)}
        made = []
        for c in cables:
            if c.a.port in ports:
                n, server = ports[c.a.port], int(c.a.device[-3:])
                end = CableEnd(f"be-leaf-{n // 2 + 1:02d}", f"E1/{server}/{n % 2 + 1}")
                c = replace(c, b=end)  # noqa: PLW2901 - a changed copy
            made.append(c)
        return made

    outcome = compare(xoc256, given(xoc256, changed), ("backend",))
    first = outcome.findings[0]
    assert first.kind == "pattern"
    assert "8 NIC ports over 4 leaves" in first.text
    assert "the plan is single-homed: 1 leaf a server, 8 servers on a leaf" in first.text


def test_other_uplink_counts_are_one_sentence(xoc256: Plan) -> None:
    def changed(cables: list[Cable]) -> list[Cable]:
        uplinks = [c for c in cables if c.a.device == "be-leaf-01"]
        return [c for c in cables if c not in uplinks[:4]]

    first = differing(compare(xoc256, given(xoc256, changed)))[0]
    assert first.kind == "pattern"
    assert "12 to 16 links a pair" in first.text


def test_a_network_the_map_leaves_out_is_mentioned_unless_asked_for(xoc256: Plan) -> None:
    def backend(cables: list[Cable]) -> list[Cable]:
        return [c for c in cables if c.network == "backend"]

    whole = compare(xoc256, given(xoc256, backend))
    assert whole.same
    assert "nothing of fabric frontend" in whole.findings[0].text
    asked = compare(xoc256, given(xoc256, backend), ("frontend",))
    assert not asked.same
    assert asked.given == 0


def test_another_sites_map_is_not_called_the_same(lab: Plan, xoc256: Plan) -> None:
    other = CableMap("x", "11-column", (Cable(CableEnd("a", "1"), CableEnd("b", "1")),))
    assert not compare(lab, other).same
    assert not compare(lab, given(xoc256)).same


def test_an_unknown_fabric_is_refused(lab: Plan) -> None:
    with pytest.raises(InputError, match="no such fabric"):
        compare(lab, given(lab), ("backbone",))


def test_text_shows_ten_rows_and_all_on_request(xoc256: Plan) -> None:
    outcome = compare(xoc256, given(xoc256, lambda cables: cables[100:]))
    assert "--all shows them" in outcome.text()
    assert "--all" not in outcome.text(0)
    assert outcome.to_dict()["same"] is False


def test_fewer_servers_spread_alike_are_missing_and_no_other_pattern(xoc256: Plan) -> None:
    kept = [cable for cable in of_plan(xoc256).cables if not cable.a.device.endswith(("-031", "-032"))]
    comparison = compare(xoc256, CableMap("fewer.csv", "test", tuple(kept)))
    assert [finding.kind for finding in comparison.findings] == ["missing"]
