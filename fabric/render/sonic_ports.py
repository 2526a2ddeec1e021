"""SONiC tables of ports: PORT, BREAKOUT_CFG, INTERFACE, and the access VLANs that carry gateway links."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.plan import FABRIC_LINK, SERVER_LINK

if TYPE_CHECKING:
    from fabric.plan import Link, Plan, Port, Switch
    from fabric.render.sonic_json import Row, Table, Tables


def port_tables(plan: Plan, switch: Switch) -> Tables:
    """Return PORT for every logical port, used or spare, and what sits on the used ones."""
    fabric = plan.fabrics[switch.fabric]
    mtus = {FABRIC_LINK: str(fabric.mtu), SERVER_LINK: str(fabric.server_mtu)}
    ports: Table = {}
    tables: Tables = {
        "PORT": ports,
        "BREAKOUT_CFG": {breakout.interface: {"brkout_mode": breakout.mode} for breakout in switch.breakouts},
        "INTERFACE": {},
        "VLAN": {},
        "VLAN_MEMBER": {},
        "VLAN_INTERFACE": {},
    }
    for port in switch.ports:
        link = plan.links.get(port.link)
        if link is None:
            ports[port.interface] = _port(port, str(fabric.mtu), "")
            continue
        far = link.far(switch.name)
        ports[port.interface] = _port(port, mtus.get(link.kind, str(fabric.mtu)), f"{far.device} {far.port}")
        _interface(plan, switch, link, tables)
    return tables


def _port(port: Port, mtu: str, description: str) -> Row:
    """One PORT row. `admin_status` is always said: without it a broken-out port never gets its lossless buffers."""
    row = {
        "alias": port.alias,
        "lanes": port.lanes,
        "speed": str(port.speed * 1000),
        "index": str(port.index),
        "subport": str(port.subport),
        "mtu": mtu,
        "admin_status": "up" if description else "down",
    }
    if port.fec != "none":
        row |= {"fec": port.fec, "autoneg": "off"}
    if description:
        row["description"] = description
    return row


def _interface(plan: Plan, switch: Switch, link: Link, tables: Tables) -> None:
    """Make a used port routed: unnumbered, numbered, in a tenant's VRF, or by way of an access VLAN."""
    end = link.end(switch.name)
    if link.vlan:
        _access_vlan(plan, switch, link, tables)
    elif link.tenant:
        tables["INTERFACE"][end.interface] = {"vrf_name": plan.tenants[link.tenant].vrf}
        tables["INTERFACE"][f"{end.interface}|{end.address}"] = {}
    elif end.address:
        tables["INTERFACE"][end.interface] = {}
        tables["INTERFACE"][f"{end.interface}|{end.address}"] = {}
    elif link.kind == FABRIC_LINK:
        tables["INTERFACE"][end.interface] = {"ipv6_use_link_local_only": "enable"}


def _access_vlan(plan: Plan, switch: Switch, link: Link, tables: Tables) -> None:
    """A /31 on an SVI of its own: the ASIC cannot end a tunnel on a routed port towards a gateway."""
    end, name = link.end(switch.name), f"Vlan{link.vlan}"
    tables["VLAN"][name] = {
        "vlanid": str(link.vlan),
        "mtu": str(plan.fabrics[switch.fabric].mtu),
        "admin_status": "up",
        "description": f"to {link.far(switch.name).device}",
    }
    tables["VLAN_MEMBER"][f"{name}|{end.interface}"] = {"tagging_mode": "untagged"}
    tables["VLAN_INTERFACE"][name] = {}
    tables["VLAN_INTERFACE"][f"{name}|{end.address}"] = {}
