"""`kvfabric probe ...`: measure a live lab or site; the probes are the modules of `fabric.cli.verbs_probe`."""

from __future__ import annotations

import importlib
from pathlib import Path

import click

_PROBES = Path(__file__).parents[1] / "verbs_probe"


class _ProbeGroup(click.Group):
    """A click group whose commands are the modules of the folder `verbs_probe`, imported when used or listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return sorted(path.stem.rstrip("_").replace("_", "-") for path in _PROBES.glob("[a-z]*.py"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        stem = cmd_name.replace("-", "_")
        if not (_PROBES / f"{stem}.py").exists():
            stem += "_"
        command: click.Command = importlib.import_module(f"fabric.cli.verbs_probe.{stem}").command
        return command


@click.group(cls=_ProbeGroup)
def command() -> None:
    """Measure a live lab or site and compare it with what the plan declares.

    \b
    Examples:
      kvfabric probe nat lab          each exposure of each tenant, from both sides; in the lab that runs
      kvfabric probe idle lab         the idleTimeout truth table by protocol and state
    """
