"""Checks of the RoCE class: switches and servers treat the planned DSCP the same way."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from validators.check import Check, CheckInputs, DeviceInputs, NotJudgedError, Observations, Stage, answer_of
from validators.drift import config_db
from validators.drift.checks import QOS_TABLES, config_db_result, rendered
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.plan import Plan


class RoceConfig(Check):
    """A switch has the planned RoCE class: DSCP map, queues, PFC, ECN, buffers and watchdog.

    Pass: the QoS tables of CONFIG_DB are as rendered, and nothing was added to them.
    Fail: a row or field differs, such as a DSCP that goes to another traffic class.
    Error: CONFIG_DB cannot be read.
    Skipped: where switches are Linux routers, which have no such tables.
    Example:
        roce-config:
          - {device: be-leaf-01}
    """

    stage = Stage.ROCE
    Inputs = DeviceInputs
    questions = ("config-db",)
    physical = True

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per managed SONiC switch of a fabric with an RDMA class."""
        for switch in plan.switches.values():
            if switch.managed and switch.nos == "sonic" and plan.fabrics[switch.fabric].qos:
                yield DeviceInputs(device=switch.name)

    def judge(self, plan: Plan, inputs: DeviceInputs, observations: Observations) -> Result:
        """Compare row by row."""
        seen = config_db.parse(answer_of(observations, inputs.device, "config-db"))
        files = rendered(plan, inputs.device)
        wanted = {t: rows for t, rows in config_db.parse(files["config_db.json"]).items() if t in QOS_TABLES}
        return config_db_result(self, inputs.device, wanted, seen)


class ServerRoce(Check):
    """A server's RDMA ports have the planned DSCP, priority and PFC, read back from the NIC.

    Pass: `roce.sh --check` finds every setting as rendered.
    Fail: a port has another setting; the text is the script's own.
    Error: no port could be read, for example because neither mlnx_qos nor dcb is installed.
    Skipped: where RDMA ports are Soft-RoCE, which has no such settings.
    Example:
        server-roce:
          - {device: compute-001}
    """

    stage = Stage.ROCE
    Inputs = DeviceInputs
    questions = ("roce",)
    physical = True

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per server with RDMA ports."""
        for server in plan.servers.values():
            if any(port.rdma and port.tenant for port in server.ports):
                yield DeviceInputs(device=server.name)

    def judge(self, plan: Plan, inputs: DeviceInputs, observations: Observations) -> Result:
        """Take the script's verdict, and its words."""
        del plan
        lines = answer_of(observations, inputs.device, "roce").strip().splitlines()
        code = re.fullmatch(r"exit (\d+)", lines[-1].strip()) if lines else None
        if code is None:
            message = f"{inputs.device}: roce.sh did not end"
            raise NotJudgedError(message)
        said = [line for line in lines[:-1] if line.strip()]
        if code[1] == "0":
            return Result(self.name, inputs.device, State.PASS, f"{len(said)} settings read back as rendered")
        wrong = [line for line in said if re.search(r"should be|lacks|no such port|refused", line)]
        if code[1] == "1" and wrong:
            return Result(self.name, inputs.device, State.FAIL, "; ".join(wrong), f"{inputs.device} {wrong[0]}")
        message = f"{inputs.device}: {said[-1] if said else 'roce.sh said nothing'} (exit {code[1]})"
        raise NotJudgedError(message)
