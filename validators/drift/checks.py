"""The checks of drift. They run last in their stage: what a check of its own finds is not said twice."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.render.registry import render_site
from validators.cabling.checks import whole
from validators.check import Check, CheckInputs, DeviceInputs, Observations, Stage, answer_of
from validators.control_plane.expected import routers
from validators.devices.answers import document
from validators.drift import config_db, frr_lines
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.plan import Plan

_CONTROL_PLANE = (
    "port-vrf", "port-mtu", "port-address", "bgp-sessions", "bfd-sessions", "evpn-vnis", "evpn-routes",
    "evpn-router-macs", "ecmp-width",
)  # fmt: skip

QOS_TABLES = frozenset(
    {"DSCP_TO_TC_MAP", "TC_TO_QUEUE_MAP", "TC_TO_PRIORITY_GROUP_MAP", "MAP_PFC_PRIORITY_TO_QUEUE", "PORT_QOS_MAP",
     "QUEUE", "SCHEDULER", "WRED_PROFILE", "BUFFER_PG", "BUFFER_POOL", "BUFFER_PROFILE", "BUFFER_QUEUE", "CABLE_LENGTH",
     "PFC_WD"}
)  # fmt: skip


def rendered(plan: Plan, device: str, target: str = "") -> dict[str, str]:
    """Return the files of one device: file name -> text. `target` as in `render_site`."""
    return next((files for _, files in render_site(plan, [device], target or None)), {})


class ConfigDrift(Check):
    """FRR runs what was rendered: no statement is missing, and none was added by hand.

    Statements are compared one by one within their section, so that the order of the text does not matter. A route
    distinguisher that FRR does not print is asked for: one that equals what FRR would choose itself is in force unsaid
    (`bgp_evpn_vrf_rd_matches_existing` in its bgpd).

    Pass: every rendered statement runs, and no other.
    Fail: a statement is missing or was added since.
    Error: FRR gives no running configuration.
    Skipped: when another check of the control plane failed, which says more about the same thing.
    Example:
        config-drift:
          - {device: be-leaf-01}
    """

    stage = Stage.CONTROL_PLANE
    Inputs = DeviceInputs
    # the version says what was rendered for the device
    questions = ("config", "evpn-rds", "version")
    stands_on = _CONTROL_PLANE

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per router that gets an frr.conf."""
        yield from (DeviceInputs(device=device) for device in routers(plan))

    def judge(self, plan: Plan, inputs: DeviceInputs, observations: Observations) -> Result:
        """Compare statement by statement."""
        device = inputs.device
        running = answer_of(observations, device, "config")
        sonic = "SONiC" in answer_of(observations, device, "version")
        wanted = rendered(plan, device, "" if sonic else "frr")["frr.conf"]
        parts = []
        for one in frr_lines.differences(wanted, running):
            said = one.statement
            if not one.extra and said.text.startswith("rd ") and _in_force(plan, device, said, observations):
                continue
            if one.extra:
                text = f"runs `{said.text}` in {said.place}, which was not rendered"
            else:
                text = f"does not run `{said.text}` in {said.place} (frr.conf line {one.line})"
            place = f"{device} frr.conf, {said.place}: {said.text}"
            parts.append(Result(self.name, device, State.FAIL, text, place, labels={"device": device}))
        total = len(frr_lines.statements(wanted))
        if not parts:
            return Result(self.name, device, State.PASS, f"runs all {total} rendered statements and no other")
        return whole(self.name, device, parts, "")


def _in_force(plan: Plan, device: str, said: frr_lines.Statement, observations: Observations) -> bool:
    """Whether the VRF has the route distinguisher although FRR does not print it. Raises NotJudgedError unanswered."""
    vrf = said.sections[0].rpartition(" vrf ")[2]
    tenant = plan.tenant_of_vrf.get(vrf)
    found = document(answer_of(observations, device, "evpn-rds"), "the VNIs of bgpd")
    vni = found.get(str(tenant.vni), {}) if tenant and isinstance(found, dict) else {}
    return f"rd {vni.get('rd')}" == said.text


class ConfigDbDrift(Check):
    """A SONiC switch has in CONFIG_DB what was rendered, in every table that was rendered.

    Pass: every rendered row is there with the rendered fields, and these tables have no other rows or fields but
        those that SONiC adds by itself (`validators/drift/nos_own.py`).
    Fail: a row or field is missing, differs or was added.
    Error: CONFIG_DB cannot be read.
    Skipped: where switches are Linux routers; when another check of the control plane failed.
    Example:
        config-db-drift:
          - {device: be-leaf-01}
    """

    stage = Stage.CONTROL_PLANE
    Inputs = DeviceInputs
    questions = ("config-db",)
    physical = True
    stands_on = _CONTROL_PLANE

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per managed SONiC switch."""
        yield from (DeviceInputs(device=s.name) for s in plan.switches.values() if s.managed and s.nos == "sonic")

    def judge(self, plan: Plan, inputs: DeviceInputs, observations: Observations) -> Result:
        """Compare row by row."""
        device = inputs.device
        seen = config_db.parse(answer_of(observations, device, "config-db"))
        wanted = config_db.parse(rendered(plan, device)["config_db.json"])
        # the tables of QoS have a check of their own, which says what they are for
        return config_db_result(self, device, {t: rows for t, rows in wanted.items() if t not in QOS_TABLES}, seen)


def config_db_result(check: Check, device: str, wanted: config_db.Tables, seen: config_db.Tables) -> Result:
    """Return a result with a part for each row or field that differs."""
    parts = [
        Result(
            check.name, f"{device} {one.place}", State.FAIL, one.text, f"{device} CONFIG_DB {one.place}",
            labels={"device": device},
        )
        for one in config_db.differences(wanted, seen)
    ]  # fmt: skip
    if not parts:
        rows = sum(len(table) for table in wanted.values())
        return Result(check.name, device, State.PASS, f"all {rows} rendered rows are there, and no other")
    return whole(check.name, device, parts, "")
