"""`kvfabric probe nat|idle|ladder` with places that make no sense, and agents that babble, sleep or are not there."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from fabric.cli.main import main
from fabric.problem import CouldNotRunError
from validators.connections import programs
from validators.connections.command import as_text
from validators.connections.controller import AgentProcess
from validators.connections.programs import CommandHost
from validators.results import Result, State

pytestmark = pytest.mark.unit

INSIDE = {"port": "lo", "hop": "10.1.0.1", "network": "10.1.0.0/28", "hosts": "10.1.0.10,10.1.0.11"}
OUTSIDE = {"port": "lo", "hop": "198.18.0.1", "network": "198.18.0.8/29", "hosts": "198.18.0.10,198.18.0.11"}


def _run(capsys: pytest.CaptureFixture[str], *more: str, **inside: str) -> tuple[int, str]:
    sides = {"inside": INSIDE | inside, "outside": OUTSIDE}
    places = [
        word for side, place in sides.items() for name, text in place.items() for word in (f"--{side}-{name}", text)
    ]
    with pytest.raises(SystemExit) as caught:
        main(["probe", "nat", "lab", "--tenant", "acme", "--exposure", "masquerade", *places, *more])
    return int(caught.value.code or 0), capsys.readouterr().err


@pytest.mark.parametrize(
    ("inside", "said"),
    [
        ({"hop": "10.1.0.999"}, "--inside-hop: Octet 999"),
        ({"network": "10.1.0.0"}, "--inside-hosts: must be two addresses of 10.1.0.0/32"),
        ({"network": "nonsense"}, "--inside-network: "),
        ({"network": "10.1.0.1/28"}, "has host bits set"),
        ({"hosts": "10.1.0.10"}, "--inside-hosts: must be two addresses"),
        ({"hosts": "10.1.0.10,10.1.0.10"}, "--inside-hosts: must be two addresses"),
        ({"hosts": "10.9.0.10,10.9.0.11"}, "--inside-hosts: must be two addresses"),
        ({"hosts": "a,b"}, "--inside-hosts: "),
        ({"hop": "10.1.0.10"}, "is one of its hosts"),
        ({"hop": ""}, "--inside-hop"),
    ],
)
def test_addresses_are_looked_at_before_an_agent_starts(
    capsys: pytest.CaptureFixture[str], inside: dict[str, str], said: str
) -> None:
    code, err = _run(capsys, "--inside", "/no/such/program", **inside)
    assert (code, said in err) == (2, True), err


def test_a_lab_and_agents_elsewhere_are_two_places(capsys: pytest.CaptureFixture[str]) -> None:
    code, err = _run(capsys, "--lab", "x")
    assert (code, "one place to measure is enough" in err) == (2, True), err


@pytest.mark.parametrize("probe", ["nat", "idle", "ladder", "failover", "drain", "session", "pfc"])
def test_without_a_place_the_running_lab_is_meant(
    probe: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KVFABRIC_LAB_STATE", str(tmp_path))
    monkeypatch.setenv("KVFABRIC_LAB", "of-the-environment")
    more = {"failover": ["--allow-disruptive"], "drain": ["--allow-disruptive"], "session": ["--allow-disruptive"]}
    more["pfc"] = ["--from", "compute-001:be0-port0"]
    with pytest.raises(SystemExit) as caught:
        main(["probe", probe, "lab", *more.get(probe, [])])
    err = capsys.readouterr().err
    assert (caught.value.code, "of-the-environment: no lab is running" in err) == (2, True), err


@pytest.mark.parametrize("option", ["--inside", "--outside", "--gateway"])
def test_a_command_with_an_open_quotation_is_refused(capsys: pytest.CaptureFixture[str], option: str) -> None:
    code, err = _run(capsys, option, "ssh 'host")
    assert (code, "No closing quotation" in err, f"for {option}" in err) == (2, True, True), err


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("/no/such/program", "No such file or directory"),
        ("false", "agent inside: ended: exit code 1"),
        ("sh -c 'echo no way >&2; exit 7'", "agent inside: ended: no way"),
        ('sh -c "echo ModuleNotFoundError: No module named numpy >&2; exit 1"', "it needs Python 3 with numpy there"),
    ],
)
def test_an_agent_that_is_not_there_says_why(capsys: pytest.CaptureFixture[str], command: str, said: str) -> None:
    code, err = _run(capsys, "--inside", command)
    assert (code, said in err) == (3, True), err


def test_what_a_login_shell_says_before_is_no_answer() -> None:
    greeting = ["sh", "-c", 'echo "Welcome to [] {} 7"; echo 7; echo "{}"; exec "$@"', "sh"]
    with AgentProcess("x", host=CommandHost(greeting, sys.executable)) as agent:
        assert agent.facts


def test_an_agent_that_reads_nothing_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(programs, "_TAKES_S", 0.5)
    monkeypatch.setattr(programs, "bundle", lambda: b"x" * (1 << 20))  # more than a pipe holds
    sleeper = ["sh", "-c", f"echo $$ > {tmp_path}/pid; exec sleep 300", "sh"]
    with pytest.raises(CouldNotRunError, match="did not take its program within"):
        AgentProcess("x", host=CommandHost(sleeper))
    assert not Path(f"/proc/{(tmp_path / 'pid').read_text().strip()}").exists()


def test_a_pass_is_not_told_twice_and_a_failure_is_told_first() -> None:
    good, bad = Result("c", "a", State.PASS, "one holds"), Result("c", "b", State.FAIL, "two does not")
    both = Result("c", "x", State.PASS, "one holds; one holds", parts=(good, good))
    assert as_text(both) == "pass     x: all 2 hold\n  pass     one holds\n  pass     one holds"
    assert as_text(Result("c", "x", State.FAIL, "two does not", parts=(good, bad))).startswith(
        "fail     x: two does not\n"
    )
    assert as_text(Result("c", "x", State.PASS, "7 of 7", parts=(good, good))).startswith("pass     x: 7 of 7\n")
