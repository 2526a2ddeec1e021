"""Answers of another form than a command prints: an ERROR that names who said it, never a pass and never a traceback."""

from __future__ import annotations

import copy
import json
import random

import pytest

from fabric.build import load_plan
from tests.unit.accept.simulated import SimulatedSite
from validators.catalog import generate
from validators.check import Context, judged
from validators.check_registry import all_checks
from validators.control_plane.check_overlay import EvpnVnis
from validators.control_plane.check_ports import PortAddress
from validators.devices.answers import Answer, UnreadableError, document
from validators.gateways.checks import GatewayServing
from validators.optics.check_flaps import LinkFlaps
from validators.results import State

pytestmark = pytest.mark.unit
PLAN = load_plan("lab")
_JUNK = [None, "", "x", -1, 0, 1e9, [], {}, [1], True, "N/A"]


def _paths(node, path=()):
    yield path
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield from _paths(value, (*path, key))


def _damaged(text, chance):
    try:
        data = json.loads(text)
    except ValueError:
        data = None
    if not isinstance(data, dict | list):
        at = chance.randrange(len(text) + 1)
        return chance.choice([text[:at], text[at:], text[:at] + "\x00\ud800nan inf 1e999" + text[at:], "[" * 100_000])
    path = chance.choice([p for p in _paths(data) if p])
    holder = data
    for key in path[:-1]:
        holder = holder[key]
    if chance.random() < 0.4:
        del holder[path[-1]]
    else:
        holder[path[-1]] = chance.choice(_JUNK)
    return json.dumps(data)


@pytest.mark.parametrize("physical", [False, True])
def test_no_damage_to_an_answer_makes_a_check_break(physical):
    site = SimulatedSite(PLAN, physical=physical)
    site.rounds = 2
    chance = random.Random(1)
    seen: set[str] = set()
    for case in generate(PLAN, all_checks().values()):
        if not case.check.passive or case.check.name in seen or (case.check.physical and not physical):
            continue
        seen.add(case.check.name)
        check = case.check()
        begun = site.gather(check.asks_at_start(PLAN, case.inputs))
        good = json.loads(json.dumps(check.collect(Context(PLAN, site, None, begun=begun), case.inputs)))
        texts = [path for path in _paths(good) if path and path[-1] == "text"]
        for _ in range(20):
            odd = copy.deepcopy(good)
            path = chance.choice(texts)
            holder = odd
            for key in path[:-1]:
                holder = holder[key]
            holder["text"] = _damaged(holder["text"], chance)
            result = judged(check, PLAN, case.inputs, odd)
            assert result.text, (case.id, path)
    assert len(seen) > 10


def _asked(check, question, change):
    """Judge the first case of a check on answers of which one was changed."""
    inputs = next(iter(check.cases(PLAN)))
    site = SimulatedSite(PLAN, {(inputs.device, question): change})
    return judged(check(), PLAN, inputs, check().collect(Context(PLAN, site, None), inputs))


def test_another_form_names_who_said_it_and_where_it_was_read():
    result = _asked(PortAddress, "addresses", lambda data: [*data, {"ifname": "x", "addr_info": [{"family": "inet"}]}])
    assert result.state is State.ERROR
    assert result.text.startswith("an answer cannot be read: leaf-01 addresses has another form")
    assert "KeyError: 'local', at check_ports.py:" in result.text


@pytest.mark.parametrize("text", ['{"a": NaN}', '{"a": 1e999}', "[" * 100_000])
def test_json_that_is_none_is_unreadable(text):
    with pytest.raises(UnreadableError, match="leaf-01"):
        document(text, "leaf-01")


def test_a_vni_whose_state_is_not_said_is_not_up():
    assert _asked(EvpnVnis, "vrf-vni", lambda data: [one.pop("state") for one in data["vrfs"]] and data).state is State.ERROR  # fmt: skip


@pytest.mark.parametrize("lacks", ["checks", "sessions"])
def test_what_a_gateway_does_not_say_of_itself_is_not_well(lacks):
    def without(data):
        data[lacks].popitem()
        return data

    assert _asked(GatewayServing, "gateway", lambda data: data).state is State.PASS
    result = _asked(GatewayServing, "gateway", without)
    assert result.state is State.ERROR
    assert "says nothing of" in result.text


def test_one_look_shows_no_flap():
    class Once(SimulatedSite):
        rounds = 1

        def gather(self, asks, sample=0):
            answers = super().gather(asks)
            return {ask: Answer(answer.text, again=bool(sample)) for ask, answer in answers.items()}

    inputs = next(iter(LinkFlaps.cases(PLAN)))
    for limit, state in ((None, State.SKIPPED), (0, State.FAIL)):
        asked = inputs.model_copy(update={"most_since_boot": limit})
        seen = LinkFlaps().collect(Context(PLAN, Once(PLAN), None), asked)
        assert judged(LinkFlaps(), PLAN, asked, seen).state is state
