"""A host whose kernel can do everything a lab wants, as a laptop's: this machine's own files under the VM's kernel.

The tool, its Python packages and the programs it calls are those that run the tests; what is written stays in the VM's
memory. Seen from inside, nothing tells it from a real host: its root is a root (no chroot), its /run and /tmp are fresh.
"""

from __future__ import annotations

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from labs.launch import launch
from labs.model import Lab
from labs.uml import root

if TYPE_CHECKING:
    from labs.client import Done, Running

KVFABRIC = (sys.executable, "-c", "from fabric.cli.main import main; main()")

_FIRST = """
set -e
mkdir -p /host /below
mount -t hostfs -o ro,hostfs=/ none /below
mount -t tmpfs -o size=60% host /host
mkdir /host/upper /host/work /host/root
mount -t overlay -o lowerdir=/below,upperdir=/host/upper,workdir=/host/work root /host/root
cd /host/root
mount -t proc proc proc
mount -t sysfs sys sys
mount --rbind /dev dev
mount -t tmpfs -o mode=1777 tmp tmp
mount -t tmpfs -o mode=755 run run
# what runs the tests may lie in one of the two
for place; do mkdir -p ".$place"; mount --bind "/below$place" ".$place"; done
mkdir -p var/cache/kvfabric .old
mount -t hostfs -o "ro,hostfs=$0" none var/cache/kvfabric
pivot_root . .old
cd /
umount -l /.old
echo "host $$"
exec sleep infinity
"""

# what a lab could leave: processes, namespaces, mounts, files, sockets, devices, rules
_LOOK = """
ps -e -o comm= | grep -v -e '^kworker' -e '^ps$' -e '^sh$' -e '^grep$' -e '^sort$' | sort
lsns -n -o TYPE,NS,COMMAND | grep -v -e lsns | sort
cat /proc/mounts
find /run /tmp /dev/shm -xdev -mindepth 1 2>/dev/null | grep -vx /run/kvfabric
grep kvfabric /proc/net/unix
ip -br link | cut -d' ' -f1
ip rule
rdma link
nft list ruleset
sysctl -a 2>/dev/null | grep '^net\\.ipv[46]\\.conf\\.all'
true
"""


@dataclass
class Host:
    """A started host; `vm` is the lab without nodes that it lives in."""

    vm: Running
    first: str

    def run(self, *argv: str, timeout_s: float = 120) -> Done:
        """Run a program as root logs in: nothing of the tests' environment is there."""
        path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        enter = ["nsenter", "--mount", "--target", self.first, "env", "-i", path, "HOME=/root"]
        return self.vm.run("", [*enter, *argv], timeout_s=timeout_s)

    def sh(self, script: str, *arguments: str) -> Done:
        """Run a script; its $0, $1 ... are the arguments."""
        return self.run("sh", "-c", script, *arguments)

    def lab(self, *argv: str) -> Done:
        """Run `kvfabric lab ...`."""
        return self.run(*KVFABRIC, "lab", *argv)

    def look(self) -> list[str]:
        """What a lab could leave, a line each."""
        return self.sh(_LOOK).check().out.splitlines()


def new(before: list[str], after: list[str]) -> list[str]:
    """Lines that are there more often than before."""
    left = list(after)
    for line in before:
        if line in left:
            left.remove(line)
    return left


def start() -> Host:
    """Boot it. Raises CouldNotRunError where no lab can run."""
    with tempfile.TemporaryDirectory() as empty:
        vm = launch(Lab("native-host", (), ()), Path(empty), engine="uml").running
    tree = root.cached()
    assert tree is not None
    code = dict.fromkeys((Path(__file__).resolve().parents[2], Path(sys.prefix), Path(sys.base_prefix)))
    hidden = [str(place) for place in code if place.is_relative_to("/tmp") or place.is_relative_to("/run")]
    words = ["sh", "-c", _FIRST, str(tree.parent), *hidden]
    process = vm.start("", ["unshare", "--mount", "--propagation", "private", *words])
    return Host(vm, process.wait_for("host ").split()[-1])
