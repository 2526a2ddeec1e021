"""The checks of the optics stage. Limits are inputs, so that the catalog declares them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from validators.cabling.checks import whole
from validators.check import Check, CheckInputs, DeviceInputs, NotJudgedError, Observations, Stage, answer_of
from validators.optics.parse import Alert, FecState, parse_alerts, parse_fec, parse_light
from validators.results import Measurement, Result, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.plan import Plan, Port


class FecInputs(CheckInputs):
    """Largest bit error ratio before (`pre_ber`) and after correction (`post_ber`), most frames that FEC may have lost.

    The default before correction leaves a factor of twenty to what RS(544,514) can correct, about 2e-4 (IEEE 802.3).
    """

    device: str
    pre_ber: Annotated[float, Field(gt=0, lt=1)] = 1e-5
    post_ber: Annotated[float, Field(ge=0, lt=1)] = 1e-12
    uncorrectable: Annotated[int, Field(ge=0)] = 0


class LightInputs(CheckInputs):
    """`least_dbm` and `most_dbm` bound the receive power of each lane."""

    device: str
    least_dbm: float = -7.0
    most_dbm: float = 5.0


def _sonic(plan: Plan) -> list[str]:
    return [s.name for s in plan.switches.values() if s.managed and s.nos == "sonic" and any(p.link for p in s.ports)]


def _used(plan: Plan, device: str) -> list[Port]:
    return [port for port in plan.switches[device].ports if port.link]


def _part(check: str, device: str, port: Port, state: State, text: str, *measured: Measurement) -> Result:
    place = "" if state is State.PASS else f"{device} {port.name} ({port.interface})"
    labels = {"device": device, "port": port.name, "link": port.link}
    return Result(check, f"{device} {port.name}", state, text, place, measured, labels=labels)


class LinkFec(Check):
    """Every cabled port corrects few bits and loses no frame that FEC could not correct.

    Pass: the bit error ratios before and after correction and the uncorrectable frames are within the limits.
    Fail: a port is over a limit.
    Error: a port has no FEC counters: what is not counted cannot be accepted.
    Skipped: where ports are virtual.
    Example:
        link-fec:
          - {device: be-leaf-01, pre_ber: 1.0e-5, post_ber: 1.0e-12, uncorrectable: 0}
    """

    stage = Stage.OPTICS
    Inputs = FecInputs
    questions = ("fec",)
    physical = True

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per SONiC switch."""
        yield from (FecInputs(device=device) for device in _sonic(plan))

    def judge(self, plan: Plan, inputs: FecInputs, observations: Observations) -> Result:
        """Compare port by port."""
        seen = parse_fec(answer_of(observations, inputs.device, "fec"))
        parts = []
        for port in _used(plan, inputs.device):
            fec = seen.get(port.interface)
            state, text = _fec_verdict(fec, inputs)
            ratios = [] if fec is None else [("pre-FEC BER", fec.pre_ber), ("post-FEC BER", fec.post_ber)]
            measured = [Measurement(name, value, "1") for name, value in ratios if value is not None]
            parts.append(_part(self.name, inputs.device, port, state, text, *measured))
        return whole(self.name, inputs.device, parts, "ports have clean FEC")


def _fec_verdict(fec: FecState | None, limits: FecInputs) -> tuple[State, str]:
    if fec is None or fec.uncorrectable is None or fec.pre_ber is None or fec.post_ber is None:
        return State.ERROR, "no FEC counters: nothing is known about its errors"
    if fec.uncorrectable > limits.uncorrectable:
        return State.FAIL, f"{fec.uncorrectable} uncorrectable frames, at most {limits.uncorrectable} are allowed"
    if fec.pre_ber > limits.pre_ber:
        return State.FAIL, f"pre-FEC bit error ratio {fec.pre_ber:.2e}, at most {limits.pre_ber:.0e} is allowed"
    if fec.post_ber > limits.post_ber:
        return State.FAIL, f"post-FEC bit error ratio {fec.post_ber:.2e}, at most {limits.post_ber:.0e} is allowed"
    return State.PASS, f"pre-FEC bit error ratio {fec.pre_ber:.2e}"


class ReceivePower(Check):
    """Every optical port receives light within its limits on all lanes.

    Pass: each lane of each cabled port that reports light is within the limits.
    Fail: a lane is dark, too weak or too strong.
    Error: an optical port reports no light level, or not of every lane.
    Skipped: where ports are virtual; copper ports are not counted.
    Example:
        receive-power:
          - {device: be-leaf-01, least_dbm: -7, most_dbm: 5}
    """

    stage = Stage.OPTICS
    Inputs = LightInputs
    questions = ("optics",)
    physical = True

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per SONiC switch."""
        yield from (LightInputs(device=device) for device in _sonic(plan))

    def judge(self, plan: Plan, inputs: LightInputs, observations: Observations) -> Result:
        """Compare lane by lane."""
        seen = parse_light(answer_of(observations, inputs.device, "optics"))
        parts = []
        for port in _used(plan, inputs.device):
            if plan.links[port.link].medium in {"dac", "copper", "acc", "aec"}:
                continue
            parts.append(_part(self.name, inputs.device, port, *_light_verdict(seen.get(port.interface, []), inputs)))
        return whole(self.name, inputs.device, parts, "ports receive enough light")


def _light_verdict(lanes: list[float | None], limits: LightInputs) -> tuple[State, str]:
    levels = [level for level in lanes if level is not None]
    if not levels:
        return State.ERROR, "the transceiver reports no light level"
    allowed = f"allowed {limits.least_dbm:g} to {limits.most_dbm:g} dBm"
    bad = [
        f"lane {n}: {level:g} dBm"
        for n, level in enumerate(lanes, 1)
        if level is not None and not limits.least_dbm <= level <= limits.most_dbm
    ]
    if bad:
        return State.FAIL, f"{', '.join(bad)}; {allowed}"
    if silent := [str(n) for n, level in enumerate(lanes, 1) if level is None]:
        return State.ERROR, f"the transceiver reports no light level of lane {', '.join(silent)}"
    return State.PASS, f"{min(levels):g} to {max(levels):g} dBm"


class OpticsAlerts(Check):
    """No transceiver that keeps performance figures has one beyond its own thresholds.

    Pass: no figure of any cabled port is marked as beyond a threshold.
    Fail: a figure is: the text says which, its average, and the threshold's side.
    Error: the switch gives no performance figures at all.
    Skipped: where ports are virtual; when none of its cabled transceivers keeps such figures.
    Example:
        optics-alerts:
          - {device: be-leaf-01}
    """

    stage = Stage.OPTICS
    Inputs = DeviceInputs
    questions = ("optics-pm",)
    physical = True

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per SONiC switch."""
        yield from (DeviceInputs(device=device) for device in _sonic(plan))

    def judge(self, plan: Plan, inputs: DeviceInputs, observations: Observations) -> Result:
        """Look for marked figures."""
        seen = parse_alerts(answer_of(observations, inputs.device, "optics-pm"))
        parts = []
        for port in _used(plan, inputs.device):
            alerts = seen.get(port.interface)
            if alerts is None:
                continue
            text = "; ".join(_said(one) for one in alerts)
            state = State.FAIL if alerts else State.PASS
            parts.append(_part(self.name, inputs.device, port, state, text or "within its thresholds"))
        if not parts:
            message = "no cabled transceiver keeps performance figures"
            raise NotJudgedError(message, State.SKIPPED)
        return whole(self.name, inputs.device, parts, "transceivers are within their thresholds")


def _said(alert: Alert) -> str:
    return f"{alert.figure} is {alert.average} {alert.unit}, {alert.side} its threshold"
