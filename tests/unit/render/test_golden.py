"""Devices of the lab, byte for byte. After a change that is meant: KVFABRIC_UPDATE_GOLDEN=1, then read the diff."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from fabric.render import frr, gateway, host, sonic

if TYPE_CHECKING:
    from fabric.plan import Plan

pytestmark = pytest.mark.unit

GOLDEN = Path(__file__).parents[2] / "golden" / "render"


@pytest.mark.parametrize(
    ("target", "device"),
    [
        (sonic, "leaf-01"),
        (sonic, "spine-01"),
        (frr, "leaf-01"),
        (frr, "spine-01"),
        (gateway, "gw-01"),
        (host, "compute-001"),
    ],
)
def test_rendered_as_last_reviewed(target: object, device: str, lab: Plan) -> None:
    files: dict[str, str] = target.render(lab, device)  # type: ignore[attr-defined]
    files.pop("gatewayctl", None)  # a program, which is the same for every gateway
    folder = GOLDEN / target.TARGET / device  # type: ignore[attr-defined]
    if os.environ.get("KVFABRIC_UPDATE_GOLDEN"):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            (folder / name).write_text(text)
    assert {path.name: path.read_text() for path in folder.iterdir()} == files
