"""Nodes and links: named network namespaces, one holder process each with private mounts, veth pairs between them."""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from labs.native import namespaces

if TYPE_CHECKING:
    from collections.abc import Callable

    from labs.model import Lab, Node

# inside the machine: the folder shared with the tool, and what the engine remembers; a machine that is this host
# itself has both elsewhere
SHARE = Path(os.environ.get("LAB_SHARE", "/lab"))
NODE_FILES = SHARE / "nodes"
STATE = Path(os.environ.get("LAB_RUN", "/run/lab"))
_PIDS = STATE / "nodes.json"

# the folder of a node's rendered files, as the node itself sees it
OWN_FILES = Path("/etc/kvfabric")

_MS_BIND, _MS_REC, _MS_PRIVATE = 0x1000, 0x4000, 0x40000
_SCRATCH = ("/run", "/tmp", "/etc/frr", "/var/lib/frr", "/var/tmp", "/var/log", "/usr/local/sbin")  # noqa: S108
_RUN_FOLDERS = ("/run/netns", "/run/lock", "/run/sshd")


def batch(lines: list[str], family: tuple[str, ...] = ()) -> None:
    """Run many `ip` commands in one process: in a VM a fork costs ten milliseconds, an `ip` command next to nothing.

    Raises OSError with ip's words and the line at fault.
    """
    text = "\n".join(lines) + "\n"
    done = subprocess.run(["ip", *family, "-batch", "-"], input=text, text=True, capture_output=True, check=False)
    if done.returncode:
        raise OSError(f"ip -batch: {done.stderr.strip()[:800]}")


def make_links(lab: Lab) -> None:
    """Create every node's network namespace and every cable, dark ports included; all interfaces are down."""
    batch([f"netns add {node.name}" for node in lab.nodes])
    lines = []
    for link in lab.links:
        near, far = link.a, link.b
        lines.append(
            f"link add {near.interface} netns {near.node} mtu {link.mtu} type veth "
            f"peer name {far.interface} netns {far.node} mtu {link.mtu}"
        )
    if lines:
        batch(lines)
    for node in lab.nodes:
        # a port whose cable leads out of this slice: there, and without light
        dark = [
            line
            for port in node.dark
            for line in (f"link add {port} mtu 9216 type dummy", f"link set {port} carrier off")
        ]
        batch(["link set lo up", *dark], ("-n", node.name))


def mount(source: str, target: str, kind: str, flags: int = 0, data: str = "") -> None:
    """Mount without a process of its own. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    done = libc.mount(source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), data.encode())
    if done:
        error = ctypes.get_errno()
        raise OSError(error, f"mount {kind or 'bind'} on {target}: {os.strerror(error)}")


def enter_new(node: Node) -> None:
    """Turn this process into the first of a node: its network namespace, own mounts, own host name."""
    with Path(f"/run/netns/{node.name}").open() as handle:
        namespaces.setns(handle.fileno(), namespaces.CLONE_NEWNET)
    namespaces.unshare(namespaces.CLONE_NEWNS | namespaces.CLONE_NEWUTS)
    mount("none", "/", "", _MS_REC | _MS_PRIVATE)
    socket.sethostname(node.name)
    mount("sysfs", "/sys", "sysfs")  # a new mount shows this namespace's interfaces
    OWN_FILES.mkdir(exist_ok=True)
    mount(str(NODE_FILES / (node.files or node.name)), str(OWN_FILES), "", _MS_BIND)
    for folder in _SCRATCH:
        Path(folder).mkdir(parents=True, exist_ok=True)
        mount("tmpfs", folder, "tmpfs", data="mode=1777" if folder == "/tmp" else "mode=755")  # noqa: S108
    for folder in _RUN_FOLDERS:
        Path(folder).mkdir(parents=True, exist_ok=True)
    _own_names(node.name)


def _own_names(name: str) -> None:
    """Let a node know its own name and nobody to ask for others: a lookup that nobody answers takes ten seconds."""
    for path, text in {"hosts": f"127.0.0.1 localhost\n127.0.1.1 {name}\n", "resolv.conf": ""}.items():
        own, seen = Path("/run") / path, Path("/etc") / path
        own.write_text(text)
        if not seen.exists():
            seen.touch()
        mount(str(own), str(seen), "", _MS_BIND)


def hold() -> None:
    """Become the process that keeps a node's namespaces: never returns."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    hold_no_output()
    os.execvp("sleep", ["sleep", "infinity"])  # noqa: S606


def hold_no_output() -> None:
    """Let go of every inherited descriptor, so that nobody waits for this process."""
    null = os.open(os.devnull, os.O_RDWR)
    for fd in range(3):
        os.dup2(null, fd)
    os.closerange(3, 256)


def remember(pids: dict[str, int]) -> None:
    """Keep which process holds which node."""
    STATE.mkdir(parents=True, exist_ok=True)
    _PIDS.write_text(json.dumps(pids))


def holders() -> dict[str, int]:
    """Return the holder process of every node of the lab."""
    try:
        found: dict[str, int] = json.loads(_PIDS.read_text())
    except FileNotFoundError:
        return {}
    return found


class NodeGoneError(OSError):
    """The process that held a node has ended, and the node with it."""


def root_of(name: str) -> Path:
    """Return a running node's file system, as its machine sees it. Raises KeyError, NodeGoneError as `enter` does."""
    enter(name)
    return Path(f"/proc/{holders()[name]}/root")


def enter(name: str) -> Callable[[], None]:
    """Return a function that moves the calling process into a node.

    Raises KeyError when there is no such node, NodeGoneError when it does not run any more.

    Made for a child between fork and exec: the descriptors are opened here, so that an unknown node is told apart.
    """
    pids = holders()
    if name not in pids:
        raise KeyError(f"no node {name}; there are {', '.join(pids) or 'none'}")
    here, there = Path("/proc/self/ns"), Path(f"/proc/{pids[name]}/ns")
    if not there.is_dir():
        raise NodeGoneError(f"node {name} does not run any more")
    # a node made of bare namespaces has three of its own, a container more
    kinds = {
        kind: flag
        for kind, flag in namespaces.KINDS.items()
        if (here / kind).stat().st_ino != (there / kind).stat().st_ino
    }

    def move() -> None:
        descriptors = [(os.open(there / kind, os.O_RDONLY), flag) for kind, flag in kinds.items()]
        for fd, flag in descriptors:
            namespaces.setns(fd, flag)
            os.close(fd)
        if "pid" in kinds:
            namespaces.go_on_as_child()

    return move


def call_in(name: str, function: Callable[[], object]) -> int:
    """Call a function in a child that lives in a node; returns the child's process number at once."""
    move = enter(name)
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        move()
        function()
        code = 0
    finally:
        os._exit(code)
    raise AssertionError("not reached")


def run_in(
    name: str, argv: list[str], text: str | None = None, timeout: float = 60
) -> subprocess.CompletedProcess[str]:
    """Run a program in a node and return what it said.

    Never raises for its exit code; that is 127 when the node is gone and 124 when the program took too long.
    """
    try:
        return subprocess.run(
            argv, input=text, text=True, capture_output=True, check=False, timeout=timeout, preexec_fn=enter(name)
        )
    except NodeGoneError as error:
        return subprocess.CompletedProcess(argv, 127, "", str(error))
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess(argv, 124, "", f"{argv[0]} in {name} took more than {timeout:g} s")
