"""Reports: ids that never merge, states that never look green, secrets that never show, and what got worse."""

from __future__ import annotations

import csv
import io
import itertools
import json
import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric.build import load_plan
from tests.unit.report.runs import INFO, part, record, run
from validators.journal_records import Record
from validators.report.html import part_line, to_html
from validators.report.junit import to_junit
from validators.report.model import Run
from validators.report.plots import heat_map
from validators.report.redact import HIDDEN, Redactor
from validators.report.tables import to_csv, to_json, to_markdown, to_prometheus
from validators.report.topology import coloured, topology_of
from validators.results import COMPUTED, NOT_RUN, Measurement, Result, State

pytestmark = pytest.mark.unit


ALL = run(*(record(state.value, state) for state in State))


def test_junit_tells_failure_error_and_skipped_apart_and_unknown_is_never_green():
    suite = ElementTree.fromstring(to_junit(ALL)).find("testsuite")
    kinds = {case.get("name"): [child.tag for child in case] for case in suite.findall("testcase")}
    assert kinds == {"pass": [], "fail": ["failure"], "error": ["error"], "skipped": ["skipped"], "unknown": ["error"]}
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors"), suite.get("skipped")) == (
        "5",
        "1",
        "2",
        "1",
    )
    assert {p.get("name") for p in suite.find("properties")} >= {"plan", "seed", "version.frr"}


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(st.tuples(st.text(max_size=5), st.sampled_from(State)), max_size=4), max_size=5))
def test_junit_ids_are_unique_and_xml_is_sound_for_any_text(groups):
    records = [
        Record(
            f"case-{i}",
            "s\0t",
            Result("c", "s", State.FAIL, "t\x00\ud800", parts=tuple(Result("c", n, s, n) for n, s in group)),
        )
        for i, group in enumerate(groups)
    ]
    cases = ElementTree.fromstring(to_junit(run(*records))).iter("testcase")
    names = [case.get("name") for case in cases]
    assert len(names) == len(set(names)) == sum(1 for _ in run(*records).leaves())


@pytest.mark.parametrize(
    ("states", "verdict"),
    [([], "not decided"), (["pass"], "accepted"), (["pass", "skipped"], "accepted"), (["skipped"], "not decided"),
     (["pass", "error"], "not decided"), (["pass", "unknown"], "not decided"), (["pass", "fail", "error"], "not accepted")],
)  # fmt: skip
def test_the_verdict_is_never_green_for_nothing(states, verdict):
    assert run(*(record(f"{i}", State(s)) for i, s in enumerate(states))).verdict == verdict


def test_a_stage_that_did_not_run_is_not_accepted():
    blocked = Record(
        "b", "tenants", Result("x", "b", State.SKIPPED, "not run, because stage cabling could not be judged")
    )
    assert run(record("a"), blocked).verdict == "not decided"


def test_the_verdict_says_what_it_goes_without():
    numbers = itertools.count()

    def skipped(check, stage, text):
        return Record(f"{check}#{next(numbers)}", stage, Result(check, "x", State.SKIPPED, text))

    not_allowed = "disturbs traffic: give --allow-disruptive to run it"
    mixed = Run(
        replace(INFO, options={"checks": ["nat-*", "fabric-failover"]}),
        (
            record("a"),
            Record("serving", "gateways", Result("gateway-serving", "x", State.PASS, "")),
            skipped("nat-behaviour", "gateways", not_allowed),
            skipped("port-speed", "gateways", "needs real ports, and those of engine uml are virtual"),
            skipped("tenant-matrix", "tenants", "acts on the network, and nobody is asked"),
            skipped("fabric-failover", "failover", not_allowed),
            skipped("fabric-failover", "failover", not_allowed),
        ),
    )
    words = (
        "disruptive checks skipped: 3 (nat-behaviour, fabric-failover 2); anything but checks nat-*, fabric-failover; "
        "skipped: 1 (tenant-matrix); in need of real ports: 1 (port-speed)"
    )
    assert mixed.verdict == "accepted"
    assert mixed.headline == f"accepted, without: {words}"
    assert run(record("a")).headline == "accepted"
    assert Run(replace(mixed.info, finished=""), mixed.records).headline == "interrupted"
    listed = "".join(f"- {text}\n" for text in mixed.without)
    assert to_markdown(mixed).startswith(f"# Acceptance of lab: accepted\n\nWithout:\n\n{listed}\n")
    assert "\n| failover | 2 | 0 | 0 | 0 | 2 | 0 | 0 |\n| all | 7 | 2 | 0 | 0 | 5 | 0 | 0 |\n" in to_markdown(mixed)
    page = to_html(mixed)
    assert all(f"<li>{text}</li>" in page.partition("<b>Without:</b>")[2] for text in mixed.without)
    assert f"<b>accepted</b>, without: {words}" in page.partition("card sign")[2]
    assert json.loads(to_json(mixed))["without"] == list(mixed.without)
    assert f'name="without" value="{words}"' in to_junit(mixed)
    assert (
        f'kvfabric_acceptance_accepted{{site="lab",verdict="accepted",without="{words}",ports=""}} 1'
        in to_prometheus(mixed)
    )


