"""What a network engineer asks first: sessions, BFD, EVPN, VNIs, RMACs, tenant routes, NAT, RDMA devices, VIPs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from labs import converge, vty
from labs.model import GATEWAY, LOADBALANCER, SERVER

if TYPE_CHECKING:
    from collections.abc import Collection

    from labs.converge import Observation
    from labs.model import Lab, Node

_ACTIVE = "ACTIVE"


def collect(lab: Lab) -> dict[str, Any]:
    """Observe every node from inside the machine and return JSON-ready data, with what differs from the plan."""
    from labs.containerlab import inside
    from labs.native import faults, lldp

    seen = {name: converge.observe(name) for name in converge.routers(lab)}
    servers = [_server(node) for node in lab.nodes if node.kind == SERVER]
    gateways = [_gateway(node) for node in lab.nodes if node.kind == GATEWAY]
    lacks = converge.missing(lab.expect, seen) + lldp.missing(lab, lldp.observe(lab))
    reasons = {name: _why_down(name) for name in {text.partition(":")[0] for text in lacks if ": BGP " in text}}
    lacks = [_with_reason(text, reasons) for text in lacks]
    lacks += [text for row in servers for text in server_faults(row)]
    lacks += [text for row in gateways for text in gateway_faults(row)]
    containers, differing = inside.read_back() if inside.deployed() else ([], [])
    lacks += differing
    return {
        "lab": lab.name,
        "site": lab.site,
        "plan_digest": lab.plan_digest,
        "as_planned": not lacks,
        "missing": lacks,
        "faults": faults.listed(),
        "routers": [router(seen[node.name], node, lab) for node in lab.nodes if node.name in seen],
        "tenants": tenants(lab, seen),
        "gateways": gateways,
        "servers": servers,
        "balancers": [balancer(seen[node.name], lab) for node in lab.nodes if node.kind == LOADBALANCER],
        "links": [
            {
                "id": link.id,
                "a": f"{link.a.node}:{link.a.interface}",
                "b": f"{link.b.node}:{link.b.interface}",
                "mtu": link.mtu,
            }
            for link in lab.links
        ],
        **({"containers": containers} if containers else {}),
    }


# ------------------------------------------------------------------ routers


def router(seen: Observation, node: Node, lab: Lab) -> dict[str, Any]:
    """Return the figures of one router from its observation; `all` counts what is configured, planned or not.

    Neighbours behind ports without a cable in this slice are nobody's fault: they are counted as `dark`, apart.
    """
    expected = {vni: far for vtep in lab.expect.vteps if vtep.node == seen.node for vni, far in vtep.remotes.items()}
    known = {vni: sorted(seen.rmac_vteps(vni)) for vni in expected}
    peers = list(converge.bfd_peers(seen.said.get("bfd", [])))
    dark = {*node.dark, *node.absent}
    vrfs = seen.said.get("vni", {}).get("vrfs", [])
    return {
        "node": seen.node,
        "kind": node.kind,
        "trouble": seen.trouble,
        "bgp": _tally({f"{vrf} {peer}".removeprefix("default "): up for vrf, peer, up in _sessions(seen, "")}, dark),
        "evpn": {
            **_tally({peer: up for _, peer, up in _sessions(seen, "l2VpnEvpn")}, dark),
            "prefixes": seen.evpn_prefixes(),
        },
        "bfd": _tally(
            {str(peer.get("interface") or peer.get("peer")): peer.get("status") == "up" for peer in peers}, dark
        ),
        "vni": _tally({f"{entry.get('vni')} {entry.get('vrf')}": entry.get("state") == "Up" for entry in vrfs}),
        "rmac": known,
        "rmac_wanted": {vni: sorted(far) for vni, far in expected.items()},
        "routes": {vrf: len(seen.routes(vrf)) for vrf in seen.said.get("route", {})},
    }


def _tally(up: dict[str, bool], dark: Collection[str] = ()) -> dict[str, Any]:
    lit = {name: well for name, well in up.items() if well or name.rpartition(" ")[2] not in dark}
    down = sorted(name for name, well in lit.items() if not well)
    return {"up": sum(lit.values()), "all": len(lit), "down": down, "dark": len(up) - len(lit)}


def _sessions(seen: Observation, family: str) -> list[tuple[str, str, bool]]:
    """VRF, neighbor and whether established in every family (or only in `family`) that it has."""
    found: dict[tuple[str, str], bool] = {}
    for vrf, families in seen.said.get("bgp", {}).items():
        for name, data in families.items() if isinstance(families, dict) else ():
            if isinstance(data, dict) and (not family or name == family):
                for peer, facts in data.get("peers", {}).items():
                    found[vrf, peer] = found.get((vrf, peer), True) and facts.get("state") == "Established"
    return [(vrf, peer, up) for (vrf, peer), up in found.items()]


def _why_down(node: str) -> dict[str, str]:
    """Ask a router why its sessions went down, by neighbor: the first question when one is."""
    from labs.native.nodes import root_of

    try:
        said = vty.ask(root_of(node), {"neighbors": ("bgpd", "show bgp vrf all neighbors json")}).get("neighbors")
    except (KeyError, OSError):  # it has ended since it was observed
        return {}
    return reset_reasons(said if isinstance(said, dict) else {})


def reset_reasons(said: dict[str, Any]) -> dict[str, str]:
    """Read why sessions that are down went down, and when, from `show bgp vrf all neighbors json`, by neighbor."""
    found = {}
    for vrf in said.values():
        for name, peer in vrf.items() if isinstance(vrf, dict) else ():
            if not isinstance(peer, dict) or peer.get("bgpState") == "Established" or not peer.get("lastResetDueTo"):
                continue
            reason = str(peer["lastResetDueTo"])
            if "Notification" in reason:  # what it said is what matters
                reason = str(peer.get("lastNotificationReason") or reason)
            found[name] = f"{reason}, {peer.get('lastResetTimerMsecs', 0) / 1000:.0f} s ago"
    return found


def _with_reason(text: str, reasons: dict[str, dict[str, str]]) -> str:
    node, _, rest = text.partition(": ")
    neighbor = rest.partition(" to ")[2].partition(" ")[0]
    reason = reasons.get(node, {}).get(neighbor) if rest.startswith("BGP ") else ""
    return f"{text} ({reason})" if reason else text


def tenants(lab: Lab, seen: dict[str, Observation]) -> list[dict[str, Any]]:
    """Return per tenant VRF its VNI and the installed BGP routes on each VTEP that has it; None where nobody said."""
    found: dict[str, dict[str, Any]] = {}
    for vtep in lab.expect.vteps:
        for vni, vrf in vtep.vnis.items():
            row = found.setdefault(vrf, {"vrf": vrf, "vni": int(vni), "routes": {}})
            one = seen.get(vtep.node)
            row["routes"][vtep.node] = len(one.routes(vrf)) if one and "route" in one.said else None
    return list(found.values())


# ------------------------------------------------------------------ gateways, servers, load balancers


def _gateway(node: Node) -> dict[str, Any]:
    """What the gateway's own `gatewayctl` says; `trouble` when it says nothing."""
    from labs.native.nodes import run_in

    try:
        # by its whole path: a shell's search path is not the agent's
        done = run_in(node.name, ["/usr/local/sbin/gatewayctl", "status", "--json"])
        return {"node": node.name, "trouble": "", **json.loads(done.stdout)}
    except (OSError, KeyError) as error:
        return {"node": node.name, "trouble": f"gatewayctl cannot be asked: {error}"}
    except ValueError:
        said = (done.stderr or done.stdout).strip().splitlines()
        return {"node": node.name, "trouble": said[-1] if said else "gatewayctl said nothing"}


