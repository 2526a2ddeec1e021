"""What a Linux router does not count by itself: bytes per class and PFC frames per priority, with an nftables table.

The table only counts, on the ports it is given, and goes away with `remove`. Classes are told by DSCP, of the outer
header on a link between leaf and spine, as a switch tells them. A PFC frame (802.1Qbb) counts for every priority whose
bit is set in its vector; XOFF and XON are told apart by the pause time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fabric.strict_json import loads
from validators.counters.readings import BYTES, PACKETS, PAUSE, Key
from validators.devices.answers import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

TABLE = "kvfabric_watch"
RESUME = "resume frames"
_HOOKS = {"rx": "ingress", "tx": "egress"}
# behind the chains of a lab that break links on purpose: what never came is not counted
_HOOK_PRIORITY = -400
_OPCODE_AT, _VECTOR_AT, _TIMES_AT = 0, 16, 32


def ruleset(ports: Sequence[str], classes: Mapping[int, Sequence[int]]) -> str:
    """Return what `nft -f -` reads: the table for `ports`; `classes` maps priority to DSCPs. Replaces an older one."""
    lines = [f"table netdev {TABLE}", f"delete table netdev {TABLE}", f"table netdev {TABLE} {{"]
    chains: list[str] = []
    for port in ports:
        for way, hook in _HOOKS.items():
            by_class, by_pause = _class_rules(port, way, classes), _pause_rules(port, way)
            lines += [f" counter {name} {{}}" for name, _ in (*by_class, *by_pause)]
            chains.append(f" chain {way}.{port} {{")
            chains.append(f'  type filter hook {hook} device "{port}" priority {_HOOK_PRIORITY}; policy accept;')
            chains += [f"  {match} counter name {name}" for name, match in by_class]
            chains.append("  ether type != 0x8808 accept")
            chains += [f"  {match} counter name {name}" for name, match in by_pause]
            chains.append(" }")
    return "\n".join([*lines, *chains, "}"]) + "\n"


def install(ports: Sequence[str], classes: Mapping[int, Sequence[int]]) -> str:
    """Return the shell command that puts the table there."""
    return f"nft -f - <<'END'\n{ruleset(ports, classes)}END"


def remove() -> str:
    """Return the shell command that takes the table away, if it is there."""
    return f"nft delete table netdev {TABLE} 2>/dev/null || true"


def read() -> str:
    """Return the shell command that prints the counters."""
    return f"nft -j list counters table netdev {TABLE}"


def parse(text: str) -> dict[Key, int]:
    """Parse what `read` prints. Raises UnreadableError when the table is not there or is not ours."""
    try:
        objects: Any = loads(text)["nftables"]
        counters = [one["counter"] for one in objects if "counter" in one]
        found: dict[Key, int] = {}
        for one in counters:
            way, kind, priority, port = one["name"].split(".", 3)
            if kind == "class":
                found[Key(port, PACKETS, way, int(priority))] = int(one["packets"])
                found[Key(port, BYTES, way, int(priority))] = int(one["bytes"])
            else:
                found[Key(port, PAUSE if kind == "xoff" else RESUME, way, int(priority))] = int(one["packets"])
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableError(f"nft counters: {type(error).__name__} {error} in {text[:80]!r}") from error
    if not found:
        raise UnreadableError(f"nft counters: table {TABLE} counts nothing")
    return found


def _class_rules(port: str, way: str, classes: Mapping[int, Sequence[int]]) -> list[tuple[str, str]]:
    return [
        (f"{way}.class.{priority}.{port}", f"ip dscp {{ {', '.join(map(str, dscps))} }}")
        for priority, dscps in classes.items()
    ]


def _pause_rules(port: str, way: str) -> list[tuple[str, str]]:
    rules = []
    for priority in range(8):
        frame = f"@nh,{_OPCODE_AT},16 0x0101 @nh,{_VECTOR_AT},16 & {1 << priority:#06x} != 0"
        time = f"@nh,{_TIMES_AT + 16 * priority},16"
        rules.append((f"{way}.xoff.{priority}.{port}", f"{frame} {time} != 0"))
        rules.append((f"{way}.xon.{priority}.{port}", f"{frame} {time} 0"))
    return rules
