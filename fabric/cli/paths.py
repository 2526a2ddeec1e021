"""Folders and files: an empty name is a slip (an unset variable), never the current folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


class _Named(click.Path):
    """A path that is not empty; `kind` says in a sentence what is to be there, for who names something else."""

    what = ""
    kind = ""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; fails for an empty name, and for one that is not there."""
        if not str(value).strip():
            self.fail(f"is empty: {self.what}", param, ctx)
        try:
            Path(value).resolve()
        except RuntimeError:
            self.fail(f"'{value}' is a loop of symbolic links.", param, ctx)
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            if not self.kind:
                raise
            self.fail(f"{error.message}\n    fix: {self.kind}", param, ctx)


class Folder(_Named):
    """A folder to write, made if need be; or to read, where it must exist."""

    what = "name a folder, `.` for this one"

    def __init__(self, *, exists: bool = False, kind: str = "") -> None:
        super().__init__(exists=exists, file_okay=False, path_type=Path)
        self.kind = kind


class File(_Named):
    """A file to write; or to read, where it must exist."""

    what = "name a file, or leave the option out"

    def __init__(self, *, exists: bool = False, kind: str = "") -> None:
        super().__init__(exists=exists, dir_okay=False, path_type=Path)
        self.kind = kind


def hosts_file() -> File:
    """Return the type of a hosts file that is read."""
    return File(exists=True, kind=_HOSTS)


def run_to_read() -> Folder:
    """Return the type of a run's folder that is read."""
    return Folder(exists=True, kind="name the folder of a run that `kvfabric accept` wrote, such as out/SITE/runs/NAME")


_HOSTS = """write a hosts file (Nornir's form; docs/acceptance.md, "Hosts file"), a line per device, such as
        be-leaf-01: {hostname: 192.0.2.11, username: admin, platform: linux}"""
STORED = "name a folder that `kvfabric snapshot SITE --hosts FILE --out DIR` wrote, or a run's: out/SITE/runs/NAME"
