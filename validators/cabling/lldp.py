"""LLDP neighbours from what devices print: `lldpctl`/`lldpcli` JSON (both of its shapes) and SONiC's two forms.

Sources: lldpcli(8) of lldpd; sonic-utilities `lldpshow`; `show lldp neighbor` of sonic-mgmt-framework.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from validators.devices.answers import UnreadableError, document

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Who is at the far end of a local port. `ports` are the names it gives its own port, best first."""

    local: str
    device: str
    ports: tuple[str, ...]


def parse_lldp(text: str) -> list[Neighbour]:
    """Return the neighbours in what a device printed. Raises UnreadableError when it is neither JSON nor a table."""
    stripped = text.strip()
    start = stripped.find("{")
    if start >= 0 and (start == 0 or stripped[:start].strip().count("\n") < 3):
        return list(_from_json(document(stripped, "LLDP", "{")))
    if "LocalPort" in stripped and re.search(r"^\s*-+(\s+-+)+\s*$", stripped, re.MULTILINE):
        return list(_from_table(stripped.splitlines()))
    if "LocalPort" in stripped:
        message = "this table cuts names off (sonic-cli's `show lldp table`): store `show lldp neighbor`"
        raise UnreadableError(message)
    if re.search(r"^\s*Interface:\s+\S+, ?via:", stripped, re.MULTILINE):
        return list(_from_blocks(stripped))
    if re.search(r"^-+\s*$|^LLDP neighbors", stripped, re.MULTILINE):
        return []
    message = f"this is neither LLDP JSON nor `show lldp table`: {stripped[:60]!r}"
    raise UnreadableError(message)


def _from_json(data: Any) -> Iterator[Neighbour]:
    root = _one(data.get("lldp", {})) if isinstance(data, dict) else {}
    for interface in _many(root.get("interface") if isinstance(root, dict) else None):
        if not isinstance(interface, dict):
            continue
        if isinstance(interface.get("name"), str):
            yield _neighbour(interface["name"], interface)
        else:
            yield from (_neighbour(name, body) for name, body in interface.items() if isinstance(body, dict))


def _neighbour(local: str, body: dict[str, Any]) -> Neighbour:
    chassis, port = _one(body.get("chassis", {})), _one(body.get("port", {}))
    name = _value(chassis.get("name"))
    if not name:
        named = [key for key, inner in chassis.items() if isinstance(inner, dict) and key not in {"id", "capability"}]
        name = named[0] if named else _value(_one(chassis.get("id", {})))
    identity, description = _one(port.get("id", {})), _value(port.get("descr"))
    value = _value(identity)
    # a MAC as port id says nothing that a person could look for: the description holds the name then
    is_mac = isinstance(identity, dict) and identity.get("type") == "mac"
    ports = (description, value) if is_mac else (value, description)
    return Neighbour(local, name, tuple(dict.fromkeys(p for p in ports if p)))


def _one(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else {} if isinstance(value, list) else value


def _many(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _value(item: Any) -> str:
    inner = _one(item)
    return str(inner.get("value", "")) if isinstance(inner, dict) else "" if inner is None else str(inner)


def _from_blocks(text: str) -> Iterator[Neighbour]:
    """A block of `Name: value` lines a neighbour; lldpctl puts the type of an identity before it."""
    for block in re.split(r"^\s*Interface:\s+", text, flags=re.MULTILINE)[1:]:
        said = dict(re.findall(r"^\s*(ChassisID|SysName|PortID|PortDescr):[ \t]*(\S.*?)?\s*$", block, re.MULTILINE))
        local = re.split(r"[,\s]", block, maxsplit=1)[0]
        kind, _, rest = said.get("PortID", "").partition(" ")
        port = rest if kind in {"ifname", "ifalias", "local", "mac"} and rest else said.get("PortID", "")
        ports = _best_first(port, said.get("PortDescr", ""))
        yield Neighbour(local, said.get("SysName") or said.get("ChassisID", ""), ports)


def _best_first(port: str, description: str) -> tuple[str, ...]:
    """Return both names of a port; a MAC as port id says nothing that a person could look for."""
    mac = re.fullmatch(r"([0-9a-fA-F]{2}:){5}[0-9a-fA-F]{2}", port)
    ports = (description, port) if mac else (port, description)
    return tuple(dict.fromkeys(name for name in ports if name))


def _from_table(lines: list[str]) -> Iterator[Neighbour]:
    spans: list[tuple[int, int]] = []
    for line in lines:
        if re.fullmatch(r"\s*-+(\s+-+)+\s*", line):
            starts = [match.start() for match in re.finditer(r"-+", line)]
            spans = list(zip(starts, [*starts[1:], 10_000], strict=True))
        elif spans and re.match(r"-{10,}", line):
            return
        elif spans and line.strip():
            cells = [line[start:end].strip() for start, end in spans] + [""] * 5
            local, device, port, _, description = cells[:5]
            yield Neighbour(local, device, _best_first(port, description))
