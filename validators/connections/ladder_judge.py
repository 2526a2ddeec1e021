"""Judge ladder steps and whole ladders (RFC 9693), as pure functions of their observations."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from validators.connections.search import Outcome, Search
from validators.results import Measurement, Result, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from validators.connections.step import StepObservation

CHECK = "gateway.connections"
OFFERED = 0.97  # the share of the asked rate that a tester must really offer
_DROP_COUNTERS = ("insert_failed", "drop", "early_drop")


def outcome(step: StepObservation, *, offered: float = OFFERED) -> Outcome:
    """Say what a step means: a loss that the tester may have caused itself is never held against the gateway."""
    complete = step.validated == step.connections and not (step.wrong_ends or step.shared_ends or step.bad_checksums)
    if not complete and not (step.tester_drops or step.tester_refused):
        return Outcome.FAILED
    if not complete or step.real_per_s < offered * step.asked_per_s:
        return Outcome.TESTER_LIMITED
    return Outcome.PASSED


def reasons(step: StepObservation, pool: Iterable[str] | None = None) -> list[str]:
    """Return everything about a step that is not as it should be, in words; `pool` is the declared public addresses."""
    lost_out = step.connections - step.arrived
    lost_back = step.arrived - step.validated
    found = [
        (lost_out, f"{lost_out} of {step.connections} first frames did not arrive"),
        (lost_back, f"{lost_back} connections that had arrived did not answer through their recorded ends"),
        (step.wrong_ends, f"{step.wrong_ends} frames came from or went to other ends than the connection's"),
        (step.shared_ends, f"{step.shared_ends} connections share their translated ends with another one"),
        (step.bad_checksums, f"{step.bad_checksums} frames had a wrong checksum after translation"),
        (step.tester_drops, f"the tester itself lost {step.tester_drops} frames"),
        (step.tester_refused, f"the tester could not send {step.tester_refused} frames"),
    ]
    counters = step.gateway.get("counters", {})
    found += [(counters.get(name, 0), f"gateway counted {name} {counters.get(name, 0)}") for name in _DROP_COUNTERS]
    for name, where in (("softnet_drops", "before its stack"), ("interface_drops", "at its interfaces")):
        lost = step.gateway.get(name) or 0
        found.append((lost, f"gateway dropped {lost} packets {where}"))
    texts = [text for number, text in found if number > 0]
    if pool is not None:
        strangers = sorted(set(step.public_addresses) - set(pool))
        if strangers:
            texts.append(f"seen outside with addresses that are not of the pool: {', '.join(strangers[:4])}")
    return texts


def judge_step(
    subject: str, step: StepObservation, *, pool: Iterable[str] | None = None, labels: Mapping[str, str] | None = None
) -> Result:
    """Return the result of one step. Tester-limited is unknown, not a pass."""
    what = outcome(step)
    why = reasons(step, pool)
    leaked = any("not of the pool" in text for text in why)
    state = {Outcome.PASSED: State.PASS, Outcome.FAILED: State.FAIL, Outcome.TESTER_LIMITED: State.UNKNOWN}[what]
    if leaked:
        state = State.FAIL
    text = f"{step.validated} of {step.connections} {step.protocol} connections validated at {step.real_per_s:,.0f}/s"
    if what is Outcome.TESTER_LIMITED:
        text += f", tester-limited: {step.asked_per_s:,.0f}/s were asked"
    text = "; ".join([text, *why, *_beside(step)])
    return Result(
        CHECK,
        f"{subject} {step.protocol} {step.connections} at {step.asked_per_s:,.0f}/s",
        state,
        text,
        measurements=_figures(step, "tester" if what is Outcome.TESTER_LIMITED else ""),
        labels={**(labels or {}), "protocol": step.protocol},
        evidence=step.to_dict(),
    )


def _beside(step: StepObservation) -> list[str]:
    """Return what the gateway and the flows showed meanwhile, in words; what was not measured is left out."""
    words, gateway = [], step.gateway
    if {"p50", "p99"} <= step.handshake_ms.keys():
        words.append(f"handshake p50 {step.handshake_ms['p50']:.1f} ms, p99 {step.handshake_ms['p99']:.1f} ms")
    if gateway.get("count_peak") is not None and gateway.get("max"):
        words.append(f"NAT table {gateway['count_peak']:,} of {gateway['max']:,}")
    if "cpu_busy" in gateway:
        words.append(f"gateway CPU {100 * gateway['cpu_busy']:.0f} %")
    return words


def _figures(step: StepObservation, limit: str) -> tuple[Measurement, ...]:
    figures = [
        Measurement("new connections", round(step.real_per_s, 1), "connections/s", limit=limit),
        Measurement("concurrent connections", step.validated, "connections", limit=limit),
    ]
    for name in ("p50", "p99"):
        if name in step.handshake_ms:
            trials = int(step.handshake_ms["flows"])
            figures.append(Measurement(f"handshake {name}", step.handshake_ms[name], "ms", trials))
    gateway = step.gateway
    if gateway.get("count_peak") is not None and gateway.get("max"):
        figures.append(Measurement("NAT table occupancy", gateway["count_peak"], "entries"))
        figures.append(Measurement("NAT table use", round(100 * gateway["count_peak"] / gateway["max"], 2), "%"))
    if "cpu_busy" in gateway:
        figures.append(Measurement("gateway CPU", round(100 * gateway["cpu_busy"], 1), "% of all CPUs"))
    return tuple(figures)


def climb(run: Callable[[float], StepObservation], search: Search) -> list[StepObservation]:
    """Run steps until the search is satisfied; `run` is given the rate to ask for.

    A step that fails is run again before it counts: the gateway's knee is where it always loses something, and not
    where something else on the machine took its CPU for a moment.
    """
    steps = []
    while (level := search.ask()) is not None:
        step = run(level)
        steps.append(step)
        if outcome(step) is Outcome.FAILED:
            step = run(level)
            steps.append(step)
        search.tell(level, step.real_per_s, outcome(step))
        search.given_up = not step.validated
    return steps


def _passed_again(steps: Sequence[StepObservation]) -> int:
    """Return how many steps failed and then did not at the same rate."""
    pairs = itertools.pairwise(steps)
    return sum(
        one.asked_per_s == two.asked_per_s and outcome(one) is Outcome.FAILED and outcome(two) is not Outcome.FAILED
        for one, two in pairs
    )


def judge_ladder(
    subject: str,
    steps: Sequence[StepObservation],
    search: Search,
    *,
    wanted_per_s: float | None = None,
    pool: Iterable[str] | None = None,
    labels: Mapping[str, str] | None = None,
) -> Result:
    """Return the knee as a result. Failing steps above the knee are how a knee is found, not failures of the gateway.

    With `wanted_per_s` declared the ladder passes at or above it, fails when the gateway ended below it, and is
    unknown when the tester did. Without it there is only a measurement.
    """
    pool = list(pool) if pool is not None else None
    parts = tuple(judge_step(subject, step, pool=pool, labels=labels) for step in steps)
    knee = Measurement(
        "maximum connection establishment rate", round(search.passed, 1), "connections/s", limit=search.limit
    )
    best = max(
        (step for step in steps if outcome(step) is not Outcome.FAILED), key=lambda step: step.real_per_s, default=None
    )
    text = f"every connection validated up to {search.passed:,.0f}/s"
    if search.limit == "ladder":
        text += ", the highest rate that was tried; the limit is above it"
    else:
        text += f"; {'the ' + search.limit if search.limit else 'nobody'} ended it".replace("the device", "the gateway")
    if search.failed is not None and search.limit == "device":
        text += f" below {search.failed:,.0f}/s"
    if again := _passed_again(steps):
        text += f"; {again} {'steps' if again > 1 else 'step'} lost something once, and nothing when run again"
    if wanted_per_s is not None:
        text += f"; wanted {wanted_per_s:,.0f}/s"
    leaked = [part for part in parts if "not of the pool" in part.text]
    state = State.FAIL if leaked else _ladder_state(search, wanted_per_s)
    figures = (knee, *(_figures(best, search.limit)[1:] if best is not None else ()))
    return Result(CHECK, subject, state, text, measurements=figures, parts=parts, labels=dict(labels or {}))


def _ladder_state(search: Search, wanted_per_s: float | None) -> State:
    if not search.steps:
        return State.ERROR
    if wanted_per_s is None:
        return State.PASS if search.passed else State.FAIL if search.limit == "device" else State.UNKNOWN
    if search.passed >= OFFERED * wanted_per_s:
        return State.PASS
    return State.FAIL if search.limit == "device" else State.UNKNOWN
