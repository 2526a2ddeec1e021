"""An acceptance from start to end: engine, catalog, undo of earlier runs, run, reports. What the verbs call."""

from __future__ import annotations

import os
import platform
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from fnmatch import filter as filter_names
from itertools import chain, count
from typing import TYPE_CHECKING, Any

from fabric import __version__
from fabric.hardware.ranges import host_patterns
from fabric.problem import InputError, Problem
from validators.catalog import Case, Selection, digest, generate, lacking, rank
from validators.catalog_file import read_catalog
from validators.check_registry import all_checks
from validators.devices.answers import Ask
from validators.devices.stored import SNAPSHOT, Recorder, StoredDevices, replaced_answers
from validators.journal import NAME as JOURNAL
from validators.journal import Journal, require_no_run
from validators.journal_records import RunInfo
from validators.journal_undo import UndoLog, replay
from validators.report.redact import Redactor
from validators.report.topology import topology_of
from validators.report.write import TOPOLOGY, load_run, write_reports
from validators.runner import Runner, RunOptions, now, write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from fabric.plan import Plan
    from labs.client import Running
    from validators.devices.answers import Devices
    from validators.report.model import Run
    from validators.runner_events import Processor

_NAMED = 8


@dataclass(frozen=True)
class Acceptance:
    """What was asked for. `out` is the folder of the site's runs; `stored` a folder to judge instead of asking.

    `engine` starts a lab of `site` (what `load_plan` was given) for this run alone; `lab` names one that runs already.
    `also` holds cases of the site's own, beside those of the plan or of `catalog`.
    With `only_ask` nothing is judged: a snapshot.
    """

    plan: Plan
    out: Path
    name: str = ""
    site: str = ""
    engine: str = ""
    lab: str = ""
    hosts: Path | None = None
    stored: Path | None = None
    catalog: Path | None = None
    also: Path | None = None
    selection: Selection = field(default_factory=Selection)
    allow_disruptive: bool = False
    keep_going: bool = False
    resume: bool = False
    settle_s: float = 0.0
    seed: int = 0
    only_ask: bool = False


def cases_of(wanted: Acceptance) -> list[Case]:
    """Return the selected cases. Raises InputError when a check, device or tenant of the selection matches nothing."""
    checks = all_checks()
    selection = wanted.selection
    there = {
        "check": (selection.checks, tuple(checks), "`kvfabric catalog --list` has them"),
        "device": (selection.devices, tuple(wanted.plan.kind_of), "`kvfabric plan SITE` has them"),
        "tenant": (selection.tenants, tuple(wanted.plan.tenants), "`kvfabric plan SITE` has them"),
    }
    if problems := [
        Problem(f"accept.{what}", pattern, f"matches no {what}", fix)
        for what, (patterns, names, fix) in there.items()
        for pattern in patterns
        if not filter_names(names, pattern)
    ]:
        raise InputError(problems)
    return [case for case in _catalog(wanted) if selection.keeps(case)]


def _catalog(wanted: Acceptance) -> list[Case]:
    checks = all_checks()
    own = read_catalog(wanted.also, wanted.plan, checks) if wanted.also else []
    if wanted.catalog:
        cases = read_catalog(wanted.catalog, wanted.plan, checks)
    else:
        cases = generate(wanted.plan, checks.values())
    # in the order of their stages; a case that is there already is asked once
    return sorted({case.id: case for case in (*cases, *own)}.values(), key=lambda case: rank(case.check))


def strange_tags(wanted: Acceptance) -> tuple[list[str], list[str]]:
    """Return the wanted tags (patterns) that no case of the catalog has, and the tags that there are."""
    known = sorted({tag for case in _catalog(wanted) for tag in case.tags})
    return [tag for tag in wanted.selection.tags if not filter_names(known, tag)], known


def open_devices(wanted: Acceptance, say: Callable[[str], None] = lambda _text: None) -> tuple[Devices, Redactor]:
    """Open the engine that was asked for, with a redactor that knows its secrets. A lab started here ends with it."""
    if wanted.stored is not None:
        return StoredDevices(wanted.stored, wanted.plan.site), Redactor()
    if wanted.hosts is not None:
        from validators.devices.hosts import read_hosts
        from validators.devices.ssh import SshDevices

        hosts = read_hosts(wanted.hosts, wanted.plan)
        return SshDevices(hosts), Redactor(host.password for host in hosts.values())
    return (_start_lab(wanted, say) if wanted.engine else _open_lab(wanted)), Redactor()


