"""Switch ports: lanes, speeds, breakouts, port budget. Read from PORT and BREAKOUT_CFG."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

from fabric.analysis.rendered import CONFIG_DB
from fabric.analysis.rule import Rule
from fabric.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.hardware.profiles import SwitchProfile
    from fabric.problem import Problem

_MODE = re.compile(r"^(\d+)x(\d+)G(?:\[[\dG,]+\])?(?:\(\d+\))?$")
_FEC = frozenset({"rs", "fc", "none", "auto"})
_LANE_SPEEDS = frozenset({10, 25, 50, 100, 200})


@cache
def _profile(model: str) -> SwitchProfile | None:
    from fabric.hardware.profiles import switch_profile

    try:
        return switch_profile(model)
    except KeyError:
        return None


def _speed(row: dict[str, Any]) -> int:
    text = str(row.get("speed", ""))
    return int(text) // 1000 if text.isdigit() else 0


def _mode(text: object) -> tuple[int, int]:
    match = _MODE.match(str(text))
    return (int(match[1]), int(match[2])) if match else (0, 0)


class LanesUnique(Rule):
    """A SerDes lane belongs to one port.

    Why: the YANG model accepts two ports with the same lanes; orchagent then fails on one of them and the rest of its
        start-up with it.
    Fix: take lanes from the platform's port table for the breakout in use.
    Source: SONiC generic_config_updater checks lanes apart from YANG for the same reason.
    """

    id = "ports.lanes-unique"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for device in self.facts.sonic:
            ports = self.facts.db(device).get("PORT", {})
            lanes = ",".join([row.get("lanes", "") for row in ports.values()]).split(",")
            if len(lanes) == len(set(lanes)):
                continue
            owner: dict[str, str] = {}
            for port, row in ports.items():
                for lane in row.get("lanes", "").split(","):
                    if owner.setdefault(lane, port) != port:
                        text = f"lane {lane} is also lane of {owner[lane]}"
                        yield self.finding(f"{device} {port}", text, device=device, keys=("PORT", port, "lanes"))
                        break


class SpeedFitsLanes(Rule):
    """The speed of a port is carried by its lanes: 10, 25, 50, 100 or 200 Gb/s each.

    Why: YANG does not compare speed with the number of lanes, so `400000` on eight lanes of a cage split in two passes,
        and the port never comes up.
    Fix: correct the breakout of the cage, or the speed.
    """

    id = "ports.speed-lanes"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        bad: dict[tuple[str, str], bool] = {}
        for device in self.facts.sonic:
            whole = self._whole_cages(device)
            for port, row in self.facts.db(device).get("PORT", {}).items():
                key = (row.get("speed", ""), row.get("lanes", ""))
                known = bad.get(key)
                if known is None:
                    lanes = len(key[1].split(","))
                    known = bad[key] = _speed(row) % lanes != 0 or _speed(row) // lanes not in _LANE_SPEEDS
                if known and port not in whole:
                    text = f"{key[0]} Mb/s on {len(key[1].split(','))} lanes is no lane speed"
                    yield self.finding(f"{device} {port}", text, device=device, keys=("PORT", port, "speed"))

    def _whole_cages(self, device: str) -> frozenset[str]:
        """Ports whose cage runs one port below its lanes' speed, such as 1x400G on eight lanes, by the plan."""
        switch = self.plan.switches.get(device)
        return frozenset(b.interface for b in switch.breakouts if b.mode.startswith("1x")) if switch else frozenset()


class MatchesPlatform(Rule):
    """Names, lanes, aliases and indexes of ports are those of the platform's own port table.

    Why: lanes of this ASIC are not in cage order; a computed lane list looks right and connects the wrong cage.
    Fix: render the ports from the hardware profile; never edit lanes by hand.
    Source: port table of the platform (device folder of the switch in SONiC).
    """

    id = "ports.platform-table"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        tables: dict[str, dict[str, tuple[str, str, str]]] = {}
        for device in self.facts.sonic:
            switch = self.plan.switches.get(device)
            profile = _profile(switch.model) if switch else None
            if switch is None or profile is None:
                continue
            known = tables.get(switch.model)
            if known is None:
                known = tables[switch.model] = _port_table(profile)
            for port, row in self.facts.db(device).get("PORT", {}).items():
                want = known.get(f"{port}/{row.get('lanes', '')}")
                if want is None:
                    text = f"the platform has no port {port} with lanes {row.get('lanes', '')}"
                    yield self.finding(f"{device} {port}", text, device=device, keys=("PORT", port, "lanes"))
                elif (row.get("alias"), row.get("index")) != want[:2]:
                    have = f"alias {row.get('alias')} and index {row.get('index')}"
                    text = f"{have}, the platform has {want[0]} and {want[1]}"
                    yield self.finding(f"{device} {port}", text, device=device, keys=("PORT", port, "alias"))


