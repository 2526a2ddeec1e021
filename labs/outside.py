"""The world outside the gateways, which nobody renders: the provider's router, which also plays the internet."""

from __future__ import annotations

from ipaddress import ip_interface
from typing import TYPE_CHECKING

from fabric.plan import EXTERNAL_LINK

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.plan import Link, Plan

# RFC 5737 documentation range: an address that only the outside has
INTERNET_ADDRESS = "198.51.100.1"


def write(plan: Plan, folder: Path, edges: list[str]) -> None:
    """Write the files of each edge router below `folder`, in the shape of rendered ones."""
    for name in edges:
        target = folder / name
        target.mkdir(parents=True, exist_ok=True)
        links = [link for link in plan.links_of[name] if link.kind == EXTERNAL_LINK]
        (target / "network.sh").write_text(_network(name, links))
        (target / "frr.conf").write_text(_routing(plan, name, links))
        (target / "daemons").write_text("bgpd=yes\nbfdd=yes\nstaticd=yes\n")
        (target / "sysctl.conf").write_text(
            "net.ipv4.ip_forward = 1\nnet.ipv4.conf.all.rp_filter = 0\nnet.ipv4.conf.default.rp_filter = 0\n"
        )


def _network(name: str, links: list[Link]) -> str:
    lines = ["#!/bin/sh", "set -e", "ip link set lo up", f"ip addr replace {INTERNET_ADDRESS}/32 dev lo"]
    for link in links:
        end = link.end(name)
        lines += [f"ip link set {end.interface} mtu 1500 up", f"ip addr replace {end.address} dev {end.interface}"]
    return "\n".join(lines) + "\n"


def _routing(plan: Plan, name: str, links: list[Link]) -> str:
    edge = plan.edges[name]
    lines = [
        "frr defaults traditional", f"hostname {name}", "bfd", " profile edge", "  detect-multiplier 3",
        "  receive-interval 300", "  transmit-interval 300", " exit", "exit", f"router bgp {edge.asn}",
        f" bgp router-id {edge.router_id}", " no bgp ebgp-requires-policy", " no bgp default ipv4-unicast",
        " bgp bestpath as-path multipath-relax", " timers bgp 3 9",
    ]  # fmt: skip
    peers = [(str(ip_interface(link.far(name).address).ip), link.far(name).device) for link in links]
    for address, gateway in peers:
        lines += [
            f" neighbor {address} remote-as {plan.gateways[gateway].asn}",
            f" neighbor {address} description {gateway}",
        ]
        lines += [
            f" neighbor {address} bfd",
            f" neighbor {address} bfd profile edge",
            f" neighbor {address} timers connect 2",
        ]
    lines += [" address-family ipv4 unicast", f"  network {INTERNET_ADDRESS}/32"]
    for address, _ in peers:
        lines += [f"  neighbor {address} activate", f"  neighbor {address} default-originate"]
    lines += ["  maximum-paths 16", " exit-address-family", "exit"]
    return "\n".join(lines) + "\n"
