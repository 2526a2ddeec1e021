"""What comes first when a queue grows: the mark that slows the sender, or the pause that stops everybody."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.analysis.rendered import CONFIG_DB
from fabric.analysis.rule import Rule
from fabric.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.analysis.rendered import ConfigDb
    from fabric.problem import Problem

# a Tomahawk 5 has two traffic managers with half of the buffer and half of the ports each
_TRAFFIC_MANAGERS = 2
_LOSSLESS = "pg_lossless"


class MarkBeforePause(Rule):
    """A queue is marked with ECN in full before PFC pauses who fills it, even with every lossless port congested.

    A priority group may hold alpha x (what is free), alpha = 2 to the power of `dynamic_th`. With n of them congested
    in one traffic manager that is alpha x buffer / (1 + alpha x n): the least it can come to.

    Why: pause stops every flow of the cable, and those behind it, before the sender that is the cause heard a thing.
    Fix: lower `roce.ecn.max` (or raise `roce.ecn.speed`) until the mark is below the pause.
    Source: Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015, section 4.
    """

    id = "qos.mark-before-pause"
    severity = Severity.WARNING
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        tables = ("BUFFER_POOL", "BUFFER_PROFILE", "BUFFER_PG", "QUEUE", "WRED_PROFILE")
        for group in self.facts.alike(tables):
            db = self.facts.db(group.first)
            for name, most in sorted(_marks(db).items()):
                least = _least_pause(db)
                if least and most > least:
                    text = f"{name} marks in full at {most} bytes, PFC may pause from {least} on"
                    yield self.finding(group.subject, text, device=group.first, keys=("WRED_PROFILE", name))


def _marks(db: ConfigDb) -> dict[str, int]:
    """Bytes of full marking by WRED profile, of the profiles that queues have."""
    used = {row.get("wred_profile", "") for row in db.get("QUEUE", {}).values()}
    rows = {name: str(row.get("green_max_threshold", "")) for name, row in db.get("WRED_PROFILE", {}).items()}
    return {name: int(text) for name, text in rows.items() if name in used and text.isdigit()}


def _least_pause(db: ConfigDb) -> int:
    """The fewest bytes of a lossless priority group that bring a pause; 0 where the tables do not say."""
    profiles = db.get("BUFFER_PROFILE", {})
    groups = [row.get("profile", "") for row in db.get("BUFFER_PG", {}).values()]
    lossless = [name for name in groups if name.startswith(_LOSSLESS) and name in profiles]
    sizes = {profiles[name].get("pool", ""): str(profiles[name].get("dynamic_th", "")) for name in lossless}
    found = []
    for pool, exponent in sizes.items():
        size = str(db.get("BUFFER_POOL", {}).get(pool, {}).get("size", ""))
        if size.isdigit() and exponent.removeprefix("-").isdigit():
            alpha, congested = 2.0 ** int(exponent), -(-len(lossless) // _TRAFFIC_MANAGERS)
            found.append(int(alpha * int(size) / _TRAFFIC_MANAGERS / (1 + alpha * congested)))
    return min(found, default=0)
