"""Watermarks: the tables and JSON of watermarkstat and counterpoll, and every state that the check can come to."""

from __future__ import annotations

import json
import time
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric.build import load_plan
from fabric.qos.headroom import lossless_ports
from tests.unit.accept.simulated import SimulatedSite
from validators import catalog, runner_acceptance
from validators.check import Context, Stage, judged
from validators.check_registry import all_checks
from validators.counters.check_watermarks import RoceWatermarks, WatermarkInputs
from validators.counters.watermarks import GROUP, QUEUE, Polling, by_pool, by_port, polling
from validators.devices.answers import Answer, UnreadableError, unasked
from validators.report.redact import Redactor
from validators.results import State
from validators.runner_acceptance import Acceptance, Selection, accept

pytestmark = pytest.mark.unit
PLAN = load_plan("lab")
LEAF = "leaf-01"
PORT, PLANNED = lossless_ports(PLAN, PLAN.switches[LEAF])[0]
FULL, POOL_FULL = PLANNED.xoff, PLAN.fabrics["fabric"].qos.pool_xoff
FRAME = PLAN.fabrics["fabric"].mtu + 18
GROUPS, POOLS = "headroom-watermark", "headroom-pool-watermark"

HEADROOM = """\
Ingress headroom per PG:
     Port    PG0    PG1    PG2     PG3    PG4    PG5    PG6    PG7
---------  -----  -----  -----  ------  -----  -----  -----  -----
Ethernet0      0      0      0  228600      0      0      0      0
Ethernet8    N/A    N/A    N/A     N/A    N/A    N/A    N/A    N/A
"""
TWO_ASICS = """\
Egress shared pool occupancy per unicast queue: (Namespace asic0)
     Port    UC0    UC3
---------  -----  -----
Ethernet0     20    508
Egress shared pool occupancy per unicast queue: (Namespace asic1)
     Port      UC0    UC4
---------  -------  -----
Ethernet8  2057400      2
"""
POOL = """\
Headroom pool maximum occupancy:
                 Pool    Bytes
---------------------  -------
ingress_lossless_pool   863600
   egress_lossy_pool       N/A
"""
POLLS = """\
Type                        Interval (in ms)    Status
--------------------------  ------------------  --------
PORT_STAT                   1000                enable
PG_WATERMARK_STAT           default (60000)     enable
BUFFER_POOL_WATERMARK_STAT  10000               disable
"""


def test_tables_are_read_cell_by_cell():
    found = by_port(HEADROOM, GROUP)
    assert (found["Ethernet0", 3], found["Ethernet0", 0], found["Ethernet8", 3]) == (228600, 0, None)
    assert len(found) == 16
    assert by_port(TWO_ASICS, QUEUE) == {
        ("Ethernet0", 0): 20, ("Ethernet0", 3): 508, ("Ethernet8", 0): 2057400, ("Ethernet8", 4): 2,
    }  # fmt: skip
    assert by_pool(POOL) == {"ingress_lossless_pool": 863600, "egress_lossy_pool": None}
    kinds = polling(POLLS)
    assert kinds["PG_WATERMARK_STAT"] == Polling(60_000, enabled=True)
    assert kinds["BUFFER_POOL_WATERMARK_STAT"] == Polling(10_000, enabled=False)


def test_pools_of_several_asics_count_with_the_highest_and_one_without_a_number_hides_nothing():
    table = "Headroom pool maximum occupancy: (Namespace asic{})\n  Pool  Bytes\n------  -----\n  in    {}\n"
    assert by_pool(table.format(0, 5) + table.format(1, 9)) == {"in": 9}
    assert by_pool(table.format(0, "N/A") + table.format(1, 9)) == {"in": None}
    assert by_pool(table.format(0, 9) + table.format(1, "N/A")) == {"in": None}


def test_json_of_newer_releases_says_the_same():
    rows = [{"Port": "Ethernet0", "PG0": "0", "PG3": "228600"}, {"Port": "Ethernet8", "PG0": "N/A", "PG3": "N/A"}]
    assert by_port(json.dumps(rows, indent=4), GROUP) == {
        ("Ethernet0", 0): 0, ("Ethernet0", 3): 228600, ("Ethernet8", 0): None, ("Ethernet8", 3): None,
    }  # fmt: skip
    assert by_pool(json.dumps([{"ingress_lossless_pool": "863600"}, {"x": "N/A"}])) == {
        "ingress_lossless_pool": 863600, "x": None,
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "", "bash: show: command not found", "Object map is empty!", "[]", "[1]", '[{"Pool": "0"}]', '[{"Port": "E0"',
        "Port PG0\n-----\n", HEADROOM.replace("228600", "many"), HEADROOM.replace("228600", "-5"),
        HEADROOM.replace("  228600", ""), HEADROOM.replace("PG", "UC"),
    ],
)  # fmt: skip
def test_what_is_no_table_of_groups_is_unreadable(text):
    with pytest.raises(UnreadableError):
        by_port(text, GROUP)


