from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from validators.connections.programs import CommandHost
from validators.connections.rig import INSIDE_HOP, OUTSIDE_HOP, Rig, Timers
from validators.results import Result, State
from validators.session.cases import Service, run_case
from validators.session.client import Request
from validators.session.judge import judge

pytestmark = [
    pytest.mark.external,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("nft") is None, reason="needs root and nft"),
]
TIMERS = Timers({"established": 1, "syn_sent": 3, "syn_recv": 3, "fin_wait": 1, "close_wait": 1, "close": 1})


@dataclass
class Around:
    rig: Rig
    service: Service

    def case(
        self, name: str, event: Callable[[], None], *, expect: dict[str, Any] | None = None, **request: Any
    ) -> Result:
        requests = [Request("203.0.113.64", 443, f"{name}-{i}", f"token-{name}-{i}", **request) for i in range(3)]

        client = CommandHost(self.rig.prefix(self.rig.outside), sys.executable)
        seen = run_case(name, requests, client=client, event=event, service=self.service, **(expect or {}))
        return judge("vip", seen)


@pytest.fixture(scope="module")
def around() -> Iterator[Around]:
    with Rig(TIMERS, gateways=2) as rig:
        rig.give_addresses({"inside": ("10.1.0.10", INSIDE_HOP), "outside": ("198.18.1.1", OUTSIDE_HOP)})
        host = CommandHost(rig.prefix(rig.inside), sys.executable)
        with Service([(host, "10.1.0.10", 8443)]) as service:
            yield Around(rig, service)


def test_a_drain_cuts_no_session(around: Around) -> None:
    def event() -> None:
        around.rig.drain()
        time.sleep(0.5)
        around.rig.drain(undo=True)

    result = around.case("drain", event, expect={"must_break": False, "may_break": False}, pieces=25)
    assert result.state is State.PASS, result.text


def test_sessions_outlive_their_gateway(around: Around) -> None:
    def event() -> None:
        around.rig.cut()
        around.rig.switch(1)

    result = around.case("gateway", event, expect={"must_break": False}, pieces=30, silence_s=0.6)
    assert result.state is State.PASS, result.text


def test_a_tool_call_longer_than_the_idle_timeout_is_done_once(around: Around) -> None:
    result = around.case("tool", lambda: None, op="tool", each_s=2.0, silence_s=2.4)
    assert result.state is State.PASS, result.text
    assert "3 of 3 sessions lost a connection" in result.parts[0].text


def test_sessions_outlive_their_worker(around: Around) -> None:
    result = around.case("worker", around.service.all_workers_fail, pieces=60)
    assert result.state is State.PASS, result.text
