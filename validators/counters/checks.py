"""The check that what will be counted can be counted: a counter that is silent proves nothing later."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.qos.headroom import lossless_ports
from validators.cabling.checks import whole
from validators.check import Check, CheckInputs, DeviceInputs, Observations, Stage, answer_of
from validators.counters.readings import PACKETS, PAUSE, Key
from validators.counters.sonic import ENDLESS, pfc_counters, pfcwd_config, queue_counters
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.plan import Plan, Port


_WHERE = "see `show pfc counters`, `queuestat` and whether `counterpoll show` has PORT_STAT and QUEUE_STAT enabled"


class RoceCounters(Check):
    """Every lossless port counts pause frames and packets of its lossless priorities, and the watchdog watches it.

    Lossless are the ports between switches and to NICs that carry RDMA: the others have no PFC.

    Pass: all these counters exist, and the watchdog has the planned action and times.
    Fail: the watchdog is off on a port, or has other settings.
    Error: a counter is missing or N/A: what it should show later would look like nothing happened.
    Skipped: where ports are virtual; a shell that does not show queues or the watchdog.
    Example:
        roce-counters:
          - {device: be-leaf-01}
    """

    stage = Stage.ROCE
    Inputs = DeviceInputs
    questions = ("pfc", "queues", "watchdog")
    physical = True
    stands_on = ("roce-config",)

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per managed SONiC switch of a fabric with lossless classes."""
        for switch in plan.switches.values():
            qos = plan.fabrics[switch.fabric].qos
            if switch.managed and switch.nos == "sonic" and qos and qos.lossless:
                yield DeviceInputs(device=switch.name)

    def judge(self, plan: Plan, inputs: DeviceInputs, observations: Observations) -> Result:
        """Look for each counter of each port."""
        device = inputs.device
        qos = plan.fabrics[plan.switches[device].fabric].qos
        assert qos is not None
        counted = pfc_counters(answer_of(observations, device, "pfc"))
        counted |= queue_counters(answer_of(observations, device, "queues"))
        watched = pfcwd_config(answer_of(observations, device, "watchdog"))
        planned = (qos.watchdog_action, qos.watchdog_detection_ms, qos.watchdog_restoration_ms)
        parts = []
        for port, _ in lossless_ports(plan, plan.switches[device]):
            keys = [
                key
                for one in qos.lossless
                for key in (
                    Key(port.interface, PAUSE, "rx", one.priority),
                    Key(port.interface, PAUSE, "tx", one.priority),
                    Key(port.interface, PACKETS, "tx", one.queue),
                )
            ]
            silent = [str(key) for key in keys if key not in counted]
            parts.append(_part(self.name, device, port, silent, watched.get(port.interface), planned))
        return whole(self.name, device, parts, "ports count pauses and packets of each lossless priority")


def _part(
    check: str,
    device: str,
    port: Port,
    silent: list[str],
    watch: tuple[str, int, int] | None,
    planned: tuple[str, int, int],
) -> Result:
    if silent:
        state, text = State.ERROR, f"silent: no counter {', '.join(silent)}; {_WHERE}"
    elif watch is None:
        state, text = State.FAIL, "the PFC watchdog does not watch this port: its row of PFC_WD is not in force"
    elif watch != planned:
        said, wanted = (f"{action} after {_time(found)} for {_time(back)}" for action, found, back in (watch, planned))
        state, text = State.FAIL, f"the PFC watchdog does {said}, the plan says {wanted}"
    else:
        state, text = State.PASS, "counted and watched"
    place = "" if state is State.PASS else f"{device} {port.name} ({port.interface})"
    labels = {"device": device, "port": port.name, "link": port.link}
    return Result(check, f"{device} {port.name}", state, text, place, labels=labels)


def _time(milliseconds: int) -> str:
    return "an endless time" if milliseconds == ENDLESS else f"{milliseconds} ms"
