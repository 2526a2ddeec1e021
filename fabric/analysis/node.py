"""The interfaces of one device as its own files set them up: SONiC's tables or a Linux router's `network.sh`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fabric.analysis.network_sh import read_network_sh
from fabric.analysis.rendered import CONFIG_DB, NETWORK_SH

if TYPE_CHECKING:
    from fabric.analysis.rendered import ConfigDb, Rendered


@dataclass(slots=True)
class Interface:
    """One interface: VRF (empty for the default), addresses with length, MTU (0 when not said)."""

    name: str
    vrf: str = ""
    addresses: list[str] = field(default_factory=list)
    mtu: int = 0
    up: bool = False
    link_local_only: bool = False


@dataclass(slots=True)
class Tunnel:
    """One VXLAN: VNI, the VRF it serves, its VLAN (0 on Linux), local VTEP, TOS (`inherit`, or empty)."""

    vni: int
    vrf: str
    vlan: int
    local: str
    interface: str = ""
    tos: str = ""
    port: int = 0


@dataclass(slots=True)
class Node:
    """A device's interfaces, VRFs and tunnels; `file` is where they were read from."""

    name: str
    file: str
    interfaces: dict[str, Interface] = field(default_factory=dict)
    vrfs: dict[str, int] = field(default_factory=dict)
    tunnels: list[Tunnel] = field(default_factory=list)
    routes: list[dict[str, str]] = field(default_factory=list)

    def interface(self, name: str) -> Interface:
        """Return an interface, made when it is new."""
        found = self.interfaces.get(name)
        if found is None:
            found = self.interfaces[name] = Interface(name)
        return found


def node_of(rendered: Rendered, device: str) -> Node:
    """Read a device: config_db.json if it has one, else network.sh."""
    if CONFIG_DB in rendered.files.get(device, {}):
        return _from_config_db(device, rendered.config_db(device))
    node = Node(device, NETWORK_SH)
    read_network_sh(rendered.text(device, NETWORK_SH), node)
    return node


def _from_config_db(device: str, db: ConfigDb) -> Node:
    node = Node(device, CONFIG_DB)
    for name, row in db.get("PORT", {}).items():
        interface = node.interface(name)
        interface.mtu = _number(row.get("mtu"))
        interface.up = row.get("admin_status") == "up"
    for table in ("LOOPBACK_INTERFACE", "INTERFACE", "VLAN_INTERFACE"):
        for key, row in db.get(table, {}).items():
            name, _, address = key.partition("|")
            interface = node.interface(name)
            if address:
                interface.addresses.append(address)
            elif row:
                interface.vrf = str(row.get("vrf_name", ""))
                interface.link_local_only = row.get("ipv6_use_link_local_only") == "enable"
    node.vrfs = {name: _number(row.get("vni")) for name, row in db.get("VRF", {}).items()}
    _tunnels(node, db)
    return node


def _tunnels(node: Node, db: ConfigDb) -> None:
    local = next((str(row.get("src_ip", "")) for row in db.get("VXLAN_TUNNEL", {}).values()), "")
    for row in db.get("VXLAN_TUNNEL_MAP", {}).values():
        vlan = str(row.get("vlan", ""))
        svi = node.interfaces.get(vlan)
        node.tunnels.append(
            Tunnel(_number(row.get("vni")), svi.vrf if svi else "", _number(vlan.removeprefix("Vlan")), local, vlan)
        )


def _number(value: object) -> int:
    text = str(value)
    return int(text) if text.isdigit() else 0
