"""Put generated files somewhere: atomically into a folder, or onto standard output."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from fabric.files import replace_file
from fabric.inventory.load import find_site
from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path


def write_files(files: dict[str, str], folder: Path) -> list[Path]:
    """Write each file atomically (temporary file beside it, then rename); returns the paths in order."""
    written = []
    for name, text in files.items():
        path = folder / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, text)
        except OSError as error:
            fix = "choose another --out, or correct its rights"
            raise InputError([Problem("output.write", str(path), f"cannot write: {error.strerror}", fix)]) from error
        written.append(path)
    return written


def require_apart(site: str | Path, folder: Path, names: Iterable[str]) -> None:
    """Raise InputError when YAML of these names would get into the folder of the inventory, which reads all of it."""
    inventory = find_site(str(site))
    yaml = [name for name in names if name.endswith((".yaml", ".yml"))]
    if yaml and inventory.is_dir() and folder.resolve() == inventory.resolve():
        text = f"is the folder of the inventory, which would read {yaml[0]} as a part of it"
        raise InputError([Problem("output.inventory", str(folder), text, "name another --out", str(folder))])


def print_files(files: dict[str, str]) -> None:
    """Print the first file, or all when they are YAML streams that may follow one another; name the rest on stderr."""
    names = list(files)
    if not names:
        click.echo("nothing to write for this choice", err=True)
        return
    printed = names if all(name.endswith(".yaml") for name in names) else names[:1]
    for name in printed:
        click.echo(files[name], nl=False)
    if len(names) > len(printed):
        click.echo(f"also made with --out: {', '.join(names[len(printed) :])}", err=True)
