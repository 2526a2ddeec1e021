"""Proof of the counting path: 802.1Qbb frames made by scapy cross a lab's link, and both ends count every one of them.

Only in a lab: on a real link these frames would stop traffic. The far end also captures them, so that what was counted
is known to be what was made.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.problem import CouldNotRunError
from validators.counters import pfc_frames, watch_table
from validators.counters.readings import PAUSE, Key
from validators.counters.rules import plan_labels
from validators.devices.answers import UnreadableError
from validators.results import Measurement, Result, State

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fabric.plan import Link, Plan
    from validators.agents.agent import Agent

CHECK = "counters.proof"
_SOURCE = "02:00:00:00:88:08"
_TIMEOUT_S = 90.0
_SEND = """
import socket, sys
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
raw.bind((sys.argv[1], 0))
for line in sys.stdin:
    raw.send(bytes.fromhex(line))
"""
# says that it listens by making the file it is given, so that nothing is sent too early
_CAPTURE = """
import os, socket, sys
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x8808))
raw.bind((sys.argv[1], 0x8808))
raw.settimeout(float(sys.argv[3]))
open(sys.argv[4], "w").close()
try:
    for _ in range(int(sys.argv[2])):
        print(raw.recv(2048).hex(), flush=True)
except TimeoutError:
    pass
finally:
    os.unlink(sys.argv[4])
"""
_READY = "/tmp/kvfabric-capture"  # noqa: S108 - a name inside a lab's node
_SILENCE_S = 10


@dataclass(frozen=True, slots=True)
class Frames:
    """What is sent: XOFF frames on each priority, XON frames on each, and global pause frames that are no PFC."""

    pauses: dict[int, int]
    resumes: dict[int, int]
    others: int = 3

    def bytes(self) -> list[bytes]:
        """Return all frames."""
        made = [pfc_frames.craft(_SOURCE, {p: 0xFFFF}) for p, n in self.pauses.items() for _ in range(n)]
        made += [pfc_frames.craft(_SOURCE, {p: 0}) for p, n in self.resumes.items() for _ in range(n)]
        pause = pfc_frames.craft(_SOURCE, {})
        return made + [pause[:14] + b"\x00\x01" + pause[16:]] * self.others


def prove_counting(
    plan: Plan, link: Link, from_device: str, agent_of: Callable[[str], Agent], frames: Frames
) -> Result:
    """Send frames over a lab's link from one end; PASS when both ends counted, and the far one saw, exactly them."""
    near, far = link.end(from_device), link.far(from_device)
    subject = f"{near.device}:{near.interface} -> {far.device}:{far.interface}"
    labels = {**plan_labels(plan, far.device, far.interface), "direction": "rx"}
    ends = [(agent_of(near.device), near.interface, "tx"), (agent_of(far.device), far.interface, "rx")]
    try:
        _all(ends, lambda port: watch_table.install([port], {}))
        try:
            captured = _send(ends, frames)
            counted = [watch_table.parse(text) for text in _all(ends, lambda _port: watch_table.read())]
        finally:
            _all(ends, lambda _port: watch_table.remove())
    except (CouldNotRunError, UnreadableError) as error:
        return Result(CHECK, subject, State.ERROR, str(error), link.id, labels=labels)
    wrong = _unlike(captured, frames)
    for (_, port, way), found in zip(ends, counted, strict=True):
        wrong += _differences(port, way, found, frames)
    kinds = f"{sum(frames.pauses.values())} pause frames on priorities {', '.join(map(str, frames.pauses))}"
    kinds += f", {sum(frames.resumes.values())} resume and {frames.others} other frames"
    text = "; ".join(wrong) or f"{kinds}: each counted as what it is at both ends"
    measured = tuple(
        Measurement(
            f"pause frames priority {p}", float(counted[1].get(Key(far.interface, PAUSE, "rx", p), 0)), "frames"
        )
        for p in frames.pauses
    )
    state = State.FAIL if wrong else State.PASS
    return Result(CHECK, subject, state, text, link.id, measured, labels=labels)


def _all(ends: Sequence[tuple[Agent, str, str]], command: Callable[[str], str]) -> list[str]:
    said = []
    for agent, port, _ in ends:
        done = agent.execute(["sh", "-c", command(port)], b"", _TIMEOUT_S)
        if done.code:
            raise CouldNotRunError(f"{agent.name}: {done.stderr.decode(errors='replace').strip()[-200:]}")
        said.append(done.stdout.decode())
    return said


def _send(ends: Sequence[tuple[Agent, str, str]], frames: Frames) -> list[bytes]:
    """Capture at the far end while the near end sends; returns the captured frames."""
    (near, near_port, _), (far, far_port, _) = ends
    made = frames.bytes()
    capture = [far.python, "-c", _CAPTURE, far_port, str(len(made)), str(_SILENCE_S), _READY]
    with ThreadPoolExecutor(1) as pool:
        listening = pool.submit(far.execute, capture, b"", _TIMEOUT_S)
        wait = f"for i in $(seq 200); do test -e {_READY} && exit 0; sleep 0.1; done; exit 1"
        ready = far.execute(["sh", "-c", wait], b"", _TIMEOUT_S)
        if ready.code:
            raise CouldNotRunError(f"{far.name}: nothing listens on {far_port}")
        lines = "".join(frame.hex() + "\n" for frame in made)
        sent = near.execute([near.python, "-c", _SEND, near_port], lines.encode(), _TIMEOUT_S)
        if sent.code:
            raise CouldNotRunError(f"{near.name}: {sent.stderr.decode(errors='replace').strip()[-200:]}")
        return [bytes.fromhex(line) for line in listening.result().stdout.decode().split()]


def _differences(port: str, way: str, found: dict[Key, int], frames: Frames) -> list[str]:
    wanted = {Key(port, PAUSE, way, p): frames.pauses.get(p, 0) for p in range(8)}
    wanted |= {Key(port, watch_table.RESUME, way, p): frames.resumes.get(p, 0) for p in range(8)}
    return [f"{key}: {found.get(key, 0)} counted, {n} sent" for key, n in wanted.items() if found.get(key) != n]


def _unlike(captured: Sequence[bytes], frames: Frames) -> list[str]:
    """What scapy makes of the captured frames must be what it made."""
    seen = [found for frame in captured if (found := pfc_frames.recognise(frame)) is not None]
    wanted = sum(frames.pauses.values()) + sum(frames.resumes.values())
    paused = {p: sum(one.quanta.get(p, 0) > 0 for one in seen) for p in frames.pauses}
    if len(seen) == wanted and paused == frames.pauses and len(captured) == wanted + frames.others:
        return []
    return [f"captured {len(captured)} frames, {len(seen)} of them PFC, of {wanted + frames.others} sent"]
