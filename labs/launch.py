"""Start a lab: folder, files, supervisor, machine, nodes, convergence."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fabric.problem import CouldNotRunError, InputError, Problem
from labs import engines, state
from labs.client import Running
from labs.machine import Options, code_folder
from labs.model import Lab, faults

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_BOOT_S = 60
_LLDP_S = 30


@dataclass(frozen=True, slots=True)
class Started:
    """A lab that is up: the connection, seconds by phase, what the nodes complained of, what did not converge."""

    running: Running
    seconds: dict[str, float]
    complaints: tuple[str, ...]
    missing: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether the lab is what was planned."""
        return not self.complaints and not self.missing


def launch(
    lab: Lab,
    files: Path | Callable[[Path], object],
    engine: str = "",
    options: Options | None = None,
    timeout_s: float = 180,
    say: Callable[[str], None] = lambda _text: None,
) -> Started:
    """Start a lab from a folder with one folder of files a node; it ends with the calling process until `commit`.

    `files` may also be a function that writes such a folder: it is then written into the lab's own, and goes with it.

    Raises InputError for a lab that cannot be built, CouldNotRunError when the engine or a node fails; nothing stays.
    """
    if found := faults(lab):
        raise InputError([Problem("lab.model", f"lab {lab.name}", text) for text in found])
    state.require_free(lab.name)
    chosen = engines.choose(engine)
    for text in engines.load(chosen).limits():
        say(f"engine {chosen}: {text}")
    started = time.monotonic()
    folder, alive = state.create(lab.name)
    lease_read, lease_write = os.pipe()
    try:
        with _room_in(folder):
            _place_files(lab, files, folder / "share")
            running = _supervise(folder, chosen, lease_read, alive, options or Options())
    except BaseException:
        os.close(lease_write)
        os.close(alive)
        with contextlib.suppress(FileNotFoundError):
            _settle(folder)
        raise
    finally:
        os.close(lease_read)
    os.close(alive)
    # the writing end stays open, unreferenced, until this process ends: that is the lease
    try:
        with _room_in(folder):
            return _bring_up(running, chosen, started, timeout_s, say)
    except BaseException:
        running.stop()
        raise


@contextlib.contextmanager
def _room_in(folder: Path) -> Iterator[None]:
    """Say in the lab's words what went wrong with its files, or that its machine is silent."""
    try:
        yield
    except TimeoutError as error:
        text = f"the machine of lab {folder.name} does not answer within {_BOOT_S} s: is this host very busy? ({error})"
        raise CouldNotRunError(text) from error
    except OSError as error:
        where = error.filename or folder.parent
        fix = f"; KVFABRIC_LAB_STATE names another place than {folder.parent}"
        raise CouldNotRunError(f"lab {folder.name} cannot keep its files, {where}: {error.strerror}{fix}") from error


def _bring_up(running: Running, engine: str, started: float, timeout_s: float, say: Callable[[str], None]) -> Started:
    say(f"engine {engine}: booting")
    running.run("", ["true"], timeout_s=_BOOT_S).check()
    seconds = {"boot": round(time.monotonic() - started, 2)}
    say(f"machine ready after {seconds['boot']} s; building {len(running.lab.nodes)} nodes")
    made = running.call(engines.bring_up(engine), on_note=say)
    seconds |= {key.removesuffix("_s"): value for key, value in made.items() if key.endswith("_s")}
    say(f"nodes up after {time.monotonic() - started:.1f} s; waiting for FRR to converge")
    settled = running.call("converge", timeout_s=timeout_s)
    cabled = running.call("cabled", timeout_s=_LLDP_S)
    seconds |= {"converge": settled["seconds"], "lldp": cabled["seconds"]}
    seconds["total"] = round(time.monotonic() - started, 2)
    state.write_facts(running.folder, seconds=seconds, complaints=made["complaints"])
    return Started(running, seconds, tuple(made["complaints"]), tuple(settled["missing"] + cabled["missing"]))


def _place_files(lab: Lab, files: Path | Callable[[Path], object], share: Path) -> None:
    (share / "lab.json").write_text(lab.to_json())
    (share / "results").mkdir()
    source, target = (files if isinstance(files, Path) else share / "nodes"), share / "nodes"
    if not isinstance(files, Path):
        files(target)
    names = dict.fromkeys(node.files or node.name for node in lab.nodes)
    if absent := [name for name in names if not (source / name).is_dir()]:
        fix = "`kvfabric render SITE --out DIR` first"
        text = f"no folder of rendered files below {source}"
        raise InputError([Problem("lab.files", name, text, fix=fix) for name in absent])
    if source != target:
        for name in names:
            shutil.copytree(source / name, target / name)


def _supervise(folder: Path, engine: str, lease: int, alive: int, options: Options) -> Running:
    """Start the supervisor in a session of its own: Ctrl-C reaches the tool only, and the lease does the rest.

    What it says is kept in memory: it may fail because the disk is full, and its folder goes with it.
    """
    arguments = [str(folder), engine, str(lease), str(alive), json.dumps(asdict(options))]
    said = os.memfd_create("supervisor")
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "labs.supervisor", *arguments], pass_fds=[lease, alive], start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=said, stderr=said, cwd="/", env={**os.environ, "PYTHONPATH": str(code_folder())},  # noqa: E501
        )  # fmt: skip
        return _connect(folder, process, said)
    finally:
        os.close(said)


def _connect(folder: Path, supervisor: subprocess.Popen[bytes], said: int) -> Running:
    for _ in range(200):
        if (folder / "control.sock").exists():
            with contextlib.suppress(CouldNotRunError):
                return Running(folder)
        if supervisor.poll() is not None:
            break
        time.sleep(0.05)
    supervisor.kill()
    words = os.pread(said, 1 << 16, 0).decode(errors="replace").strip()[-800:]
    raise CouldNotRunError(f"lab {folder.name} did not start: {words or 'its supervisor said nothing'}")


def _settle(folder: Path) -> None:
    """Give a supervisor that lost its lease the time to clean up, then clean up for it."""
    deadline = time.monotonic() + 5
    while folder.exists() and state.is_alive(folder) and time.monotonic() < deadline:
        time.sleep(0.05)
    state.remove(folder)
