"""`kvfabric kv ...`: questions about the KV cache; each is a module of `fabric.cli.verbs_kv`."""

from __future__ import annotations

import importlib
from pathlib import Path

import click

_QUESTIONS = Path(__file__).parents[1] / "verbs_kv"


class _KvGroup(click.Group):
    """A click group whose commands are the modules of the folder `verbs_kv`, imported when used or listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        del ctx
        return sorted(path.stem for path in _QUESTIONS.glob("[a-z]*.py"))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.list_commands(ctx):
            return None
        command: click.Command = importlib.import_module(f"fabric.cli.verbs_kv.{cmd_name}").command
        return command


@click.group(cls=_KvGroup)
def command() -> None:
    """KV cache: how big, move or compute again, is the split worth it.

    \b
    Examples:
      kvfabric kv models
      kvfabric kv size --model llama-3.1-70b --tokens 61000 --tp 8
      kvfabric kv move --model deepseek-v3 --tokens 32000 --line-gbps 400
      kvfabric kv benefit --trace requests.csv --model llama-3.1-70b
    """
