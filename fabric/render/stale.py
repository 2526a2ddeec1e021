"""What earlier runs wrote and the plan no longer has: named, and removed on request; never anything else."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from fabric.render.writer import Written

_NAMED = 8
HOW = "`--prune` removes what kvfabric wrote there"


def settle_stale(out: Path, written: Written, *, remove: bool) -> list[str]:
    """Return lines about what an earlier run left in `out`; with `remove` it is gone when they are read."""
    names = stale_names(written.gone, written.stale)
    if not names:
        return []
    if not remove:
        return [stale_line(out, names)]
    left = prune(out, written.stale)
    lines = [f"removed from {out}: {_some(names)}"]
    if left:
        lines.append(f"left in {out}, with files that kvfabric did not write: {_some([f'{name}/' for name in left])}")
    return lines


def stale_names(gone: Sequence[str], paths: Iterable[str]) -> list[str]:
    """Return the folders of devices that are `gone`, then the stale files of the others; `paths` are `device/file`."""
    return [*(f"{device}/" for device in gone), *(path for path in paths if path.partition("/")[0] not in gone)]


def stale_line(out: Path, names: Sequence[str]) -> str:
    """Say what is stale, and the way to be rid of it."""
    return f"stale in {out}, not in the plan any more: {_some(names)}; {HOW}"


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def prune(out: Path, stale: Iterable[str]) -> list[str]:
    """Remove stale files and the folders that this empties; return the folders that stay, with files of others in them.

    A folder that is a link is left alone: what it leads to is not ours.
    """
    devices: dict[str, None] = {}
    for path in stale:
        device = path.partition("/")[0]
        devices[device] = None
        if not (out / device).is_symlink():
            (out / path).unlink(missing_ok=True)
    for device in devices:
        with contextlib.suppress(OSError):  # not empty, or a link
            (out / device).rmdir()
    return [device for device in devices if (out / device).exists()]
