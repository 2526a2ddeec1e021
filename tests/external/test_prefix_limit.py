"""Two bgpd that really talk: what the rendered filters and limits of a session let in, and what happens beyond."""

from __future__ import annotations

import os
import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from fabric.build import load_plan
from fabric.outside.run import validators
from fabric.render import frr

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.external

NEIGHBOR = """\
router bgp 65001
 bgp router-id 1.1.1.1
 no bgp ebgp-requires-policy
 no bgp network import-check
 timers bgp 3 9
 neighbor 10.0.0.2 remote-as 65002
 neighbor 10.0.0.2 ebgp-multihop 2
 neighbor 10.0.0.2 timers connect 1
 address-family ipv4 unicast
"""
ROUTER = """\
{filters}
router bgp 65002
 bgp router-id 2.2.2.2
 no bgp ebgp-requires-policy
 timers bgp 3 9
 neighbor 10.0.0.1 remote-as 65001
 neighbor 10.0.0.1 ebgp-multihop 2
 neighbor 10.0.0.1 timers connect 1
 address-family ipv4 unicast
{settings}
"""
# without zebra, which needs nothing of the machine: each bgpd in a network namespace of its own
SCRIPT = """
set -e
mount -t tmpfs -o mode=755 none /var/run/frr
# bgpd is not root when it reads its file
mkdir /var/run/frr/a /var/run/frr/b; cp "$1/a.conf" "$1/b.conf" /var/run/frr; chown -R frr:frr /var/run/frr
ip link set lo up
unshare -n sleep 120 & other=$!
while [ "$(readlink /proc/$other/ns/net)" = "$(readlink /proc/$$/ns/net)" ]; do sleep 0.05; done
ip link add x type veth peer name y netns $other
ip addr add 10.0.0.1/30 dev x; ip link set x up
nsenter -n -t $other ip addr add 10.0.0.2/30 dev y; nsenter -n -t $other ip link set y up
/usr/lib/frr/bgpd -N a -Z -n -d -f /var/run/frr/a.conf --log file:/dev/null >/dev/null 2>&1 </dev/null
nsenter -n -t $other /usr/lib/frr/bgpd -N b -Z -n -d -f /var/run/frr/b.conf --log file:/dev/null >/dev/null 2>&1 </dev/null
for try in $(seq 200); do
    # a daemon that has only just begun does not listen yet
    vtysh -N b -c 'show bgp neighbors 10.0.0.1' > "$1/said" 2>&1 || true
    grep -q "$2" "$1/said" && break
    sleep 0.2
done
vtysh -N b -c 'show bgp ipv4 unicast' > "$1/table"
"""
OURS = [f"172.30.8.{n}/32" for n in range(1, 71)]
FOREIGN = ["0.0.0.0/0", "172.30.8.0/22", "172.30.0.7/32", "198.51.100.7/32", "10.1.0.0/24"]


def _session(folder: Path, device: str, announced: list[str], until: str) -> tuple[str, str]:
    """Return what a router with the filter and limit of a rendered device's FABRIC group says of a neighbor."""
    if reason := validators()["live"].available():
        pytest.skip(reason)
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    text = frr.render(load_plan("lab"), device)["frr.conf"]
    filters = "\n".join(line for line in text.splitlines() if line.startswith("ip prefix-list LOOPBACKS"))
    group = re.findall(r"^  neighbor FABRIC (prefix-list .* in|maximum-prefix .*)$", text, re.MULTILINE)
    assert len(group) == 2
    settings = "\n".join(f"  neighbor 10.0.0.1 {line}" for line in group)
    (folder / "a.conf").write_text(NEIGHBOR + "".join(f"  network {prefix}\n" for prefix in announced))
    (folder / "b.conf").write_text(ROUTER.format(filters=filters, settings=settings))
    command = ["unshare", "-n", "-m", "-p", "-f", "--kill-child", "--mount-proc", "sh", "-c", SCRIPT, "limit"]
    done = subprocess.run([*command, str(folder), until], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    return (folder / "said").read_text(), (folder / "table").read_text()


def test_a_spine_ends_the_session_of_a_leaf_that_announces_without_end(tmp_path: Path) -> None:
    said, table = _session(tmp_path, "spine-01", OURS, "will restart in")
    assert "Maximum Number of Prefixes Reached" in said
    seconds = re.search(r"will restart in (\d+) seconds", said)
    assert seconds
    assert 240 < int(seconds[1]) <= 300
    assert "172.30.8.1/32" not in table


def test_a_leaf_keeps_its_spine_and_takes_only_the_site_s_loopbacks(tmp_path: Path) -> None:
    said, table = _session(tmp_path, "leaf-01", [*OURS, *FOREIGN], "70 accepted prefixes")
    assert "BGP state = Established" in said
    assert "70 accepted prefixes" in said
    assert not [prefix for prefix in FOREIGN if f" {prefix} " in table]
    assert "172.30.8.70/32" in table


def test_what_the_plan_announces_is_far_from_the_limit(tmp_path: Path) -> None:
    plan = load_plan("lab")
    switches = [f"{a}/32" for s in plan.switches.values() for a in (s.router_id, s.vtep) if a]
    gateways = [f"{a}/32" for g in plan.gateways.values() for a in (g.router_id, g.vtep)]
    said, _ = _session(tmp_path, "spine-01", [*switches, *gateways], f"{len(switches) + len(gateways)} accepted")
    assert "BGP state = Established" in said
    assert f"{len(switches) + len(gateways)} accepted prefixes" in said
