"""Names as people read them: a stem and a number."""

from __future__ import annotations


def split_index(name: str) -> tuple[str, str]:
    """Split a device name into its stem and its trailing number: `be-leaf-01` gives `be-leaf-` and `01`."""
    stem = name.rstrip("0123456789")
    return stem, name[len(stem) :]
