"""The tenant matrix: who must be reached, who must not, and who answered where tenants share addresses."""

from __future__ import annotations

import copy
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from fabric.build import load_plan
from tests.unit.accept.tenant_traffic import LISTENING, PLANNED, LiveSite, Traffic
from validators.check import Context, judged
from validators.devices.answers import Answer
from validators.devices.listening import heard, listen, new_file
from validators.results import State
from validators.tenants.arrivals import Heard, listener, send_to_itself
from validators.tenants.checks import TenantInputs, TenantMatrix
from validators.tenants.pairs import Reach

pytestmark = pytest.mark.unit
PLAN = load_plan("lab")
# compute-003's packets to an address that compute-001, of its own tenant, and compute-002 of globex have
OVERLAP = ("compute-003", "10.1.0.9")


def matrix(tenant, ways=None, plan=PLAN, **traffic):
    check, inputs = TenantMatrix(), TenantInputs(tenant=tenant)
    site = LiveSite(plan, traffic=Traffic(ways, **traffic))
    result = judged(check, plan, inputs, check.collect(Context(plan, site, None), inputs))
    return result, {part.labels["direction"].removeprefix("to "): part for part in result.parts}


def test_the_plan_holds_and_every_pair_is_judged_by_what_arrived():
    for tenant, pairs in {"acme": 3, "globex": 2, "storage": 2}.items():
        result, parts = matrix(tenant)
        assert (result.state, result.text) == (State.PASS, f"all {pairs} pairs behave as the plan says")
        assert {part.state for part in parts.values()} == {State.PASS}
    _, parts = matrix("acme")
    assert parts["acme"].text == "3 of 3 answered, and arrived at compute-003"
    assert parts["globex"].subject == "compute-003 (acme) -> compute-002 (globex)"
    assert parts["globex"].text == (
        "nothing arrived at compute-002, as it must be; 3 arrived at compute-001, with the same address 10.1.0.9"
    )
    assert matrix("globex")[1]["storage"].text == "silent, as it must be (and nothing arrived)"


@pytest.mark.parametrize("back", [True, False])
def test_packets_that_arrive_at_another_tenant_with_the_same_address_are_a_leak(back):
    result, parts = matrix("acme", PLANNED | {OVERLAP: "compute-002"}, silent=() if back else [OVERLAP])
    assert result.state is parts["globex"].state is State.FAIL
    assert "3 of 3 arrived at compute-002, the plan forbids it" in result.text
    assert result.text.endswith("though no answer came back") is not back
    assert result.place == "VRFs Vrf-acme and Vrf-globex"
    assert parts["acme"].state is parts["storage"].state is State.PASS


def test_a_leak_of_one_way_is_found_without_an_answer_and_one_of_both_ways_by_it():
    leak = ("compute-002", "10.250.0.5")
    result, _ = matrix("globex", {leak: "storage-001"}, silent=[leak])
    assert (result.state, result.place) == (State.FAIL, "VRFs Vrf-globex and Vrf-storage")
    assert "arrived at storage-001, the plan forbids it, though no answer came back" in result.text
    result, _ = matrix("globex", {leak: "storage-001"}, deaf={"storage-001": "python3: not found"})
    assert (result.state, "3 of 3 answered, the plan forbids it" in result.text) == (State.FAIL, True)


def test_a_leak_is_named_before_what_it_breaks():
    broken = PLANNED | {OVERLAP: "compute-002", ("compute-001", "10.1.0.25"): ""}
    result, parts = matrix("acme", broken, silent=[OVERLAP])
    assert parts["acme"].state is State.FAIL
    assert result.text.startswith("compute-003 (acme) -> compute-002 (globex): 3 of 3 arrived at compute-002")
    assert result.text.endswith("(and 1 more)")


@pytest.mark.parametrize(
    ("said", "why"),
    [("x\nPermissionError: no\n", "PermissionError: no"), ("", "it did not begin"),
     (LISTENING, "it did not hear what the server sent to itself")],
)  # fmt: skip
def test_who_cannot_be_listened_at_is_an_error_only_where_addresses_are_shared(said, why):
    result, parts = matrix("acme", deaf={"compute-002": said, "compute-003": said})
    assert (result.state, result.place) == (State.ERROR, "compute-002")
    assert "compute-001 may be reached as 10.1.0.9 too, so answers say nothing" in parts["globex"].text
    assert parts["globex"].text.endswith(f"compute-002 could not be listened at: {why}")
    assert parts["acme"].state is State.PASS
    assert parts["acme"].text == f"3 of 3 answered (compute-003 could not be listened at: {why})"
    _, parts = matrix("storage", deaf={"compute-001": said})
    assert parts["acme"].state is State.ERROR
    assert "nobody knows by whom: others have 10.1.0.9 too" in parts["acme"].text
    assert f"compute-001 could not be listened at ({why})" in parts["globex"].text
    result, parts = matrix("globex", deaf={"storage-001": said})
    assert result.state is State.PASS
    assert parts["storage"].text == f"silent, as it must be (storage-001 could not be listened at: {why})"


