"""`kvfabric plan`: what the site is."""

from __future__ import annotations

import click

from fabric.cli.output import print_json, print_problems


@click.command(
    epilog="""\b
Examples:
  kvfabric plan xoc-256                     a page: tiers, ports, tenants, gateways, pools
  kvfabric plan xoc-256 --changes           which cables would move, which numbers would be new
  kvfabric plan my-site --changes --format json    the same for a script
  kvfabric plan xoc-256 --format json       the whole plan
  kvfabric plan my-site --save              remember the numbers in my-site/ledger.json
"""
)
@click.argument("site")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)
@click.option("--summary", is_flag=True, help="With --format json: the summary instead of the whole plan.")
@click.option("--changes", is_flag=True, help="Show how tiers and cables change, and what the ledger would gain.")
@click.option("--save", is_flag=True, help="Write the ledger beside the inventory.")
@click.option("--forget", is_flag=True, help="Give back the numbers of names that are gone.")
def command(site: str, form: str, summary: bool, changes: bool, save: bool, forget: bool) -> None:
    """Show what SITE is. Nothing is written without --save."""
    from fabric.build import plan_site
    from fabric.summary import as_text, summarise

    planned = plan_site(site, forget_retired=forget)
    print_problems(planned.problems)
    if changes:
        from fabric.interop.comparing.growth import growth

        grown = growth(planned)
        if form == "json":
            print_json([*grown.rows(), *(change.to_dict(planned.meaning) for change in planned.changes)])
        else:
            if grown.moves or planned.changes:
                click.echo(grown.text())
            for change in planned.changes:
                click.echo(change.text(planned.meaning))
    elif form == "json":
        print_json(summarise(planned.plan) if summary else planned.plan.to_dict())
    else:
        click.echo(as_text(summarise(planned.plan)))
    if save:
        written = planned.save_ledger()
        click.echo(f"{planned.ledger_path}: {'written' if written else 'unchanged'}", err=True)
