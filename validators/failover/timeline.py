"""The failover timeline of a report, from what long flows met: one lane a flow, with the time when it was silent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from validators.results import Result

# a silence of so many ms is no more than a frame or two that came late
_LEAST_MS = 300.0
_AROUND_MS = 500.0


def timeline(results: Iterable[Result], event: str, budget_ms: float = 0.0) -> dict[str, Any]:
    """Return a `timeline` (see `validators/report/plots.py`) of the flows in the results' evidence, 0 at the event.

    A flow that died is silent until it was made again, or to the end. Empty when no result has flows.
    """
    flows: dict[str, list[tuple[float, float | None]]] = {}
    for result in results:
        zero = int(result.evidence.get("event_ns", 0))
        for slot in result.evidence.get("slots", ()) if zero else ():
            flows[f"{result.labels.get('mode', '')} {slot['slot'] + 1}"] = _gaps(slot, zero)
    if not flows:
        return {}
    known = [at for gaps in flows.values() for gap in gaps for at in gap if at is not None]
    start, end = min([0.0, *known]) - _AROUND_MS, max([0.0, *known]) + _AROUND_MS
    drawn = [
        {"name": name, "gaps": [[round(a, 1), round(end if b is None else b, 1)] for a, b in gaps]}
        for name, gaps in flows.items()
    ]
    shown: dict[str, Any] = {"start_ms": round(start), "end_ms": round(end), "flows": drawn}
    return shown | {"events": [{"at_ms": 0, "text": event}]} | ({"budget_ms": budget_ms} if budget_ms else {})


def _gaps(slot: Mapping[str, Any], zero: int) -> list[tuple[float, float | None]]:
    """Return (from, to) of the slot's silence in ms after `zero`; to is None for one that had no end."""
    longer = max(slot["towards"], slot["back"], key=lambda silence: silence["outage_ms"])
    began = (longer["last_good_ns"] - zero) / 1e6
    lived = not slot["reset"] and all(slot[way]["first_good_ns"] for way in ("towards", "back"))
    if lived:
        return [(began, began + longer["outage_ms"])] if longer["outage_ms"] > _LEAST_MS else []
    began = min(slot[way]["last_good_ns"] - zero for way in ("towards", "back")) / 1e6
    return [(began, None if slot["remade_ms"] is None else began + slot["remade_ms"])]


def request_timeline(results: Iterable[Result]) -> dict[str, Any]:
    """Return a `timeline` of requests: a lane a session, with the time from its last good piece to the next one."""
    lanes, end = [], 0.0
    for result in results:
        for session in result.evidence.get("sessions", ()):
            gaps = [
                [at, round(at + length, 1)]
                for at, length in zip(session["outages_from_ms"], session["outages_ms"], strict=True)
            ]
            lanes.append({"name": session["session"], "gaps": gaps})
            end = max(end, 1000 * session["seconds"], *(to for _, to in gaps))
    return {"start_ms": 0, "end_ms": round(end), "flows": lanes} if lanes and end else {}
