"""`kvfabric catalog SITE`: every case that the plan asks for, as YAML to keep and edit."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING

import click

from fabric.cli.exits import EXIT_NOTHING_RAN, EXIT_PASS
from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from validators.catalog import Case
    from validators.check import Check


@click.command()
@click.argument("site", required=False)
@click.option("--list", "listed", is_flag=True, help="List all checks.")
@click.option("--explain", metavar="CHECK", help="The page of one check.")
@click.option(
    "--format",
    "style",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Of --list and --explain; a catalog is YAML.",
)
def command(site: str | None, listed: bool, explain: str | None, style: str) -> int:
    """Print the acceptance catalog of SITE, or what the checks are.

    \b
    Examples:
      kvfabric catalog xoc-256 > catalog.yaml
      kvfabric catalog --list
      kvfabric catalog --list --format json
      kvfabric catalog --explain bgp-sessions
    """
    from validators.check_registry import all_checks

    checks = all_checks()
    if site and (listed or explain is not None):
        raise click.UsageError("--list and --explain are about all sites: leave SITE out")
    if listed or explain is not None:
        return _pages(explain, checks, style)
    if not site:
        raise click.UsageError("give a SITE, --list or --explain CHECK")
    if style == "json":
        raise click.UsageError("a catalog is YAML, which `accept --catalog` reads; `accept SITE --list` has JSON")
    from fabric.build import load_plan
    from validators.catalog import generate
    from validators.catalog_file import to_yaml

    plan = load_plan(site, two_tiers_for="the catalog")
    click.echo(to_yaml(plan, generate(plan, checks.values())), nl=False)
    return EXIT_PASS


def _page(name: str, check: type[Check]) -> dict[str, object]:
    """A check as JSON: what it stands for, what it takes, and how it must be treated."""
    from validators.check_inputs import inputs_of

    page = check.page
    return {
        "check": name,
        "stage": check.stage.value,
        "title": page.title,
        "about": page.about,
        "sections": dict(page.sections),
        "inputs": [one.to_dict() for one in inputs_of(check)],
        "disruptive": check.disruptive,
        "passive": check.passive,
        "physical": check.physical,
    }


def _pages(explain: str | None, checks: dict[str, type[Check]], style: str) -> int:
    from fabric.cli.output import print_json, table

    if explain is None and style == "json":
        print_json([_page(name, check) for name, check in checks.items()])
        return EXIT_PASS
    if explain is None:
        click.echo(
            table(("stage", "check", "what must hold"), [(c.stage.value, n, c.page.title) for n, c in checks.items()])
        )
        return EXIT_PASS
    if explain not in checks:
        close = get_close_matches(explain, checks, 3, 0.5) or [n for n in checks if explain and explain in n][:3]
        fix = f"did you mean {', '.join(close)}?" if close else "see `kvfabric catalog --list`"
        raise InputError(
            [Problem("catalog.unknown-check", f"check '{explain}'", "there is no check of that name", fix)]
        )
    if style == "json":
        print_json(_page(explain, checks[explain]))
        return EXIT_PASS
    page = checks[explain].page
    click.echo(f"{explain}: {page.title}\n")
    if page.about:
        click.echo(f"{page.about}\n")
    for name, text in page.sections.items():
        if name == "Example":
            _show_inputs(checks[explain])
        click.echo(f"{name}:\n    " + text.replace("\n", "\n    ") + "\n")
    return EXIT_PASS


def _show_inputs(check: type[Check]) -> None:
    from fabric.cli.output import table
    from validators.check_inputs import about_inputs, inputs_of

    rows = table(("input", "kind", "without it"), [(one.name, one.kind, one.words) for one in inputs_of(check)])
    click.echo(
        "Inputs:\n    " + "\n    ".join([*filter(None, about_inputs(check).splitlines()), *rows.splitlines()]) + "\n"
    )


def show_cases(cases: Sequence[Case], style: str) -> int:
    """List cases on stdout; exit code for none is its own."""
    from fabric.cli.output import print_json, table

    rows = [(c.check.stage.value, c.check.name, c.subject, ",".join(c.tags)) for c in cases]
    if style == "json":
        print_json(
            [{"case": c.id, "stage": c.check.stage.value, "check": c.check.name, "subject": c.subject} for c in cases]
        )
    elif cases:
        click.echo(table(("stage", "check", "subject", "tags"), rows))
    return EXIT_PASS if cases else EXIT_NOTHING_RAN
