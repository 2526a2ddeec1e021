"""Questions to FRR that share one vtysh: told apart, and asked one by one when a daemon says nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest

from labs.client import Done
from validators.devices.answers import Answer, Ask
from validators.devices.frr_batch import command_of, split
from validators.devices.lab import LabDevices

pytestmark = pytest.mark.unit
BGP, BFD, CONFIG = '{\n"default":{"a": "}"}\n}\n', "[]\n", "frr version 10.3\n!\nend\n"
ALL = ["config", "bgp", "bfd"]


def test_the_configuration_is_asked_last() -> None:
    assert command_of(ALL) == (
        "vtysh -c 'show bgp vrf all summary json' -c 'show bfd peers json' -c 'show running-config no-header'"
    )


def test_answers_are_told_apart_as_they_were_printed() -> None:
    found = split(ALL, Answer(BGP + BFD + CONFIG))
    assert json.loads(found["bgp"].text) == {"default": {"a": "}"}}
    assert found["bfd"].text == "[]"
    assert found["config"].text == CONFIG


@pytest.mark.parametrize(
    "text", [BGP + "bfdd is not running\n" + CONFIG, BGP + BFD, BGP, "", "Exiting: failed to connect to any daemons.\n"]
)
def test_an_answer_that_is_missing_makes_all_of_them_asked_again(text: str) -> None:
    assert split(ALL, Answer(text)) == {}


def test_text_behind_the_last_json_is_nobodys() -> None:
    assert split(["bgp", "bfd"], Answer(BGP + BFD + "% what\n")) == {}


class Node:
    """A lab whose bfdd is dead or alive."""

    def __init__(self, *, alive: bool) -> None:
        self.alive, self.ran = alive, list[str]()

    def run(self, node: str, argv: list[str], timeout_s: float = 60) -> Done:
        command = argv[-1]
        self.ran.append(command)
        said = {"show bgp vrf": BGP, "show bfd": BFD if self.alive else "bfdd is not running\n", "running": CONFIG}
        out = "".join(text for word, text in said.items() if word in command)
        return Done(node, tuple(argv), 0 if self.alive or "bfd" not in command else 1, out.encode(), b"")

    def close(self) -> None:
        pass


def gathered(node: Any) -> dict[Ask, Answer]:
    return LabDevices(node).gather([Ask("leaf-01", question) for question in (*ALL, "links")])


def test_a_node_is_asked_once() -> None:
    node = Node(alive=True)
    answers = gathered(node)
    assert len(node.ran) == 2
    assert answers[Ask("leaf-01", "bfd")].text == "[]"
    assert set(answers) == {Ask("leaf-01", question) for question in (*ALL, "links")}


def test_a_dead_daemon_spoils_its_own_answer_only() -> None:
    node = Node(alive=False)
    answers = gathered(node)
    assert answers[Ask("leaf-01", "bgp")].text == BGP
    assert answers[Ask("leaf-01", "config")].text == CONFIG
    assert not answers[Ask("leaf-01", "bfd")].ok
