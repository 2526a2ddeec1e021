"""`kvfabric accept SITE`: from cabled to a report that people sign."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fabric.cli.exits import EXIT_COULD_NOT_RUN, EXIT_FAILED, EXIT_NOTHING_RAN, EXIT_PASS
from fabric.cli.numbers import Finite
from fabric.cli.paths import STORED, File, Folder, hosts_file
from fabric.cli.words import LAB, not_blank, words

if TYPE_CHECKING:
    from collections.abc import Iterator

    from validators.report.model import Run
    from validators.runner_acceptance import Acceptance

# LLDP and the last routes may come seconds after everything else
_NEW_LAB_SETTLE_S = 20.0
_NAMED = 8
# options that an acceptance has under the same name
_AS_GIVEN = ("hosts", "catalog", "also", "allow_disruptive", "keep_going", "resume", "seed")


def _run_name(_ctx: click.Context, _param: click.Parameter, value: str | None) -> str:
    """A run's name is the name of its folder and may not lead out of the folder of runs."""
    if value is not None and (not value.strip() or "/" in value or value in {".", ".."}):
        raise click.BadParameter("is no name of a folder: use letters, digits and dashes; --out says where it goes")
    return value or ""


@click.command()
@click.argument("site")
@click.option(
    "--engine",
    callback=not_blank,
    help="start a lab of the site on this engine (uml, native, ...), and stop it at the end",
)
@LAB
@click.option(
    "--hosts",
    type=hosts_file(),
    help="real devices over SSH: a Nornir hosts file",
)
@click.option(
    "--from", "stored", type=Folder(exists=True, kind=STORED), help="judge a snapshot or an earlier run, ask nobody"
)
@click.option(
    "--catalog",
    type=File(exists=True, kind="`kvfabric catalog SITE > catalog.yaml` writes one to edit"),
    help="an edited catalog instead of the plan's own",
)
@click.option(
    "--also",
    type=File(exists=True, kind="it is written as a catalog: `kvfabric catalog --explain device-command` shows how"),
    help="a file with cases of your own, beside the catalog",
)
@click.option("--tags", multiple=True, callback=words, help="only cases with one of these tags")
@click.option("--limit", multiple=True, callback=words, help="only cases on these devices, such as 'be-leaf-*'")
@click.option("--tenant", multiple=True, callback=words, help="only cases of these tenants")
@click.option(
    "--check",
    "checks",
    multiple=True,
    callback=words,
    help="only these checks; as all of these four, with commas or said again",
)
@click.option("--list", "--dry-run", "dry", is_flag=True, help="list the cases and run nothing")
@click.option("--allow-disruptive", is_flag=True, help="also run checks that disturb traffic; each is taken back")
@click.option("--keep-going", is_flag=True, help="run a stage although one that it stands on failed")
@click.option(
    "--settle",
    type=Finite(0, 3600),
    metavar="SECONDS",
    help="ask failing questions again for so long; default 0, 20 in a new lab",
)
@click.option("--resume", is_flag=True, help="go on with the last run: nothing is lost or repeated")
@click.option("--seed", default=1, show_default=True)
@click.option("--out", type=Folder(), help="folder of runs; default out/<site>/runs")
@click.option("--name", callback=_run_name, help="name of this run's folder; default the time")
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text")
@click.option("-v", "--verbose", is_flag=True, help="show what passes too")
def command(
    site: str, stored: Path | None, dry: bool, out: Path | None, style: str, verbose: bool, **given: object
) -> int:
    """Run the acceptance of SITE in order of its stages and write one report.

    \b
    Examples:
      kvfabric accept lab --engine uml                 start a lab, accept it, stop it
      kvfabric accept lab --lab NAME                   a running lab
      kvfabric accept xoc-256 --hosts hosts.yaml       the floor, over SSH
      kvfabric accept xoc-256 --from snapshot/         offline
      kvfabric accept xoc-256 --list --tags backend    what would run
      kvfabric accept xoc-256 --hosts hosts.yaml --resume
      kvfabric accept xoc-256 --hosts hosts.yaml --also own-checks.yaml
    """
    from fabric.build import load_plan
    from validators.catalog import Selection
    from validators.runner_acceptance import Acceptance, cases_of, open_devices

    places = [name for name in ("engine", "lab", "hosts") if given[name]] + (["from"] if stored else [])
    if len(places) > 1:
        raise click.UsageError(f"one place to ask is enough: --{' or --'.join(places)}")
    settle = given["settle"] if given["settle"] is not None else _NEW_LAB_SETTLE_S if given["engine"] else 0.0
    plan = load_plan(site, two_tiers_for="acceptance")
    selection = Selection(given["tags"], given["limit"], given["tenant"], given["checks"])  # type: ignore[arg-type]
    same = {name: given[name] for name in _AS_GIVEN}
    wanted = Acceptance(
        plan, out or Path("out") / plan.site / "runs", str(given["name"]), site,
        engine=str(given["engine"] or ""), lab=str(given["lab"]), stored=stored, selection=selection,
        settle_s=settle, **same,  # type: ignore[arg-type]
    )  # fmt: skip
    if dry:
        from fabric.cli.verbs.catalog import show_cases

        cases = cases_of(wanted)
        if wanted.hosts or wanted.stored:  # what is wrong in these is said now, not on the day
            open_devices(wanted)[0].close()
        if not cases:
            _say_nothing_selected(wanted)
        return show_cases(cases, style)
    if not cases_of(wanted):
        _say_nothing_selected(wanted)
        return EXIT_NOTHING_RAN
    return _accept(wanted, style, verbose)


