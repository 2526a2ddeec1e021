"""A site's own CONFIG_DB tables: files in the folder `config_db/` beside the inventory, in CONFIG_DB's own form.

`all.json` is for every SONiC switch, `leaf.json`, `border-leaf.json` and `spine.json` for those of a kind,
`<switch>.json` for one; YAML (`.yaml`) is taken too. A table that kvfabric writes, a field that two files give to one
switch, and a secret are errors: nothing is overridden in silence.
"""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Any

from fabric.inventory.load import parse_file
from fabric.problem import Problem

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from fabric.inventory.load import Inventory, Path_
    from fabric.plan import Switch

FOLDER = "config_db"
EVERYONE = "all"
# what the renderer writes for one switch or another, whatever the services
OWNED = frozenset(
    {
        "BREAKOUT_CFG", "BUFFER_PG", "BUFFER_POOL", "BUFFER_PROFILE", "BUFFER_QUEUE", "CABLE_LENGTH",
        "DEVICE_METADATA", "DEVICE_NEIGHBOR", "DEVICE_NEIGHBOR_METADATA", "DSCP_TO_TC_MAP", "INTERFACE", "LLDP",
        "LOOPBACK_INTERFACE", "MAP_PFC_PRIORITY_TO_QUEUE", "MGMT_INTERFACE", "MGMT_PORT", "MGMT_VRF_CONFIG", "PFC_WD",
        "PORT", "PORT_QOS_MAP", "QUEUE", "SCHEDULER", "SWITCH_HASH", "TC_TO_PRIORITY_GROUP_MAP", "TC_TO_QUEUE_MAP",
        "VLAN", "VLAN_INTERFACE", "VLAN_MEMBER", "VRF", "VXLAN_EVPN_NVO", "VXLAN_TUNNEL", "VXLAN_TUNNEL_MAP",
        "WRED_PROFILE",
    }
)  # fmt: skip
# tables of lists to which a site may add rows
SHARED = {
    "FEATURE": frozenset({"bgp", "lldp"}),
    "FLEX_COUNTER_TABLE": frozenset(
        {
            "BUFFER_POOL_WATERMARK", "PFCWD", "PG_DROP", "PG_WATERMARK", "PORT", "PORT_BUFFER_DROP", "PORT_RATES",
            "QUEUE", "QUEUE_WATERMARK", "RIF", "RIF_RATES", "WRED_ECN_PORT", "WRED_ECN_QUEUE",
        }
    ),
}  # fmt: skip
# what `services` writes, by the service; TACPLUS, AAA and SNMP_COMMUNITY by way of secrets.sh
OF_SERVICES = {
    "ntp": ("NTP", "NTP_SERVER"),
    "syslog": ("SYSLOG_SERVER",),
    "dns": ("DNS_NAMESERVER",),
    "tacacs": ("TACPLUS_SERVER", "TACPLUS", "AAA"),
    "snmp": ("SNMP", "SNMP_AGENT_ADDRESS_CONFIG", "SNMP_COMMUNITY"),
}
_ROUTING = re.compile(r"^(BGP_|ROUTE_MAP|ROUTE_REDISTRIBUTE|PREFIX)")
_SECRET_FIELD = re.compile(r"(?i)(passkey|password|passwd|passphrase|secret|token|_key$|^key$)")
_SECRET_TABLES = frozenset({"SNMP_COMMUNITY", "NTP_KEY"})
_SUFFIXES = (".json", ".yaml", ".yml")
_FORM = 'write `{"TABLE": {"row": {"field": "value"}}}`, as config_db.json has it'

Tables = dict[str, dict[str, dict[str, Any]]]


