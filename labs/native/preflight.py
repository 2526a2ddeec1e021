"""What this host's kernel can do for a lab, found by doing it in namespaces that are thrown away.

It is tried with the programs of the lab's own Debian root, which the lab will use: what the host has installed says
nothing about its kernel.
"""

from __future__ import annotations

import functools
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.problem import CouldNotRunError

if TYPE_CHECKING:
    from pathlib import Path

_TRIAL_S = 20
_SAID = 120


@dataclass(frozen=True, slots=True)
class Feature:
    """A kernel feature: how to try it, what a lab loses without it, and whether a lab is of no use without it."""

    name: str
    trial: str
    without: str
    needed: bool = True


def _nft(commands: str) -> str:
    return f"nft 'add table ip t; add chain ip t c {{ type filter hook prerouting priority -300; }}; {commands}'"


FEATURES = (
    Feature(
        "overlay file systems",
        "mount -t tmpfs t /tmp; mkdir /tmp/u /tmp/w /tmp/m; "
        "mount -t overlay -o lowerdir=/etc,upperdir=/tmp/u,workdir=/tmp/w o /tmp/m",
        "no writable Debian root",
    ),
    Feature("VRF devices (NET_VRF)", "ip link add kv0 type vrf table 10", "no tenant VRFs"),
    Feature("VXLAN", "ip link add kv0 type vxlan id 7 dstport 4789 local 127.0.0.1 nolearning", "no EVPN data plane"),
    Feature("bridges", "ip link add kv0 type bridge", "no L3VNI interfaces"),
    Feature("veth pairs", "ip link add kv0 type veth peer name kv1", "no links"),
    Feature("dummy devices", "ip link add kv0 type dummy", "no ports without light"),
    Feature("IPv6", "ip link set lo up; ip -6 route get ::1", "no BGP sessions on interfaces without addresses"),
    Feature("policy routing", "ip rule add pref 500 iif lo fwmark 1 lookup 1001", "no tenant's own routes at gateways"),
    Feature(
        "nftables inet NAT",
        "nft 'add table inet t; add chain inet t c { type nat hook postrouting priority 100; }; add rule inet t c masquerade'",  # noqa: E501
        "no gateways",
    ),
    Feature(
        "conntrack zones",
        _nft("add rule ip t c ct zone set 5"),
        "tenants with the same prefixes cannot be told apart at the gateways",
    ),
    Feature(
        "conntrack timeout policies",
        _nft("add ct timeout ip t o { protocol udp; l3proto ip; policy = { replied : 9 }; }; add rule ip t c ct timeout set o"),  # noqa: E501
        "no idle timeouts of an exposure's own at the gateways",
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
        # its name is the whole kernel's, and a namespace ends in its own time
        "ip link add kv0 type veth peer name kv1; rdma link add kv$$ type rxe netdev kv0; "
        "grep -qi :12b7 /proc/net/udp; rdma link delete kv$$",
        "no RDMA between servers",
        needed=False,
    ),
)  # fmt: skip


@functools.cache
def results(tree: Path) -> dict[str, str]:
    """Try every feature with the programs of the Debian root `tree`; returns name -> why not, empty where it works.

    Needs root. Raises CouldNotRunError when nothing can be tried here.
    """
    if why := _why_not("true", tree):
        text = f"no namespace can be made here, or {tree} is no Debian root: `unshare --net --mount`: {why}"
        raise CouldNotRunError(text)
    return {feature.name: _why_not(feature.trial, tree) for feature in FEATURES}


def _why_not(trial: str, tree: Path) -> str:
    """Return why a trial fails in network and mount namespaces of its own, which end with it; else nothing."""
    inside = 'mount -t proc proc "$1/proc" && mount -t sysfs sys "$1/sys" && exec chroot "$1" /bin/sh -ec "$2"'
    command = ["unshare", "--net", "--mount", "--propagation", "private", "sh", "-c", inside, "sh", str(tree), trial]
    environment = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
    try:
        done = subprocess.run(command, capture_output=True, check=False, timeout=_TRIAL_S, env=environment)
    except OSError as error:
        return f"unshare: {error.strerror}"
    except subprocess.TimeoutExpired:
        return f"was not done within {_TRIAL_S} s"
    said = " ".join(done.stderr.decode(errors="replace").split())[-_SAID:]
    return said or f"exit {done.returncode}" if done.returncode else ""


def missing(tree: Path) -> list[str]:
    """Return the features a lab cannot do without that this kernel lacks, in words."""
    return _lacking(tree, needed=True)


def limits(tree: Path) -> list[str]:
    """Return what a lab on this kernel will not be able to do, in words."""
    return _lacking(tree, needed=False)


def _lacking(tree: Path, *, needed: bool) -> list[str]:
    tried = results(tree)
    return [
        f"this kernel lacks {feature.name}: {feature.without} ({why})"
        for feature in FEATURES
        if feature.needed == needed and (why := tried[feature.name])
    ]
