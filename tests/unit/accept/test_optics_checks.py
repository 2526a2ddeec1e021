"""Optics: limits, missing counters, and links that flap."""

from __future__ import annotations

import pytest

from fabric.build import load_plan
from tests.unit.accept.simulated import PM_HEAD, PM_ROW, SimulatedSite
from validators.check import Context, DeviceInputs, judged
from validators.devices.answers import UnreadableError
from validators.optics.check_flaps import FlapInputs, LinkFlaps
from validators.optics.checks import FecInputs, LightInputs, LinkFec, OpticsAlerts, ReceivePower
from validators.optics.parse import parse_fec, parse_light
from validators.results import State

pytestmark = pytest.mark.unit
PLAN = load_plan("lab")
PORTS = [port.interface for port in PLAN.switches["spine-01"].ports if port.link]
HEAD = "    IFACE    STATE    FEC_CORR    FEC_UNCORR    FEC_SYMBOL_ERR    FEC_PRE_BER    FEC_POST_BER\n---------  -------  ----------  ------------  ----------------  -------------  --------------\n"


def fec(uncorrectable="0", pre="1.2e-8", post="0"):
    text = HEAD + "".join(f"{port}  U  130,402  {uncorrectable}  4  {pre}  {post}\n" for port in PORTS)
    return judged(LinkFec(), PLAN, FecInputs(device="spine-01"), {"spine-01": {"fec": {"text": text}}})


def test_fec_within_and_over_its_limits():
    assert fec().state is State.PASS
    assert "3 uncorrectable" in fec(uncorrectable="3").text
    assert "3.00e-05" in fec(pre="3e-5").text
    assert "post-FEC bit error ratio 1.00e-09, at most 1e-12" in fec(post="1e-9").text
    assert fec(pre="3e-5").place == "spine-01 E1/1 (Ethernet0)"


def test_a_silent_counter_is_an_error_never_a_pass():
    assert fec(pre="N/A").state is State.ERROR
    assert fec(post="N/A").state is State.ERROR
    assert (
        judged(LinkFec(), PLAN, FecInputs(device="spine-01"), {"spine-01": {"fec": {"text": HEAD}}}).state
        is State.ERROR
    )
    with pytest.raises(UnreadableError):
        parse_fec("% Error")


@pytest.mark.parametrize(
    ("power", "state"), [("-1.5", State.PASS), ("-9.0", State.FAIL), ("-inf", State.FAIL), ("", State.ERROR)]
)
def test_light(power, state):
    lane = f"        RX1Power: {power}dBm\n" if power else ""
    text = "".join(f"{port}: SFP EEPROM detected\n{lane}" for port in PORTS)
    assert (
        judged(ReceivePower(), PLAN, LightInputs(device="spine-01"), {"spine-01": {"optics": {"text": text}}}).state
        is state
    )


@pytest.mark.parametrize("number", ["nan", "-1", "inf", "-inf", "1e999"])
def test_what_is_no_ratio_is_below_no_limit(number):
    assert [fec(**{field: number}).state for field in ("uncorrectable", "pre", "post")] == [State.ERROR] * 3


def test_a_lane_that_says_nothing_is_no_lane_that_is_well():
    text = "".join(f"{port}: SFP EEPROM detected\n        RX1Power: -1.5dBm\n        RX2Power: N/A\n" for port in PORTS)
    found = judged(ReceivePower(), PLAN, LightInputs(device="spine-01"), {"spine-01": {"optics": {"text": text}}})
    assert (found.state, "no light level of lane 2" in found.text) == (State.ERROR, True)
    assert parse_light("Ethernet0: SFP EEPROM detected\n RX1Power: 1.2.3dBm\n") == {"Ethernet0": [None]}


def test_light_of_ethtool():
    text = "# eth0\n\tReceiver signal average optical power     : 0.7079 mW / -1.50 dBm\n"
    assert parse_light(text) == {"eth0": [-1.5]}


def test_figures_beyond_a_threshold_are_said_with_their_side():
    row = PM_ROW.replace("-16.003      False", "-16.003      True")
    text = f"{PORTS[0]}:\n{PM_HEAD}{PM_ROW}{row}{PORTS[1]}: Transceiver performance monitoring not applicable\n"
    result = judged(OpticsAlerts(), PLAN, DeviceInputs(device="spine-01"), {"spine-01": {"optics-pm": {"text": text}}})
    assert result.state is State.FAIL
    assert "Tx Power is -8.23 dBm, below its threshold" in result.text
    assert len(result.parts) == 1
    none = {"spine-01": {"optics-pm": {"text": f"{PORTS[0]}: Transceiver performance monitoring not applicable\n"}}}
    assert judged(OpticsAlerts(), PLAN, DeviceInputs(device="spine-01"), none).state is State.SKIPPED
    none["spine-01"]["optics-pm"]["text"] = "bash: show: command not found"
    assert judged(OpticsAlerts(), PLAN, DeviceInputs(device="spine-01"), none).state is State.ERROR


def flaps(fault, **limits):
    site = SimulatedSite(PLAN, {("leaf-01", "carrier"): fault} if fault else {})
    site.rounds = 2
    check, inputs = LinkFlaps(), FlapInputs(fabric="fabric", **limits)
    return judged(check, PLAN, inputs, check.collect(Context(PLAN, site, None), inputs))


def test_a_link_that_flaps_is_named_with_both_ends():
    def flapping(text, *, sample):
        return text.replace("Ethernet256 1", "Ethernet256 3") if sample else text

    assert flaps(None).state is State.PASS
    assert flaps(flapping, most=2).state is State.PASS
    result = flaps(flapping)
    assert (result.state, result.text) == (
        State.FAIL, "leaf-01 E1/33 - spine-01 E1/1: changed 2 times in 3 s, at most 0 are allowed"
    )  # fmt: skip
    assert "cable" in result.place
    assert flaps(lambda t: t.replace("Ethernet256 1", "Ethernet256 9"), most_since_boot=5).state is State.FAIL


def test_no_carrier_counter_on_either_end_is_an_error():
    silent = dict.fromkeys([("leaf-01", "carrier"), ("spine-01", "carrier")], lambda _: "")
    site = SimulatedSite(PLAN, silent)
    site.rounds = 2
    inputs = FlapInputs(fabric="fabric")
    found = judged(LinkFlaps(), PLAN, inputs, LinkFlaps().collect(Context(PLAN, site, None), inputs))
    assert found.state is State.ERROR
