"""Every example of every --help is a command line that is taken, with names that its site has."""

from __future__ import annotations

import functools
import re
import shlex
from typing import TYPE_CHECKING

import click
import pytest

from fabric.build import load_plan
from fabric.cli.main import cli
from fabric.interop.showing import show
from fabric.resources import data_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.plan import Plan

pytestmark = pytest.mark.unit

_SITES = {path.name for path in data_folder("inventories").iterdir() if path.is_dir()}
_DEVICE = re.compile(r"[a-z]+(-[a-z]+)*-\d{2,3}")
_LARGE = "pods-100k"  # parsed, not planned: that takes long


def _helps(command: click.Command, name: str = "kvfabric") -> Iterator[str]:
    with click.Context(command, info_name=name) as context:
        yield command.get_help(context)
        if isinstance(command, click.Group):
            for child in command.list_commands(context):
                found = command.get_command(context, child)
                if found:
                    yield from _helps(found, f"{name} {child}")


def _examples() -> list[str]:
    texts = (re.sub(r"\\\n\s*", "", text) for text in _helps(cli))  # a backslash joins two lines
    lines = [line.strip() for text in texts for line in text.splitlines()]
    # two blanks begin a remark; a redirection and a second command are the shell's
    commands = [re.split(r"\s{2,}|\s[>|]\s", line)[0] for line in lines if line.startswith("kvfabric ")]
    return sorted({part.strip() for command in commands for part in command.split("&&")})


@functools.cache
def _plan(site: str) -> Plan:
    return load_plan(site)


def _parse(words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Let click take the words as it would, and run nothing. A file that is only an example need not be there."""
    monkeypatch.setattr(click.Command, "invoke", lambda *_: None)
    try:
        cli.main(words[1:], standalone_mode=False)
    except click.BadParameter as error:
        if "does not exist" not in str(error):
            raise


def test_there_are_examples() -> None:
    assert len(_examples()) > 50


@pytest.mark.parametrize("example", _examples())
def test_an_example_of_help_is_taken(example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    words = shlex.split(example)
    if words[-1] == "..." and not words[-2].startswith("--"):  # more of the like
        words.pop()
    _parse(words, monkeypatch)
    site = next((word for word in words if word in _SITES), "lab")
    names = {name for word in words for name in re.split("[ ,]", word)} - _SITES
    devices = [name for name in names if _DEVICE.fullmatch(name.partition(":")[0])]
    if site == _LARGE or words[1] in {"new", "import"}:
        return
    for name in devices:
        device, _, port = name.partition(":")
        assert device in _plan(site).kind_of, f"{site} has no {device}"
        assert not port or (device, port) in _plan(site).link_at, f"{device} of {site} has no port {port}"
    if words[1] == "show":
        named = [word for word in words[3:] if not word.startswith("--") and word != "json"]
        assert show(_plan(site), *named).text()
