"""`kvfabric check`: rules over the plan and the rendered files, and outside validators on request."""

from __future__ import annotations

from pathlib import Path

import click

from fabric.cli.exits import EXIT_COULD_NOT_RUN, EXIT_FAILED, EXIT_NOTHING_RAN, EXIT_PASS
from fabric.cli.output import print_json, print_problems, table


@click.command(name="check", short_help="Run our rules over the rendered files; --external adds YANG, vtysh, nft.")
@click.argument("site", required=False)
@click.option("--external", is_flag=True, help="Ask the outside validators too (YANG models, vtysh, FRR, nft, sh).")
@click.option(
    "--rule", "rules", multiple=True, metavar="ID", help="Only this rule, or subject such as qos. Repeatable."
)
@click.option(
    "--from",
    "folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Check the rendered files in DIR.",
)
@click.option("--list", "listing", is_flag=True, help="List the rules and stop.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(
    site: str | None, external: bool, rules: tuple[str, ...], folder: Path | None, listing: bool, form: str
) -> int:
    """Check SITE: what planning found, then every rule over its rendered files.

    Files are rendered in memory, or read from a folder with --from. Exit code 0 when there is no error, 1 when there
    is one, 3 when --external found no validator to ask, 4 when nothing was looked at.

    \b
    Examples:
      kvfabric check xoc-256
      kvfabric check xoc-256 --external
      kvfabric check lab --rule qos --rule bgp.sessions
      kvfabric check lab --from out/lab/configs --format json
      kvfabric check --list
    """
    if listing:
        return _list(rules, form)
    if not site:
        message = "missing argument SITE"
        raise click.UsageError(message)
    from fabric.analysis.check import check_site
    from fabric.build import plan_site

    planned = plan_site(site, two_tiers_for="checking")
    report = check_site(planned.plan, ids=rules, folder=folder, external=external, problems=planned.problems)
    if form == "json":
        print_json(report.to_dict())
    else:
        print_problems(report.problems)
        click.echo(
            f"{len(report.rules)} rules over {report.files} files of {report.devices} devices: {report.errors} errors"
        )
        for name, count in report.asked.items():
            click.echo(f"  {name}: {count} files")
        for name, reason in report.skipped.items():
            click.echo(f"  {name}: skipped, {reason}")
    if folder and not report.devices:
        here = f"{folder} holds none of the {len(planned.plan.kind_of)} devices of site {planned.plan.site}"
        click.echo(f"nothing was checked: {here}; name the folder that `render --out` wrote", err=True)
    if not report.devices or not report.rules:
        return EXIT_NOTHING_RAN
    if external and not report.asked and not report.errors:
        return EXIT_COULD_NOT_RUN
    return EXIT_FAILED if report.errors else EXIT_PASS


def _list(rules: tuple[str, ...], form: str) -> int:
    from fabric.analysis.check import choose_rules

    chosen = choose_rules(rules)
    if form == "json":
        print_json(
            [
                {"id": i, "severity": r.severity.value, "title": r.title, "why": r.why, "fix": r.fix}
                for i, r in chosen.items()
            ]
        )
    else:
        click.echo(
            table(("rule", "severity", "what must hold"), [(i, r.severity.value, r.title) for i, r in chosen.items()])
        )
    return EXIT_PASS
