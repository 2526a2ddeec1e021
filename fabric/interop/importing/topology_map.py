"""OCP planning files (`topology-map.yaml`): switch classes, port zones, server classes, NICs and connections."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from fabric.interop.importing.draft import Draft, Flow, site_name
from fabric.interop.importing.nics import choose
from fabric.interop.names import split_index
from fabric.interop.readers.yaml_documents import dig
from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.interop.readers.yaml_documents import Mapping

SOURCE = "an OCP topology map"
_ROLE_KEY = {"server-leaf": "leaf", "mixed-leaf": "leaf", "border-leaf": "border-leaf", "spine": "spine"}
_PLACEMENT = {"same-switch": "single-homed", "alternating": "alternating", "rail-optimized": "rail-optimised"}
_KIND = {"gpu": "compute", "compute": "compute", "storage": "storage"}
_MANAGEMENT_MODEL = "generic-1g-mgmt"
_DOWN = frozenset({"server", "fabric", "oob"})
Rows = list[dict[str, Any]]


def recognises(documents: list[Mapping]) -> bool:
    """Whether one of the documents is a planning file."""
    return any("switch_classes" in document and "server_classes" in document for document in documents)


def read(sources: list[tuple[Path, list[Mapping]]], name: str) -> Draft:
    """Turn planning files into an inventory; several are refused, since each is a whole site."""
    plans = [(path, d) for path, documents in sources for d in documents if "switch_classes" in d]
    if len(plans) > 1:
        fix = "import one at a time"
        raise InputError([Problem("import.many", name, "several planning files, each is a site of its own", fix)])
    return _Reader(*plans[0], name).draft


class _Reader:
    """One planning file on its way to an inventory."""

    def __init__(self, path: Path, document: Mapping, name: str) -> None:
        self.path, self.document = path, document
        self.zones = _rows(document, "switch_port_zones")
        self.draft = Draft({}, f"{path.name} ({dig(document, 'meta', 'name') or 'OCP topology map'})")
        self.placements: dict[str, Counter[str]] = {}
        classes = _rows(document, "switch_classes")
        self.fabric_of = {_text(c, "switch_class_id"): _fabric_name(c) for c in classes}
        servers = self._servers()
        fabrics = {f: self._fabric(f, [c for c in classes if _fabric_name(c) == f]) for f in self.fabric_of.values()}
        kept = {fabric: spec for fabric, spec in fabrics.items() if spec}
        if not kept:
            fix = "a planning file needs switch_classes with hedgehog_role server-leaf and their port zones"
            raise InputError([Problem("import.empty", path.name, "no fabric with a leaf in it", fix, str(path))])
        profile = "distributed" if any("backend" in spec["carries"] for spec in kept.values()) else "minimal"
        self.draft.site = {"site": site_name(name), "profile": profile, "fabrics": kept, "servers": servers}
        self._contradictions()

    def _fabric(self, fabric: str, classes: Rows) -> dict[str, Any] | None:
        carries = _carries(fabric)
        spec: dict[str, Any] = {"carries": carries}
        if any(c.get("fabric_class") == "unmanaged" for c in classes):
            spec["managed"] = False
        if self.placements.get(fabric):
            spec["placement"] = self.placements[fabric].most_common(1)[0][0]
        for switch_class in classes:
            key = _ROLE_KEY.get(_text(switch_class, "hedgehog_role"))
            if key is None or key in spec:
                self.draft.note(f"switch class {_text(switch_class, 'switch_class_id')}: a second class of its role")
                continue
            spec[key] = self._switch_class(switch_class, key)
        if "leaf" not in spec:
            self.draft.note(f"fabric {fabric}: it has no leaf")
            return None
        return spec

    def _switch_class(self, switch_class: dict[str, Any], key: str) -> dict[str, Any]:
        identity = _text(switch_class, "switch_class_id")
        prefix = site_name(identity)
        if prefix != identity:
            self.draft.note(f"the name {identity} (switches are called {prefix}-01 and on)")
        spec: dict[str, Any] = {"model": self._model(switch_class), "name": prefix}
        count = switch_class.get("override_quantity")
        if isinstance(count, int) and count > 0:
            spec["count"] = count
        if switch_class.get("redundancy_type"):
            self.draft.note(f"{identity}: redundancy type {switch_class['redundancy_type']} (servers are routed here)")
        zones = sorted(
            (z for z in self.zones if z.get("switch_class") == identity), key=lambda z: _number(z.get("priority"))
        )
        down = [self._zone(zone) for zone in zones if self._is_down(zone, key)]
        up = [self._zone(zone) for zone in zones if _text(zone, "zone_type") == "uplink"]
        if down:
            spec["down"] = down[0] if len(down) == 1 else down
        if up and key != "spine":
            spec["up"] = up[0]
        return spec

    def _is_down(self, zone: dict[str, Any], key: str) -> bool:
        """Zones towards another fabric's switches cannot be said here."""
        peer = _text(zone, "peer_zone")
        aside = bool(peer) or (key == "spine" and _text(zone, "zone_type") == "oob")
        if aside:
            what = f"port zone {_text(zone, 'zone_name')} of {_text(zone, 'switch_class')}"
            self.draft.note(f"{what}: links between two fabrics")
        return _text(zone, "zone_type") in _DOWN and not aside

    def _zone(self, zone: dict[str, Any]) -> Flow:
        ports = str(zone.get("port_spec", "")).replace(" ", "")
        mode = self._breakout(_text(zone, "breakout_option"))
        return Flow(ports=ports, breakout=mode)

    def _breakout(self, option: str) -> str:
        for row in _rows(dig(self.document, "reference_data"), "breakout_options"):
            if row.get("id") == option:
                return str(row.get("breakout_id", option)).upper().replace("X", "x")
        return option

    def _model(self, switch_class: dict[str, Any]) -> str:
        from fabric.hardware.profiles import switch_models

        extension = _text(switch_class, "device_type_extension")
        for row in _rows(dig(self.document, "reference_data"), "device_type_extensions"):
            if row.get("id") == extension:
                profile = str(row.get("hedgehog_profile_name", ""))
                if profile in switch_models():
                    return profile
                self.draft.note(f"switch model {profile or extension} (no profile of it: {_MANAGEMENT_MODEL} instead)")
        return _MANAGEMENT_MODEL

    def _servers(self) -> dict[str, Any]:
        """Server classes by name, which is the order in which the planner fills ports."""
        made = {}
        for row in sorted(_rows(self.document, "server_classes"), key=lambda r: _text(r, "server_class_id")):
            identity = _text(row, "server_class_id")
            nics = self._nics(identity)
            if not nics:
                self.draft.note(f"server class {identity}: none of its connections could be used")
                continue
            name = site_name(identity)
            if name != identity:
                self.draft.note(f"the name {identity} (servers are called {name}-001 and on)")
            if "gateway" in identity:
                self.draft.note(f"{identity} as gateways (taken as servers, on the same ports; see `gateways:`)")
            spec: dict[str, Any] = {"count": _number(row.get("quantity")), "kind": _kind(row, identity)}
            if _number(row.get("gpus_per_server")):
                spec["xpus"] = _number(row.get("gpus_per_server"))
            made[name] = {**spec, "nics": nics}
        return made

    def _nics(self, server_class: str) -> dict[str, Flow]:
        """Put NICs that differ only in their number (`be0` to `be7`) into one group."""
        groups: dict[str, Rows] = {}
        for row in _rows(self.document, "server_connections"):
            if row.get("server_class") == server_class:
                stem, number = split_index(_text(row, "nic"))
                groups.setdefault(stem if stem and number else _text(row, "nic"), []).append(row)
        nics = {}
        for group, rows in groups.items():
            fabric = self.fabric_of.get(_text(rows[0], "target_zone").partition("/")[0], "")
            ports, speed = _number(rows[0].get("ports_per_connection")) or 1, _number(rows[0].get("speed"))
            model = self._nic_description(server_class, _text(rows[0], "nic"))
            choice = choose(model, len(rows), ports, speed)
            if choice is None or not fabric:
                self.draft.note(f"{server_class} NIC {group}: no NIC model has {speed}G ports, or its zone is unknown")
                continue
            if not choice.exact:
                self.draft.note(f"{server_class} NIC '{model}' ({choice} instead: port names differ)")
            placement = _PLACEMENT.get(_text(rows[0], "distribution"), "alternating")
            if _text(rows[0], "distribution") == "same-switch" and len(rows) * ports == 1:
                self.draft.note(f"{server_class} NIC {group}: dealt over leaves in turn (here a leaf is filled first)")
            self.placements.setdefault(fabric, Counter())[placement] += len(rows) * ports
            nics[site_name(group)] = Flow(nic=str(choice), fabric=fabric, placement=placement)
        return nics

    def _nic_description(self, server_class: str, nic: str) -> str:
        for row in _rows(self.document, "server_nics"):
            if row.get("server_class") == server_class and row.get("nic_id") == nic:
                modules = _rows(dig(self.document, "reference_data"), "module_types")
                found = next((m for m in modules if m.get("id") == row.get("module_type")), {})
                return str(found.get("model", ""))
        return ""

    def _contradictions(self) -> None:
        """Say where the file's words and its numbers disagree; the numbers are what is taken."""
        words = " ".join(str(dig(self.document, part, "description") or "") for part in ("meta", "plan")).lower()
        for fabric, spec in self.draft.site["fabrics"].items():
            if "single-homed" in words and spec.get("placement") == "rail-optimised" and "backend" in fabric:
                self.draft.note(
                    f"the words 'single-homed' of its description: its connections say rail-optimized for {fabric}"
                )


def _rows(document: Any, key: str) -> Rows:
    rows = document.get(key) if isinstance(document, dict) else None
    return [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []


def _text(row: dict[str, Any], key: str) -> str:
    value = row.get(key)
    return "" if value is None else str(value)


def _number(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0


def _fabric_name(switch_class: dict[str, Any]) -> str:
    return site_name(_text(switch_class, "fabric_name") or "fabric")


def _carries(fabric: str) -> list[str]:
    if "oob" in fabric or "mgmt" in fabric:
        return ["oob"]
    if "inband" in fabric:
        return ["inband"]
    if "conv" in fabric:
        return ["backend", "frontend", "storage"]
    return ["backend"] if "back" in fabric else ["frontend", "storage"]


def _kind(row: dict[str, Any], identity: str) -> str:
    for word in ("metadata", "controller"):
        if word in identity:
            return word
    return _KIND.get(_text(row, "category"), "other")