def _start_lab(wanted: Acceptance, say: Callable[[str], None]) -> Devices:
    """Start a lab for this run. What does not converge is for the checks to find."""
    from labs import site
    from validators.devices.lab import LabDevices

    started = site.start(wanted.site or wanted.plan.site, f"accept-{os.getpid()}", engine=wanted.engine, say=say)
    for text in (*started.complaints, *started.missing):
        say(f"lab: {text}")
    return LabDevices(started.running, wanted.engine, owned=True)


_ASK = "--hosts FILE (real devices over SSH), or --lab NAME (a lab that runs)"
_ACCEPT = f"{_ASK}, or --from DIR (a snapshot or an earlier run), or --engine uml (a lab of the site, for this run)"


def _open_lab(wanted: Acceptance) -> Devices:
    from labs import state
    from labs.client import attach
    from validators.devices.lab import LabDevices

    try:
        running = attach(wanted.lab)
    except InputError as error:
        if wanted.lab:
            raise
        text = f"who is to be asked is not said, and {error.problems[0].text}"
        fix = _ASK if wanted.only_ask else _ACCEPT
        raise InputError([Problem("accept.nobody", wanted.plan.site, text, fix)]) from None
    if running.lab.site and running.lab.site != wanted.plan.site:
        text = f"the running lab {running.lab.name} is one of site {running.lab.site}"
        raise InputError(
            [Problem("accept.lab", wanted.plan.site, text, "start a lab of this site, or name it with --lab")]
        )
    if running.lab.plan_digest and running.lab.plan_digest != wanted.plan.digest:
        text = f"the lab {running.lab.name} was made from another plan ({running.lab.plan_digest[:12]})"
        raise InputError([Problem("accept.lab", wanted.plan.site, text, "start the lab again from this site")])
    if not (wanted.only_ask or wanted.selection.checks):
        _refuse_slice(wanted.plan, running)
    engine = state.facts_of(running.folder).get("engine", "uml")
    return LabDevices(running, f"{engine} (lab {running.name})")


def _refuse_slice(plan: Plan, running: Running) -> None:
    """Raise InputError for a lab of a part of the site: most checks would fail for what is not in the lab."""
    from labs import slice as slicing

    whole = slicing.make(plan, running.name, {})
    absent = [node.name for node in whole.nodes if node.name in plan.kind_of and not running.lab.has(node.name)]
    if absent:
        names = ", ".join(host_patterns(absent)[:_NAMED])
        text = f"is a slice of {plan.site}, and an acceptance is of the whole: not in it are {names}"
        fix = (
            "`kvfabric lab status` compares a slice with the plan; else start the whole site, or name checks (--check)"
        )
        raise InputError([Problem("accept.slice", f"lab {running.name}", text, fix)])


def accept(wanted: Acceptance, processors: Sequence[Processor] = ()) -> tuple[Run, Path, dict[str, Path]]:
    """Run an acceptance; returns the run, its folder and the report files. Reports are written on Ctrl-C too."""
    cases = cases_of(wanted)
    named = _known_folder(wanted)

    def say(text: str) -> None:
        for processor in processors:
            processor.note(text)

    devices, redactor = open_devices(wanted, say)
    try:
        if wanted.stored is None:
            # a lab that was started just now has seen no earlier run
            for text in [] if wanted.engine else replay(wanted.out, devices):
                say(f"put back what an earlier run left: {text}")
        # only now: where nobody can be asked, nothing is made
        folder = named or _new_folder(wanted.out)
        if wanted.stored is None:
            devices = Recorder(devices, folder / "raw", redactor)
        return _run(wanted, cases, folder, devices, redactor, processors)
    finally:
        devices.close()


