"""The check of the preflight stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from validators.check import Check, CheckInputs, DeviceInputs, Observations, Stage, answer_of
from validators.control_plane.expected import routers
from validators.devices.answers import Ask
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.plan import Plan


class DeviceAnswers(Check):
    """Every router of the plan can be reached and says which version it runs.

    Pass: the device answers and names its version.
    Fail: never; a silent device is not judged, it is missing.
    Error: the device cannot be reached, or refuses.
    Skipped: never.
    Example:
        device-answers:
          - {device: be-leaf-01}
    """

    stage = Stage.PREFLIGHT
    Inputs = DeviceInputs

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per managed switch and gateway."""
        yield from (DeviceInputs(device=device) for device in routers(plan))

    def asks(self, plan: Plan, inputs: DeviceInputs) -> list[Ask]:
        """The version."""
        del plan
        return [Ask(inputs.device, "version")]

    def judge(self, plan: Plan, inputs: DeviceInputs, observations: Observations) -> Result:
        """An answer is enough, an empty one is none."""
        del plan
        text = answer_of(observations, inputs.device, "version").strip()
        if not text:
            return Result(self.name, inputs.device, State.ERROR, "the device answers with nothing")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        return Result(self.name, inputs.device, State.PASS, "; ".join(lines[:2])[:160])
