"""Hedgehog gateways of each managed fabric: groups, gateways and their connections, to lie beside the wiring file.

Only for a fabricator with gateway support switched on; it refuses these kinds otherwise. Peerings with the outside are
not written: Hedgehog attaches externals to switches, and here the edge is plugged into the gateways.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fabric.interop.hedgehog import GATEWAY, WIRING, connection_name, dns_name, documents, resource
from fabric.plan import GATEWAY_LINK

if TYPE_CHECKING:
    from fabric.plan import Gateway, Link, Plan

NAME = "wiring-gateways"
SUMMARY = "Hedgehog Gateway objects and connections, beside wiring-<fabric>.yaml"
# higher is preferred; rank 0 is our preferred gateway
_HIGHEST_PRIORITY = 100
_STEP = 10


def write(plan: Plan, fabrics: tuple[str, ...]) -> dict[str, str]:
    """Return `gateways-<fabric>.yaml` for each managed fabric that has gateways."""
    files = {}
    for fabric in fabrics:
        gateways = [gateway for gateway in plan.gateways.values() if gateway.fabric == fabric]
        if gateways and plan.fabrics[fabric].managed:
            files[f"gateways-{fabric}.yaml"] = _file(plan, fabric, gateways)
    return files


def _file(plan: Plan, fabric: str, gateways: list[Gateway]) -> str:
    links = [x for x in plan.links.values() if x.fabric == fabric and x.kind == GATEWAY_LINK]
    groups = sorted({group for gateway in gateways for group in gateway.ranks} - {"default"})
    objects = [
        *(resource(GATEWAY, "GatewayGroup", dns_name(group), {}) for group in groups),
        *(_gateway(gateway, [x for x in links if x.a.device == gateway.name]) for gateway in gateways),
        *_connections(links),
    ]
    heading = [f"{plan.site}: gateways of fabric {fabric}. Needs gateway support in the fabricator's configuration."]
    return documents(heading, objects)


def _gateway(gateway: Gateway, links: list[Link]) -> dict[str, Any]:
    spec = {
        "interfaces": {link.a.port: {} for link in links},
        "groups": [
            {"name": dns_name(group), "priority": max(_HIGHEST_PRIORITY - _STEP * rank, 1)}
            for group, rank in sorted(gateway.ranks.items())
        ]
        or [{"name": "default", "priority": _HIGHEST_PRIORITY}],
    }
    return resource(GATEWAY, "Gateway", dns_name(gateway.name), spec)


def _connections(links: list[Link]) -> list[dict[str, Any]]:
    """One object a gateway and switch pair, with all its links."""
    pairs: dict[tuple[str, str], list[Link]] = {}
    for link in links:
        pairs.setdefault((link.b.device, link.a.device), []).append(link)
    made = []
    for (switch, gateway), pair in pairs.items():
        ends = [
            {
                "switch": {"port": f"{dns_name(switch)}/{link.b.port}"},
                "gateway": {"port": f"{dns_name(gateway)}/{link.a.port}"},
            }
            for link in pair
        ]
        name = connection_name("gateway", switch, gateway)
        made.append(resource(WIRING, "Connection", name, {"gateway": {"links": ends}}))
    return made