def test_html_needs_nothing_from_elsewhere_and_escapes_everything():
    text = to_html(run(record("<script>alert(1)</script>", State.FAIL, place='"><img src=x>')))
    assert "<script>alert(1)" not in text
    assert "<img src=x" not in text
    assert not re.search(r"(?:src|href)\s*=\s*[\"']?(?:https?:)?//", text)
    assert "@import" not in text
    assert "prefers-color-scheme: dark" in text


def test_failed_links_are_marked_in_the_topology():
    plan = load_plan("lab")
    link = next(one for one in plan.links.values() if one.kind == "fabric")
    part = Result("cabling", "x", State.FAIL, "dead", labels={"link": link.id, "device": link.b.device})
    drawn = coloured(run(record("cabling", State.FAIL, part), topology=json.loads(json.dumps(topology_of(plan)))))
    bad = [curve for panel in drawn["panels"] for curve in panel["curves"] if curve["state"] == "fail"]
    assert [curve["links"] for curve in bad] == [[link.id]]
    assert "dead" in bad[0]["tip"]
    assert 'class="l fail"' in to_html(run(record("cabling", State.FAIL, part), topology=topology_of(plan)))


def test_plots_are_drawn_and_broken_data_costs_only_the_plot():
    evidence = {
        "matrix": {
            "rows": ["a", "b"],
            "columns": ["a", "b"],
            "values": [[None, 10], [340, None]],
            "unit": "Gb/s payload",
            "promised": 340,
        },
        "ladder": {
            "points": [{"x": 1, "y": 1, "ok": True}, {"x": 2, "y": 1, "ok": False}],
            "x": "n",
            "y": "n",
            "knee": 1,
        },
        "idle": {
            "rows": [{"protocol": "udp", "state": "one-way", "declared_s": 30, "measured_s": None, "verdict": "error"}]
        },
        "timeline": {
            "start_ms": 0,
            "end_ms": 10,
            "events": [{"at_ms": 5, "text": "down"}],
            "flows": [{"name": "f", "gaps": [[5, 6]]}],
        },
    }
    text = to_html(run(record("all", evidence=evidence)))
    for mark in ("h-0", "h-10", "knee at 1", "not seen", "1.0 ms without a packet", "green is promised"):
        assert mark in text
    knee, ended = evidence["ladder"] | {"limit": "tester"}, evidence["ladder"] | {"knee": 1603, "limit": "ladder"}
    assert "knee at 1, by the tester" in to_html(run(record("all", evidence={"ladder": knee})))
    # nothing failed: that is no knee
    assert "1,603, the highest tried" in to_html(run(record("all", evidence={"ladder": ended})))
    shortened = {
        "protocol": "tcp",
        "state": "x",
        "plan_s": 600,
        "declared_s": 12,
        "measured_s": 12.0,
        "verdict": "pass",
    }
    row = to_html(run(record("all", evidence={"idle": {"rows": [shortened]}}))).partition("given to the gateway")[2]
    assert row.index(">600 s<") < row.index(">12 s<") < row.index(">12.0 s<")
    note = evidence["timeline"] | {"note": "tools are silent on purpose"}
    assert "tools are silent on purpose" in to_html(run(record("all", evidence={"timeline": note})))
    assert "cannot be drawn" in to_html(run(record("bad", evidence={"matrix": {"rows": 5}})))


