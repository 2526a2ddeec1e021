"""Engine `containerlab`: this host where it has a Docker engine and containerlab, else the VM with both inside."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from fabric.problem import CouldNotRunError
from labs.containerlab import build, disk, host, layer
from labs.machine import NODE_CODE, VM_CODE, Machine, Options, code_folder
from labs.uml import machine as uml

if TYPE_CHECKING:
    from pathlib import Path

# the call that builds the lab once the machine is ready
BRING_UP = "deploy"


def lacks() -> list[str]:
    """Say what keeps a lab from being deployed here, on the host or in the VM."""
    if host.used():
        return host.lacks()
    return uml.lacks() if os.uname().machine != "x86_64" else build.lacks()


def limits() -> list[str]:
    """Say what a lab will lack here; on a host's own kernel `node.sh` says it for each node that wants it."""
    return []


def binds() -> tuple[str, ...]:
    """Return what nodes see of the machine they are in, relative to the topology file's folder.

    The folder that tool and nodes share, our own packages for probes, and the host's processor, whose clock rate
    perftest reads and the VM's kernel does not tell.
    """
    here = host.used()
    code = code_folder() if here else VM_CODE
    packages = tuple(f"{code}/{name}:{NODE_CODE}/{name}:ro" for name in ("labs", "fabric", "validators"))
    # the VM's programs look for bytecode in one place, where it stays from one lab to the next
    kept = () if here else ("/mnt/pycache:/mnt/pycache",)
    return ("..:/lab", "../cpuinfo:/proc/cpuinfo:ro", *packages, *kept)


def start(folder: Path, options: Options) -> Machine:
    """Start the machine that will deploy the lab; its agent says `ready` on the channel."""
    if options.rdma != "shared":
        text = "engine containerlab leaves RDMA devices in the containers that made them, which is --rdma shared"
        raise CouldNotRunError(f"{text}; use --engine uml for --rdma {options.rdma}")
    return host.start(folder) if host.used() else _start_vm(folder, options)


def _start_vm(folder: Path, options: Options) -> Machine:
    docker, image = layer.cached(), disk.cached()
    if docker is None or image is None:
        raise CouldNotRunError("Docker and its disk are not built yet: run `kvfabric lab build --engine containerlab`")
    # what changes on the disk goes with the lab's folder; the cached one is never written to
    copy, whole = uml.seen(folder, "disk.cow"), uml.seen(folder, "disk", image)
    words = disk.vm_words(docker, folder, f"{copy},{whole}")
    return uml.boot(folder, options, words)
