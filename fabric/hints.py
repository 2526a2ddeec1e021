"""What to write instead of a name that nothing has: the nearest one, and all there are, never one as if it were all."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from fabric.hardware.ranges import host_patterns

if TYPE_CHECKING:
    from collections.abc import Iterable

_SHOWN = 12


def names_hint(name: str, known: Iterable[str], what: str) -> str:
    """Return `did you mean partners? groups here: internet, partners`; `what` says what they are (`groups here`).

    Numbered names are put together (`compute-[005-008]`), and of many the first are shown with how many follow.
    """
    names = list(known)
    if not names:
        return f"{what}: none"
    close = difflib.get_close_matches(name, names, 1)
    patterns = host_patterns(names)
    more = f" and {len(patterns) - _SHOWN} more" if len(patterns) > _SHOWN else ""
    listed = f"{what}: {', '.join(patterns[:_SHOWN])}{more}"
    return f"did you mean {close[0]}? {listed}" if close else listed
