from __future__ import annotations

import pytest

from validators.connections.metrics import prometheus
from validators.results import Measurement, Result, State

pytestmark = pytest.mark.unit


def test_figures_carry_the_plans_labels_and_failures_are_counted() -> None:
    figures = (Measurement("new connections", 1234.5, "connections/s"), Measurement("no such name", 1, "s"))
    labels = {"tenant": 'a"b', "vrf": "Vrf-a", "row": "x"}
    text = prometheus([Result("c", "gw", State.FAIL, "t", measurements=figures, labels=labels)])
    assert 'kvfabric_gateway_new_connections_per_second{subject="gw",tenant="a\\"b",vrf="Vrf-a"} 1234.5' in text
    assert 'kvfabric_gateway_errors{subject="gw",tenant="a\\"b",vrf="Vrf-a"} 1' in text
    assert "no such name" not in text


def test_what_was_not_measured_has_no_line() -> None:
    assert prometheus([]) == ""
    assert "handshake" not in prometheus([Result("c", "gw", State.PASS, "t")])