def _run(
    wanted: Acceptance,
    cases: list[Case],
    folder: Path,
    devices: Devices,
    redactor: Redactor,
    processors: Sequence[Processor],
) -> tuple[Run, Path, dict[str, Path]]:
    planned = [case for case in generate(wanted.plan, all_checks().values()) if wanted.selection.keeps(case)]
    dropped, edited = lacking(planned if wanted.catalog else (), cases)
    info = RunInfo(
        folder.name, wanted.plan.site, wanted.plan.profile, wanted.plan.digest, digest(cases), devices.name, now(),
        seed=wanted.seed, options=_options(wanted),
        versions={"kvfabric": __version__, "python": platform.python_version()},
        cases=dict(Counter(case.check.stage.value for case in cases)),
        ports="real" if devices.physical else "virtual", dropped=dropped, edited=edited,
        unproven=list(devices.unproven),
    )  # fmt: skip
    journal = (Journal.resume if wanted.resume else Journal.start)(folder, info)
    write_json(folder / TOPOLOGY, topology_of(wanted.plan))
    undo = UndoLog(folder / "undo.jsonl", devices)
    options = RunOptions(
        wanted.allow_disruptive,
        wanted.keep_going,
        wanted.settle_s,
        stored=wanted.stored,
        same_plan=getattr(devices, "plan", "") in {"", wanted.plan.digest},
        extra={"seed": wanted.seed},
        clean=redactor.data,
    )
    try:
        Runner(wanted.plan, devices, journal, undo, folder, options, processors).run(cases)
        journal.end(now())  # only here: what ends the run in another way leaves it interrupted
    except KeyboardInterrupt as error:
        error.add_note(f"{folder} is not complete: go on with the same command and --resume --name {folder.name}")
        raise
    finally:
        journal.close()
        undo.close()
        files = write_reports(run := load_run(folder), folder)
    return run, folder, files


def _options(wanted: Acceptance) -> dict[str, Any]:
    chosen: dict[str, Any] = {"allow disruptive": wanted.allow_disruptive, "settle": f"{wanted.settle_s:g} s"}
    return chosen | wanted.selection.to_dict() | ({"judged from": wanted.stored.name} if wanted.stored else {})


def _known_folder(wanted: Acceptance) -> Path | None:
    """Return the folder of this run when it is named or resumed (the last one written to); None for a new one."""
    if wanted.name:
        if not wanted.resume:
            require_no_run(wanted.out / wanted.name)
        return wanted.out / wanted.name
    if not wanted.resume:
        return None
    known = sorted(wanted.out.glob(f"*/{JOURNAL}"), key=lambda path: path.stat().st_mtime_ns)
    if not known:
        raise InputError([Problem("accept.resume", str(wanted.out), "there is no run to resume", "leave --resume out")])
    return known[-1].parent


def _new_folder(out: Path) -> Path:
    """Make a folder named by the time, and by a number where another run of this second has that name."""
    out.mkdir(parents=True, exist_ok=True)
    moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    for name in chain([moment], (f"{moment}-{number}" for number in count(2))):
        with suppress(FileExistsError):
            (out / name).mkdir()
            return out / name
    raise AssertionError("a name is always found")


def take_snapshot(wanted: Acceptance, folder: Path, samples: int = 3) -> dict[str, int]:
    """Ask every question of the selected passive checks and store the answers; returns how many came and did not."""
    devices, redactor = open_devices(wanted)
    asks: dict[Ask, None] = {}
    lldp: dict[Ask, None] = {}
    for case in cases_of(wanted):
        if not case.check.passive or (case.check.physical and not devices.physical):
            continue
        asks.update(dict.fromkeys(case.check().asks(wanted.plan, case.inputs)))
        if case.check.name == "cabling":
            lldp.update((Ask(device, "lldp"), None) for device in case.devices)
    try:
        with replaced_answers(folder) as new:
            recorder = Recorder(devices, new, redactor)
            answers = recorder.gather(asks)
            for number in range(samples if lldp else 0):
                answers |= recorder.gather(lldp, number)
            good = sum(answer.ok for answer in answers.values())
            counts = {"answered": good, "without answer": len(answers) - good}
            facts = {"site": wanted.plan.site, "plan": wanted.plan.digest, "engine": devices.name, "taken": now()}
            write_json(new / SNAPSHOT, facts | counts)
    finally:
        devices.close()
    return counts
