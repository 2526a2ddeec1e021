"""A lab as a containerlab topology: data ready for YAML, in the plan's order.

Format: containerlab's topology definition file and its JSON schema (`schemas/clab.schema.json`), as of 0.60.
"""

from __future__ import annotations

from ipaddress import ip_interface, ip_network
from typing import TYPE_CHECKING, Any

from fabric.hardware.ranges import natural_key
from labs import model
from labs.containerlab import virtual_sonic
from labs.containerlab.kinds import LINUX, NODE_IMAGE, SONIC_VM, Settings

if TYPE_CHECKING:
    from fabric.plan import Plan

# where a container sees its rendered files and the script that brings it up
FILES, SCRIPT = "/etc/kvfabric", "/kvfabric/node.sh"
# containerlab's own drawing stands its groups in this order from the top, and knows no others
_GROUPS = {
    model.INTERNET: "10",
    model.LOADBALANCER: "10",
    model.EDGE: "9",
    model.GATEWAY: "dc-gw",
    model.SPINE: "spine",
    model.LEAF: "leaf",
    model.BORDER_LEAF: "border-leaf",
    model.SERVER: "server",
}
_LEVELS = {
    model.EDGE: "1",
    model.INTERNET: "1",
    model.LOADBALANCER: "1",
    model.GATEWAY: "2",
    model.SPINE: "3",
    model.BORDER_LEAF: "4",
    model.LEAF: "4",
    model.SERVER: "5",
}
_ICONS = {model.SPINE: "spine", model.LEAF: "leaf", model.BORDER_LEAF: "leaf", model.GATEWAY: "router", model.EDGE: "router", model.INTERNET: "cloud"}  # noqa: E501  # fmt: skip


def topology(plan: Plan, lab: model.Lab, settings: Settings) -> dict[str, Any]:
    """Return the topology of a lab; node and link order is the plan's, so equal plans give equal text."""
    kinds = {settings.kind_of(node): None for node in lab.nodes}
    found: dict[str, Any] = {"name": lab.name, "prefix": settings.prefix}
    if mgmt := _management(plan, lab, settings):
        found["mgmt"] = mgmt
    found["topology"] = {
        "kinds": {kind: _kind(kind, settings) for kind in kinds},
        "nodes": {node.name: _node(plan, lab, node, settings) for node in lab.nodes},
        "links": _links(lab, settings),
    }
    return found


def _kind(kind: str, settings: Settings) -> dict[str, Any]:
    # without its links a restarted container is of no use, so nothing restarts it
    found: dict[str, Any] = {"image": settings.image_of(kind), "restart-policy": "no"}
    if found["image"] == NODE_IMAGE:
        # built from the Dockerfile beside the topology and nowhere to be pulled from
        found["image-pull-policy"] = "Never"
    if kind != LINUX:
        # containerlab has started the switch when it runs this
        found |= {"binds": [f"{kind}.sh:/kvfabric/{kind}.sh:ro"], "exec": [f"sh /kvfabric/{kind}.sh"]}
    else:
        found |= {
            # as the first process it reaps what daemons leave behind
            "entrypoint": f"sh {SCRIPT} hold",
            "binds": [f"node.sh:{SCRIPT}:ro", *settings.binds],
            "env": {"KV_MANAGEMENT": "eth0"},
            "exec": [f"sh {SCRIPT} up"],
        }
    return found


def _node(plan: Plan, lab: model.Lab, node: model.Node, settings: Settings) -> dict[str, Any]:
    kind = settings.kind_of(node)
    found: dict[str, Any] = {"kind": kind, "group": _GROUPS[node.kind], "labels": _labels(plan, node)}
    if address := _address(plan, node, settings):
        found["mgmt-ipv4"] = address
    folder = node.files or node.name
    found["binds"] = [f"{folder}:{FILES}:ro"]
    if kind == SONIC_VM:
        found["startup-config"] = f"{folder}/config_db.json"
    if kind == LINUX:
        found["env"] = {"KV_PORTS": " ".join(ports_of(lab, node))}
        if node.rdma:
            found["env"]["KV_RDMA"] = " ".join(node.rdma)
    return found


def ports_of(lab: model.Lab, node: model.Node) -> list[str]:
    """Return all interfaces of a node in natural order, those without a cable in this lab included."""
    lit = {end.interface for link in lab.links for end in link.ends() if end.node == node.name}
    return sorted(lit | set(node.dark), key=natural_key)


def _labels(plan: Plan, node: model.Node) -> dict[str, str]:
    # containerlab takes no empty labels
    found = {"role": node.kind, "ansible-group": node.kind.replace("-", "_"), "graph-level": _LEVELS[node.kind]}
    if icon := _ICONS.get(node.kind):
        found["graph-icon"] = icon
    device = plan.switches.get(node.name) or plan.gateways.get(node.name)
    if device:
        found["fabric"] = device.fabric
    if node.name in plan.switches:
        found["model"] = plan.switches[node.name].model
    if node.tenants:
        found["tenants"] = ",".join(node.tenants)
    return found


def _links(lab: model.Lab, settings: Settings) -> list[dict[str, Any]]:
    wires = {n.name: virtual_sonic.wires(lab, n.name) for n in lab.nodes if settings.kind_of(n) != LINUX}

    def name(end: model.End) -> str:
        return wires[end.node][end.interface] if end.node in wires else end.interface

    return [{"endpoints": [f"{end.node}:{name(end)}" for end in k.ends()], "mtu": k.mtu} for k in lab.links]


def planned_address(plan: Plan, name: str) -> str:
    """Return a device's in-band management address with its length; empty where the plan has none."""
    for devices in (plan.switches, plan.gateways, plan.servers):
        if name in devices:
            return str(devices[name].management)
    return ""


def _address(plan: Plan, node: model.Node, settings: Settings) -> str:
    address = planned_address(plan, node.name) if settings.management == "plan" else ""
    return str(ip_interface(address).ip) if address else ""


def _management(plan: Plan, lab: model.Lab, settings: Settings) -> dict[str, Any]:
    """Return the management network: the plan's in-band one, with the site's router; empty for Docker's."""
    found = [address for node in lab.nodes if (address := planned_address(plan, node.name))]
    if settings.management != "plan" or not found:
        return {}
    network = ip_network(ip_interface(found[0]).network)
    gateway = plan.management_gateway(found[0])
    return {"network": f"{lab.name}-mgmt", "ipv4-subnet": str(network), "ipv4-gw": gateway}
