"""Read a cable map from a file, whatever form it has: found out from what is in it, not from its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.interop.readers.csv_maps import read_csv_map
from fabric.interop.readers.hedgehog import looks_like_hedgehog, read_wiring
from fabric.interop.readers.text import read_text

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.interop.cable_map import CableMap


def read_cable_map(path: Path) -> CableMap:
    """Return the cables in `path`: either OCP CSV form, a NetBox cable CSV, or Hedgehog wiring YAML.

    Raises InputError with every problem, each with its line and what to do.
    """
    text = read_text(path)
    if looks_like_hedgehog(text):
        return read_wiring(path, text)
    return read_csv_map(path, text)