def _say_nothing_selected(wanted: Acceptance) -> None:
    """Say which tag nothing has, or that nothing has all that was asked for."""
    from fabric.hints import names_hint
    from validators.runner_acceptance import strange_tags

    strange, known = strange_tags(wanted)
    if not known:
        text = "the catalog holds no case"
    elif strange:
        text = "; ".join(f"no case has the tag '{tag}': {names_hint(tag, known, 'tags here')}" for tag in strange)
    else:
        text = "no case has all of this at once; each option narrows the choice"
    click.echo(f"nothing is selected: {text}", err=True)


def _wrong(run: Run) -> Iterator[str]:
    """What keeps a run from being accepted, a line a case: where a person looks first, and what a pipe keeps."""
    for result in (record.result for record in run.problems[:_NAMED]):
        place = f" [{result.place}]" if result.place else ""
        yield f"{result.state.value}: {result.check} {result.subject}: {result.text}{place}"
    if len(run.problems) > _NAMED:
        yield f"and {len(run.problems) - _NAMED} more, in the report"


def _accept(wanted: Acceptance, style: str, verbose: bool) -> int:
    from fabric.cli.output import print_json, wants_colour
    from validators.results import State
    from validators.runner_acceptance import accept
    from validators.runner_events import Progress

    with Progress(sys.stderr, colour=wants_colour(sys.stderr), verbose=verbose) as progress:
        run, folder, files = accept(wanted, [progress])
    if style == "json":
        print_json(
            {
                "verdict": run.verdict,
                "without": run.without,
                "note": run.note,
                "counts": run.counts,
                "folder": str(folder),
                "report": str(files["html"]),
            }
        )
    else:
        counts = ", ".join(f"{n} {state}" for state, n in run.counts.items() if n)
        note = f"this run is {run.note}\n" if run.note else ""
        wrong = "".join(f"{line}\n" for line in _wrong(run))
        click.echo(f"{run.headline}\n{wrong}cases: {counts}\n{note}report: {files['html']}")
    by_state = {State.PASS: EXIT_PASS, State.FAIL: EXIT_FAILED, State.SKIPPED: EXIT_NOTHING_RAN}
    return by_state.get(run.state, EXIT_COULD_NOT_RUN)