def test_names_of_a_heat_map_fit_into_their_drawing():
    names = ["compute-001:be0-port0-with-a-long-name", "b"]
    drawn = heat_map(
        {"rows": names, "columns": names, "values": [[None, 1], [2, None]]}, Result("c", "s", State.PASS, "")
    )
    width = 6 * len(names[0])
    assert drawn["left"] > width
    assert drawn["top"] > 0.8 * width
    assert drawn["width"] > drawn["left"] + 2 * drawn["cell"] + 0.5 * width
    assert drawn["colours"] == "the largest of them"


def test_a_report_names_the_software_of_devices_and_the_parts_of_what_passed():
    def answers(device, text):
        said = Result("device-answers", device, State.PASS, text)
        return Record(f"a:{device}", "preflight", said, "2026-01-01T00:00:07Z")

    old = answers("leaf-10", "Linux 6.1; FRRouting 8.4 (leaf-10)")
    parts = (Result("c", "spine-01", State.PASS, "established for 00:10:00"),)
    many = tuple(Result("c", f"port-{n}", State.PASS, f"part {n}") for n in range(99))
    devices = [answers(f"leaf-{n}", f"Linux 7; FRRouting 10.3 (leaf-{n})") for n in range(10)]
    page = to_html(run(*devices, old, record("few", State.PASS, *parts), record("many", State.PASS, *many)))
    measured = page.partition("How it was measured")[2]
    names = ", ".join(f"leaf-{n}" for n in range(8))
    assert f'software of {names} and 2 more</td><td class="mono">Linux 7; FRRouting 10.3</td>' in measured
    assert 'software of leaf-10</td><td class="mono">Linux 6.1; FRRouting 8.4</td>' in measured
    assert "spine-01: established for 00:10:00" in page
    assert "part 50" not in page
    assert ">00:00:07</td>" in page


def test_flat_formats_hold_every_result():
    assert {row["state"] for row in csv.DictReader(io.StringIO(to_csv(ALL)))} == {s.value for s in State}
    assert json.loads(to_json(ALL))["verdict"] == "not accepted"
    assert "| fail | cabling | fail |" in to_markdown(ALL)
    labelled = record(
        "m",
        labels={"tenant": 'a"b', "port": "E1/1", "direction": "tx"},
        measurements=(Measurement("bw", 371.5, "Gb/s"),),
    )
    text = to_prometheus(run(labelled))
    assert re.search(r'kvfabric_measurement\{.*tenant="a\\"b",port="E1/1",direction="tx".*\} 371.5', text)
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r'[a-z_]+\{([a-z_]+="(?:[^"\\\n]|\\.)*",?)+\} [-+.e\d]+', line) for line in lines)
    assert len({line.rsplit(" ", 1)[0] for line in lines}) == len(lines)


def test_a_spreadsheet_never_runs_a_cell():
    assert "\n=cmd" not in to_csv(run(Record("x", "s", Result("c", "=cmd()", State.PASS, "")))).replace(",", "\n")


@pytest.mark.parametrize(
    "text",
    ["neighbor 10.0.0.1 password hunter22", "password: hunter22", '"api_token": "hunter22"', "snmp-server community hunter22 ro",
     '"TACPLUS": {"global": {"passkey": "hunter22", "timeout": "5"}}', '"NTP_KEY": {\n "1": {"value": "hunter22"}\n}',
     '"SNMP_COMMUNITY": {\n  "public": {"TYPE": "RO"},\n  "hunter22": {\n   "TYPE": "RO"\n  }\n }, "X": {}',
     "enable secret 5 hunter22", "BGP_PASSWORD=hunter22", "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter22\n", "x hunter22 y"],
)  # fmt: skip
def test_secrets_are_hidden(text):
    known = ["hunter22"] if text.startswith("x ") else []
    assert "hunter22" not in Redactor(known).text(text)
    assert "hunter22" not in json.dumps(Redactor(known).data({"out": [text], "k": {"password": "hunter22"}}))


