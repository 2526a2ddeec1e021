"""`kvfabric schema`: the inventory's JSON schema."""

from __future__ import annotations

import click

from fabric.cli.output import print_json


@click.command(
    epilog="""\b
Example:
  kvfabric schema > site.schema.json     # then in an editor: # yaml-language-server: $schema=site.schema.json
"""
)
def command() -> None:
    """Print the JSON schema of the inventory, for editors."""
    from fabric.inventory.schema import inventory_schema

    print_json(inventory_schema())
