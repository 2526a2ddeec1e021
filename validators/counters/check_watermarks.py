"""The check of watermarks: how close the run came to the headroom that keeps lossless traffic lossless."""

from __future__ import annotations

import re
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from validators.cabling.checks import whole
from validators.check import Check, CheckInputs, Context, NotJudgedError, Observations, Stage, answer_of, known_checks
from validators.counters.watermark_rules import POOL_SHARE, QUEUE_PEAK, SHARE, Look, judge_groups, judge_pool
from validators.counters.watermarks import GROUP, QUEUE, Polling, by_pool, by_port, polling
from validators.devices.answers import Answer, Ask, UnreadableError
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from fabric.plan import Plan, Switch
    from validators.results import Measurement

_HEADROOM, _QUEUES, _POLLING = "headroom-watermark", "queue-watermark", "counterpoll"
_POOL_HEADROOM, _POOLS = "headroom-pool-watermark", "pool-watermark"
_QUESTIONS = (_POLLING, _HEADROOM, _QUEUES)
_POOL_QUESTIONS = (_POOL_HEADROOM, _POOLS)
# after a poll the numbers take a moment to their table
_AFTER_POLL_S = 2.0
_LONGEST_S = 60.0


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
        questions = (*_QUESTIONS, *(_POOL_QUESTIONS if inputs.pool else ()))
        return [Ask(device, question) for device in self.touches(plan, inputs) for question in questions]

    def collect(self, context: Context, inputs: WatermarkInputs) -> Observations:
        """Take the answers from before the stage's traffic, and ask again when the ASIC was polled after it."""
        asks = self.asks(context.plan, inputs)
        before = context.gather(asks)
        ran = [(text.partition(" ")[0], end) for text, _, end in context.ran if _pushes(text.partition(" ")[0])]
        if asks and ran and context.devices.rounds is None:
            due = max(end for _, end in ran) + _poll_s(before) + _AFTER_POLL_S
            time.sleep(max(0.0, due - time.monotonic()))
        after = context.gather(asks, fresh=True, sample=1)
        traffic = list(dict.fromkeys(name for name, _ in ran))
        return {"before": _by_device(before), "after": _by_device(after), "traffic": traffic}

    def judge(self, plan: Plan, inputs: WatermarkInputs, observations: Observations) -> Result:
        """Judge switch by switch, priority by priority."""
        if not _has_headroom(plan, inputs.fabric):
            text = f"fabric {inputs.fabric} has no lossless class, so there is no headroom to use up"
            return Result(self.name, inputs.fabric, State.SKIPPED, text)
        parts: list[Result] = []
        for switch in _switches(plan, inputs.fabric):
            parts += self._switch(plan, switch, inputs, observations)
        result = whole(self.name, inputs.fabric, parts, f"headroom peaks {_summary(parts, observations)}")
        measured = (_highest(parts, name) for name in (SHARE, QUEUE_PEAK, POOL_SHARE))
        return replace(result, measurements=tuple(found[0] for found in measured if found))

    def _switch(
        self, plan: Plan, switch: Switch, inputs: WatermarkInputs, observations: Observations
    ) -> Iterator[Result]:
        looks = _First(observations["before"], switch.name), _Asked(observations["after"], switch.name)
        try:
            polls = looks[1].polling()
            yield from judge_groups(self.name, plan, switch, (looks[0].groups(), looks[1].groups()), polls)
        except (NotJudgedError, UnreadableError) as error:
            yield self._unread(switch.name, error)
            return
        qos = plan.fabrics[switch.fabric].qos
        if not inputs.pool or qos is None or not qos.pool_xoff:
            return
        try:
            yield judge_pool(self.name, plan, switch, (looks[0].pools(), looks[1].pools()), polls)
        except (NotJudgedError, UnreadableError) as error:
            yield self._unread(f"{switch.name} shared headroom", error)

    def _unread(self, subject: str, error: NotJudgedError | UnreadableError) -> Result:
        device = subject.partition(" ")[0]
        state = error.state if isinstance(error, NotJudgedError) else State.ERROR
        text = str(error) if isinstance(error, NotJudgedError) else f"an answer cannot be read: {error}"
        return Result(self.name, subject, state, text, device, labels={"device": device})


class _Asked:
    """The answers of a switch at one time. Raises NotJudgedError or UnreadableError where there is none to judge."""

    def __init__(self, observations: Observations, device: str) -> None:
        self.observations, self.device = observations, device

    def groups(self) -> Look:
        """Headroom and queues."""
        headroom = self._read(_HEADROOM, lambda text: by_port(text, GROUP))
        return Look(headroom, self._read(_QUEUES, lambda text: by_port(text, QUEUE)))

    def pools(self) -> Look:
        """The pools' headroom, and the pools."""
        return Look(pool_headroom=self._read(_POOL_HEADROOM, by_pool), pools=self._read(_POOLS, by_pool))

    def polling(self) -> dict[str, Polling]:
        """How the watermarks are polled."""
        found: dict[str, Polling] = self._read(_POLLING, polling)
        return found

    def _read(self, question: str, parse: Callable[[str], Any]) -> Any:
        return parse(answer_of(self.observations, self.device, question))


class _First(_Asked):
    """The first look, which only says what rose: without it the last one still counts."""

    def _read(self, question: str, parse: Callable[[str], Any]) -> Any:
        try:
            return super()._read(question, parse)
        except (NotJudgedError, UnreadableError):
            return {}


def _switches(plan: Plan, fabric: str) -> list[Switch]:
    return [switch for switch in plan.switches_of(fabric) if switch.managed and switch.nos == "sonic"]


def _has_headroom(plan: Plan, fabric: str) -> bool:
    qos = plan.fabrics[fabric].qos
    return bool(qos and qos.lossless)


def _pushes(check: str) -> bool:
    """Whether a check by name moves lossless traffic: it acts, in this stage."""
    found = known_checks().get(check)
    return found is not None and found.stage is Stage.ROCE and not found.passive


def _poll_s(answers: dict[Ask, Answer]) -> float:
    """How long the slowest switch may take until it polls its ASIC again; the longest where it does not say."""
    slowest = 0
    for ask, answer in answers.items():
        if ask.question == _POLLING:
            try:
                kinds = polling(answer.text) if answer.ok else {}
            except UnreadableError:
                kinds = {}
            known = [one.interval_ms for name, one in kinds.items() if re.search("WATERMARK", name)]
            slowest = max([slowest, *known]) if known else int(_LONGEST_S * 1000)
    return min(_LONGEST_S, slowest / 1000)


def _by_device(answers: dict[Ask, Answer]) -> Observations:
    found: Observations = {}
    for ask, answer in answers.items():
        found.setdefault(ask.device, {})[ask.question] = answer.to_dict()
    return found


def _highest(parts: list[Result], name: str) -> tuple[Measurement, Result] | None:
    """The largest measurement of a name, and the part that has it."""
    known = [(one, part) for part in parts for one in part.measurements if one.name == name]
    return max(known, key=lambda pair: pair[0].value, default=None)


def _summary(parts: list[Result], observations: Observations) -> str:
    """Say where the highest peak is, and what pushed traffic between the two looks."""
    highest = _highest(parts, SHARE)
    most = f"the highest is {highest[0].value:.3g} % at {highest[1].subject}" if highest else "none was read"
    traffic = ", ".join(observations.get("traffic", ()))
    most = f"since the user watermarks were last cleared leave room, {most}"
    return f"{most}; " + (f"{traffic} ran meanwhile" if traffic else "no check pushed lossless traffic meanwhile")
