"""Which equal-cost path a flow takes, as far as anyone can know it from the files.

A switch hashes some fields of the packet with a function and a seed. The files say the fields; the function of a
Tomahawk is Broadcom's, and Linux hashes with SipHash under a key that it draws at boot (`flow_hash_from_keys`; a kernel
of 6.11 or later can be given a seed). A tunnelled packet is hashed by its outer header, whose UDP source port the
first leaf makes from the inner packet by a hash of its own (RFC 7348, 4.3). So a choice is certain where there is
one cable to choose from, and `unknown` elsewhere; what is said of the rest is the set, and whether the source port
of a QP moves the choice at all.
"""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from fabric.analysis.rendered import CONFIG_DB
from fabric.plan import FABRIC_LINK, LEAF_KINDS

if TYPE_CHECKING:
    from fabric.analysis.facts import Facts
    from fabric.plan import Link, ServerPort

ROCE_PORT = 4791  # UDP destination port of RoCEv2 (IANA)
_SYSCTL = "sysctl.conf"
_POLICY = "net.ipv4.fib_multipath_hash_policy"
_LINUX_FIELDS = {
    "0": ("SRC_IP", "DST_IP"),
    "1": ("SRC_IP", "DST_IP", "IP_PROTOCOL", "L4_SRC_PORT", "L4_DST_PORT"),
    "2": ("INNER_SRC_IP", "INNER_DST_IP"),
}


@dataclass(frozen=True, slots=True)
class Choice:
    """One switch's choice among its cables towards the target.

    `fields` are what is hashed, read from `file` at `key`; `why` says why the outcome is not known. `chosen` is the
    cable where there is only one, else empty. `by_source_port` says whether QPs with other source ports can go
    elsewhere; None when the fields are not in the files.
    """

    device: str
    cables: tuple[str, ...]
    fields: tuple[str, ...]
    file: str
    key: str
    by_source_port: bool | None
    chosen: str
    why: str


@dataclass(frozen=True, slots=True)
class Ecmp:
    """The flow as it leaves the NIC, every choice on its way, and the one path where all choices are certain."""

    flow: dict[str, str | int]
    choices: tuple[Choice, ...]
    paths: int
    path: tuple[str, ...]
    verdict: str

    @property
    def certain(self) -> bool:
        """Whether the path is known."""
        return all(choice.chosen for choice in self.choices)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as JSON-ready data."""
        return {"certain": self.certain, **asdict(self)}


def ecmp_of(facts: Facts, first: ServerPort, last: ServerPort, source_port: int | None) -> Ecmp:
    """Return what is known of the path of a RoCEv2 flow between two NIC ports from UDP source port `source_port`."""
    plan = facts.plan
    near, far = plan.links[first.link], plan.links[last.link]
    flow: dict[str, str | int] = {
        "source": first.address.partition("/")[0],
        "target": last.address.partition("/")[0],
        "protocol": 17,
        "source_port": "any" if source_port is None else source_port,
        "target_port": ROCE_PORT,
    }
    if near.b.device == far.b.device:
        path = (near.id, far.id)
        return Ecmp(flow, (), 1, path, "one leaf, one path")
    ups, downs = cables_between(facts, near.b.device, far.b.device, first.fabric)
    every = [link for links in ups.values() for link in links]
    choices = [_choice(facts, near.b.device, every, tunnelled=False)]
    choices += [_choice(facts, spine, downs[spine], tunnelled=True) for spine in ups]
    paths = sum(len(ups[spine]) * len(downs[spine]) for spine in ups)
    return Ecmp(flow, tuple(choices), paths, _path(choices, near, far), _verdict(choices, paths))


def cables_between(
    facts: Facts, near: str, far: str, fabric: str
) -> tuple[dict[str, list[Link]], dict[str, list[Link]]]:
    """Return the cables of both leaves by spine, for the spines that both reach."""
    sides: tuple[dict[str, list[Link]], dict[str, list[Link]]] = ({}, {})
    for leaf, side in zip((near, far), sides, strict=True):
        for link in facts.plan.links_of.get(leaf, ()):
            if link.kind == FABRIC_LINK and link.fabric == fabric and facts.plan.kind_of[link.a.device] in LEAF_KINDS:
                side.setdefault(link.b.device, []).append(link)
    both = [spine for spine in sides[0] if spine in sides[1]]
    return {s: sides[0][s] for s in both}, {s: sides[1][s] for s in both}


def _choice(facts: Facts, device: str, links: list[Link], tunnelled: bool) -> Choice:
    names = tuple(f"{link.end(device).interface} to {link.far(device).device}" for link in links)
    fields, file, key, why = _hashing(facts, device)
    moves = "L4_SRC_PORT" in fields if fields else None
    if tunnelled and fields:
        why += "; it sees the outer UDP source port, which the first leaf makes by a hash of its own"
    alone = names[0] if len(names) == 1 else ""
    return Choice(device, names, fields, file, key, moves, alone, "one cable, nothing to choose" if alone else why)


def _hashing(facts: Facts, device: str) -> tuple[tuple[str, ...], str, str, str]:
    """(fields, file, key, why the outcome is not known) of a switch."""
    rendered = facts.rendered
    have = rendered.files.get(device, {})
    if CONFIG_DB in have:
        fields = facts.db(device).get("SWITCH_HASH", {}).get("GLOBAL", {}).get("ecmp_hash", ())
        listed = tuple(fields.split(",")) if isinstance(fields, str) else tuple(fields)
        path = rendered.path(device, CONFIG_DB)
        return listed, path, "SWITCH_HASH|GLOBAL|ecmp_hash", "the ASIC's hash function and seed are not published"
    if _SYSCTL in have:
        found = re.search(rf"^{re.escape(_POLICY)}\s*=\s*(\d)", have[_SYSCTL], re.MULTILINE)
        fields = _LINUX_FIELDS.get(found[1], ()) if found else _LINUX_FIELDS["0"]
        return fields, rendered.path(device, _SYSCTL), _POLICY, "Linux hashes under a key that it draws at boot"
    return (), "", "", "no file of it says what is hashed"


def _path(choices: list[Choice], near: Link, far: Link) -> tuple[str, ...]:
    if not all(choice.chosen for choice in choices):
        return ()
    return (near.id, *(f"{choice.device} {choice.chosen}" for choice in choices), far.id)


def _verdict(choices: list[Choice], paths: int) -> str:
    if all(choice.chosen for choice in choices):
        return "certain: one cable at every choice"
    still = [choice.device for choice in choices if choice.by_source_port is False and not choice.chosen]
    if still:
        return f"unknown which of {paths}, and source ports do not spread QPs at {', '.join(still)}: add L4_SRC_PORT"
    blind = [choice.device for choice in choices if choice.by_source_port is None]
    if blind:
        return f"unknown which of {paths}: no file says what {', '.join(blind)} hashes"
    return f"unknown which of {paths}; another source port may take another"
