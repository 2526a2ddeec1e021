"""What a site is, in a page: the numbers a network engineer asks for first. Pure: plan in, data and text out."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from fabric.plan import ABOVE_LEAVES, FABRIC_LINK, LEAF_KINDS
from fabric.qos.headroom import headroom_use

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fabric.plan import Fabric, Plan, Switch


_PLACE = ("fabric", "tier", "switches")


def summarise(plan: Plan) -> dict[str, Any]:
    """Return the summary as JSON-ready data. Bandwidths are line rate, one direction, Gb/s."""
    return {
        "site": plan.site,
        "profile": plan.profile,
        "digest": plan.digest,
        "devices": {
            "switches": len(plan.switches),
            "servers": len(plan.servers),
            "accelerators": sum(server.xpus for server in plan.servers.values()),
            "gateways": len(plan.gateways),
            "edge_routers": len(plan.edges),
            "links": len(plan.links),
        },
        "fabrics": [_fabric(plan, fabric) for fabric in plan.fabrics.values()],
        "tenants": [_tenant(plan, name) for name in plan.tenants],
        "gateways": [_gateway(plan, name) for name in plan.gateways],
        "pools": [
            {
                "name": pool.name,
                "range": pool.range,
                "used": pool.used,
                "size": pool.size,
                "free": pool.size - pool.used,
            }
            for pool in plan.pools
        ],
    }


def _fabric(plan: Plan, fabric: Fabric) -> dict[str, Any]:
    switches = plan.switches_of(fabric.name)
    use = headroom_use(plan, fabric.name)
    return {
        "name": fabric.name,
        "carries": list(fabric.carries),
        "managed": fabric.managed,
        "placement": fabric.placement,
        "rdma": fabric.qos is not None,
        "headroom": asdict(use) | {"ratio": use.ratio} if use else None,
        "mtu": fabric.mtu,
        "server_mtu": fabric.server_mtu,
        "tiers": [_tier(plan, kind, [s for s in switches if s.kind == kind]) for kind in _kinds(switches)],
    }


def _kinds(switches: Iterable[Switch]) -> list[str]:
    return list(dict.fromkeys(switch.kind for switch in switches))


def _tier(plan: Plan, kind: str, switches: list[Switch]) -> dict[str, Any]:
    down = up = 0
    for switch in switches:
        for link in plan.links_of.get(switch.name, ()):
            towards_spine = link.kind == FABRIC_LINK and link.a.device == switch.name
            up += link.speed if towards_spine else 0
            down += 0 if towards_spine else link.speed
    zoned = [port for switch in switches for port in switch.ports if port.zone]
    used = sum(1 for port in zoned if port.link)
    possible = sum(port.speed for port in zoned if port.zone == "down")
    cabled = sum(port.speed for port in zoned if port.zone == "up")
    return {
        "kind": kind,
        "switches": len(switches),
        "model": ", ".join(dict.fromkeys(switch.model for switch in switches)),
        "ports_used": used,
        "ports_free": len(zoned) - used,
        "down_gbps": down,
        "up_gbps": up,
        "oversubscription": round(down / up, 3) if up and kind in LEAF_KINDS else None,
        "oversubscription_full": round(possible / cabled, 3) if cabled and kind not in ABOVE_LEAVES else None,
    }


def _tenant(plan: Plan, name: str) -> dict[str, Any]:
    tenant = plan.tenants[name]
    return {
        "name": name,
        "vrf": tenant.vrf,
        "vni": tenant.vni,
        "rt": tenant.rt,
        "servers": len({port.partition(":")[0] for port in tenant.ports}),
        "ports": len(tenant.ports),
        "subnets": {subnet.fabric: subnet.prefix for subnet in tenant.subnets},
        "peers": list(tenant.peers),
        "exposures": [f"{e.mode} {', '.join(e.public)} ({e.group})" for e in tenant.exposures],
    }


def _gateway(plan: Plan, name: str) -> dict[str, Any]:
    gateway = plan.gateways[name]
    return {
        "name": name,
        "attached": [f"{plan.links[link].b.device} {plan.links[link].b.port}" for link in gateway.uplinks],
        "edge": [plan.links[link].b.device for link in gateway.externals],
        "groups": dict(gateway.ranks),
        "tenants": list(gateway.tenants),
    }


def as_text(summary: dict[str, Any]) -> str:
    """Lay the summary out for a terminal."""
    from fabric.cli.output import table

    devices = summary["devices"]
    parts = [
        f"{summary['site']} ({summary['profile']}), plan {summary['digest'][:12]}",
        f"{devices['accelerators']} accelerators in {devices['servers']} servers, {devices['switches']} switches, "
        f"{devices['gateways']} gateways, {devices['links']} links",
        "",
        table(
            [
                "fabric",
                "tier",
                "switches",
                "model",
                "ports used",
                "ports free",
                "down Gb/s",
                "up Gb/s",
                "oversub.",
                "when full",
            ],
            [_tier_row(fabric, tier) for fabric in summary["fabrics"] for tier in fabric["tiers"]],
        ),
        "ports are logical: a cage split 2x400G counts as two",
        "",
        table(["fabric", "carries", "placement", "RDMA", "MTU", "server MTU"], map(_fabric_row, summary["fabrics"])),
    ]
    if summary["tenants"]:
        header = ["tenant", "VRF", "VNI", "servers", "subnets", "peers", "shows"]
        parts += ["", table(header, map(_tenant_row, summary["tenants"]))]
    if summary["gateways"]:
        header = ["gateway", "attached to", "edge", "groups (place)", "tenants"]
        parts += ["", table(header, map(_gateway_row, summary["gateways"]))]
    rows = [[p["name"], p["range"], p["used"], p["free"]] for p in summary["pools"]]
    return "\n".join([*parts, "", table(["pool", "range", "used", "free"], rows)])


def _tier_row(fabric: dict[str, Any], tier: dict[str, Any]) -> list[Any]:
    ratios = [tier["oversubscription"], tier["oversubscription_full"]]
    return [
        fabric["name"],
        tier["kind"],
        tier["switches"],
        tier["model"],
        tier["ports_used"],
        tier["ports_free"],
        tier["down_gbps"],
        tier["up_gbps"],
        *("" if ratio is None else f"{ratio:g}:1" for ratio in ratios),
    ]


def _fabric_row(fabric: dict[str, Any]) -> list[Any]:
    rdma, use = "lossless" if fabric["rdma"] else "off", fabric["headroom"]
    rdma += f", headroom {use['ratio']:.1f}:1 of the pool (limit {use['limit']:g}:1)" if use else ""
    return [fabric["name"], "+".join(fabric["carries"]), fabric["placement"], rdma, fabric["mtu"], fabric["server_mtu"]]


def _tenant_row(tenant: dict[str, Any]) -> list[Any]:
    subnets = " ".join(tenant["subnets"].values())
    peers = ",".join(tenant["peers"]) or "-"
    shows = "; ".join(tenant["exposures"]) or "-"
    return [tenant["name"], tenant["vrf"], tenant["vni"], tenant["servers"], subnets, peers, shows]


def _gateway_row(gateway: dict[str, Any]) -> list[Any]:
    groups = " ".join(f"{name}:{rank + 1}" for name, rank in gateway["groups"].items()) or "-"
    edge = ",".join(gateway["edge"])
    return [gateway["name"], ", ".join(gateway["attached"]), edge, groups, ",".join(gateway["tenants"]) or "-"]
