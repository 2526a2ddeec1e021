"""The devices of a running lab: every node is a Linux machine, reached through the lab's own channel."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from fabric.problem import CouldNotRunError
from validators.devices.answers import Answer, Ask
from validators.devices.dialects import LINUX, command_for
from validators.devices.frr_batch import command_of, is_frr, split

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from labs.client import Running

_TOGETHER = 4
# the lab itself, for `run`: what is done to a node from outside is undone there; no device can have this name
MACHINE = "the lab"


class LabDevices:
    """Asks the nodes of a lab. Its ports are virtual. An `owned` lab ends when it is closed."""

    physical = False
    rounds: int | None = None
    unproven: Sequence[str] = ()

    def __init__(self, running: Running, name: str = "lab", *, owned: bool = False) -> None:
        self.running, self.name, self.owned = running, name, owned

    def gather(self, asks: Iterable[Ask], sample: int = 0) -> dict[Ask, Answer]:
        """Ask a few nodes at a time; all that FRR is asked of a node goes into one vtysh, whose start costs most."""
        del sample
        wanted = list(asks)
        groups: dict[str, list[str]] = {}
        for ask in wanted:
            if is_frr(ask.question):
                groups.setdefault(ask.device, []).append(ask.question)
        with ThreadPoolExecutor(_TOGETHER) as pool:
            found: dict[Ask, Answer] = {}
            for device, answers in zip(groups, pool.map(self._ask_frr, groups, groups.values()), strict=True):
                found |= {Ask(device, question): answer for question, answer in answers.items()}
            single = [ask for ask in wanted if ask not in found]
            found |= dict(zip(single, pool.map(self._ask, single), strict=True))
        return found

    def _ask_frr(self, device: str, questions: list[str]) -> dict[str, Answer]:
        if len(questions) < 2:
            return {}
        answer = self.run(device, command_of(questions))
        # when a daemon is silent the answers cannot be told apart: then each is asked alone
        return split(questions, answer) if answer.ok else {}

    def _ask(self, ask: Ask) -> Answer:
        command = command_for(LINUX, ask.question)
        return (
            self.run(ask.device, command)
            if command
            else Answer(error=f"nobody knows how to ask '{ask.question}' there")
        )

    def run(self, device: str, command: str, timeout_s: float = 30.0) -> Answer:
        """Run a shell command in a node, or in the lab's own machine."""
        started = time.monotonic()
        node = "" if device == MACHINE else device
        try:
            done = self.running.run(node, ["sh", "-c", command], timeout_s=timeout_s)
        except (CouldNotRunError, TimeoutError, OSError) as error:
            return Answer(error=str(error) or type(error).__name__, seconds=time.monotonic() - started)
        failure = "" if done.rc == 0 else f"exit {done.rc}: {(done.err or done.out).strip()[-300:]}"
        return Answer(done.out, failure, time.monotonic() - started)

    def close(self) -> None:
        """Leave the lab running, unless it was started for this."""
        if self.owned:
            self.running.stop()
        else:
            self.running.close()
