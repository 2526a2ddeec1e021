"""Judges the counters of a round: each device on the way, the class on every hop, and that a cover met every link."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from validators.counters.readings import BYTES, Key
from validators.counters.rules import CHECK, Expectation, judge_station
from validators.counters.station import Station
from validators.devices.answers import UnreadableError
from validators.rdma.path import Stage, stages
from validators.rdma.watch import readings
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fabric.plan import Plan, TrafficClass
    from validators.counters.readings import Readings
    from validators.rdma.launch import Row

_LINKS = "rdma.links"


def judge_counters(plan: Plan, kind: str, class_name: str, rows: Sequence[Row], seen: dict[str, Any]) -> list[Result]:
    """Judge what `probe.collect` kept of a round's counters; a reason why there are none is a skipped result."""
    fabric = rows[0].flow.reader.fabric
    if "skipped" in seen:
        return [Result(CHECK, f"counters of fabric {fabric}", State.SKIPPED, seen["skipped"])]
    qos = plan.fabrics[fabric].qos
    chosen = next(c for c in (qos.lossless if qos else ()) if c.name == class_name)
    found = [Result(CHECK, name, State.SKIPPED, text) for name, text in seen["left_out"].items()]
    found += [Result(CHECK, fabric, State.ERROR, text) for text in seen["problems"]]
    stations = [Station(**{**one, "ports": tuple(one["ports"])}) for one in seen["stations"]]
    known: dict[str, tuple[Readings, Readings]] = {}
    for station in stations:
        congested = kind == "incast" and station.device == rows[0].flow.reader.leaf
        expected = Expectation(qos.lossless if qos else (), chosen.priority, congested)
        tenants = _tenants(plan, rows, station.device)
        try:
            pair = readings(seen["samples"][0], station.device), readings(seen["samples"][-1], station.device)
        except UnreadableError as error:
            found.append(Result(CHECK, station.device, State.ERROR, str(error), station.device))
            continue
        known[station.device] = pair
        result = judge_station(plan, station, *pair, expected, tenants)
        result.evidence["during"] = timeline(seen["samples"], station.device)
        found.append(result)
    measured = [row for row in rows if "payload_gbps" in row.drive]
    found += [_marking(plan, row, measured, known, chosen) for row in measured]
    if kind == "cover" and measured:
        found.append(_touched(plan, measured, known, chosen))
    return found


def timeline(samples: Sequence[dict[str, Any]], device: str) -> list[dict[str, Any]]:
    """Return what grew between each sample and the one before it: seconds since the first, and counters by name."""
    found, last = [], None
    for sample in samples:
        try:
            now = readings(sample, device)
        except UnreadableError as error:
            found.append({"t_s": round(sample["at"] - samples[0]["at"], 3), "error": str(error)})
            continue
        if last is not None:
            grown = {str(k): v - last.values[k] for k, v in now.values.items() if v != last.values.get(k, v)}
            found.append({"t_s": round(sample["at"] - samples[0]["at"], 3), "when": sample["when"], "grown": grown})
        last = now
    return found


def _tenants(plan: Plan, rows: Iterable[Row], device: str) -> set[str]:
    """Tenants whose flows may cross a device: a link between switches belongs to all of them."""
    return {
        end.tenant
        for row in rows
        for stage in stages(plan, row.flow)
        if any(use.device == device for use in stage.ports)
        for end in (row.flow.owner, row.flow.reader)
    }


def _marking(
    plan: Plan,
    row: Row,
    rows: Sequence[Row],
    known: dict[str, tuple[Readings, Readings]],
    chosen: TrafficClass,
) -> Result:
    """The flow's bytes must be counted in its class on every stage that counts by class, or they ran in another one."""
    subject, told, lost = row.flow.name, [], []
    for stage in stages(plan, row.flow):
        grown = _grown(stage, known, chosen)
        if grown is None:
            continue
        need = sum(_bytes(other) for other in rows if stage in stages(plan, other.flow))
        told.append(stage.name)
        if grown < need:
            lost.append(f"{stage.name} ({', '.join(_names(stage))}): {grown} of at least {need} bytes")
    labels = {"tenant": row.flow.reader.tenant, "priority": str(chosen.priority), "class": chosen.name}
    if not told:
        text = "no device on the way counts bytes by class"
        return Result("rdma.marking", subject, State.SKIPPED, text, labels=labels)
    text = (
        f"not in class {chosen.name} at {'; '.join(lost)}" if lost else f"in class {chosen.name} at {', '.join(told)}"
    )
    place = lost[0] if lost else ""
    return Result("rdma.marking", subject, State.FAIL if lost else State.PASS, text, place, labels=labels)


def _touched(
    plan: Plan, rows: Sequence[Row], known: dict[str, tuple[Readings, Readings]], chosen: TrafficClass
) -> Result:
    """A cover is for meeting every link; one that stayed silent was not tested, whatever the flows say."""
    uses = {use for row in rows for stage in stages(plan, row.flow)[1:-1] for use in stage.ports}
    counted = {use: _grown(Stage("", (use,)), known, chosen) for use in uses}
    by_name = {f"{use.device} {use.interface} {use.direction}": grown for use, grown in counted.items()}
    return _links(by_name)


def links_of_all_rounds(found: Sequence[Result]) -> list[Result]:
    """Make one result of every round's `rdma.links`: a link that another round met is not silent."""
    rounds = [result for result in found if result.check == _LINKS]
    if len(rounds) < 2:
        return list(found)
    grown: dict[str, int | None] = {}
    for result in rounds:
        for name, count in result.evidence["directions"].items():
            before = grown.get(name)
            grown[name] = count if before is None else before + (count or 0)
    return [*(result for result in found if result.check != _LINKS), _links(grown)]


def _links(grown: dict[str, int | None]) -> Result:
    evidence = {"directions": grown}
    silent = sorted(name for name, count in grown.items() if count == 0)
    seen = sum(bool(count) for count in grown.values())
    if not seen:
        text = "no switch on the way counts bytes by class"
        return Result(_LINKS, "cover", State.SKIPPED, text, evidence=evidence)
    text = f"{seen} directions of links carried the class"
    if silent:
        text += f"; nothing came by {', '.join(silent)}: not tested"
    return Result(_LINKS, "cover", State.UNKNOWN if silent else State.PASS, text, evidence=evidence)


def _grown(stage: Stage, known: dict[str, tuple[Readings, Readings]], chosen: TrafficClass) -> int | None:
    """Bytes of the class that a stage's ports counted; None when one of them does not count."""
    total = 0
    for use in stage.ports:
        if use.device not in known:
            return None
        before, after = (one.values for one in known[use.device])
        keys = [Key(use.interface, BYTES, use.direction, number) for number in (chosen.priority, chosen.queue)]
        key = next((key for key in keys if key in before and key in after), None)
        if key is None:
            return None
        total += after[key] - before[key]
    return total


def _bytes(row: Row) -> int:
    return int(row.drive["bytes"]) * (int(row.drive["transfers"]) + int(row.drive["unmeasured"]))


def _names(stage: Stage) -> list[str]:
    return [f"{use.device} {use.interface}" for use in stage.ports]
