"""Two looks at the watermarks of switches: what is asked, how long after traffic, and what the answers come to."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from validators.cabling.checks import whole
from validators.check import NotJudgedError, Observations, answer_of
from validators.counters.watermark_rules import POOL_SHARE, QUEUE_PEAK, SHARE, Look, judge_groups, judge_pool
from validators.counters.watermarks import GROUP, LONGEST_MS, QUEUE, Polling, by_pool, by_port, polling
from validators.devices.answers import Answer, UnreadableError
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from fabric.plan import Plan, Switch
    from validators.results import Measurement

_HEADROOM, _QUEUES, _POLLING = "headroom-watermark", "queue-watermark", "counterpoll"
_POOL_HEADROOM, _POOLS = "headroom-pool-watermark", "pool-watermark"
QUESTIONS = (_POLLING, _HEADROOM, _QUEUES)
POOL_QUESTIONS = (_POOL_HEADROOM, _POOLS)
# after a poll the numbers take a moment to their table
_AFTER_POLL_S = 2.0


def seconds_to_poll(look: Observations) -> float:
    """Return after how many seconds at most what a buffer held shows on every switch that a look had an answer of.

    0 where no switch answered or polls; the longest time that can be set where a switch does not say.
    """
    times = [0]
    for device, answers in look.items():
        if Answer.from_dict(answers.get(_HEADROOM, {"error": "was not asked"})).ok:
            try:
                kinds = polling(answer_of(look, device, _POLLING))
            except (NotJudgedError, UnreadableError):
                times.append(LONGEST_MS)
                continue
            times += [one.interval_ms for name, one in kinds.items() if "WATERMARK" in name and one.enabled]
    return max(times) / 1000 + _AFTER_POLL_S if max(times) else 0.0


def judge_switch(
    check: str, plan: Plan, switch: Switch, observations: Observations, *, pool: bool = True
) -> Iterator[Result]:
    """Judge a switch by its looks `before` and `after`: each lossless priority, then what ports share if `pool`.

    What cannot be read of one switch is a result of its own, and never stops the others.
    """
    looks = _First(observations["before"], switch.name), _Asked(observations["after"], switch.name)
    try:
        polls = looks[1].polling()
        yield from judge_groups(check, plan, switch, (looks[0].groups(), looks[1].groups()), polls)
    except (NotJudgedError, UnreadableError) as error:
        yield _unread(check, switch.name, "", error)
        return
    qos = plan.fabrics[switch.fabric].qos
    if not pool or qos is None or not qos.pool_xoff:
        return
    try:
        yield judge_pool(check, plan, switch, (looks[0].pools(), looks[1].pools()), polls)
    except (NotJudgedError, UnreadableError) as error:
        yield _unread(check, switch.name, " shared headroom", error)


def judge_all(check: str, subject: str, parts: Sequence[Result], traffic: Sequence[str]) -> Result:
    """Put results of priorities and pools together; `traffic` is what ran between the looks."""
    highest = _highest(parts, SHARE)
    most = f"the highest is {highest[0].value:.3g} % at {highest[1].subject}" if highest else "none was read"
    ran = f"{', '.join(traffic)} ran meanwhile" if traffic else "no check pushed lossless traffic meanwhile"
    good = f"headroom peaks since the user watermarks were last cleared leave room, {most}; {ran}"
    measured = (_highest(parts, name) for name in (SHARE, QUEUE_PEAK, POOL_SHARE))
    return replace(
        whole(check, subject, list(parts), good), measurements=tuple(found[0] for found in measured if found)
    )


def _unread(check: str, device: str, what: str, error: NotJudgedError | UnreadableError) -> Result:
    state = error.state if isinstance(error, NotJudgedError) else State.ERROR
    text = str(error) if isinstance(error, NotJudgedError) else f"an answer cannot be read: {error}"
    return Result(check, f"{device}{what}", state, text, device, labels={"device": device})


def _highest(parts: Sequence[Result], name: str) -> tuple[Measurement, Result] | None:
    """The largest measurement of a name, and the part that has it."""
    known = [(one, part) for part in parts for one in part.measurements if one.name == name]
    return max(known, key=lambda pair: pair[0].value, default=None)


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
