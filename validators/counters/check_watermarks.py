"""The check of watermarks: how close the run came to the headroom that keeps lossless traffic lossless."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from validators.check import Check, CheckInputs, Context, Observations, Stage, by_device, known_checks
from validators.counters.watermark_looks import (
    POOL_QUESTIONS,
    QUESTIONS,
    judge_all,
    judge_switch,
    seconds_to_poll,
)
from validators.devices.answers import Ask
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.plan import Plan, Switch


class WatermarkInputs(CheckInputs):
    """A fabric; `pool` is whether the headroom that a switch's ports share is judged too."""

    fabric: str
    pool: bool = True


class RoceWatermarks(Check):
    """No lossless priority of a port uses up its planned headroom while traffic runs, nor all ports what they share.

    Read are user watermarks: the most bytes held since somebody cleared them (`sonic-clear priority-group watermark
    headroom`), which others may do and rely on, so they are not cleared here. They are read before the checks of this
    stage that push traffic, and when the ASIC was polled after them (60 s unless told otherwise), so that what rose
    meanwhile is known. Headroom is used up when no largest frame fits any more. Peaks are in the report. A watermark
    that is N/A or missing, is not polled, or was cleared by somebody during the run is unknown, never a pass.

    Pass: every peak leaves room; 0 is fine, whether or not pauses were seen.
    Fail: the headroom of a priority on a port, or the headroom that ports share, was used up, in this run or before it.
    Error: a switch cannot be asked, or what it says is no table of watermarks.
    Skipped: where no fabric has a lossless class; where ports are virtual; a shell that does not show watermarks.
    Example:
        roce-watermarks:
          - {fabric: backend, pool: true}
    """

    stage = Stage.ROCE
    Inputs = WatermarkInputs
    physical = True
    settles = False
    # headroom is compared with the plan, so the switch must have the plan's
    stands_on = ("roce-config",)

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per fabric with lossless classes; on a site without any, one per managed fabric, to say so."""
        managed = [fabric for fabric in plan.fabrics.values() if fabric.managed]
        lossless = [fabric for fabric in managed if fabric.qos and fabric.qos.lossless]
        yield from (WatermarkInputs(fabric=fabric.name) for fabric in lossless or managed)

    @classmethod
    def subject(cls, inputs: WatermarkInputs) -> str:
        """The fabric."""
        return inputs.fabric

    @classmethod
    def touches(cls, plan: Plan, inputs: WatermarkInputs) -> tuple[str, ...]:
        """Its switches that are ours."""
        return tuple(switch.name for switch in _switches(plan, inputs.fabric))

    def asks(self, plan: Plan, inputs: WatermarkInputs) -> list[Ask]:
        """Watermarks of priority groups, queues and pools, and how often they are polled."""
        if not _has_headroom(plan, inputs.fabric):
            return []
        questions = (*QUESTIONS, *(POOL_QUESTIONS if inputs.pool else ()))
        return [Ask(device, question) for device in self.touches(plan, inputs) for question in questions]

    def collect(self, context: Context, inputs: WatermarkInputs) -> Observations:
        """Take the answers from before the stage's traffic, and ask again when the ASIC was polled after it."""
        asks = self.asks(context.plan, inputs)
        before = by_device(context.gather(asks))
        ran = [(text.partition(" ")[0], end) for text, _, end in context.ran if _pushes(text.partition(" ")[0])]
        if asks and ran and context.devices.rounds is None:
            due = max(end for _, end in ran) + seconds_to_poll(before)
            time.sleep(max(0.0, due - time.monotonic()))
        after = by_device(context.gather(asks, fresh=True, sample=1))
        traffic = list(dict.fromkeys(name for name, _ in ran))
        return {"before": before, "after": after, "traffic": traffic}

    def judge(self, plan: Plan, inputs: WatermarkInputs, observations: Observations) -> Result:
        """Judge switch by switch, priority by priority."""
        if not _has_headroom(plan, inputs.fabric):
            text = f"fabric {inputs.fabric} has no lossless class, so there is no headroom to use up"
            return Result(self.name, inputs.fabric, State.SKIPPED, text)
        parts: list[Result] = []
        for switch in _switches(plan, inputs.fabric):
            parts += judge_switch(self.name, plan, switch, observations, pool=inputs.pool)
        return judge_all(self.name, inputs.fabric, parts, observations["traffic"])


def _switches(plan: Plan, fabric: str) -> list[Switch]:
    return [switch for switch in plan.switches_of(fabric) if switch.managed and switch.nos == "sonic"]


def _has_headroom(plan: Plan, fabric: str) -> bool:
    qos = plan.fabrics[fabric].qos
    return bool(qos and qos.lossless)


def _pushes(check: str) -> bool:
    """Whether a check by name moves lossless traffic: it acts, in this stage."""
    found = known_checks().get(check)
    return found is not None and found.stage is Stage.ROCE and not found.passive
