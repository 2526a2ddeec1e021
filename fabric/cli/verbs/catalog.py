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
def command(site: str | None, listed: bool, explain: str | None) -> int:
    """Print the acceptance catalog of SITE, or what the checks are.

    \b
    Examples:
      kvfabric catalog xoc-256 > catalog.yaml
      kvfabric catalog --list
      kvfabric catalog --explain bgp-sessions
    """
    from validators.check_registry import all_checks

    checks = all_checks()
    if site and (listed or explain is not None):
        raise click.UsageError("--list and --explain are about all sites: leave SITE out")
    if listed or explain is not None:
        return _pages(explain, checks)
    if not site:
        raise click.UsageError("give a SITE, --list or --explain CHECK")
    from fabric.build import load_plan
    from validators.catalog import generate
    from validators.catalog_file import to_yaml

    plan = load_plan(site, two_tiers_for="the catalog")
    click.echo(to_yaml(plan, generate(plan, checks.values())), nl=False)
    return EXIT_PASS


def _pages(explain: str | None, checks: dict[str, type[Check]]) -> int:
    from fabric.cli.output import table

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
    page = checks[explain].page
    click.echo(f"{explain}: {page.title}\n")
    if page.about:
        click.echo(f"{page.about}\n")
    for name, text in page.sections.items():
        click.echo(f"{name}:\n    " + text.replace("\n", "\n    ") + "\n")
    return EXIT_PASS


def show_cases(cases: Sequence[Case], style: str) -> int:
    """List cases on stdout; exit code for none is its own."""
    from fabric.cli.output import print_json, table

    rows = [(c.check.stage.value, c.check.name, c.subject, ",".join(c.tags)) for c in cases]
    if style == "json":
        print_json(
            [{"case": c.id, "stage": c.check.stage.value, "check": c.check.name, "subject": c.subject} for c in cases]
        )
    else:
        click.echo(table(("stage", "check", "subject", "tags"), rows))
    return EXIT_PASS if cases else EXIT_NOTHING_RAN
