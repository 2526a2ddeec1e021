"""The lab's userland: a Debian 13 root with FRR 10.3, nftables, rdma-core and pyverbs, made once by mmdebstrap.

Both engines use it, so a lab runs the same programs on every machine: FRR 8.4 of older releases loses EVPN router
MACs when a spine fails, and rdma-core's Python bindings exist for Debian 13's own library version only.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from labs.uml import debian
from labs.uml.cache import digest, newest, publish, run_logged, say, scratch

if TYPE_CHECKING:
    from pathlib import Path

_PACKAGES = """
frr
nftables conntrack iproute2 ethtool kmod procps util-linux
iputils-ping iputils-tracepath tcpdump iperf3 socat curl openssl netcat-openbsd bc
rdma-core ibverbs-utils ibverbs-providers rdmacm-utils perftest python3-pyverbs
python3 python3-numpy python3-scapy python3-yaml
haproxy lldpd openssh-server openssh-client
"""

# first program of a VM: find the code and the share of this run, then leave the rest to the code itself
_INIT = """\
#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb LANG=C.UTF-8
mount -t proc proc /proc
for word in $(cat /proc/cmdline); do
  case $word in lab.code=*) code=${word#lab.code=} ;; esac
done
mount -t hostfs -o "hostfs=$code" none /mnt/code || echo "lab: cannot mount $code"
exec sh /mnt/code/labs/uml/init.sh
"""

_FOLDERS = ("mnt/code", "mnt/share", "mnt/cow", "opt/kvfabric", "lab")
_EXCLUDED = (
    "usr/share/man",
    "usr/share/doc",
    "usr/share/locale",
    "usr/share/info",
    "var/lib/apt/lists",
    "var/cache/apt",
)


def packages() -> list[str]:
    """Return the Debian packages of the root, which are those of a lab node anywhere."""
    return _PACKAGES.split()


# programs that Debian keeps for a group: a lab without root reads the tree as any user
_FOR_ALL = ("usr/sbin/lldpcli",)


def _recipe() -> str:
    return "\n".join([_PACKAGES, _INIT, *_FOLDERS, *_EXCLUDED, *_FOR_ALL])


def cached() -> Path | None:
    """Return the cached root of today's recipe, or nothing."""
    return newest(f"root-{debian.RELEASE}-{digest(_recipe())}")


def build() -> Path:
    """Make and cache the root, or return the cached one. Needs root and apt; about 20 s and 450 MB."""
    if done := cached():
        return done
    debian.need_root_and_apt()
    started = time.monotonic()
    debian.install(["mmdebstrap", "debian-archive-keyring"])
    with scratch("root") as work:
        folder = cached() or _build_in(work)
    say(f"root: done in {time.monotonic() - started:.0f} s, cached in {folder}")
    return folder


def _build_in(work: Path) -> Path:
    say(f"root: Debian {debian.RELEASE} with {len(_PACKAGES.split())} packages and what they need")
    tree = work / "root"
    include = ",".join(_PACKAGES.split())
    excludes = [f"--dpkgopt=path-exclude=/{path}/*" for path in _EXCLUDED if path.startswith("usr")]
    target = [debian.RELEASE, str(tree), debian.mirror()]
    command = ["mmdebstrap", "--variant=apt", "--mode=root", f"--include={include}", *excludes, *target]
    run_logged(command, work / "root.log")
    for folder in _FOLDERS:
        (tree / folder).mkdir(parents=True, exist_ok=True)
    for program in _FOR_ALL:
        (tree / program).chmod(0o755)
    init = tree / "lab-init"
    init.write_text(_INIT)
    init.chmod(0o755)
    return publish(tree, f"root-{debian.RELEASE}-{digest(_recipe())}")