class OwnTables:
    """Reads the folder; `by_scope` has the tables of `all`, of each kind and of each switch that has a file."""

    def __init__(self, inventory: Inventory, switches: Iterable[Switch], problems: list[Problem]) -> None:
        self.problems = problems
        self.by_scope: dict[str, Tables] = {}
        self._sonic = {s.name: s for s in switches if s.managed and s.nos == "sonic"}
        self._services = inventory.site.services.model_dump(exclude_defaults=True)
        self._places: dict[str, dict[Path_, tuple[str, int]]] = {}
        for file in _files(inventory.folder / FOLDER):
            self._read(file)
        self._check_overlaps()

    def _read(self, file: Path) -> None:
        scope = file.stem
        if reason := self._misplaced(file):
            self.problems.append(Problem("config-db.scope", f"{FOLDER}/{file.name}", *reason, str(file), 1))
            return
        places = self._places[scope] = {}
        data = parse_file(file, self.problems, places)
        self.by_scope[scope] = {str(table): self._table(scope, str(table), rows) for table, rows in data.items()}

    def _misplaced(self, file: Path) -> tuple[str, str] | None:
        """Return what is wrong with a file's name, and the fix."""
        if file.name == FOLDER:
            return "is a file", f"make it a folder that holds {EVERYONE}.json"
        if file.suffix not in _SUFFIXES:
            return "is neither JSON nor YAML", "name it .json or .yaml, or keep it elsewhere"
        if file.stem in self.by_scope:
            return f"there is another file for {file.stem}", "keep one of them"
        kinds = sorted({switch.kind for switch in self._sonic.values()})
        known = [EVERYONE, *kinds, *self._sonic]
        if file.stem in known:
            return None
        close = difflib.get_close_matches(file.stem, known, 1)
        fix = (
            f"did you mean {close[0]}{file.suffix}?"
            if close
            else f"name it {', '.join((EVERYONE, *kinds))} or after a switch"
        )
        return "is for no SONiC switch of the site", fix

    def _bad(self, rule: str, scope: str, path: tuple[str, ...], text: str, fix: str) -> None:
        file, line = _at(self._places[scope], path)
        name = ".".join(path)
        self.problems.append(Problem(f"config-db.{rule}", name, text, fix, file, line, name))

    def _table(self, scope: str, table: str, rows: Any) -> dict[str, dict[str, Any]]:
        found: dict[str, dict[str, Any]] = {}
        if reason := self._refused(table):
            self._bad(reason[0], scope, (table,), *reason[1:])
            return found
        if not isinstance(rows, dict):
            self._bad("shape", scope, (table,), "must be a map of rows", _FORM)
            return found
        for key, fields in rows.items():
            place = (table, str(key))
            if not _is_name(str(key)):
                self._bad("shape", scope, place, "a row needs a name without control characters", _FORM)
            elif key in SHARED.get(table, ()):
                text = f"kvfabric writes the row {key} of {table}"
                self._bad("owned", scope, place, text, "remove it; other rows of this table may be added")
            elif fields is not None and not isinstance(fields, dict):
                self._bad("shape", scope, place, "must be a map of fields", _FORM)
            else:
                found[str(key)] = {str(f): v for f, v in (fields or {}).items() if self._field(scope, place, str(f), v)}
        return found

    def _refused(self, table: str) -> tuple[str, str, str] | None:
        """Return (rule, text, fix) of a table that a site cannot have of its own."""
        if not _is_name(table) or "|" in table:
            return "shape", "a table needs a name without `|` and control characters", _FORM
        service = next((name for name, tables in OF_SERVICES.items() if table in tables and name in self._services), "")
        if service:
            return "owned", f"kvfabric writes {table} from services.{service}", "keep one of the two"
        if table in OWNED:
            fix = "remove it; what a switch must have here follows from the inventory"
            return "owned", f"kvfabric writes {table}, and nothing is merged into it", fix
        if _ROUTING.match(table):
            return "routing", f"{table} is not read: routing is in frr.conf (split-unified)", "remove it"
        if table in _SECRET_TABLES:
            return (
                "secret",
                f"{table} holds secrets, which have no place in a file",
                "set it on the switch, or by services",
            )
        return None

    def _field(self, scope: str, place: tuple[str, ...], field: str, value: Any) -> bool:
        path = (*place, field)
        if not _is_name(field):
            self._bad("shape", scope, path, "a field needs a name without control characters", _FORM)
            return False
        if _SECRET_FIELD.search(field):
            text = "this field is a secret, which has no place in a file"
            self._bad("secret", scope, path, text, "set it on the switch, or by services.tacacs and services.snmp")
            return False
        items = value if isinstance(value, list) else [value]
        if not items or not all(isinstance(item, str) and "\0" not in item for item in items):
            text = "must be text, or a list of texts: CONFIG_DB has nothing else"
            self._bad("shape", scope, path, text, 'put it in quotes, such as "1" or "true"')
            return False
        return True

    def _check_overlaps(self) -> None:
        """What two files give to one switch, wherever they differ or not, is an error at the narrower one."""
        for scope, wider in self._pairs():
            for path in sorted(_paths(self.by_scope[scope]) & _paths(self.by_scope[wider])):
                file, line = _at(self._places[wider], path)
                text = f"is given in {file}:{line} too, for the same switches"
                self._bad("twice", scope, path, text, "keep one of them")

    def _pairs(self) -> Iterator[tuple[str, str]]:
        for scope in self.by_scope:
            switch = self._sonic.get(scope)
            wider = (EVERYONE, switch.kind) if switch else (EVERYONE,) if scope != EVERYONE else ()
            yield from ((scope, name) for name in wider if name in self.by_scope)


def _is_name(text: str) -> bool:
    return bool(text) and text.isprintable()


def _paths(tables: Tables) -> set[tuple[str, ...]]:
    """The (table, row, field) of every field, and the (table, row) of rows without fields."""
    found: set[tuple[str, ...]] = set()
    for table, rows in tables.items():
        for key, row in rows.items():
            found.update([(table, key, field) for field in row] if row else [(table, key)])
    return found


def _at(places: dict[Path_, tuple[str, int]], path: tuple[str, ...]) -> tuple[str, int]:
    """The file and line of the innermost part of `path` that is known: a key that is a number in YAML is not."""
    found = next(iter(places.values()), ("", 0))
    for end in range(1, len(path) + 1):
        found = places.get(path[:end], found)
    return found


def _files(folder: Path) -> list[Path]:
    if folder.is_dir():
        return sorted(p for p in folder.iterdir() if not p.name.startswith("."))
    return [folder] if folder.exists() else []
