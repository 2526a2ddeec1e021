"""The command line at its edges: closed streams, full disks, empty names, folders that are not ours."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path

import click
import pytest

from fabric.cli.main import cli, main
from fabric.cli.output import print_json
from fabric.resources import data_folder
from tests.conftest import run_cli

pytestmark = pytest.mark.unit

_COMMAND = f"{sys.executable} -c 'from fabric.cli.main import main; main()'"


@pytest.mark.parametrize(
    ("arguments", "redirect", "code"),
    [
        ("plan xoc-64 --format json", ">&-", 0),
        ("plan xoc-64", "2>&-", 0),
        ("plan xoc-64", ">&- 2>&-", 0),
        ("plan nowhere", "2>&-", 2),
        ("plan nowhere", "2>/dev/full", 2),
        ("plan xoc-64", "2>/dev/full", 0),
        ("plan xoc-64", ">/dev/full", 2),
        ("plan xoc-64 --format json", "| head -c 10 >/dev/null; exit ${PIPESTATUS[0]}", 0),
    ],
)
def test_closed_streams_give_no_traceback(arguments: str, redirect: str, code: int) -> None:
    done = subprocess.run(
        ["bash", "-c", f"{_COMMAND} {arguments} {redirect}"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stdout + done.stderr


@pytest.mark.parametrize("words", [("--help",), ("kv", "models"), ("check", "--list"), ("lab", "--help")])
def test_a_reader_that_has_left_is_no_error(words: tuple[str, ...]) -> None:
    read, write = os.pipe()
    os.close(read)
    argv = [sys.executable, "-c", "from fabric.cli.main import main; main()", *words]
    done = subprocess.run(argv, stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("check nowhere", 2),
        ("check nowhere --format json", 2),
        ("plan minimal --nonsense", 2),
        ("accept minimal --hosts {tmp}/hosts.yaml --check device-answers --out {tmp}/runs", 3),
        ("accept minimal --list --tags no-such-tag", 4),
        ("render minimal --out {tmp}/out --diff", 1),
        ("plan minimal", 0),
    ],
)
def test_a_reader_that_has_left_changes_no_exit_code(arguments: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "hosts.yaml").write_text("fe-leaf-01: {hostname: 127.0.0.1, port: 1}\n")
    for closed, unbuffered in (({1, 2}, ""), ({1}, "1"), ({2}, "")):
        words = arguments.format(tmp=tmp_path).split()
        argv = [sys.executable, "-c", "from fabric.cli.main import main; main()", *words]
        read, write = os.pipe()
        os.close(read)
        with (tmp_path / "seen").open("wb") as seen:
            out, err = (write if number in closed else seen.fileno() for number in (1, 2))
            env = {**os.environ, "PYTHONUNBUFFERED": unbuffered}
            done = subprocess.run(argv, stdout=out, stderr=err, env=env, check=False)
        os.close(write)
        assert done.returncode == code, closed
        assert "Traceback" not in (tmp_path / "seen").read_text()


def test_a_program_that_does_not_take_what_it_is_told_is_no_success(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def dead(*_: object, **__: object) -> None:
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("fabric.build.load_plan", dead)
    with pytest.raises(SystemExit) as caught:
        main(["show", "lab", "leaf-01"])
    assert caught.value.code == 3
    assert "a program that was written to has ended" in capsys.readouterr().err


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this machine")
def test_a_full_disk_is_said_once_with_a_fix() -> None:
    done = subprocess.run(
        ["bash", "-c", f"{_COMMAND} plan xoc-64 > /dev/full"], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert "No space left" in done.stderr
    assert "fix:" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("plan", "nowhere"), 2),
        (("capacity", "xoc-64", "--qps", "nan"), 2),
        (("lab", "status", "--name", "nowhere"), 2),
        (("probe", "nat", "lab"), 2),
        (("path", "lab", "--from", "compute-001", "--to", "compute-003", "--rendered", "."), 3),
    ],
)
def test_who_asks_for_json_gets_json_also_without_an_answer(
    tmp_path: Path, arguments: tuple[str, ...], code: int
) -> None:
    env = {"PYTHONPATH": str(Path(__file__).resolve().parents[3]), "KVFABRIC_LAB_STATE": str(tmp_path / "none")}
    done = run_cli(*arguments, "--format", "json", cwd=tmp_path, env=env)
    assert done.returncode == code, done.stderr
    assert json.loads(done.stdout)["problems"][0]["text"]


@pytest.mark.parametrize(
    "words",
    [
        "lab up lab --memory 0",
        "lab impair x --loss nan",
        "lab impair x --delay inf",
        "lab break x --for nan",
        "lab capture x --for nan",
        "probe idle lab --lab x --scale nan",
        "probe ladder lab --lab x --start nan",
        "probe ladder lab --lab x --start 1000 --highest 10",
        "probe failover lab --lab x --allow-disruptive --interval 0",
        "probe failover lab --lab x --allow-disruptive --within nan",
        "probe drain lab --lab x --allow-disruptive --deadline -1",
        "probe rdma lab --lab x --duration inf",
        "probe rdma lab --lab x --max-bytes 0",
        "probe rdma lab --lab x --least-share 2",
        "probe rdma lab --lab x --most-p99-ms nan",
        "probe rdma lab --lab x --piece 0",
    ],
)
def test_numbers_that_make_no_sense_are_refused_before_anything_runs(
    capsys: pytest.CaptureFixture[str], words: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words.split())
    said = capsys.readouterr().err
    assert caught.value.code == 2, said
    assert "Invalid value" in said or "no step" in said


@pytest.mark.parametrize(
    "words",
    [
        "lab up lab --name",
        "lab up lab --slice",
        "lab status --name",
        "lab export lab --out",
        "lab capture leaf-01:Ethernet0 -w",
        "capacity lab --plot",
        "kv move --record",
        "accept lab --list --engine",
        "probe rdma lab --lab",
        "probe rdma lab --from",
        "probe rdma lab --hosts",
        "probe rdma lab --pool",
        "probe nat lab --lab x --tenant",
        "probe session lab --lab",
        "probe pfc lab --lab x --from",
    ],
)
def test_a_word_that_is_given_empty_never_means_the_default(capsys: pytest.CaptureFixture[str], words: str) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*words.split(), " "])
    assert caught.value.code == 2
    assert "is empty" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "ended by SIGTERM"),
        (signal.SIGHUP, 129, "ended by SIGHUP"),
    ],
)
def test_a_signal_ends_in_order_and_says_so(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, number: signal.Signals, code: int, said: str
) -> None:
    taken_back = []

    def disruptive(*_: object, **__: object) -> None:
        try:
            os.kill(os.getpid(), number)
            time.sleep(20)
        finally:
            if number is not signal.SIGINT:
                os.kill(os.getpid(), number)  # whoever sends it again does not stop what is being taken back
            taken_back.append(True)

    monkeypatch.setattr("fabric.build.load_plan", disruptive)
    # `nohup make test &` ignores some of them, and what is ignored stays so
    started_with = signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)
    before = signal.getsignal(number)
    with pytest.raises(SystemExit) as caught:
        main(["show", "lab", "leaf-01", "--format", "json"])
    heard = capsys.readouterr()
    assert (caught.value.code, taken_back) == (code, [True])
    assert heard.err.strip() == f"kvfabric: {said}"
    assert json.loads(heard.out)["problems"][0]["text"] == said
    assert signal.getsignal(number) is before
    signal.signal(number, started_with)


def test_json_has_no_nan() -> None:
    with pytest.raises(ValueError, match="JSON"):
        print_json({"x": float("nan")})


@pytest.mark.parametrize(
    "arguments",
    [
        ("plan", ""),
        ("render", "lab", "--out", ""),
        ("render", "lab", "--out", " "),
        ("build", "lab", "--out", ""),
        ("new", "berlin", "--size", "xoc-64", "--out", ""),
        ("cables", "lab", "--out", ""),
        ("render", "lab", "--out", "out", "--limit", ","),
        ("render", "lab", "--out", "out", "--limit", ""),
    ],
)
def test_empty_names_are_refused_and_write_nothing(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = run_cli(*arguments, cwd=tmp_path, env={"PYTHONPATH": str(Path(__file__).resolve().parents[3])})
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_list_may_be_said_with_commas_and_again() -> None:
    both = run_cli("accept", "lab", "--list", "--check", "cabling,port-mtu", "--check", "bgp-sessions")
    assert both.returncode == 0
    assert all(name in both.stdout for name in ("cabling", "port-mtu", "bgp-sessions"))


def test_another_sites_folder_is_refused(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    assert run_cli("render", "lab", "--out", out, "--limit", "leaf-01").returncode == 0
    for more in ((), ("--diff",)):
        done = run_cli("render", "xoc-64", "--out", out, *more)
        assert done.returncode == 2
        assert "render.other-site" in done.stderr
    assert not (tmp_path / "out" / "be-leaf-01").exists()


def test_diff_ends_with_a_line_a_device(tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    run_cli("render", "lab", "--out", out, "--limit", "leaf-01,spine-01")
    (tmp_path / "out/leaf-01/frr.conf").write_text("hostname other\n")
    (tmp_path / "out/spine-01/frr.conf").unlink()
    done = run_cli("render", "lab", "--out", out, "--limit", "leaf-01,spine-01", "--diff")
    assert done.returncode == 1
    leaf, spine = done.stderr.splitlines()
    assert leaf.startswith("leaf-01: 1 changed (+")
    assert leaf.endswith("-1 lines)")
    assert spine.startswith("spine-01: 1 added (+")


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes where nobody may")
def test_a_folder_that_cannot_be_written_names_a_fix(tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    done = run_cli("render", "lab", "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert "fix:" in done.stderr


def test_configurations_are_not_written_when_the_ledger_cannot_be(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    for name in ("site.yaml", "tenants.yaml"):
        (site / name).write_text((data_folder("inventories") / "lab" / name).read_text())
    (site / "ledger.json").symlink_to(tmp_path / "gone" / "ledger.json")
    broken = (
        "from fabric.build import PlannedSite\n"
        "def no(self): raise PermissionError(13, 'Permission denied', str(self.ledger_path))\n"
        "PlannedSite.save_ledger = no\n"
        "from fabric.cli.main import main; main()"
    )
    for verb in (
        ("render", str(site), "--out", str(tmp_path / "out")),
        ("build", str(site), "--out", str(tmp_path / "out")),
    ):
        done = subprocess.run([sys.executable, "-c", broken, *verb], capture_output=True, text=True, check=False)
        assert done.returncode == 2
        assert "Permission denied" in done.stderr
        assert "fix:" in done.stderr
        assert not list(tmp_path.glob("out/**/config_db.json"))


def test_build_as_json(tmp_path: Path) -> None:
    done = run_cli("build", "lab", "--out", str(tmp_path), "--format", "json")
    assert done.returncode == 0
    data = json.loads(done.stdout)
    assert data["failed"] is False
    assert Path(data["folder"], "configs").is_dir()
    assert data["summary"]


def test_help_of_every_verb_begins_with_a_capital() -> None:
    context = click.Context(cli)
    for name in cli.list_commands(context):
        command = cli.get_command(context, name)
        assert command
        assert command.get_short_help_str()[0].isupper(), name


def test_nothing_checked_is_code_four(tmp_path: Path) -> None:
    done = run_cli("check", "lab", "--from", str(tmp_path))
    assert done.returncode == 4
    assert "nothing was checked" in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "lab", "/dev/zero"),
        ("import", "/dev/zero", "--out", "{tmp}/out"),
        ("kv", "size", "--config", "/dev/zero", "--tokens", "1"),
        ("kv", "move", "--replay", "/dev/zero"),
        ("accept", "lab", "--list", "--catalog", "/dev/zero"),
        ("accept", "lab", "--list", "--hosts", "/dev/zero"),
        ("plan", "{tmp}"),
    ],
)
def test_what_has_no_end_is_not_read_to_it(words: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / "site.yaml").symlink_to("/dev/zero")
    done = run_cli(*(word.format(tmp=tmp_path) for word in words))
    assert (done.returncode, "File too large" in done.stderr, "fix:" in done.stderr) == (2, True, True), done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("import", "x.yaml", "--out", "{tmp}/a"), "is a loop of symbolic links"),
        (("kv", "benefit", "--model", "llama-3.1-70b", "--prefill-tokens-per-s", "0"), "is not in the range"),
        (("kv", "move", "--model", "llama-3.1-70b", "--tokens", "1", "--mtu", "1"), "fix: the default is 4096"),
    ],
)
def test_values_that_cannot_be(
    words: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(SystemExit) as caught:
        main([word.format(tmp=tmp_path) for word in words])
    assert caught.value.code == 2
    assert said in capsys.readouterr().err


def test_a_signal_does_not_wait_for_what_waits_for_a_device() -> None:
    waiting = (
        "import concurrent.futures, os, signal, time\n"
        "from fabric.cli import main\n"
        "def stop(argv):\n"
        "    pool = concurrent.futures.ThreadPoolExecutor(1)\n"
        "    pool.submit(time.sleep, 60)\n"
        "    return 143\n"
        "main._run = stop\n"
        "main.main()\n"
    )
    began = time.monotonic()
    assert subprocess.run([sys.executable, "-c", waiting], check=False).returncode == 143
    assert time.monotonic() - began < 50


def test_nothing_that_an_inventory_would_read_is_written_into_its_folder(tmp_path: Path) -> None:
    site = tmp_path / "lab"
    site.mkdir()
    for name in ("site.yaml", "tenants.yaml"):
        (site / name).write_text((data_folder("inventories") / "lab" / name).read_text())
    before = sorted(site.iterdir())
    for words in (("build", str(site), "--out", str(tmp_path)),
                  ("cables", str(site), "--format", "wiring", "--out", str(site))):  # fmt: skip
        done = run_cli(*words)
        assert (done.returncode, "is the folder of the inventory" in done.stderr) == (2, True), done.stderr
        assert sorted(site.iterdir()) == before
    text = (site / "site.yaml").read_text()
    done = run_cli("kv", "move", "--model", "llama-3.1-70b", "--tokens", "9", "--record", str(site / "site.yaml"))
    assert (done.returncode, "nothing was added to it" in done.stderr) == (2, True), done.stderr
    assert (site / "site.yaml").read_text() == text


def test_without_docstrings_it_says_that_it_cannot_run() -> None:
    done = run_cli("catalog", "--list", env={"PYTHONOPTIMIZE": "2"})
    assert (done.returncode, "PYTHONOPTIMIZE" in done.stderr, "Traceback" in done.stderr) == (3, True, False)