def test_what_is_no_table_of_pools_or_polls_is_unreadable():
    for text in ("", HEADROOM, POOL.replace("863600", "1 2"), POOL.replace("Bytes", "Cells"), '["a"]'):
        with pytest.raises(UnreadableError):
            by_pool(text)
    with pytest.raises(UnreadableError, match="counterpoll show"):
        polling("Usage: counterpoll [OPTIONS]")


@given(st.text() | st.sampled_from([HEADROOM, TWO_ASICS, POOL, POLLS]), st.integers(0, 400), st.text(max_size=9))
def test_damaged_output_is_read_or_unreadable_and_nothing_else(text, at, put):
    damaged = text[:at] + put + text[at + 1 :]
    for read in (lambda: by_port(damaged, GROUP), lambda: by_pool(damaged), lambda: polling(damaged)):
        with suppress(UnreadableError):
            assert isinstance(read(), dict)


def cell(value, port=PORT.interface, group=3):
    """A fault: what a port's priority group shows, one value for each look."""

    def fault(text, *, sample):
        lines = text.splitlines()
        at = next(number for number, line in enumerate(lines) if line.split()[0] == port)
        cells = lines[at].split()
        cells[1 + group] = str(value[sample] if isinstance(value, tuple) else value)
        lines[at] = " ".join(cells)
        return "\n".join(lines) + "\n"

    return fault


def pool(value):
    def fault(text, *, sample):
        return text.replace(" 0\n", f" {value[sample] if isinstance(value, tuple) else value}\n")

    return fault


def ask(broken=None, **inputs):
    site = SimulatedSite(PLAN, {(LEAF, name): fault for name, fault in (broken or {}).items()}, physical=True)
    site.rounds = 2
    check, asked = RoceWatermarks(), WatermarkInputs(fabric="fabric", **inputs)
    return judged(check, PLAN, asked, check.collect(Context(PLAN, site, None), asked))


def bad(result):
    return [part for part in result.parts if part.state is not State.PASS]


def measured(result, name):
    return next((one.value for one in result.measurements if one.name == name), None)


def test_headroom_that_was_never_used_passes_pauses_or_not():
    def paused(text):
        return text.replace(f"{PORT.interface} 0 0 0 0", f"{PORT.interface} 0 0 0 999")

    result = ask({"pfc": paused})
    assert (result.state, bad(result)) == (State.PASS, [])
    assert result.parts[0].text == "no headroom was used"
    assert "headroom peaks since the user watermarks were last cleared leave room, the highest is 0 %" in result.text
    assert "no check pushed lossless traffic meanwhile" in result.text
    assert measured(result.parts[0], "queue peak") == 508
    assert measured(result, "queue peak") == 508


