"""Where templates, shipped inventories and other package data are, in a checkout and in an installed wheel."""

from __future__ import annotations

from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


@cache
def data_folder(name: str) -> Path:
    """Return the folder `name` (`templates` or `inventories`): inside the wheel, else at the top of the checkout.

    Raises FileNotFoundError when the installation is broken and has neither.
    """
    for candidate in (_PACKAGE / "_data" / name, _PACKAGE.parent / name):
        if candidate.is_dir():
            return candidate
    message = f"kvfabric's own {name} folder is missing: reinstall the package"
    raise FileNotFoundError(message)
