"""The check of sessions that go down and come back during an acceptance, while nobody breaks anything on purpose."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from validators.cabling.checks import whole
from validators.check import Check, Context, DeviceInputs, NotJudgedError, Observations, Stage, answer_of, by_device
from validators.control_plane.expected import routers, sessions
from validators.control_plane.frr_json import bfd_of, bfd_peers, bgp_peers
from validators.devices.answers import Answer, Ask
from validators.devices.lab import MACHINE
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fabric.plan import Plan
    from validators.check import CheckInputs
    from validators.control_plane.expected import Session

_BGP, _BFD = "bgp-counters", "bfd-counters"
_PAUSE_S = 0.45  # half of BFD's patience


class SessionFlapInputs(DeviceInputs):
    """A router, how often each of its sessions may go down meanwhile, and for how long it is watched at least, in s."""

    most: Annotated[int, Field(ge=0)] = 0
    least_s: Annotated[float, Field(ge=0, le=86400)] = 0.0


class SessionFlaps(Check):
    """No BGP or BFD session of the plan goes down from the start of an acceptance until checks break some on purpose.

    Routers count how often each session went down; they are asked before the first stage and again here, before stage
    failover. A session that comes up for the first time meanwhile is no flap.

    Pass: no session went down more often than allowed.
    Fail: one did, or its daemon was started again; the text says how often, when BGP came back, and what ran then. In a
        lab whose machine stood still for half of BFD's patience that is unknown (tester-limited), and with --settle a
        second look is compared with the first.
    Error: a router says nothing of its sessions, now or at the start.
    Skipped: where answers are a snapshot, which is one look and not two; in a shell that does not show the counters.
    Example:
        session-flaps:
          - {device: be-leaf-01, most: 0, least_s: 600}
    """

    stage = Stage.STABILITY
    Inputs = SessionFlapInputs
    settles = False
    together = True

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per router with sessions in the plan."""
        yield from (SessionFlapInputs(device=device) for device in routers(plan) if sessions(plan, device))

    def asks_at_start(self, plan: Plan, inputs: SessionFlapInputs) -> list[Ask]:
        """The counters of both protocols."""
        del plan
        return [Ask(inputs.device, question) for question in (_BGP, _BFD)]

    def collect_all(self, context: Context, cases: Sequence[SessionFlapInputs]) -> list[Observations | Exception]:
        """Ask all routers again at once, when it has been long enough; say what ran how long ago.

        Of a run's files both looks are taken.
        """
        asks = {inputs.device: self.asks_at_start(context.plan, inputs) for inputs in cases}
        if context.devices.rounds is None:
            longest = max(inputs.least_s for inputs in cases)
            time.sleep(max(0.0, longest - (time.monotonic() - context.begun_at)))
        every = [ask for mine in asks.values() for ask in mine]
        # a second attempt is compared with the first one
        before = {ask: context.asked.get(ask) or context.begun[ask] for ask in every if ask in context.begun}
        again = any(ask in context.asked for ask in every)
        before = before or context.gather(every, fresh=True)
        after = context.gather(every, fresh=True, sample=1)
        context.asked.update(after if context.begun else {})
        now = time.monotonic()
        ran = [(text, start, end) for text, start, end in context.ran if not text.startswith(self.name)]
        watched = {
            "live": bool(context.begun),
            "seconds": round(now - context.begun_at, 1) if context.begun and not again else None,
            "pauses": [] if again or context.devices.physical else _pauses(context),
            "ran": [[text, round(now - start, 1), round(now - end, 1)] for text, start, end in ran],
        }
        return [self._looks(asks[one.device], before, after, watched) for one in cases]

    def _looks(
        self, asks: list[Ask], before: dict[Ask, Answer], after: dict[Ask, Answer], watched: dict[str, Any]
    ) -> Observations | Exception:
        if not watched["live"] and all(after[ask].again for ask in asks):
            message = "the stored answers are not two looks, and a flap shows between two: it must run live"
            return NotJudgedError(message, State.SKIPPED)
        looks = {
            when: by_device({ask: look[ask] for ask in asks}) for when, look in (("before", before), ("after", after))
        }
        return {**looks, **watched}

    def judge(self, plan: Plan, inputs: SessionFlapInputs, observations: Observations) -> Result:
        """Compare the counters of each session; what ran when it came back is named."""
        looks = [_Look(observations[when], inputs.device) for when in ("before", "after")]
        ran = observations.get("ran", ())
        parts = [_session(self.name, inputs, session, looks, ran) for session in sessions(plan, inputs.device)]
        seconds = observations.get("seconds")
        period = f" for {seconds:.0f} s" if seconds is not None else ""
        longest = max((gap for _, gap in observations.get("pauses", ())), default=0.0)
        if longest >= _PAUSE_S:
            said = f"; tester-limited: the lab's machine stood still for up to {longest:.1f} s"
            parts = [_excused(part, said) for part in parts]
        return whole(self.name, inputs.device, parts, f"sessions stayed as they were{period}")