def _port_table(profile: SwitchProfile) -> dict[str, tuple[str, str, str]]:
    table: dict[str, tuple[str, str, str]] = {}
    for cage in profile.cages.values():
        for mode in cage.modes:
            for port in profile.expand(cage.number, mode)[1]:
                table[f"{port.interface}/{port.lanes}"] = (port.alias, str(port.index), mode)
    return table


class BreakoutMatchesPorts(Rule):
    """BREAKOUT_CFG says a mode that the cage has, and PORT has exactly the ports of that mode.

    Why: the breakout mode is free text to YANG. A mode that differs from PORT is undone or half applied at the next
        `config interface breakout`, and an even cage of this switch has no 4x and 8x modes at all.
    Fix: correct the breakout in the inventory's zone; odd cages take 4x and 8x, even cages 1x and 2x.
    """

    id = "ports.breakout"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        judged: dict[tuple[object, ...], str] = {}
        for device in self.facts.sonic:
            db = self.facts.db(device)
            ports = db.get("PORT", {})
            switch = self.plan.switches.get(device)
            model = switch.model if switch else ""
            speeds = {port: row.get("speed", "") for port, row in ports.items()}
            for parent, row in db.get("BREAKOUT_CFG", {}).items():
                mode = row.get("brkout_mode", "")
                base = parent.removeprefix("Ethernet")
                number = int(base) if base.isdigit() else 0
                key = (model, parent, mode, tuple(speeds.get(f"Ethernet{number + i}", "") for i in range(8)))
                text = judged.get(key)
                if text is None:
                    text = judged[key] = self._judge(model, parent, str(mode), key[3])
                if text:
                    yield self.finding(
                        f"{device} {parent}", text, device=device, keys=("BREAKOUT_CFG", parent, "brkout_mode")
                    )

    @staticmethod
    def _judge(model: str, parent: str, mode: str, speeds: tuple[str, ...]) -> str:
        count, speed = _mode(mode)
        if not count:
            return f"'{mode}' is not a breakout mode"
        profile = _profile(model)
        if profile is None:
            return ""
        cage = next((c for c in profile.cages.values() if f"Ethernet{c.base}" == parent), None)
        if cage is None:
            return "is not the first port of a cage"
        if mode not in cage.modes:
            return f"cage {cage.number} has no mode {mode}, only {', '.join(cage.modes)}"
        offsets = cage.modes[mode].offsets
        width = len(cage.lanes) or 8
        have = tuple(i for i, text in enumerate(speeds[:width]) if text)
        if have != offsets:
            return f"{mode} makes ports at offsets {offsets}, PORT has {have}"
        wrong = sorted({text for text in speeds[:width] if text and text != str(speed * 1000)})
        return f"{mode} but PORT has speed {', '.join(wrong)}" if wrong else ""


