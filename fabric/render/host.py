"""Target `host`: a server's addresses and routes, and its side of RoCE."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fabric.render.linux_machine import with_install
from fabric.render.text_templates import template

if TYPE_CHECKING:
    from fabric.plan import Fabric, Plan, Server, ServerPort

TARGET = "host"
_FIRST_TABLE = 100
_ECN_CAPABLE = 0b10  # ECT(0), RFC 3168


def devices(plan: Plan) -> tuple[str, ...]:
    """Return the servers that have an address in a fabric of ours."""
    return tuple(name for name, server in plan.servers.items() if any(port.address for port in server.ports))


def render(plan: Plan, device: str) -> dict[str, str]:
    """Return a server's `network.sh`, `sysctl.conf`, `roce.sh` where it has RDMA, and what installs them."""
    server = plan.servers[device]
    view = _network(plan, server)
    files = {name: template(f"host/{name}.j2").render(view) for name in ("network.sh", "sysctl.conf")}
    roce = _roce(plan, server)
    if roce:
        files["roce.sh"] = template("host/roce.sh.j2").render(roce)
    return with_install(device, files, [port.name for port in server.ports if port.address])


def _network(plan: Plan, server: Server) -> dict[str, Any]:
    ports = [port for port in server.ports if port.address]
    shown = [
        {
            "name": port.name,
            "fabric": port.fabric,
            "tenant": port.tenant,
            "mtu": plan.fabrics[port.fabric].server_mtu,
            "address": port.address,
            "source": port.address.partition("/")[0],
            "gateway": port.gateway,
            "table": _FIRST_TABLE + number,
        }
        for number, port in enumerate(ports)
    ]
    return {
        "name": server.name,
        "services": server.services,
        "ports": shown,
        "routes": _routes(plan, server, ports),
        "mtu": max(plan.fabrics[port.fabric].server_mtu for port in ports),
    }


def _routes(plan: Plan, server: Server, ports: list[ServerPort]) -> list[dict[str, Any]]:
    """Return the main table: the default by the ports of the first service address, and each other subnet by its ports.

    A server with ports of several tenants has one default route; the other tenants are reached from their ports'
    addresses, by the ports' own tables.
    """
    routes = []
    taken: set[tuple[str, str]] = set()
    for service in server.services[:1]:
        hops = _ways_out(ports, service.tenant, service.fabric)
        text = f"everything else: from {service.address}, over {len(hops)} ports"
        routes.append({"prefix": "default", "source": service.address, "hops": hops, "text": text})
        taken.add((service.tenant, service.fabric))
    for tenant, fabric in dict.fromkeys((port.tenant, port.fabric) for port in ports):
        if (tenant, fabric) in taken:
            continue
        hops = [port for port in ports if (port.tenant, port.fabric) == (tenant, fabric)]
        for prefix in (s.prefix for s in plan.tenants[tenant].subnets if s.fabric == fabric):
            text = f"{tenant} in {fabric}, over {len(hops)} ports"
            routes.append({"prefix": prefix, "source": "", "hops": hops, "text": text})
    return _distinct(routes)


def _ways_out(ports: list[ServerPort], tenant: str, fabric: str) -> list[ServerPort]:
    """Return the ports for a service address: not those of the RDMA network, unless there are no others."""
    fitting = [port for port in ports if (port.tenant, port.fabric) == (tenant, fabric)]
    return [port for port in fitting if not port.rdma] or fitting


def _distinct(routes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Drop a second route to one prefix: two tenants of a server may have the same addresses."""
    return list({route["prefix"]: route for route in reversed(routes)}.values())[::-1]


def _roce(plan: Plan, server: Server) -> dict[str, Any] | None:
    ports = [p for p in server.ports if p.rdma and p.address and plan.fabrics[p.fabric].qos]
    if not ports:
        return None
    return {"name": server.name, "ports": [p.name for p in ports], **_classes(plan.fabrics[ports[0].fabric])}


def _classes(fabric: Fabric) -> dict[str, Any]:
    assert fabric.qos
    lossless = fabric.qos.lossless[0]
    notify = next((c for c in fabric.qos.classes if c.name == "cnp"), lossless)
    priorities = {c.priority for c in fabric.qos.lossless}
    return {
        "dscp": lossless.dscp[0],
        "tos": lossless.dscp[0] << 2 | _ECN_CAPABLE,
        "priority": lossless.priority,
        "cnp_dscp": notify.dscp[0],
        "cnp_priority": notify.priority,
        "pfc": ",".join("1" if priority in priorities else "0" for priority in range(8)),
    }
