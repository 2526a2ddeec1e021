"""Roles: one side of a measurement, run by an agent in a thread of its own, for testers on two hosts."""

from __future__ import annotations

import threading
import time
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol

from validators.connections import layout
from validators.connections.initiator import Initiator
from validators.connections.responder import Responder
from validators.connections.step import StepSpec

if TYPE_CHECKING:
    from validators.connections.port import Port


class Engine(Protocol):
    """What a role needs of the thing it runs."""

    def poll(self) -> None:
        """Take in and answer what has arrived, without waiting."""

    def report(self) -> dict[str, Any]:
        """Return what was seen."""


class Role:
    """Polls an engine until stopped; commands run between two polls, so an engine needs no locks of its own."""

    def __init__(self, engine: Engine, rest_s: float = 0.0005) -> None:
        """Start polling."""
        self.engine, self._rest = engine, rest_s
        self._pause, self._last = 0.0, time.monotonic()
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._error = ""
        self._thread = threading.Thread(target=self._run, name="role", daemon=True)
        self._thread.start()

    @classmethod
    def make(cls, kind: str, port: Port, spec: dict[str, Any], rest_s: float = 0.0005) -> Role:
        """Make a role: `initiator` or `responder` of a ladder, `idle-initiator`, `idle-responder`, `long-flows`."""
        if kind in ("initiator", "responder"):
            return cls(_ladder_side(kind, port, StepSpec.from_dict(spec)), rest_s)
        if kind.startswith("idle-"):
            from validators.connections.idle import IdleInitiator, IdleResponder, IdleSpec

            idle = IdleSpec.from_dict(spec)
            return cls(IdleInitiator(port, idle) if kind == "idle-initiator" else IdleResponder(port, idle), rest_s)
        if kind.startswith("flows-"):
            from validators.failover.flows import FlowsSpec, make_side

            return cls(make_side(kind.removeprefix("flows-"), port, FlowsSpec.from_dict(spec)), rest_s)
        msg = f"no role {kind!r}"
        raise ValueError(msg)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with self._lock:
                    now = time.monotonic()
                    self._pause, self._last = max(self._pause, now - self._last), now
                    self.engine.poll()
            except (OSError, RuntimeError, ValueError) as error:
                self._error = f"{type(error).__name__}: {error}"
                return
            time.sleep(self._rest)

    def do(self, what: str, args: dict[str, Any]) -> Any:
        """Run a command of the engine; raises ValueError for one that it does not have."""
        command = getattr(self.engine, what, None)
        if what.startswith("_") or what in ("poll", "report") or not callable(command):
            msg = f"no command {what!r} here"
            raise ValueError(msg)
        with self._lock:
            try:
                if isinstance(self.engine, (Initiator, Responder)):
                    return asdict(command(args["rate_per_s"], self.engine.poll))
                return command(**args)
            finally:
                self._last = time.monotonic()  # a command polls by itself

    def stop(self) -> dict[str, Any]:
        """Stop and return the engine's report; raises RuntimeError if it had failed on the way."""
        self._stop.set()
        self._thread.join(timeout=5)
        if self._error:
            raise RuntimeError(self._error)
        self.engine.poll()
        # a host that did not let the role run for this long may have lost or delayed what it then blames others for
        return {**self.engine.report(), "pause_s": round(self._pause, 3)}


def _ladder_side(kind: str, port: Port, spec: StepSpec) -> Initiator | Responder:
    protocol = layout.PROTOCOLS[spec.protocol]
    if kind == "responder":
        return Responder(port, protocol, spec.connections, spec.run, answer_every=spec.answer_every)
    tuples = spec.space.pick(spec.connections, seed=spec.seed, skip=spec.skip)
    return Initiator(port, protocol, tuples, spec.run, confirm=spec.confirm)