def gateway_faults(row: dict[str, Any]) -> list[str]:
    """Return what is wrong with a gateway's NAT, in words; sessions are judged with the routers'."""
    name = row["node"]
    if row["trouble"]:
        return [f"{name}: {row['trouble']}"]
    found = [
        f"{name}: {check}: {row['checks'][check]}"
        for check in ("nftables", "conntrack")
        if row["checks"][check] != "ok"
    ]
    found += [f"{name}: is {row['phase']}: new flows go to its standby"] if row["phase"] != "active" else []
    found += [f"{name}: has withdrawn all that it announces"] if row["withdrawn"] else []
    return found


def _server(node: Node) -> dict[str, Any]:
    from labs.native.bringup import rdma_name
    from labs.native.nodes import run_in

    row: dict[str, Any] = {"node": node.name, "tenants": list(node.tenants), "trouble": "", "rdma": []}
    try:
        done = run_in(node.name, ["rdma", "-j", "link", "show"])
    except (OSError, KeyError) as error:
        row["trouble"] = f"the node is gone ({error})"
        return row
    if done.returncode:
        row["trouble"] = done.stderr.strip() or f"rdma ended with {done.returncode}"
        return row
    links = json.loads(done.stdout or "[]")
    row["rdma"] = rdma_devices({rdma_name(node.name, interface): interface for interface in node.rdma}, links)
    return row


def rdma_devices(wanted: dict[str, str], links: list[dict[str, Any]]) -> list[dict[str, str]]:
    """Return the state of a node's devices (name -> interface) from what `rdma -j link` says inside it.

    One kernel shows the devices of all its nodes and labs in each, but the interface only where that is.
    """
    said = {str(link.get("ifname")): link for link in links}
    found = []
    for device, interface in wanted.items():
        state = "absent"
        if link := said.get(device):
            own = link.get("netdev") == interface
            state = str(link.get("state", "unknown")) if own else "of another lab of this kernel"
        found.append({"device": device, "interface": interface, "state": state})
    return found


def server_faults(row: dict[str, Any]) -> list[str]:
    """Return which RDMA devices of a server are not there or not active, in words."""
    if row["trouble"]:
        return [f"{row['node']}: {row['trouble']}"]
    return [
        f"{row['node']}: RDMA device {item['device']} is {item['state'].lower()}"
        for item in row["rdma"]
        if item["state"] != _ACTIVE
    ]


def balancer(seen: Observation, lab: Lab) -> dict[str, Any]:
    """Return the VIPs of a load balancer with what its checks say of each backend."""
    rows = []
    for item in (item for item in lab.expect.services if item.node == seen.node):
        listener = (seen.listeners or {}).get(item.name)
        checks = {backend.name: backend for backend in listener.backends} if listener else {}
        rows.append(
            {
                "name": item.name,
                "vip": item.address,
                "serves": bool(listener and listener.up),
                "clients": listener.sessions if listener else 0,
                "backends": [
                    {
                        "name": name,
                        "address": address,
                        "up": name in checks and checks[name].up,
                        "reached": name in checks and checks[name].reached,
                        "check": f"{checks[name].check} {checks[name].text}".strip() if name in checks else "absent",
                        "clients": checks[name].sessions if name in checks else 0,
                    }
                    for name, address in item.backends.items()
                ],
            }
        )
    return {"node": seen.node, "running": seen.listeners is not None, "services": rows}
