"""Checks of the overlay: VNIs, router MACs, route targets, and the width of ECMP below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from validators.cabling.checks import whole
from validators.check import Check, CheckInputs, DeviceInputs, Observations, Stage, answer_of
from validators.control_plane.expected import homes, own_prefixes, width_to
from validators.control_plane.frr_json import l3_vnis, prefix_routes, rmacs, routes, width
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.plan import Plan, Tenant


def _vteps(plan: Plan) -> Iterator[CheckInputs]:
    yield from (DeviceInputs(device=s.name) for s in plan.switches.values() if s.managed and s.vtep and s.vrfs)


def _part(check: str, device: str, subject: str, tenant: str, verdict: tuple[State, str, str]) -> Result:
    state, text, place = verdict
    labels = {"device": device} | ({"tenant": tenant} if tenant else {})
    return Result(check, subject, state, text, place if state is not State.PASS else "", labels=labels)


class EvpnVnis(Check):
    """Every tenant VRF of a leaf is tied to its own L3VNI, and the VNI is up.

    Pass: each VRF of the plan has its VNI, in state Up.
    Fail: a VNI is missing, down, tied to another VRF, or not in the plan.
    Error: FRR gives no list of VNIs, or does not say in which state one is.
    Skipped: never.
    Example:
        evpn-vnis:
          - {device: be-leaf-01}
    """

    stage = Stage.CONTROL_PLANE
    Inputs = DeviceInputs
    questions = ("vrf-vni",)
    stands_on = ("port-vrf",)

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per leaf with tenants."""
        yield from _vteps(plan)

    def judge(self, plan: Plan, inputs: DeviceInputs, observations: Observations) -> Result:
        """Compare VRF by VRF."""
        seen = l3_vnis(answer_of(observations, inputs.device, "vrf-vni"))
        tenants = [plan.tenant_of_vrf[vrf] for vrf in plan.switches[inputs.device].vrfs]
        parts = []
        for tenant in tenants:
            entry = seen.get(tenant.vni)
            vrf = "" if entry is None else str(entry.get("vrf", entry.get("tenantVrf", "")))
            place = f"{inputs.device} {tenant.vrf} vni {tenant.vni}"
            if entry is None:
                verdict = (State.FAIL, f"VNI {tenant.vni} of {tenant.vrf} is not there", place)
            elif vrf != tenant.vrf:
                verdict = (State.FAIL, f"VNI {tenant.vni} is tied to {vrf}, the plan says {tenant.vrf}", place)
            elif "state" not in entry:
                verdict = (State.ERROR, f"whether VNI {tenant.vni} of {tenant.vrf} is up is not said", place)
            elif entry["state"] != "Up":
                verdict = (State.FAIL, f"VNI {tenant.vni} of {tenant.vrf} is {entry['state']}", place)
            else:
                verdict = (State.PASS, f"VNI {tenant.vni} up in {tenant.vrf}", "")
            parts.append(_part(self.name, inputs.device, f"{inputs.device} {tenant.vrf}", tenant.name, verdict))
        for vni in sorted(seen.keys() - {tenant.vni for tenant in tenants}):
            verdict = (State.FAIL, f"VNI {vni} is not in the plan of this leaf", f"{inputs.device} vni {vni}")
            parts.append(_part(self.name, inputs.device, f"{inputs.device} VNI {vni}", "", verdict))
        return whole(self.name, inputs.device, parts, "VNIs are up in their VRFs")