def test_a_configuration_without_its_secrets_is_still_json():
    db = {"SNMP_COMMUNITY": {"hunter22": {"TYPE": "RO"}}, "TACPLUS": {"global": {"passkey": "hunter22"}}, "PORT": {}}
    left = json.loads(Redactor().text(json.dumps(db, indent=4)))
    assert left == {"SNMP_COMMUNITY": {HIDDEN: {}}, "TACPLUS": {"global": {"passkey": HIDDEN}}, "PORT": {}}


def test_prose_about_passwords_stays_readable():
    text = "the device refused user name, password or key; password authentication failed"
    assert HIDDEN not in Redactor().text("the wrong password was given").replace("was", "")
    assert "authentication failed" in Redactor().text(text)


def test_skipped_parts_of_a_case_that_passed_are_counted_and_named():
    parts = (part("acme -> acme"), part("acme -> globex", State.SKIPPED))
    passed = Record("m", "tenants", Result("tenant-matrix", "acme", State.PASS, "", parts=parts))
    nothing = (part("E1/1", State.SKIPPED, "link-fec"), part("E1/2", State.SKIPPED, "link-fec"))
    skipped = Record("f", "optics", Result("link-fec", "leaf-01", State.SKIPPED, "no counters", parts=nothing))
    mixed = run(passed, skipped)
    words = "parts skipped of cases that were judged: 1 (tenant-matrix (acme -> globex)); skipped: 2 (link-fec 2)"
    assert mixed.headline == f"accepted, without: {words}"
    assert ElementTree.fromstring(to_junit(mixed)).get("skipped") == "3"
    assert "skipped: 1 of the cases, 3 of the results (1 as parts of cases that were judged)" in to_markdown(mixed)
    assert "| tenants | 1 | 1 | 0 | 0 | 0 | 0 | 1 |" in to_markdown(mixed)
    assert "| optics | 1 | 0 | 0 | 0 | 1 | 0 | 0 |" in to_markdown(mixed)
    assert "1 pass, 1 part skipped</span>" in to_html(mixed)
    many = tuple(part(f"acme -> t{n}", State.SKIPPED) for n in range(4))
    failed = Record("m", "tenants", Result("tenant-matrix", "acme", State.FAIL, "", parts=(part("x"), *many)))
    assert run(failed).without == ("parts skipped of cases that were judged: 4 (tenant-matrix (4 parts))",)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(State), st.lists(st.sampled_from(State), max_size=4)), max_size=6))
def test_what_the_verdict_goes_without_adds_up_to_what_junit_skips(cases):
    records = [
        record(f"case {letter}", state, *(part("p", one, "x") for one in parts))
        for letter, (state, parts) in zip("abcdef", cases, strict=False)
    ]
    whole = run(*records)
    told = sum(int(re.search(r": (\d+) \(", text)[1]) for text in whole.without)
    assert told == int(ElementTree.fromstring(to_junit(whole)).get("skipped"))


def test_a_report_of_a_lab_says_so_and_one_of_a_site_does_not():
    words = "of a lab: its ports are virtual"
    lab = Run(replace(INFO, ports="virtual"), (record("a"),))
    assert f"This report is <b>{words}" in to_html(lab)
    assert f"<br>{words}" in to_html(lab).partition("card sign")[2]
    assert f"This report is {words}" in to_markdown(lab)
    assert f'name="note" value="{words}' in to_junit(lab)
    assert json.loads(to_json(lab))["note"].startswith(words)
    assert 'ports="virtual"' in to_prometheus(lab)
    floor = Run(replace(INFO, ports="real"), (record("a"),))
    assert not [make for make in (to_html, to_markdown, to_junit, to_json) if "of a lab" in make(floor)]


