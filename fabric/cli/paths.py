"""Folders and files: an empty name is a slip (an unset variable), never the current folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


class _Named(click.Path):
    """A path that is not empty."""

    what = ""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; fails for an empty name."""
        if not str(value).strip():
            self.fail(f"is empty: {self.what}", param, ctx)
        return super().convert(value, param, ctx)


class Folder(_Named):
    """A folder to write, made if need be; or to read, where it must exist."""

    what = "name a folder, `.` for this one"

    def __init__(self, *, exists: bool = False) -> None:
        super().__init__(exists=exists, file_okay=False, path_type=Path)


class File(_Named):
    """A file to write."""

    what = "name a file, or leave the option out"

    def __init__(self) -> None:
        super().__init__(dir_okay=False, path_type=Path)
