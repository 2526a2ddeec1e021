"""What this host's kernel can do for a lab, found by doing it in a namespace that is thrown away."""

from __future__ import annotations

import functools
import subprocess
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Feature:
    """A kernel feature: how to try it, what a lab loses without it, and whether a lab is of no use without it."""

    name: str
    trial: str
    without: str
    needed: bool = True


FEATURES = (
    Feature("VRF devices (NET_VRF)", "ip link add kv0 type vrf table 10", "no tenant VRFs"),
    Feature("VXLAN", "ip link add kv0 type vxlan id 7 dstport 4789 local 127.0.0.1 nolearning", "no EVPN data plane"),
    Feature("bridges", "ip link add kv0 type bridge", "no L3VNI interfaces"),
    Feature("veth pairs", "ip link add kv0 type veth peer name kv1", "no links"),
    Feature("dummy devices", "ip link add kv0 type dummy", "no ports without light"),
    Feature(
        "nftables inet NAT",
        "nft 'add table inet t; add chain inet t c { type nat hook postrouting priority 100; }; add rule inet t c masquerade'",  # noqa: E501
        "no gateways",
    ),
    Feature(
        "conntrack zones",
        "nft 'add table ip t; add chain ip t c { type filter hook prerouting priority -300; }; add rule ip t c ct zone set 5'",  # noqa: E501
        "tenants with the same prefixes cannot be told apart at the gateways",
    ),
    Feature(
        "netdev egress hook",
        "ip link set lo up; nft 'add table netdev t; add chain netdev t c { type filter hook egress device lo priority 0; }'",  # noqa: E501
        "no silent link failures (`lab break`)",
        needed=False,
    ),
    Feature("netem", "ip link set lo up; tc qdisc add dev lo root netem loss 1%", "no `lab impair`", needed=False),
    # older kernels make the device all the same, but its socket (UDP 4791) is in the first namespace: no traffic passes
    Feature(
        "Soft-RoCE in namespaces (rdma_rxe, kernel 7)",
        "ip link add kv0 type veth peer name kv1; rdma link add kvtrial type rxe netdev kv0; grep -qi :12b7 /proc/net/udp",  # noqa: E501
        "no RDMA between servers",
        needed=False,
    ),
)


@functools.cache
def results() -> dict[str, bool]:
    """Try every feature, each in a network namespace of its own; returns name -> works."""
    return {feature.name: _works(feature.trial) for feature in FEATURES}


def _works(trial: str) -> bool:
    command = ["unshare", "--net", "sh", "-ec", trial]
    done = subprocess.run(command, capture_output=True, check=False, timeout=20)
    return done.returncode == 0


def missing() -> list[str]:
    """Return the features a lab cannot do without that this kernel lacks, in words."""
    tried = results()
    return [f"this kernel lacks {f.name}: {f.without}" for f in FEATURES if f.needed and not tried[f.name]]


def limits() -> list[str]:
    """Return what a lab on this kernel will not be able to do, in words."""
    tried = results()
    return [f"this kernel lacks {f.name}: {f.without}" for f in FEATURES if not f.needed and not tried[f.name]]
