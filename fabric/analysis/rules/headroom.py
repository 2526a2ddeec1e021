"""The headroom that lossless ports share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.analysis.rendered import CONFIG_DB
from fabric.analysis.rule import Rule
from fabric.analysis.rules.qos import indexes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.analysis.rendered import ConfigDb
    from fabric.problem import Problem


class HeadroomPool(Rule):
    """The headroom of a switch's lossless ports is at most `headroom_ratio` times what they share (default 2).

    Why: ports share their headroom, since they are not all paused at once. Too many for the pool, and packets that are
        under way when many are paused are dropped.
    Fix: use fewer lossless ports or shorter cables, or raise `roce.headroom_ratio` when the vendor says so.
    Source: SONiC's shared headroom pool, whose over-subscribe ratio is 2 by default.
    """

    id = "qos.headroom-pool"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for group in self.facts.alike(("BUFFER_PG", "BUFFER_PROFILE", "BUFFER_POOL")):
            fabric = self.plan.fabrics.get(group.fabric)
            db = self.facts.db(group.first)
            for pool, asked in _asked(db).items() if fabric and fabric.qos else ():
                said = db.get("BUFFER_POOL", {}).get(pool, {}).get("xoff", "")
                shared = int(said) if said.isdigit() else 0
                limit = fabric.qos.headroom_ratio if fabric and fabric.qos else 0
                if asked <= limit * shared:
                    continue
                ratio = f"{asked / shared:.2f}:1, the limit is {limit:g}:1" if shared else "there is none to share"
                text = f"lossless ports ask for {asked:,} bytes of headroom, {pool} shares {shared:,}: {ratio}"
                yield self.finding(group.subject, text, device=group.first, keys=("BUFFER_POOL", pool, "xoff"))


def _asked(db: ConfigDb) -> dict[str, int]:
    """Bytes of headroom that priority groups ask of each pool."""
    profiles = db.get("BUFFER_PROFILE", {})
    found: dict[str, int] = {}
    for key, row in db.get("BUFFER_PG", {}).items():
        profile = profiles.get(row.get("profile", ""), {})
        xoff = profile.get("xoff", "")
        if xoff.isdigit():
            pool = profile.get("pool", "")
            found[pool] = found.get(pool, 0) + int(xoff) * len(indexes(key.partition("|")[2]))
    return found
