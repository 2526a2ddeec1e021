"""Where Docker is: deploy the exported folder with the real containerlab, read back, destroy. Runs inside the machine.

Afterwards every node is known by the first process of its container, as nodes of the other engines are by theirs, so
programs, faults and status work the same way.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labs.containerlab import readback, trouble
from labs.native import nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from labs.model import Lab

FOLDER = nodes.NODE_FILES

_EMBEDDED = nodes.SHARE / "modules"  # there in the VM only
_SCRIPT = Path(__file__).with_name("dockerd.sh")
_MESSAGE = re.compile(r'level=(\w+) msg=("(?:[^"\\]|\\.)*"|\S+)')
_STEP = re.compile(r"Creating|Created|Executed|Removed|Destroying", re.IGNORECASE)
# what containerlab warns of and nobody misses: programs and files that a small root does not have
_HARMLESS = re.compile(r"modules\.dep|version|ssh|kernel module|hosts file", re.IGNORECASE)


# what it says of a node that it could not make, before it goes on and ends as if all were well
_FAILED = re.compile(r"failed (?:pre-deploy|deploy|to run postdeploy)")
# Docker may take its time on a busy machine
_PATIENCE = ("--timeout", "10m")
_TRIES = 3


class DeployError(OSError):
    """containerlab or Docker refused, in words."""


def deployed() -> bool:
    """Whether this machine's lab is one of containerlab's."""
    return any(FOLDER.glob("*.clab.yml"))


def topology_file() -> Path:
    """Return the lab's topology file. Raises DeployError when the lab has none."""
    found = sorted(FOLDER.glob("*.clab.yml"))
    if not found:
        raise DeployError(f"no topology file in {FOLDER}")
    return found[0]


def _topology() -> tuple[Path, dict[str, Any]]:
    import yaml

    path = topology_file()
    data: dict[str, Any] = yaml.safe_load(path.read_text())
    return path, data


def deploy(lab: Lab, note: Callable[[str], None]) -> dict[str, Any]:
    """Deploy the lab and remember its containers; returns seconds by phase and complaints. Raises DeployError."""
    started = time.monotonic()
    if _EMBEDDED.is_dir():
        note("starting the Docker engine")
        _docker_engine()
    docker_s = time.monotonic() - started
    path, topology = _topology()
    complaints = containerlab(["deploy", "-t", str(path)], note)
    remember(topology, [node.name for node in lab.nodes])
    return {
        "docker_s": round(docker_s, 2),
        "deploy_s": round(time.monotonic() - started - docker_s, 2),
        "complaints": complaints,
    }


def destroy(note: Callable[[str], None]) -> list[str]:
    """Destroy the lab and return what is left of it: containers, networks, namespaces, the lab's folder."""
    path, topology = _topology()
    for _ in range(_TRIES):
        # on a busy machine Docker gives up waiting for the end of a container, and containerlab goes on without it
        containerlab(["destroy", "-t", str(path), "--cleanup"], note)
        if not (left := left_over(topology)):
            break
    return left


def left_over(topology: dict[str, Any]) -> list[str]:
    """Return what a destroyed lab left behind, in words."""
    name = topology["name"]
    containers = _lines(["docker", "ps", "-a", "--filter", f"label=containerlab={name}", "--format", "{{.Names}}"])
    networks = _lines(["docker", "network", "ls", "--format", "{{.Name}}"])
    mine = topology.get("mgmt", {}).get("network")
    spaces = readback.names(topology).values()
    return [
        *(f"container {line}" for line in containers),
        *(f"network {line}" for line in networks if line == mine),
        *(f"network namespace {path.name}" for path in Path("/run/netns").glob("*") if path.name in spaces),
        *(f"folder {folder}" for folder in [FOLDER / f"clab-{name}"] if folder.exists()),
    ]


def read_back() -> tuple[list[dict[str, Any]], list[str]]:
    """Return one row a container, and in words what containerlab's own records and the plan's export differ in."""
    path, topology = _topology()
    command = ["containerlab", "inspect", "-t", str(path), "--format", "json", "--log-level", "error"]
    inspected = subprocess.run(command, capture_output=True, text=True, check=False)
    left = readback.read(path.parent / f"clab-{topology['name']}", inspected.stdout)
    rows = [
        {
            "node": node,
            "container": name,
            "state": (left.states or {}).get(name, "absent"),
            "group": there.group,
            "address": there.address,
            "image": there.image,
        }
        for node, name in readback.names(topology).items()
        for there in [left.nodes.get(node, readback.Container(node, name))]
    ]
    return rows, readback.differences(topology, left)


def remember(topology: dict[str, Any], wanted: Iterable[str]) -> None:
    """Keep the first process of each node's container. Raises DeployError when one does not run."""
    containers = readback.names(topology)
    lines = _lines(["docker", "inspect", "--format", "{{.Name}} {{.State.Pid}}", *(containers[n] for n in wanted)])
    found = {line.split()[0].lstrip("/"): int(line.split()[1]) for line in lines}
    pids = {node: found.get(containers[node], 0) for node in wanted}
    if dead := [node for node, pid in pids.items() if not pid]:
        raise DeployError(f"these containers do not run: {', '.join(dead)}: `docker logs NAME` says why")
    nodes.remember(pids)


def containerlab(arguments: list[str], note: Callable[[str], None]) -> list[str]:
    """Run containerlab, pass its steps on, and return what it and the nodes complained of. Raises DeployError."""
    environment = {**os.environ, "CLAB_VERSION_CHECK": "disable"}
    process = subprocess.Popen(
        ["containerlab", *arguments, *_PATIENCE], cwd=FOLDER, env=environment, text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert process.stdout
    lines = []
    with (nodes.SHARE / "containerlab.log").open("a") as log:
        for line in process.stdout:
            log.write(line)
            log.flush()
            lines.append(line)
            for level, text in messages(line):
                if level == "info" and _STEP.search(text):
                    note(text.splitlines()[0])
    failed = [text for line in lines for _, text in messages(line) if _FAILED.search(text)]
    if process.wait() or failed:
        raise DeployError(f"containerlab {arguments[0]} refused: {trouble.explain(' '.join(failed) or ''.join(lines))}")
    return complaints_in(lines)


def messages(line: str) -> list[tuple[str, str]]:
    """Return (level, text) of a log line of containerlab; an empty list for any other line."""
    found = _MESSAGE.search(line)
    if not found:
        return []
    text = found[2]
    return [(found[1], json.loads(text) if text.startswith('"') else text)]


def complaints_in(lines: list[str]) -> list[str]:
    """Return what containerlab warned of and what `node.sh` complained of, with the node's name."""
    found = []
    for line in lines:
        for level, text in messages(line):
            node = re.search(r'on the node "([^"]+)"', text)
            if node and level == "info":
                found += [f"{node[1]}: {row[2:]}" for row in text.splitlines() if row.startswith("! ")]
            elif node:
                found.append(f"{node[1]}: {' '.join(text.split())[-800:]}")
            elif level in {"warning", "error", "fatal"} and not _HARMLESS.search(text):
                found.append(f"containerlab: {text}")
    return found


def _docker_engine() -> None:
    done = subprocess.run(["sh", str(_SCRIPT)], capture_output=True, text=True, check=False)
    if done.returncode:
        raise DeployError(f"the Docker engine did not start: {(done.stdout + done.stderr).strip()[-600:]}")


def _lines(command: list[str]) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise DeployError(f"`{' '.join(command[:3])}` failed: {trouble.explain(done.stderr)}")
    return [line for line in done.stdout.splitlines() if line]
