"""Watermarks of the switches on the way of a set of flows: before its first round, and a poll after its last one."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from validators.counters.watermark_looks import POOL_QUESTIONS, QUESTIONS, judge_all, judge_switch, seconds_to_poll
from validators.devices.answers import Answer
from validators.devices.dialects import SONIC, command_for
from validators.rdma.watch import ask_all
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fabric.plan import Plan
    from validators.check import Observations
    from validators.counters.station import Station
    from validators.rdma.places import Places

CHECK = "counters.watermarks"
_VIRTUAL = "ports are virtual: there is no ASIC whose buffers could say what they held"
_NO_SONIC = "no SONiC switch on the way can be reached"


class Watermarks:
    """Two looks around rounds of flows. `why_not` is why there are none, empty when there are."""

    def __init__(self, stations: Sequence[Station], places: Places) -> None:
        self.stations = [station for station in stations if station.dialect == SONIC and not station.host]
        self.places = places
        self.why_not = _VIRTUAL if not places.physical else "" if self.stations else _NO_SONIC
        self._before = {} if self.why_not else self._look()

    def finish(self, traffic: str, say: Callable[[str], None]) -> dict[str, Any]:
        """Wait until every ASIC was polled once more, look again, and return both looks, JSON-ready."""
        if self.why_not:
            return {"skipped": self.why_not}
        seconds = seconds_to_poll(self._before)
        if seconds:
            say(f"watermarks: the switches poll their ASICs once more within {seconds:.0f} s")
            time.sleep(seconds)
        return {"before": self._before, "after": self._look(), "traffic": [traffic]}

    def _look(self) -> Observations:
        found: Observations = {station.device: {} for station in self.stations}
        for question in (*QUESTIONS, *POOL_QUESTIONS):
            commands = [command_for(SONIC, question)] * len(self.stations)
            for station, (text, error) in zip(
                self.stations, ask_all(self.stations, self.places, commands), strict=True
            ):
                found[station.device][question] = Answer(text, error).to_dict()
        return found


def judge_watermarks(plan: Plan, seen: dict[str, Any], fabric: str) -> list[Result]:
    """Judge what `Watermarks.finish` returned, switch by switch."""
    if "skipped" in seen:
        return [Result(CHECK, f"watermarks of fabric {fabric}", State.SKIPPED, seen["skipped"])]
    return [
        judge_all(CHECK, device, list(judge_switch(CHECK, plan, plan.switches[device], seen)), seen["traffic"])
        for device in seen["before"]
    ]
