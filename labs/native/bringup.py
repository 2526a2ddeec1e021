"""Bring one node to life from its rendered files: sysctls, network, firewall, RDMA devices, routing daemons.

It runs what was rendered and decides nothing: a missing file means that the node does not have that part.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from labs.native.nodes import OWN_FILES

if TYPE_CHECKING:
    from labs.model import Node

_FRR = Path("/usr/lib/frr")
_DAEMONS = ("mgmtd", "zebra", "staticd", "bfdd", "bgpd")  # in the order in which they need each other
_ALWAYS = frozenset({"mgmtd", "zebra"})
_COMPLAINT = re.compile(
    r"^%|^line \d+: %|Configuration failed|Malformed|does not exist|CallError to communicate|Unknown command"
)
_HARMLESS = re.compile(r"Graceful restart configuration changed|not installed currently")

# kernel settings that one namespace cannot have for itself
_MACHINE_WIDE = (
    "net/core/",
    "net/bridge/",
    "net/netfilter/nf_conntrack_max",
    "net/netfilter/nf_conntrack_buckets",
    "net/ipv4/neigh/default/gc_thresh",
    "net/ipv6/neigh/default/gc_thresh",
)


class NodeError(Exception):
    """A step that makes the node useless, in words."""


def _run(argv: list[str], text: str | None = None, timeout: float = 120) -> subprocess.CompletedProcess[str]:
    return subprocess.run(argv, input=text, text=True, capture_output=True, check=False, timeout=timeout)


def bring_up(node: Node) -> list[str]:
    """Bring this node up, called inside it; return complaints that did not stop it. Raises NodeError."""
    apply_sysctls()
    _script("network.sh")
    complaints = apply_sysctls()
    _firewall()
    complaints += _soft_roce(node)
    complaints += start_routing()
    _balancer()
    return complaints


def sysctl_lines(text: str) -> list[tuple[str, str]]:
    """Return (path under /proc/sys, value) of each line; a key with slashes is taken as a path already."""
    found = []
    for line in text.splitlines():
        key, equals, value = line.split("#")[0].partition("=")
        if equals:
            name = key.strip().lstrip("-")
            found.append((name if "/" in name else name.replace(".", "/"), value.strip()))
    return found


def apply_sysctls() -> list[str]:
    """Write sysctl.conf into this namespace and return what the kernel refused.

    Keys outside `net` belong to the whole machine, which the node does not own, and are left alone.
    """
    path = OWN_FILES / "sysctl.conf"
    if not path.is_file():
        return []
    refused = []
    for key, value in sysctl_lines(path.read_text()):
        if not key.startswith("net/") or key.startswith(_MACHINE_WIDE):
            continue
        try:
            (Path("/proc/sys") / key).write_text(value)
        except OSError as error:
            refused.append(f"sysctl {key.replace('/', '.')}={value}: {error.strerror}")
    return refused


def _script(name: str) -> None:
    path = OWN_FILES / name
    if not path.is_file():
        return
    done = _run(["sh", "-e", str(path)])
    if done.returncode:
        raise NodeError(f"{name} failed (exit {done.returncode}): {done.stderr.strip()[-800:]}")


def _firewall() -> None:
    path = OWN_FILES / "nftables.conf"
    if path.is_file():
        done = _run(["nft", "-f", str(path)])
        if done.returncode:
            raise NodeError(f"nftables.conf was refused: {done.stderr.strip()[:800]}")


def rdma_name(node: str, interface: str) -> str:
    """Return the name of a Soft-RoCE device: one kernel holds them all, so it carries the server's name too."""
    return f"{node}.{interface}"


def _soft_roce(node: Node) -> list[str]:
    refused = []
    for interface in node.rdma:
        name = rdma_name(node.name, interface)
        done = _run(["rdma", "link", "add", name, "type", "rxe", "netdev", interface])
        if done.returncode:
            refused.append(f"no Soft-RoCE on {interface}: {done.stderr.strip()}")
    return refused


def own_rdma(node: Node) -> list[str]:
    """In RDMA mode `exclusive`, move a server's devices into it; called outside of all nodes. Returns what failed.

    A new Soft-RoCE device belongs to the first namespace then, whichever its port is in.
    """
    if not node.rdma or "exclusive" not in _run(["rdma", "system", "show"]).stdout:
        return []
    names = [rdma_name(node.name, interface) for interface in node.rdma]
    moved = [(name, _run(["rdma", "dev", "set", name, "netns", node.name])) for name in names]
    return [f"{name} stays outside of {node.name}: {done.stderr.strip()}" for name, done in moved if done.returncode]


def wanted_daemons(text: str) -> dict[str, list[str]]:
    """Return the daemons to start with their options, from a `daemons` file; zebra and mgmtd always run."""
    values = dict(re.findall(r"^([a-z0-9]+(?:_options)?)=(.*)$", text, re.MULTILINE))
    wanted = {}
    for name in _DAEMONS:
        if name in _ALWAYS or values.get(name, "no").strip("\"' ") in {"yes", "true", "1"}:
            options = shlex.split(values.get(f"{name}_options", '"-A 127.0.0.1"'))
            wanted[name] = shlex.split(" ".join(options))
    return wanted


def start_routing() -> list[str]:
    """Start the FRR daemons of the node and load its frr.conf; returns what they complained of. Raises NodeError."""
    config = Path("/etc/frr/frr.conf")
    if not config.is_file():
        return []
    daemons = Path("/etc/frr/daemons")
    default = "bgpd=yes\nbfdd=yes\nstaticd=yes\n"
    for name, options in wanted_daemons(daemons.read_text() if daemons.is_file() else default).items():
        log = f"file:/var/log/frr/{name}.log"
        # a daemon keeps the output it is given for as long as it lives, so it gets none of ours
        command = [str(_FRR / name), "-d", *options, "--log", log]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False
        )
        if done.returncode:
            tail = Path(f"/var/log/frr/{name}.log")
            said = tail.read_text(errors="replace")[-400:] if tail.is_file() else ""
            raise NodeError(f"{name} {' '.join(options)} did not start (exit {done.returncode}): {said.strip()}")
    answer = _run(["vtysh", "-b"])
    lines = (answer.stdout + answer.stderr).splitlines()
    complaints = [
        f"frr.conf: {line.strip()}" for line in lines if _COMPLAINT.search(line) and not _HARMLESS.search(line)
    ]
    if answer.returncode and not complaints:
        complaints.append(f"frr.conf: vtysh exit {answer.returncode}: {' '.join(lines)[-400:]}")
    return complaints


def _balancer() -> None:
    path = OWN_FILES / "haproxy.cfg"
    if not path.is_file():
        return
    done = _run(["haproxy", "-D", "-f", str(path), "-p", "/run/haproxy/haproxy.pid"])
    if done.returncode:
        raise NodeError(f"haproxy did not start: {done.stderr.strip()[-400:]}")
