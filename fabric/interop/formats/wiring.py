"""Hedgehog wiring: one YAML file a managed fabric, with the tenants as VPCs, ready for `hhfab validate`.

Numbers (AS, loopback, VTEP, link addresses) are left out on purpose: a partly filled wiring is refused, and hhfab fills
a blank one from its own pools. Gateways need gateway support in the fabricator's configuration, so that they are a
format of their own (`wiring-gateways`). RoCE is not switched on here: Hedgehog freezes breakouts once it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fabric.interop.hedgehog import VLANS, VPC, WIRING, connection_name, dns_name, documents, resource, unbundled_name
from fabric.interop.tenants_as_vpcs import namespace_subnets, vpcs_of
from fabric.plan import BORDER_LEAF, FABRIC_LINK, LEAF, SERVER_LINK, SPINE
from fabric.tiers import require_two_tiers

if TYPE_CHECKING:
    from fabric.plan import Link, Plan, Switch

NAME = "wiring"
SUMMARY = "Hedgehog wiring YAML, one file a managed fabric, tenants as VPCs"
ROLES = {LEAF: "server-leaf", BORDER_LEAF: "border-leaf", SPINE: "spine"}
# Hedgehog's virtual switch stands for models that it has no profile of
VIRTUAL_PROFILE = "vs"
HEDGEHOG_PROFILES = frozenset({"celestica-ds5000", "celestica-ds4000", "celestica-ds4101", "celestica-ds3000"})


def write(plan: Plan, fabrics: tuple[str, ...]) -> dict[str, str]:
    """Return `wiring-<fabric>.yaml` for each managed fabric."""
    return {f"wiring-{fabric}.yaml": _file(plan, fabric) for fabric in fabrics if plan.fabrics[fabric].managed}


def _file(plan: Plan, fabric: str) -> str:
    require_two_tiers(plan, "Hedgehog wiring")
    links = [link for link in plan.links.values() if link.fabric == fabric]
    server_links = [link for link in links if link.kind == SERVER_LINK and link.b.device in plan.switches]
    names = {link.id: unbundled_name(link.a.device, link.a.port, link.b.device) for link in server_links}
    vpcs = vpcs_of(plan, fabric, names)
    namespaces = vpcs.namespaces or {"default": []}
    used = {link.a.device for link in server_links}
    objects = [
        resource(WIRING, "VLANNamespace", "default", {"ranges": [{"from": VLANS[0], "to": VLANS[-1]}]}),
        *(_ipv4_namespace(name, namespace_subnets(prefixes)) for name, prefixes in namespaces.items()),
        *(_switch(switch) for switch in plan.switches_of(fabric)),
        *(_server(plan, name) for name in plan.servers if name in used),
        *_fabric_connections([link for link in links if link.kind == FABRIC_LINK]),
        *(_unbundled(link, names[link.id]) for link in server_links),
        *vpcs.objects,
        *vpcs.attachments,
        *vpcs.peerings,
    ]
    heading = [f"{plan.site}: fabric {fabric}. Numbers are left to hhfab's hydration.", *vpcs.notes]
    return documents(heading, objects)


def _ipv4_namespace(name: str, subnets: list[str]) -> dict[str, Any]:
    return resource(VPC, "IPv4Namespace", name, {"subnets": subnets or ["10.0.0.0/16"]})


def _switch(switch: Switch) -> dict[str, Any]:
    breakable = _breakable(switch)
    spec = {
        "role": ROLES[switch.kind],
        "description": f"{switch.name} {switch.rack}".strip(),
        "profile": switch.model if switch.model in HEDGEHOG_PROFILES else VIRTUAL_PROFILE,
        "vlanNamespaces": ["default"],
        "boot": {"mac": switch.mac},
    }
    if spec["profile"] != VIRTUAL_PROFILE:
        spec["portBreakouts"] = {b.parent: b.mode for b in switch.breakouts if b.cage in breakable}
    return resource(WIRING, "Switch", dns_name(switch.name), spec)


def _breakable(switch: Switch) -> frozenset[int]:
    """The cages that can be split at all: a management SFP has a speed, not a breakout."""
    from fabric.hardware.profiles import switch_models, switch_profile

    if switch.model not in switch_models():
        return frozenset(b.cage for b in switch.breakouts)
    cages = switch_profile(switch.model).cages
    return frozenset(n for n, cage in cages.items() if any(len(mode.offsets) > 1 for mode in cage.modes.values()))


def _server(plan: Plan, name: str) -> dict[str, Any]:
    server = plan.servers[name]
    return resource(WIRING, "Server", dns_name(name), {"description": f"{server.server_class} {server.rack}".strip()})


def _fabric_connections(links: list[Link]) -> list[dict[str, Any]]:
    """All parallel links of a leaf and a spine are one object."""
    pairs: dict[tuple[str, str], list[Link]] = {}
    for link in links:
        pairs.setdefault((link.b.device, link.a.device), []).append(link)
    return [
        resource(
            WIRING,
            "Connection",
            connection_name("fabric", spine, leaf),
            {
                "fabric": {
                    "links": [{"spine": {"port": _port(x, spine)}, "leaf": {"port": _port(x, leaf)}} for x in pair]
                }
            },
        )
        for (spine, leaf), pair in pairs.items()
    ]


def _unbundled(link: Link, name: str) -> dict[str, Any]:
    ends = {"server": {"port": _port(link, link.a.device)}, "switch": {"port": _port(link, link.b.device)}}
    return resource(WIRING, "Connection", name, {"unbundled": {"link": ends}})


def _port(link: Link, device: str) -> str:
    return f"{dns_name(device)}/{link.end(device).port}"
