"""Any command on any device, and what its output must and must not have: the checks that a site writes itself."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Annotated

from pydantic import Field, StringConstraints, field_validator, model_validator

from fabric.hardware.ranges import expand_hosts
from validators.cabling.checks import whole
from validators.check import Check, CheckInputs, Context, Observations, Stage
from validators.devices.answers import Answer
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.plan import Plan

_TOGETHER = 8
_SHOWN = 160

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=4096, pattern=r"^[^\x00]*$")]
_Line = Annotated[_Text, StringConstraints(max_length=100, pattern=r"^[^\x00-\x1f]*$")]


class CommandInputs(CheckInputs):
    """A name for reports, the devices (patterns or ranges), a command, and regular expressions, each for one line."""

    name: _Line
    devices: tuple[_Text, ...] = Field(min_length=1, strict=False)
    command: _Text
    matches: tuple[_Text, ...] = Field((), strict=False)
    lacks: tuple[_Text, ...] = Field((), strict=False)
    timeout_s: Annotated[float, Field(gt=0, le=600)] = 30.0

    @field_validator("devices", "matches", "lacks", mode="before")
    @classmethod
    def _one_or_many(cls, value: object) -> object:
        return [value] if isinstance(value, str) else value

    @field_validator("matches", "lacks")
    @classmethod
    def _are_expressions(cls, patterns: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except (re.error, OverflowError, RecursionError) as error:
                message = f"'{pattern}' is no regular expression: {error}"
                raise ValueError(message) from None
        return patterns

    @model_validator(mode="after")
    def _can_fail(self) -> CommandInputs:
        if not (self.matches or self.lacks):
            message = "says nothing of the output: give 'matches' or 'lacks', else it could not fail"
            raise ValueError(message)
        return self


class DeviceCommand(Check):
    """A command on devices prints what the site expects: clock, firmware, licences, whatever no plan knows.

    It is in no plan's catalog: write it into a file of your own, and give that with `accept --also FILE`. The command
    runs as it is written and nothing is taken back, so let it only read. `devices` takes names, ranges and shell-style
    patterns (`be-leaf-[01-04]`, `gw-*`); `matches` and `lacks` are Python regular expressions, looked for in each line.

    Pass: on each device every `matches` is in the output, and no `lacks` is.
    Fail: one is missing or there; the text has the expression and the line.
    Error: the device gives no answer, or the command ends with another exit code than 0.
    Skipped: offline, unless an earlier run with the same case is judged.
    Example:
        device-command:
          - {name: clock, devices: "be-*", command: chronyc tracking, matches: "Leap status +: Normal"}
    """

    stage = Stage.STABILITY
    Inputs = CommandInputs
    passive = False

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """None: a plan knows no commands."""
        del plan
        yield from ()

    @classmethod
    def subject(cls, inputs: CommandInputs) -> str:
        """The site's own name."""
        return inputs.name

    @classmethod
    def touches(cls, plan: Plan, inputs: CommandInputs) -> tuple[str, ...]:
        """Every device of the plan that is named, in its order. Raises KeyError naming what matches none."""
        ours = [device for device in plan.kind_of if device not in plan.edges]
        found: set[str] = set()
        for pattern in inputs.devices:
            matching = _matching(pattern, ours)
            if not matching:
                message = f"no device is '{pattern}'"
                raise KeyError(message)
            found |= matching
        return tuple(device for device in ours if device in found)

    def collect(self, context: Context, inputs: CommandInputs) -> Observations:
        """Run it on all of them."""
        devices = self.touches(context.plan, inputs)
        with ThreadPoolExecutor(_TOGETHER) as pool:
            said = pool.map(lambda name: context.devices.run(name, inputs.command, inputs.timeout_s), devices)
            return {device: answer.to_dict() for device, answer in zip(devices, said, strict=True)}

    def judge(self, plan: Plan, inputs: CommandInputs, observations: Observations) -> Result:
        """Look through the lines of each device."""
        parts = [
            self._part(inputs, device, Answer.from_dict(observations.get(device, {"error": "was not asked"})))
            for device in self.touches(plan, inputs)
        ]
        return whole(self.name, inputs.name, parts, "devices say what is expected")

    def _part(self, inputs: CommandInputs, device: str, answer: Answer) -> Result:
        def of(state: State, text: str) -> Result:
            place = "" if state is State.PASS else f"{device} `{inputs.command}`"
            return Result(self.name, f"{device} {inputs.name}", state, text, place, labels={"device": device})

        if not answer.ok:
            return of(State.ERROR, answer.error)
        lines = answer.text.splitlines()
        for pattern in inputs.lacks:
            if line := next((line for line in lines if re.search(pattern, line)), None):
                return of(State.FAIL, f"says {_short(line)!r}, and must not have '{pattern}'")
        for pattern in inputs.matches:
            if not any(re.search(pattern, line) for line in lines):
                return of(State.FAIL, f"has no line with '{pattern}'; it says {_short(answer.text)!r}")
        return of(State.PASS, "as expected")


def _matching(pattern: str, devices: list[str]) -> set[str]:
    try:
        listed = frozenset(expand_hosts(pattern))
    except ValueError:  # a range that runs backwards names nobody
        return set()
    return {device for device in devices if device in listed or fnmatchcase(device, pattern)}


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _SHOWN else f"{words[:_SHOWN]} ..."
