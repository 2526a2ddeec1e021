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


def test_a_reader_that_nobody_here_wrote_takes_the_text() -> None:
    parser = pytest.importorskip("prometheus_client.parser", reason="prometheus-client is not installed")
    labels = {"tenant": 'a"b\\c', "vrf": "Vrf-a", "kind": "dns"}
    figures = tuple(Measurement(name, 1.5, "s") for name in ("idle timeout", "handshake p99", "outage max"))
    parts = (Result("c", "gw dns", State.PASS, "t", measurements=figures, labels=labels),)
    text = prometheus([Result("c", "gw", State.PASS, "t", parts=parts), Result("c", "gw 2", State.ERROR, "t")])
    families = {family.name: family for family in parser.text_string_to_metric_families(text)}
    (timer,) = families["kvfabric_gateway_idle_timeout_seconds"].samples
    assert timer.labels == {"subject": "gw dns", **labels}
    assert timer.value == 1.5
    assert sum(sample.value for sample in families["kvfabric_gateway_errors"].samples) == 1
