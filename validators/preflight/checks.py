"""The check of the preflight stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from validators.check import Check, CheckInputs, DeviceInputs, Observations, Stage, answer_of
from validators.control_plane.expected import routers
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.plan import Plan


class DeviceAnswers(Check):
    """Every router of the plan can be reached, says which version it runs, and its routing is alive.

    Pass: the device answers and names its version, and bgpd runs on it.
    Fail: the device answers and its routing is dead.
    Error: the device cannot be reached, or refuses.
    Skipped: never.
    Example:
        device-answers:
          - {device: be-leaf-01}
    """

    stage = Stage.PREFLIGHT
    Inputs = DeviceInputs
    questions = ("version",)

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per managed switch and gateway."""
        yield from (DeviceInputs(device=device) for device in routers(plan))

    def judge(self, plan: Plan, inputs: DeviceInputs, observations: Observations) -> Result:
        """Look for a version, and for bgpd where the device lists its daemons (not every shell can)."""
        del plan
        text = answer_of(observations, inputs.device, "version").strip()
        if not text:
            return Result(self.name, inputs.device, State.ERROR, "the device answers with nothing")
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        daemons = next((line.removeprefix("daemons:") for line in lines if line.startswith("daemons:")), None)
        if daemons is not None and "bgpd" not in daemons.split():
            said = daemons.strip() or "no daemon runs"
            text = f"the device answers, but its routing is dead: {said}"
            labels = {"device": inputs.device}
            return Result(self.name, inputs.device, State.FAIL, text, f"{inputs.device}, FRR", labels=labels)
        return Result(self.name, inputs.device, State.PASS, "; ".join(lines[:2])[:160])