def test_a_server_that_cannot_be_asked_to_listen_says_why():
    result, parts = matrix("acme", gone=["compute-002"])
    assert (result.state, parts["globex"].place) == (State.ERROR, "compute-002")
    assert parts["globex"].text.endswith("the node is gone")


def test_an_answer_by_somebody_else_is_not_the_right_one():
    _, parts = matrix("acme", {}, answered=[("compute-001", "10.1.0.25")])
    assert parts["acme"].state is State.FAIL
    assert parts["acme"].text == ("3 of 3 answered, but nothing arrived at compute-003: somebody else has 10.1.0.25")
    result, parts = matrix("acme", PLANNED | {OVERLAP: ""}, answered=[OVERLAP])
    assert result.state is parts["globex"].state is State.UNKNOWN
    assert parts["globex"].text.endswith("yet 3 of 3 were answered: who has 10.1.0.9?")


def test_an_allowed_pair_that_is_silent_fails_and_says_whether_the_way_back_is_missing():
    ways = {way: server for way, server in PLANNED.items() if server != "compute-003"}
    result, _ = matrix("acme", ways)
    assert result.state is State.FAIL
    assert "0 of 3 answered, and the plan allows it" in result.text
    assert result.place == "VRF Vrf-acme"
    result, _ = matrix("acme", silent=[("compute-001", "10.250.0.5")])
    assert result.text.endswith("the plan allows it; 3 arrived at storage-001: the way back is missing")
    assert result.place == "VRFs Vrf-acme and Vrf-storage"


def test_a_sender_that_is_gone_is_an_error():
    gone, _ = matrix("acme", gone=["compute-001", "compute-003"])
    assert (gone.state, gone.place) == (State.ERROR, "compute-003")


def test_a_pair_whose_only_sender_has_the_address_itself_is_skipped_and_named():
    lone = replace(PLAN, servers={name: s for name, s in PLAN.servers.items() if name != "compute-003"})
    pair = next(pair for pair in Reach(lone, "acme").pairs() if pair.tenant == "globex")
    assert (pair.sender, pair.ears) == ("", ())
    result, parts = matrix("acme", plan=lone)
    assert parts["globex"].state is State.SKIPPED
    assert parts["globex"].text == "each server of acme that could send has 10.1.0.9 itself"
    assert (result.state, result.text) == (
        State.PASS,
        f"1 of 2 pairs behave as the plan says; skipped: {parts['globex'].subject}: {parts['globex'].text}",
    )


class _Here:
    """This machine, with a program of the test's own for Python."""

    def __init__(self, path):
        self.path = path

    def run(self, device, command, timeout_s=30.0):
        environment = {"PATH": f"{self.path}:{os.environ['PATH']}"}
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=timeout_s, env=environment, check=False)  # fmt: skip
        return Answer(done.stdout, "" if done.returncode == 0 else f"exit {done.returncode}: {done.stderr}")


def test_a_listener_that_does_not_begin_says_why_and_leaves_no_file(tmp_path):
    here, file, token = _Here(tmp_path), new_file(), "0badcafe"
    (tmp_path / "python3").write_text("#!/bin/sh\necho Traceback; echo PermissionError: not permitted; exit 1\n")
    (tmp_path / "python3").chmod(0o755)
    assert listen(here, "any", file, listener(token)).ok
    assert Path(file).exists()
    answer = heard(here, "any", file, send_to_itself("127.0.0.1", token))
    assert not Path(file).exists()
    assert not Path(f"{file}.pid").exists()
    assert Heard.of(answer.to_dict()) == Heard(0, "PermissionError: not permitted")


def test_a_pair_of_the_plan_that_was_not_tried_is_no_pair_that_is_well():
    check, inputs = TenantMatrix(), TenantInputs(tenant="acme")
    seen = check.collect(Context(PLAN, LiveSite(PLAN), None), inputs)
    for change in (lambda pairs: pairs.pop(0), lambda pairs: pairs[0].update(server="storage-001")):
        odd = copy.deepcopy(seen)
        change(odd["pairs"])
        result = judged(check, PLAN, inputs, odd)
        assert (result.state, "this pair was not tried" in result.text) == (State.ERROR, True)