class PortBudget(Rule):
    """A switch has no more logical ports than its ASIC, in all and in each pipeline.

    Why: Tomahawk 5 holds 320 ports, 10 in each pipeline, and a pipeline serves a pair of cages (1 and 4, 2 and 3, and
        so on). Past that the NOS refuses the breakout on the switch, after the cables are in.
    Fix: use fewer or narrower breakouts on the cages of the pair.
    """

    id = "ports.budget"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for group in self.facts.alike(("BREAKOUT_CFG",)):
            switch = self.plan.switches.get(group.first)
            profile = _profile(switch.model) if switch else None
            if profile is None:
                continue
            by_base = {f"Ethernet{cage.base}": cage.number for cage in profile.cages.values()}
            counts = {
                by_base.get(parent, 0): _mode(row.get("brkout_mode"))[0]
                for parent, row in self.facts.db(group.first).get("BREAKOUT_CFG", {}).items()
            }
            total = sum(counts.values())
            if total > profile.max_logical_ports:
                text = f"{total} logical ports, the ASIC has {profile.max_logical_ports}"
                yield self.finding(group.subject, text, device=group.first, keys=("BREAKOUT_CFG",))
            for cages in profile.pipelines:
                used = sum(counts.get(cage, 0) for cage in cages)
                if used > profile.pipeline_logical_ports:
                    names = " and ".join(f"E1/{cage}" for cage in cages)
                    text = f"{names} share a pipeline of {profile.pipeline_logical_ports} logical ports and use {used}"
                    yield self.finding(group.subject, text, device=group.first, keys=("BREAKOUT_CFG",))


class AdminStatus(Rule):
    """Every port says its admin_status.

    Why: a child of a breakout without admin_status gets no lossless buffer: only the first child of the cage does.
    Fix: write `admin_status` on every PORT row, `down` on spare ports.
    Source: sonic-buildimage issue 23354.
    """

    id = "ports.admin-status"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for device in self.facts.sonic:
            linked = self.facts.linked.get(device, {})
            for port, row in self.facts.db(device).get("PORT", {}).items():
                status = row.get("admin_status")
                if status not in {"up", "down"}:
                    yield self.finding(f"{device} {port}", "has no admin_status", device=device, keys=("PORT", port))
                elif status == "down" and port in linked:
                    text = f"is down but carries the cable to {linked[port].far(device).device}"
                    yield self.finding(f"{device} {port}", text, device=device, keys=("PORT", port, "admin_status"))


class KnownFec(Rule):
    """FEC is a word that SONiC knows, and `rs` where the speed needs it.

    Why: lanes of 50 Gb/s and more do not work without Reed-Solomon FEC (IEEE 802.3), and both ends must agree.
    Fix: write `rs` for 200G, 400G and 800G ports.
    """

    id = "ports.fec"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for device in self.facts.sonic:
            for port, row in self.facts.db(device).get("PORT", {}).items():
                fec = row.get("fec", "")
                if fec == "rs" or (_speed(row) < 200 and fec in _FEC | {""}):
                    continue
                text = f"fec '{fec}' at {_speed(row)}G"
                yield self.finding(f"{device} {port}", text, device=device, keys=("PORT", port, "fec"))


class LinkSpeed(Rule):
    """Both ends of a cable run at the cable's speed, and every cabled port exists.

    Why: a leaf port split 2x400G against a spine port of 800G stays dark, and nothing in either file says so.
    Fix: give both ends' zones breakouts with the same speed.
    """

    id = "ports.link-speed"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        sonic = frozenset(self.facts.sonic)
        for device, links in self.facts.linked.items():
            if device not in sonic:
                continue
            ports = self.facts.db(device).get("PORT", {})
            for port, link in links.items():
                row = ports.get(port)
                if row is None:
                    text = f"carries {link.id} but is not in PORT"
                    yield self.finding(f"{device} {port}", text, device=device, keys=("PORT",))
                elif row.get("speed") != f"{link.speed}000":
                    text = f"runs at {row.get('speed')} Mb/s, {link.id} is a cable of {link.speed}G"
                    yield self.finding(f"{device} {port}", text, device=device, keys=("PORT", port, "speed"))


class AliasUnique(Rule):
    """Aliases are unique on a switch.

    Why: LLDP sends the alias; cabling checks cannot tell two ports with one alias apart.
    Fix: render the ports from the hardware profile.
    """

    id = "ports.alias-unique"
    severity = Severity.WARNING
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for device in self.facts.sonic:
            aliases = [row.get("alias", "") for row in self.facts.db(device).get("PORT", {}).values()]
            if len(set(aliases)) == len(aliases):
                continue
            twice = [alias for alias, n in Counter(aliases).items() if n > 1]
            text = f"alias {', '.join(twice[:5])} is used more than once"
            yield self.finding(device, text, device=device, keys=("PORT",))
