"""Where the reference data of validators is: KVFABRIC_EXTERNAL_DATA, else `shared/data` beside the checkout."""

from __future__ import annotations

import os
from pathlib import Path


def external_data(name: str) -> Path:
    """Return the path of a data file or folder; it need not exist."""
    given = os.environ.get("KVFABRIC_EXTERNAL_DATA")
    base = Path(given) if given else Path(__file__).resolve().parents[3] / "shared" / "data"
    return base / name


def missing(name: str) -> str | None:
    """Return why a data file or folder cannot be used, or None."""
    path = external_data(name)
    return None if path.exists() else f"no {name} in {path.parent} (set KVFABRIC_EXTERNAL_DATA)"
