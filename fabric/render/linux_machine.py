"""How the files of a Linux machine get onto it: systemd units that load them at boot, and `install.sh`.

Order at boot: links and addresses, then nftables rules, then FRR, then health. FRR requires the rules (`RequiredBy`),
so a gateway whose rules do not load announces nothing. Source: systemd.unit(5), systemd.service(5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from fabric.render.text_templates import template

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_UNITS = "/etc/systemd/system"
HEALTH = "kvfabric-health.service"
# what the files need, by the file that does, and the packages that bring it
_TOOLS = {"network.sh": "ip", "nftables.conf": "nft", "frr.conf": "vtysh", "gatewayctl": "conntrack"}
_PACKAGES = {"ip": "iproute2", "nft": "nftables", "vtysh": "frr frr-pythontools", "conntrack": "conntrack python3"}


# units, each with the file without which the machine has no use for it
UNITS = {
    "kvfabric-network.service": "network.sh",
    "kvfabric-rules.service": "nftables.conf",
    "kvfabric-roce.service": "roce.sh",
    HEALTH: "gatewayctl",
}


class Place(NamedTuple):
    """Where a file is put, by whom it is owned, and its mode."""

    to: str
    owner: str = "root"
    mode: str = "0644"


PLACES = {
    "sysctl.conf": Place("/etc/kvfabric/sysctl.conf"),
    "network.sh": Place("/etc/kvfabric/network.sh", mode="0755"),
    "nftables.conf": Place("/etc/kvfabric/nftables.conf"),
    "roce.sh": Place("/etc/kvfabric/roce.sh", mode="0755"),
    "gateway.json": Place("/etc/kvfabric/gateway.json"),
    "gatewayctl": Place("/usr/local/sbin/gatewayctl", mode="0755"),
    "frr.conf": Place("/etc/frr/frr.conf", "frr", "0640"),
    "daemons": Place("/etc/frr/daemons", "frr", "0640"),
}


def with_install(name: str, files: Mapping[str, str], ports: Iterable[str]) -> dict[str, str]:
    """Return a machine's files together with its units and `install.sh`; `ports` are waited for at boot.

    Raises KeyError for a file that has no place.
    """
    devices = [f"sys-subsystem-net-devices-{escaped(port)}.device" for port in ports]
    added = {
        unit: template(f"machine/{unit.removeprefix('kvfabric-')}.j2").render(name=name, devices=devices)
        for unit, file in UNITS.items()
        if file in files
    }
    places = [{"file": file, **PLACES[file]._asdict()} for file in files]
    places += [{"file": unit, **Place(f"{_UNITS}/{unit}")._asdict()} for unit in added]
    tools = [tool for file, tool in _TOOLS.items() if file in files]
    install = template("machine/install.sh.j2").render(
        name=name,
        places=places,
        units=list(added),
        frr="frr.conf" in files,
        health=HEALTH if HEALTH in added else "",
        tools=tools,
        packages=" ".join(_PACKAGES[tool] for tool in tools),
    )
    return {**files, **added, "install.sh": install}


def escaped(name: str) -> str:
    """Return a name as systemd writes it in the name of a unit (systemd.unit(5), "string escaping")."""
    kept = [c if c.isascii() and (c.isalnum() or c in ":_.") else f"\\x{ord(c):02x}" for c in name]
    return "".join(kept)
