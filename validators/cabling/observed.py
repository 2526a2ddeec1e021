"""From samples of LLDP to cables: union over a window, so that a neighbour that comes and goes is not called wrong."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from validators.cabling.lldp import parse_lldp
from validators.devices.answers import Answer, UnreadableError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from validators.cabling.names import PortNames, Socket


@dataclass
class Seen:
    """What the window showed.

    `cables` maps each port to the port at the other end, both ways. `flapping` are ports whose neighbour was there in
    some samples only, or changed. `one_way` are cables that only one end sees although the other device answered.
    `strangers` are neighbours that are not in the plan, by port. `silent` says why a device gave no answer.
    """

    cables: dict[Socket, Socket] = field(default_factory=dict)
    flapping: dict[Socket, str] = field(default_factory=dict)
    one_way: set[Socket] = field(default_factory=set)
    strangers: dict[Socket, str] = field(default_factory=dict)
    silent: dict[str, str] = field(default_factory=dict)


def union(names: PortNames, samples: Sequence[Mapping[str, Answer]]) -> Seen:
    """Put the samples of all devices together. Cost is linear in the neighbours seen."""
    seen = Seen()
    votes: dict[Socket, Counter[Socket]] = defaultdict(Counter)
    answered: Counter[str] = Counter()
    for sample in samples:
        for device, answer in sample.items():
            _read(names, device, answer, votes, answered, seen)
    seen.silent = {device: why for device, why in seen.silent.items() if not answered[device]}
    _judge_steadiness(votes, answered, seen)
    _pair(votes, answered, seen)
    return seen


def _read(
    names: PortNames,
    device: str,
    answer: Answer,
    votes: dict[Socket, Counter[Socket]],
    answered: Counter[str],
    seen: Seen,
) -> None:
    if not answer.ok:
        seen.silent[device] = answer.error
        return
    try:
        neighbours = parse_lldp(answer.text)
    except UnreadableError as error:
        seen.silent[device] = str(error)
        return
    answered[device] += 1
    for neighbour in neighbours:
        local = names.socket(device, neighbour.local)
        if local is None:
            continue
        far = names.socket(neighbour.device, *neighbour.ports)
        if far is not None:
            votes[local][far] += 1
        elif not neighbour.device:
            seen.strangers[local] = "a neighbour without a name"
        else:
            seen.strangers[local] = f"{neighbour.device} {neighbour.ports[0] if neighbour.ports else '?'}"


def _judge_steadiness(votes: dict[Socket, Counter[Socket]], answered: Counter[str], seen: Seen) -> None:
    for port, fars in votes.items():
        total = answered[port.device]
        if len(fars) > 1:
            seen.flapping[port] = "its neighbour changed: " + ", ".join(
                f"{far} in {n} of {total}" for far, n in fars.items()
            )
        elif (count := sum(fars.values())) < total:
            seen.flapping[port] = f"its neighbour was there in {count} of {total} samples"


def _pair(votes: dict[Socket, Counter[Socket]], answered: Counter[str], seen: Seen) -> None:
    """Choose one far end per port: what both ends say first, then what was seen most."""
    candidates: Counter[tuple[Socket, Socket]] = Counter()
    mutual: Counter[tuple[Socket, Socket]] = Counter()
    for port, fars in votes.items():
        for far, count in fars.items():
            pair = (port, far) if port <= far else (far, port)
            candidates[pair] += count
            mutual[pair] += 1
    for pair in sorted(candidates, key=lambda p: (-mutual[p], -candidates[p], p)):
        a, b = pair
        if a in seen.cables or b in seen.cables or a == b:
            continue
        seen.cables[a], seen.cables[b] = b, a
        if mutual[pair] == 1 and answered[a.device] and answered[b.device]:
            seen.one_way |= {a, b}
