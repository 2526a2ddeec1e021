"""The channel between tools and agent: lanes and window, then the real supervisor and agent on this machine."""

from __future__ import annotations

import os
import selectors
import threading
import time
from types import SimpleNamespace

import pytest

from labs import outbox, wire
from labs.agent import Agent
from labs.client import Running
from labs.model import End, Lab, Link, Node
from labs.native import lldp
from labs.supervisor import Supervisor

pytestmark = pytest.mark.unit


def test_no_more_than_the_window_is_underway():
    box = outbox.Outbox()
    box.put("a", {"op": "stdin", "data": "x" * 10_000})
    sent = bytearray()
    box.send(lambda part: sent.extend(part) or len(part))
    assert len(sent) == wire.WINDOW
    assert not box.may_send()
    box.taken(1000)
    box.send(lambda part: sent.extend(part) or len(part))
    assert len(sent) == wire.WINDOW + 1000
    while not box.may_send():
        box.taken(1024)
        box.send(lambda part: sent.extend(part) or len(part))
        if sent.endswith(b"\n"):
            break
    assert wire.Splitter().feed(bytes(sent)) == [{"op": "stdin", "data": "x" * 10_000}]


def test_lanes_take_turns():
    box = outbox.Outbox()
    for number in range(3):
        box.put("busy", {"n": number})
    box.put("late", {"n": "late"})
    assert box.waiting("late") == len(b'{"n":"late"}\n')
    sent = bytearray()
    box.send(lambda part: sent.extend(part) or len(part))
    assert [m["n"] for m in wire.Splitter().feed(bytes(sent))] == [0, "late", 1, 2]
    assert box.waiting("busy") == box.waiting("late") == 0


def test_a_mebibyte_goes_in_and_comes_back(lab):
    data = os.urandom(1 << 20)
    assert lab.run("", ["cat"], stdin=data).stdout == data
    assert lab.run("", ["true"]).rc == 0


def test_one_long_input_does_not_hold_up_another_tool(lab):
    hog = lab.start("", ["sleep", "600"])
    writer = threading.Thread(target=hog.write, args=(bytes(8 << 20),), daemon=True)
    writer.start()
    with Running(lab.folder) as other:
        assert other.run("", ["echo", "here"], timeout_s=90).out == "here\n"
    assert writer.is_alive()  # the program has not read, so the writer waits
    hog.kill()
    writer.join(90)
    assert not writer.is_alive()


def test_a_program_that_does_not_read_ends_as_it_likes(lab):
    assert lab.run("", ["true"], stdin=bytes(4 << 20)).rc == 0


def test_a_paced_program_waits_for_its_reader(lab):
    process = lab.start("", ["sh", "-c", "head -c 40000000 /dev/zero; echo done >&2"], paced=True)
    time.sleep(1.5)
    assert process._answers.qsize() < 100
    assert lab.client_bytes() < 6 << 20
    done = process.wait(120)
    assert len(done.stdout) == 40_000_000
    assert done.err == "done\n"


def test_a_cable_that_lldp_does_not_see_is_named():
    lab = Lab("x", (Node("a", "leaf"), Node("b", "spine")), (Link("l", End("a", "e0"), End("b", "e1")),))
    said = (
        '{"lldp":[{"interface":[{"name":"e0","chassis":[{"name":[{"value":"b"}]}],'
        '"port":[{"id":[{"type":"ifname","value":"e1"}]}]}]}]}'
    )
    seen = {"a": lldp.parse(said), "b": {}}
    assert lldp.missing(lab, seen) == ["b: LLDP on e1 sees nobody, not a e0"]
    assert lldp.missing(lab, {"a": {"e0": ("c", "e9")}}) == ["a: LLDP on e0 sees c e9, not b e1"]
    assert lldp.parse("no daemon") == {}


def test_a_descriptor_that_changes_hands_is_not_its_old_owner_s():
    # both are ready in one turn; whoever is asked first closes the other's, whose number goes to somebody new
    channel, _far = os.pipe()
    agent = Agent(channel)
    pipes = [os.pipe(), os.pipe()]
    asked = []

    def owner(mine: int, other: int):
        def take(fd: int, _mask: int) -> None:
            asked.append(mine)
            agent.selector.unregister(other)
            os.close(other)
            again, _ = os.pipe()
            assert again == other
            agent.selector.register(again, selectors.EVENT_READ, lambda *_: asked.append("new"))

        return take

    for mine, other in ((0, 1), (1, 0)):
        agent.selector.register(pipes[mine][0], selectors.EVENT_READ, owner(mine, pipes[other][0]))
        os.write(pipes[mine][1], b"x")
    agent.turn()
    assert len(asked) == 1


def test_many_short_programs_of_many_tools_at_once(lab):
    tools, programs = 24, 100

    def work(answers: list[str]) -> None:
        with Running(lab.folder) as tool:
            answers += [tool.run("", ["echo", str(number)], timeout_s=60).out.strip() for number in range(programs)]

    said: list[list[str]] = [[] for _ in range(tools)]
    threads = [threading.Thread(target=work, args=(answers,)) for answers in said]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert said == [[str(number) for number in range(programs)]] * tools


def test_a_channel_that_breaks_is_the_machines_death_and_told_with_its_end(tmp_path):
    def reset(_size):
        raise ConnectionResetError(104, "Connection reset by peer")

    (tmp_path / "console.log").write_text("Kernel panic\n")
    supervisor = object.__new__(Supervisor)
    supervisor.folder, supervisor.running, supervisor.died = tmp_path, True, False
    process = SimpleNamespace(wait=lambda timeout: -9)
    supervisor.machine = SimpleNamespace(channel=SimpleNamespace(recv=reset), process=process)
    supervisor._on_agent(selectors.EVENT_READ)
    assert supervisor.died
    assert not supervisor.running
    assert supervisor.reason == "the machine ended (exit -9)\n  Kernel panic"
