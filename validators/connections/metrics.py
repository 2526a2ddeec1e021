"""Gateway metrics as Prometheus text, from the results of the probes; labels are the plan's own (tenant, vrf, ...).

Format: Prometheus text exposition 0.0.4. A figure that was not measured has no line: a missing value is never zero.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from validators.results import State

if TYPE_CHECKING:
    from collections.abc import Iterable

    from validators.results import Result

_NAMES = {
    "new connections": ("kvfabric_gateway_new_connections_per_second", "New connections per second, validated"),
    "concurrent connections": ("kvfabric_gateway_concurrent_connections", "Connections validated at the same time"),
    "handshake p50": ("kvfabric_gateway_handshake_p50_milliseconds", "First frame to answer, median"),
    "handshake p99": ("kvfabric_gateway_handshake_p99_milliseconds", "First frame to answer, 99th percentile"),
    "NAT table occupancy": ("kvfabric_gateway_nat_entries", "Entries in the connection table, peak"),
    "NAT table use": ("kvfabric_gateway_nat_use_percent", "Share of the connection table in use, peak"),
    "outage max": ("kvfabric_gateway_outage_milliseconds", "Longest outage of a flow that came back"),
    "new connections out": ("kvfabric_gateway_new_connections_outage_milliseconds", "Time without new connections"),
    "idle timeout": ("kvfabric_gateway_idle_timeout_seconds", "Measured idle timeout by kind of flow"),
}
_ERRORS = "kvfabric_gateway_errors"
_KEPT = ("tenant", "vrf", "gateway", "mode", "protocol", "kind", "case")


def prometheus(results: Iterable[Result]) -> str:
    """Return the text of all figures and, by tenant and VRF, how many checks failed."""
    lines: dict[str, list[str]] = {}
    errors: dict[str, int] = {}
    for result in _all(results):
        labels = _labels(result)
        for figure in result.measurements:
            if figure.name in _NAMES:
                name = _NAMES[figure.name][0]
                lines.setdefault(name, []).append(f"{name}{labels} {figure.value:g}")
        if not result.parts:
            errors[labels] = errors.get(labels, 0) + (result.state in (State.FAIL, State.ERROR))
    text = []
    for name, description in _NAMES.values():
        if name in lines:
            text += [f"# HELP {name} {description}", f"# TYPE {name} gauge", *dict.fromkeys(lines[name])]
    if errors:
        text += [f"# HELP {_ERRORS} Checks that failed or could not be judged", f"# TYPE {_ERRORS} gauge"]
        text += [f"{_ERRORS}{labels} {count}" for labels, count in errors.items()]
    return "\n".join(text) + "\n" if text else ""


def _all(results: Iterable[Result]) -> Iterable[Result]:
    for result in results:
        yield result
        yield from _all(result.parts)


def _labels(result: Result) -> str:
    kept = {"subject": result.subject, **{name: result.labels[name] for name in _KEPT if name in result.labels}}
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in kept.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