def test_a_computed_number_never_passes_for_a_measured_one():
    figures = (
        Measurement("sum of flows", 1.797534, "Gb/s", 4, 0.0123456),
        Measurement("ceiling of one reader", 392.149123, "Gb/s", origin=COMPUTED),
        Measurement("entries", 1048576, "entries"),
    )
    whole = run(record("m", measurements=figures))
    text, page, prom = to_markdown(whole), to_html(whole), to_prometheus(whole)
    assert "| sum of flows | 1.798 Gb/s | 4 | 0.01235 |" in text
    assert "| ceiling of one reader (computed from the plan, not measured) | 392.1 Gb/s |  |" in text
    assert "| 1048576 entries |" in text
    assert "<td>ceiling of one reader (computed from the plan, not measured)</td>" in page
    assert "<b>1.798</b> Gb/s" in page
    assert re.search(r'kvfabric_computed\{.*measurement="ceiling of one reader".*\} 392.149123\n', prom)
    assert re.search(r'kvfabric_measurement\{.*measurement="sum of flows".*\} 1.797534\n', prom)
    assert not re.search(r"kvfabric_measurement\{.*ceiling", prom)
    assert [m["origin"] for m in json.loads(to_json(whole))["results"][0]["result"]["measurements"]] == [
        "measured",
        "computed",
        "measured",
    ]


def test_junit_counts_can_be_explained_and_its_times_add_up():
    parts = [Result("cabling", f"cable {n}", State.PASS, "") for n in range(7)]
    timed = [Result("bgp", "own", State.PASS, "", duration_s=0.25), Result("bgp", "skipped", State.SKIPPED, "")]
    whole = run(
        record("cabling", State.PASS, *parts, duration_s=10.2),
        record("speed", duration_s=0.3),
        Record("bgp", "control-plane", Result("bgp", "leaf", State.PASS, "", parts=tuple(timed))),
    )
    root = ElementTree.fromstring(to_junit(whole))
    times = {suite.get("name"): float(suite.get("time")) for suite in root.iter("testsuite")}
    assert times == {"cabling": 10.5, "control-plane": 0.25}
    assert float(root.get("time")) == 10.75
    for suite in root.iter("testsuite"):
        assert sum(float(case.get("time")) for case in suite.iter("testcase")) == pytest.approx(
            times[suite.get("name")]
        )
    told = [{p.get("name"): p.get("value") for p in suite.iter("property")} for suite in root.iter("testsuite")]
    assert [(one["cases"], one["results"], one["run.cases"]) for one in told] == [("2", "8", "3"), ("1", "2", "3")]
    assert (told[0]["run.counts"], told[0]["run.seconds"]) == ("3 pass", "98")
    assert root.get("tests") == "10"
    assert "3 cases with 10 results (a case with parts has one result per part)" in to_markdown(whole)
    assert "3 cases with 10 results" in to_html(whole)
    assert "3 cases with 10 results" in json.loads(to_json(whole))["sums"]


@pytest.mark.parametrize(
    ("subject", "text", "line"),
    [
        ("tenant acme forward: hairpin", "hairpin: yes", "hairpin: yes"),
        ("tenant acme forward dns", "dns: survived 2 s", "dns: survived 2 s"),
        ("acme forward", "as planned", "as planned"),
        ("acme forward E1/33", "up", "E1/33: up"),
        ("acme forward-2: undo", "all landed", "acme forward-2: undo: all landed"),
        ("gw-01 drain: tenant acme static: stop", "stop was seen", "gw-01 drain: tenant acme static: stop was seen"),
    ],
)
def test_a_part_does_not_repeat_what_its_row_says(subject, text, line):
    whole = Result("nat-behaviour", "acme forward", State.PASS, "kept")
    assert part_line(whole, Result("nat-behaviour", subject, State.PASS, text)) == line


def test_what_a_failure_kept_from_being_asked_is_said_with_the_reason_and_not_as_skipped_checks():
    waits = [Result("nat", f"gw-0{n}", State.SKIPPED, f"{NOT_RUN}stage cabling failed") for n in range(2)]
    late = Result("evpn", "leaf-01", State.SKIPPED, f"{NOT_RUN}bgp did not pass")
    whole = run(record("cabling", State.FAIL), *(Record(r.subject, "gateways", r) for r in (*waits, late)))
    assert whole.without == ("not run: 3 (stage cabling failed 2, bgp did not pass)",)
    assert whole.headline == "not accepted, without: not run: 3 (stage cabling failed 2, bgp did not pass)"