def test_a_peak_that_leaves_room_passes_and_is_a_share_of_the_planned_headroom():
    result = ask({GROUPS: cell((1000, FULL // 2))})
    part = next(part for part in result.parts if part.labels["port"] == PORT.name and part.labels["device"] == LEAF)
    assert (result.state, part.state) == (State.PASS, State.PASS)
    assert measured(part, "headroom peak") == FULL // 2
    assert measured(part, "planned headroom") == FULL
    assert measured(result, "headroom peak of planned headroom") == pytest.approx(50, abs=0.1)
    assert "risen in this run from 1,000" in part.text
    assert f"the highest is 50 % at {LEAF} {PORT.name} priority 3" in result.text


@pytest.mark.parametrize("peak", [FULL, FULL + 254, FULL - FRAME + 1])
def test_headroom_that_was_used_up_fails_with_port_priority_and_what_to_do(peak):
    result = ask({GROUPS: cell((0, peak))})
    (part,) = bad(result)
    assert (result.state, part.state) == (State.FAIL, State.FAIL)
    assert part.place == f"{LEAF} {PORT.name} ({PORT.interface}) priority 3"
    assert result.place == part.place
    assert f"headroom used up: peak {peak:,} of {FULL:,} planned bytes" in part.text
    assert "risen in this run from 0" in part.text
    assert f"with the plan ({PORT.speed}G, {PLANNED.cable_m} m)" in part.text
    assert "`cables` plans more headroom" in part.text
    assert ask({GROUPS: cell((0, FULL - FRAME))}).state is State.PASS


def test_headroom_that_was_used_up_before_the_run_fails_and_says_so():
    (part,) = bad(ask({GROUPS: cell(FULL)}))
    assert part.state is State.FAIL
    assert (
        "no higher than at the first look; clear it (`sudo sonic-clear priority-group watermark headroom`)" in part.text
    )


def test_headroom_of_a_lossy_priority_or_of_a_port_without_pfc_decides_nothing():
    lossless = {port.interface for port, _ in lossless_ports(PLAN, PLAN.switches[LEAF])}
    other = next(p.interface for p in PLAN.switches[LEAF].ports if p.link and p.interface not in lossless)
    assert ask({GROUPS: cell(FULL, group=4)}).state is State.PASS
    assert ask({GROUPS: cell(FULL, port=other)}).state is State.PASS


def test_a_watermark_that_is_not_there_is_unknown_and_never_green():
    (part,) = bad(ask({GROUPS: cell("N/A")}))
    assert part.state is State.UNKNOWN
    assert "N/A" in part.text
    assert measured(part, "headroom peak") is None
    result = ask({GROUPS: lambda text: text.replace(f"{PORT.interface} ", "Ethernet999 ", 1)})
    assert (result.state, len(bad(result))) == (State.UNKNOWN, 1)


def test_a_watermark_that_somebody_cleared_meanwhile_is_unknown_unless_it_is_full_again():
    (part,) = bad(ask({GROUPS: cell((5000, 0))}))
    assert part.state is State.UNKNOWN
    assert "5,000 at the first look: somebody cleared the watermark meanwhile" in part.text
    assert ask({GROUPS: cell((FULL + 900, FULL))}).state is State.FAIL


@pytest.mark.parametrize(("old", "new"), [("(60000) enable", "(60000) disable"), ("PG_WATERMARK_STAT", "OTHER_STAT")])
def test_watermarks_that_nobody_polls_are_unknown_unless_one_is_full(old, new):
    def stopped(text):
        return text.replace(old, new)

    result = ask({"counterpoll": stopped})
    assert result.state is State.UNKNOWN
    assert "`sudo counterpoll watermark enable`" in result.text
    assert ask({"counterpoll": stopped, GROUPS: cell(FULL)}).state is State.FAIL


def test_without_a_first_look_the_last_one_counts():
    def late(text, *, sample):
        return text if sample else Answer(error="no route to host")

    result = ask({GROUPS: late})
    assert result.state is State.PASS


@pytest.mark.parametrize("question", [GROUPS, "queue-watermark", "counterpoll", POOLS, "pool-watermark"])
def test_what_is_no_table_is_an_error_of_that_switch_alone(question):
    result = ask({question: lambda _: "% Unknown command"})
    (part,) = bad(result)
    assert (part.state, part.place) == (State.ERROR, LEAF)
    assert "cannot be read" in part.text
    result = ask({question: lambda _: Answer(error="exit 2: no such command")})
    assert bad(result)[0].state is State.ERROR


def test_a_shell_without_watermarks_is_skipped():
    result = ask({question: lambda _: unasked("sonic-cli", "x") for question in (GROUPS, "counterpoll")})
    assert [part.state for part in bad(result)] == [State.SKIPPED]
    assert result.state is State.PASS


def test_the_headroom_that_ports_share_is_judged_too():
    (part,) = bad(ask({POOLS: pool((0, POOL_FULL))}))
    assert (part.state, part.place) == (State.FAIL, f"{LEAF} ingress_lossless_pool")
    assert "the headroom that ports share is used up" in part.text
    assert "roce.headroom_ratio" in part.text
    result = ask({POOLS: pool(POOL_FULL // 4)})
    assert result.state is State.PASS
    assert measured(result, "shared headroom peak of the pool's") == pytest.approx(25, abs=0.1)
    (part,) = bad(ask({POOLS: pool("N/A")}))
    assert part.state is State.UNKNOWN
    assert "`pool: false`" in part.text
    assert ask({POOLS: pool("N/A")}, pool=False).state is State.PASS


def test_a_lab_says_why_it_is_skipped_and_nobody_asks(tmp_path, monkeypatch):
    site = SimulatedSite(PLAN, physical=False)
    monkeypatch.setattr(runner_acceptance, "open_devices", lambda *_: (site, Redactor([])))
    chosen = Selection(checks=("device-answers", "roce-watermarks"))
    run, _, _ = accept(Acceptance(PLAN, tmp_path, selection=chosen))
    (result,) = (record.result for record in run.records if record.result.check == "roce-watermarks")
    assert (result.state, result.text) == (
        State.SKIPPED, "needs real ports, and those of engine simulated are virtual",
    )  # fmt: skip
    assert not [question for _, question in site.asked if "watermark" in question]


def test_a_check_that_was_skipped_pushed_nothing(tmp_path, monkeypatch):
    site = SimulatedSite(PLAN, physical=True)
    monkeypatch.setattr(runner_acceptance, "open_devices", lambda *_: (site, Redactor([])))
    chosen = Selection(checks=("roce-config", "rdma-transfer", "roce-watermarks"))
    run, _, _ = accept(Acceptance(PLAN, tmp_path, selection=chosen))
    states = {record.result.check: record.result.state for record in run.records}
    assert states["rdma-transfer"] is State.SKIPPED
    (result,) = (record.result for record in run.records if record.result.check == "roce-watermarks")
    assert result.state is State.PASS
    assert result.text.endswith("no check pushed lossless traffic meanwhile")


def test_its_page_says_which_kind_of_watermark_is_read():
    page = RoceWatermarks.page
    assert page.about.startswith("Read are user watermarks")
    assert "not cleared here" in page.about
    assert "Read are" not in page.sections["Error"]


def test_a_site_without_a_lossless_class_says_why_it_is_skipped():
    plan = load_plan("minimal")
    (inputs,) = RoceWatermarks.cases(plan)
    site = SimulatedSite(plan, physical=True)
    check = RoceWatermarks()
    result = judged(check, plan, inputs, check.collect(Context(plan, site, None), inputs))
    assert (result.state, site.asked) == (State.SKIPPED, [])
    assert "no lossless class" in result.text


def test_only_fabrics_with_a_lossless_class_are_asked_where_there_is_one():
    assert [one.fabric for one in RoceWatermarks.cases(load_plan("xoc-64"))] == ["backend"]


def test_it_runs_behind_everything_of_its_stage_that_pushes_traffic():
    cases = catalog.generate(PLAN, all_checks().values())
    mine = [case.check for case in cases if case.check.stage is Stage.ROCE]
    depths = [catalog.depth(check.name) for check in mine]
    assert depths == sorted(depths)
    pushing = [number for number, check in enumerate(mine) if not check.passive]
    assert mine.index(RoceWatermarks) > max(pushing)


@pytest.mark.parametrize(("interval", "waited"), [("default (60000)", 52.0), ("10000", 2.0), ("nothing", 52.0)])
def test_the_last_look_waits_for_the_poll_after_the_traffic(monkeypatch, interval, waited):
    slept = []
    monkeypatch.setattr(time, "sleep", slept.append)
    monkeypatch.setattr(time, "monotonic", lambda: 110.0)
    site = SimulatedSite(PLAN, physical=True)
    polls = f"Type Interval (in ms) Status\n--- --- ---\nPG_WATERMARK_STAT {interval} enable\n"
    site.say_counterpoll = lambda device: "?" if interval == "nothing" else polls
    ran = [
        ("bgp-sessions leaf-01", 0.0, 109.0),
        ("rdma-transfer acme", 90.0, 100.0),
        ("roce-config leaf-01", 1.0, 110.0),
    ]
    check, inputs = RoceWatermarks(), WatermarkInputs(fabric="fabric")
    seen = check.collect(Context(PLAN, site, None, ran=ran), inputs)
    assert slept == [waited]
    assert seen["traffic"] == ["rdma-transfer"]


def test_what_ran_meanwhile_is_named_and_nobody_waits_when_nothing_did(monkeypatch):
    monkeypatch.setattr(time, "sleep", lambda _: pytest.fail("nothing to wait for"))
    site = SimulatedSite(PLAN, physical=True)
    check, inputs = RoceWatermarks(), WatermarkInputs(fabric="fabric")
    seen = check.collect(Context(PLAN, site, None), inputs)
    assert "no check pushed lossless traffic" in judged(check, PLAN, inputs, seen).text
    seen["traffic"] = ["rdma-transfer", "dscp-path"]
    assert judged(check, PLAN, inputs, seen).text.endswith("rdma-transfer, dscp-path ran meanwhile")