class _Look:
    """What a router's counters said at one time."""

    def __init__(self, observations: Observations, device: str) -> None:
        self.bgp = bgp_peers(answer_of(observations, device, _BGP))
        self.bfd = bfd_peers(answer_of(observations, device, _BFD))

    def downs(self, session: Session) -> dict[str, int | None]:
        """Return how often the session went down so far, by protocol; None where it is not there."""
        peer = self.peer(session)
        found = bfd_of(self.bfd, session.neighbour)
        return {
            "BGP": _count(peer, "connectionsDropped", session.neighbour) if peer else None,
            "BFD": _count(found, "session-down", session.neighbour) if found else None,
        }

    def peer(self, session: Session) -> dict[str, Any]:
        return next(iter(self.bgp.get(session.neighbour, {}).values()), {})


def _excused(part: Result, why: str) -> Result:
    """Return what failed as UNKNOWN: a machine that stands still lets every session's time run out."""
    return replace(part, state=State.UNKNOWN, text=f"{part.text}{why}") if part.state is State.FAIL else part


def _pauses(context: Context) -> list[list[float]]:
    """Return how long ago (s) the lab's machine let nobody run, and for how long; nothing where it does not say."""
    ask = Ask(MACHINE, "pauses-since")
    lines = context.gather([ask], fresh=True)[ask].text.split("\n")
    try:
        now, *rows = [[float(word) for word in line.split()] for line in lines if line.strip()]
        return [[round(now[0] - at, 2), gap] for at, gap in rows]
    except ValueError:
        return []


def _count(peer: dict[str, Any], name: str, neighbour: str) -> int:
    if not isinstance(peer.get(name), int):
        message = f"{neighbour}: this version does not say how often the session went down ({name})"
        raise NotJudgedError(message)
    return int(peer[name])


def _session(
    check: str, inputs: SessionFlapInputs, session: Session, looks: list[_Look], ran: list[tuple[str, float, float]]
) -> Result:
    before, after = (look.downs(session) for look in looks)
    seen = [name for name in before if before[name] is not None or after[name] is not None]
    said = [text for name in before if (text := _flaps(name, before[name], after[name], inputs.most))]
    labels = {"device": inputs.device, "port": session.port, "link": session.link}
    subject = f"{inputs.device} {session.port} -> {session.far}"
    if not seen:
        text = "there was no session, neither at the start nor now, so none could go down"
        return Result(check, subject, State.SKIPPED, text, labels=labels)
    if not said:
        downs = ", ".join(f"{name} {after[name]}" for name in seen)
        return Result(check, subject, State.PASS, f"steady; went down so far: {downs}", labels=labels)
    text = "; ".join(said) + _back(looks[1].peer(session), ran)
    place = f"{inputs.device} {session.port} ({session.interface}), link {session.link}"
    return Result(check, subject, State.FAIL, text, place, labels=labels)


def _flaps(name: str, before: int | None, after: int | None, most: int) -> str:
    """Say what is wrong with a session's counter; one that is not there was not there before is for other checks."""
    if before is None:
        return ""
    if after is None:
        return f"{name} had a session at the start, and has none now"
    if after < before:
        return f"{name} counts from nothing again: its daemon was started anew, or the session made anew"
    times = after - before
    return f"{name} went down {times} time{'s' * (times > 1)}, {most} are allowed" if times > most else ""


def _back(peer: dict[str, Any], ran: list[tuple[str, float, float]]) -> str:
    """Say since when BGP is up again, and which case ran then."""
    if peer.get("state") != "Established":
        return f"; BGP is {peer['state']} now" if peer.get("state") else ""
    if not isinstance(peer.get("peerUptimeMsec"), int):
        return ""
    ago = peer["peerUptimeMsec"] / 1000
    during = next((text for text, start, end in ran if end <= ago <= start), "")
    return f"; BGP is up since {ago:.0f} s before the end" + (f", when {during} ran" if during else "")
