"""FRR over every shipped site's routers: its parser for all, its daemons for a few and for what a parser lets through."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fabric.outside import ask
from fabric.outside.live import load
from fabric.outside.run import validators
from tests.conftest import SHIPPED

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.external


def need(name: str) -> None:
    if reason := validators()[name].available():
        pytest.skip(reason)


@pytest.mark.parametrize("target", [None, "frr"])
@pytest.mark.parametrize("site", SHIPPED)
def test_vtysh_accepts_every_router(site: str, target: str | None, rendered: Callable[..., Path]) -> None:
    need("vtysh")
    folder = rendered(site, target)
    report = ask(folder, sorted(path.parent.name for path in folder.glob("*/frr.conf")), ["vtysh"])
    assert report.asked["vtysh"] > 0
    assert [str(problem) for problem in report.problems] == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("maximum-paths 64", "maximum-paths 9999"),
        ("neighbor FABRIC peer-group", "neighbor FABRIC peergroup"),
        ("detect-multiplier 3", "detect-multiplier 0"),
        ("maximum-prefix 64 restart 5", "maximum-prefix 64 restart"),
        (" vni 100", " vni 99999999"),
    ],
)
def test_vtysh_refuses_with_the_line(old: str, new: str, rendered: Callable[..., Path], tmp_path: Path) -> None:
    need("vtysh")
    text = (rendered("lab") / "leaf-01/frr.conf").read_text()
    assert old in text
    (tmp_path / "frr.conf").write_text(text.replace(old, new, 1))
    found = validators()["vtysh"].validate(tmp_path, "leaf-01")
    assert found
    assert found[0].line == text[: text.index(old)].count("\n") + 1 + old.startswith("\n")


@pytest.mark.parametrize("site", ["lab", "xoc-256", "minimal"])
def test_daemons_load_every_router_without_a_word(site: str, rendered: Callable[..., Path]) -> None:
    need("live")
    folder = rendered(site)
    report = ask(folder, sorted(path.parent.name for path in folder.glob("*/frr.conf")), ["live"])
    assert report.asked["live"] > 0
    assert [str(problem) for problem in report.problems] == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("route-target import 64512:100\n", "route-target import 4200000001:100000\n"),
        ("rd 172.30.8.3:1\n", "rd 172.30.8.3\n"),
        (" vni 200\n", " vni 100\n"),
        (
            "ip prefix-list OWN-acme seq 5 permit 10.1.0.0/24 le 32",
            "ip prefix-list OWN-acme seq 5 permit 10.1.0.0/24 le 8",
        ),
        ("  route-target export 64512:200\n", "  route-target export 64512\n"),
    ],
)
def test_daemons_refuse_what_the_parser_lets_through(
    old: str, new: str, rendered: Callable[..., Path], tmp_path: Path
) -> None:
    need("live")
    text = (rendered("lab") / "leaf-01/frr.conf").read_text()
    assert old in text
    (tmp_path / "frr.conf").write_text(text.replace(old, new, 1))
    assert validators()["live"].validate(tmp_path, "leaf-01")


def test_loading_says_what_runs(rendered: Callable[..., Path]) -> None:
    need("live")
    said, running = load(rendered("lab") / "spine-01/frr.conf")
    assert said == []
    assert any(line.startswith("router bgp ") for line in running)