class EvpnRouterMacs(Check):
    """A leaf knows the router MAC of every other leaf where its tenants have ports, and no others.

    Pass: for each VNI the remote VTEPs of the plan are known.
    Fail: a VTEP of the plan is unknown in a VNI (its routes are not imported), or a foreign one is known.
    Error: FRR gives no router MACs.
    Skipped: when no tenant of the leaf has ports elsewhere.
    Example:
        evpn-router-macs:
          - {device: be-leaf-01}
    """

    stage = Stage.CONTROL_PLANE
    Inputs = DeviceInputs
    questions = ("evpn-rmac",)
    stands_on = ("evpn-routes",)

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per leaf with tenants."""
        yield from _vteps(plan)

    def judge(self, plan: Plan, inputs: DeviceInputs, observations: Observations) -> Result:
        """Compare VNI by VNI."""
        seen = rmacs(answer_of(observations, inputs.device, "evpn-rmac"))
        switch = plan.switches[inputs.device]
        known = {s.vtep: s.name for s in plan.switches.values() if s.vtep} | {
            g.vtep: g.name for g in plan.gateways.values()
        }
        parts = []
        for vrf in switch.vrfs:
            tenant = plan.tenant_of_vrf[vrf]
            wanted = set(homes(plan, tenant, switch.fabric)) - {switch.vtep}
            allowed = wanted | _allowed(plan, tenant, switch.fabric)
            found = set(seen.get(tenant.vni, {}))
            missing = [known[vtep] for vtep in sorted(wanted - found)]
            foreign = [known.get(vtep, vtep) for vtep in sorted(found - allowed - {switch.vtep})]
            place = f"{inputs.device} {vrf} vni {tenant.vni}, route target {tenant.rt}"
            if missing:
                verdict = (
                    State.FAIL,
                    f"{vrf} has no router MAC of {', '.join(missing)}: no route of theirs is imported",
                    place,
                )
            elif foreign:
                verdict = (
                    State.FAIL,
                    f"{vrf} imports routes from {', '.join(foreign)}, which have no ports of it",
                    place,
                )
            else:
                verdict = (State.PASS, f"{vrf}: {len(found)} remote VTEPs", "")
            parts.append(_part(self.name, inputs.device, f"{inputs.device} {vrf}", tenant.name, verdict))
        return whole(self.name, inputs.device, parts, "VRFs know their VTEPs")


def _allowed(plan: Plan, tenant: Tenant, fabric: str) -> set[str]:
    """VTEPs that may show up in a tenant's VNI without having to: its gateways and its peers' leaves."""
    peers = [plan.tenants[name] for name in tenant.peers]
    vteps = {gateway.vtep for gateway in plan.gateways.values()}
    for peer in peers:
        vteps |= set(homes(plan, peer, fabric))
    return vteps


class EvpnRoutes(Check):
    """Every leaf announces its tenants' prefixes by EVPN type 5 with exactly the tenant's route target.

    Seen from one device: what arrived there, with which route distinguisher and route targets.

    Pass: each /31 of each leaf is there under the leaf's RD, with the tenant's route target and no other.
    Fail: a prefix is missing, has no or another route target, or an RD is nobody's.
    Error: FRR gives no EVPN table.
    Skipped: never.
    Example:
        evpn-routes:
          - {device: be-spine-01}
    """

    stage = Stage.CONTROL_PLANE
    Inputs = DeviceInputs
    questions = ("evpn-routes",)
    stands_on = ("port-vrf", "port-address", "bgp-sessions", "evpn-vnis")

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per leaf with tenants."""
        yield from _vteps(plan)

    def judge(self, plan: Plan, inputs: DeviceInputs, observations: Observations) -> Result:
        """Compare leaf by leaf and tenant by tenant."""
        fabric = plan.switches[inputs.device].fabric
        by_rd: dict[str, dict[str, set[tuple[str, ...]]]] = {}
        for route in prefix_routes(answer_of(observations, inputs.device, "evpn-routes")):
            by_rd.setdefault(route.rd, {}).setdefault(route.prefix, set()).add(route.targets)
        parts = []
        for switch in plan.switches_of(fabric):
            if not switch.vtep:
                continue
            for name, prefixes in own_prefixes(plan, switch).items():
                tenant = plan.tenants[name]
                verdict = _announced(
                    switch.name, tenant, prefixes, by_rd.get(f"{switch.router_id}:{tenant.rd_number}", {})
                )
                subject = f"{inputs.device}: {tenant.vrf} of {switch.name}"
                parts.append(_part(self.name, inputs.device, subject, name, verdict))
        return whole(self.name, inputs.device, parts, "sets of tenant routes arrive with their route target")


def _announced(
    origin: str, tenant: Tenant, prefixes: list[str], seen: dict[str, set[tuple[str, ...]]]
) -> tuple[State, str, str]:
    place = f"{origin} router bgp vrf {tenant.vrf}"
    missing = [prefix for prefix in prefixes if prefix not in seen]
    if missing:
        return (
            State.FAIL,
            f"{origin} does not announce {missing[0]} of {tenant.vrf} ({len(missing)} of {len(prefixes)} missing)",
            place,
        )
    for prefix, targets in seen.items():
        for one in targets:
            if one != (tenant.rt,):
                text = (
                    f"{prefix} of {origin} carries route target {', '.join(one) or 'none'}, the plan says {tenant.rt}"
                )
                return State.FAIL, text, f"{place} route-target export {tenant.rt}"
    return State.PASS, f"{len(seen)} prefixes with {tenant.rt}", ""


class EcmpWidth(Check):
    """Every switch reaches every VTEP of its fabric over all the paths that the cables give it.

    Pass: each VTEP's /32 has as many next hops in the kernel as there are equal paths in the plan.
    Fail: a VTEP is unreachable, or uses fewer or more next hops than the plan.
    Error: FRR gives no routing table.
    Skipped: when the fabric has a single switch.
    Example:
        ecmp-width:
          - {device: be-leaf-01}
    """

    stage = Stage.CONTROL_PLANE
    Inputs = DeviceInputs
    questions = ("routes",)
    stands_on = ("bgp-sessions",)

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per managed switch with uplinks."""
        for switch in plan.switches.values():
            if switch.managed and any(link.kind == "fabric" for link in plan.links_of.get(switch.name, ())):
                yield DeviceInputs(device=switch.name)

    def judge(self, plan: Plan, inputs: DeviceInputs, observations: Observations) -> Result:
        """Compare VTEP by VTEP."""
        table = routes(answer_of(observations, inputs.device, "routes")).get("default", {})
        switch = plan.switches[inputs.device]
        parts = []
        for other in plan.switches_of(switch.fabric):
            wanted = width_to(plan, switch, other) if other.vtep and other.name != switch.name else 0
            if not wanted:
                continue
            found = width(table.get(f"{other.vtep}/32", []))
            if found == wanted:
                verdict = (State.PASS, f"{found} paths", "")
            else:
                text = f"{other.name} is unreachable" if not found else f"{found} of {wanted} paths to {other.name}"
                verdict = (State.FAIL, text, f"{switch.name} route to {other.vtep}/32")
            parts.append(_part(self.name, switch.name, f"{switch.name} -> {other.name}", "", verdict))
        return whole(self.name, inputs.device, parts, "VTEPs are reached over all paths")
