"""Folders: an empty name is a slip (an unset variable), never the current folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


class Folder(click.Path):
    """A folder to write, made if need be; or to read, where it must exist."""

    def __init__(self, *, exists: bool = False) -> None:
        super().__init__(exists=exists, file_okay=False, path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the path; fails for an empty name."""
        if not str(value).strip():
            self.fail("is empty: name a folder, `.` for this one", param, ctx)
        return super().convert(value, param, ctx)
