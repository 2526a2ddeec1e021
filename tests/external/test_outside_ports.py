"""SONiC's own port tables of the DS5000 against PORT and BREAKOUT_CFG as rendered."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fabric.outside.ports import differences
from tests.conftest import SHIPPED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fabric.outside import Validator

pytestmark = pytest.mark.external

VALIDATOR = "ports"


@pytest.mark.parametrize("site", SHIPPED)
def test_every_port_is_as_sonic_makes_it(site: str, validator: Validator, rendered: Callable[..., Path]) -> None:
    folders = [path.parent for path in rendered(site, switches=True).glob("*/config_db.json")]
    assert folders
    assert [str(problem) for folder in folders for problem in validator.validate(folder, folder.name)] == []


@pytest.mark.parametrize(
    ("old", "new", "word"),
    [
        ('"lanes": "17,18,19,20"', '"lanes": "9,10,11,12"', "lanes"),
        ('"alias": "Eth1/5"', '"alias": "Eth1/2"', "alias"),
        ('"speed": "400000"', '"speed": "200000"', "speed"),
        ('"brkout_mode": "2x400G"', '"brkout_mode": "3x266G"', "breakout mode"),
        ('"brkout_mode": "2x400G"', '"brkout_mode": "1x800G"', "not a port"),
    ],
)
def test_a_wrong_port_is_found(
    old: str, new: str, word: str, validator: Validator, rendered: Callable[..., Path]
) -> None:
    text = (rendered("lab", switches=True) / "leaf-01/config_db.json").read_text()
    assert old in text
    found = differences(json.loads(text.replace(old, new, 1)))
    assert any(word in said for _, said in found), found


def test_four_ports_in_an_even_cage_are_refused(validator: Validator, rendered: Callable[..., Path]) -> None:
    db = json.loads((rendered("lab", switches=True) / "leaf-01/config_db.json").read_text())
    db["BREAKOUT_CFG"]["Ethernet8"]["brkout_mode"] = "4x200G"
    assert ("Ethernet8", "the platform has no breakout mode '4x200G' there") in differences(db)
