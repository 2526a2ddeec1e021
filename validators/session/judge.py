"""Judge a session case: connections made again, the session resumed where it stopped, the work done once; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from validators.results import Measurement, Result, State, combine

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from validators.session.client import SessionSeen

CHECK = "service.session"


@dataclass(frozen=True)
class CaseSeen:
    """One case over several sessions: what each client saw, and what the store knows of each token.

    `store[token]` holds `pieces`, `makers` (one per piece) and `refused`. `must_break`: the event is of a kind that
    cuts connections (a case in which nothing was cut tested nothing). `within_ms` bounds each outage, 0: no bound.
    """

    name: str
    sessions: Sequence[SessionSeen]
    store: Mapping[str, Mapping[str, Any]]
    must_break: bool
    may_break: bool = True
    within_ms: float = 0.0


def judge(subject: str, seen: CaseSeen, *, labels: Mapping[str, str] | None = None) -> Result:
    """Return one result with a part per promise."""
    parts = (_re_made(subject, seen), _resumed(subject, seen), _once(subject, seen))
    state = combine(part.state for part in parts)
    outages = sorted(outage for session in seen.sessions for outage in session.outages_ms)
    figures = [
        Measurement("sessions resumed", sum(bool(s.resumed_at) and s.finished for s in seen.sessions), "sessions")
    ]
    if outages:
        figures.append(Measurement("session outage p50", outages[len(outages) // 2], "ms", len(outages)))
        figures.append(Measurement("session outage max", outages[-1], "ms", len(outages)))
    text = "; ".join(part.text for part in parts if part.state is state)
    marks = {**(labels or {}), "case": seen.name}
    evidence = {"sessions": [session.to_dict() for session in seen.sessions[:10]]}
    name = f"{subject} {seen.name}"
    return Result(CHECK, name, state, text, measurements=tuple(figures), parts=parts, labels=marks, evidence=evidence)


def _re_made(subject: str, seen: CaseSeen) -> Result:
    name = f"{subject} {seen.name}: connections"
    if not seen.sessions:
        return Result(CHECK, name, State.ERROR, "no session ran")
    broken = [session for session in seen.sessions if session.breaks]
    late = [session for session in broken if seen.within_ms and max(session.outages_ms, default=0.0) > seen.within_ms]
    unfinished = [session for session in broken if not session.finished]
    again = len(broken) - len(unfinished)
    text = f"{len(broken)} of {len(seen.sessions)} sessions lost a connection, {again} made it again"
    if broken and not seen.may_break:
        return Result(CHECK, name, State.FAIL, f"{text}; none may be cut here")
    if unfinished or late:
        if late:
            text += f"; {len(late)} were out for more than {seen.within_ms:g} ms"
        return Result(CHECK, name, State.FAIL, text)
    if seen.must_break and not broken:
        return Result(CHECK, name, State.UNKNOWN, f"{text}: the event cut nothing, so nothing was tested")
    return Result(CHECK, name, State.PASS, text)


def _resumed(subject: str, seen: CaseSeen) -> Result:
    name = f"{subject} {seen.name}: answers"
    if not seen.sessions:
        return Result(CHECK, name, State.ERROR, "no session ran")
    bad = [session for session in seen.sessions if not session.finished or session.wrong or session.repeated]
    whole = len(seen.sessions) - len(bad)
    text = f"{whole} of {len(seen.sessions)} answers whole, in order and each piece once"
    if bad:
        worst = bad[0]
        text += f"; {worst.session}: {worst.received} of {worst.wanted} pieces"
        text += f", {worst.wrong} wrong, {worst.repeated} repeated"
    return Result(CHECK, name, State.FAIL if bad else State.PASS, text)


def _once(subject: str, seen: CaseSeen) -> Result:
    """Each piece was made once. What the store refused was work done twice, even if nobody saw it."""
    name = f"{subject} {seen.name}: work"
    missing = [session.token for session in seen.sessions if session.token not in seen.store]
    if missing or not seen.sessions:
        return Result(CHECK, name, State.ERROR, f"the store knows nothing of {', '.join(missing[:3]) or 'any session'}")
    twice = [
        token for token, facts in seen.store.items() if facts["refused"] or facts["pieces"] != len(facts["makers"])
    ]
    wanted = {session.token: session.wanted for session in seen.sessions}
    over = [token for token, count in wanted.items() if seen.store[token]["pieces"] > count]
    state = State.FAIL if twice or over else State.PASS
    refused = sum(facts["refused"] for facts in seen.store.values())
    text = f"work of {len(wanted) - len({*twice, *over})} of {len(wanted)} requests done once"
    if refused:
        text += f"; {refused} pieces were made a second time"
    return Result(CHECK, name, state, text)
