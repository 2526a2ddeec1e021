"""RoCE on the switches: maps, priority groups, PFC, watchdog, ECN, buffers. From the QoS tables of config_db.

These tables are equal on most switches of a fabric, so each rule runs once a group of equal switches.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fabric.analysis.rendered import CONFIG_DB
from fabric.analysis.rule import Rule
from fabric.problem import Severity

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.analysis.facts import Alike
    from fabric.analysis.rendered import ConfigDb, Table
    from fabric.plan import Qos
    from fabric.problem import Problem

_MAP_FIELDS = ("dscp_to_tc_map", "tc_to_queue_map", "tc_to_pg_map", "pfc_to_queue_map")
_LOSSLESS_NAME = re.compile(r"^pg_lossless_(\d+)_(\d+m)_profile$")


def indexes(text: str) -> list[int]:
    """Read `3`, `3-4` or `3,4`; empty when it is malformed or reversed."""
    found: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdigit() or (dash and (not last.isdigit() or int(last) < int(first))):
            return []
        found.extend(range(int(first), int(last or first) + 1))
    return found


class QueueRanges(Rule):
    """Queues and priority groups are 0 to 7, in rising ranges; no priority has two entries on a port.

    Why: YANG accepts queue 9 and the range 5-3; orchagent skips the row and the class has no scheduler or buffer.
    Fix: write `port|3` or `port|3-4`.
    """

    id = "qos.ranges"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for table in ("QUEUE", "BUFFER_PG", "BUFFER_QUEUE"):
            for group in self.facts.alike((table,)):
                judged: dict[str, list[int]] = {}
                seen: set[tuple[str, int]] = set()
                for key in self.facts.db(group.first).get(table, {}):
                    port, _, text = key.partition("|")
                    numbers = judged.get(text)
                    if numbers is None:
                        numbers = judged[text] = indexes(text)
                    twice = [n for n in numbers if (port, n) in seen]
                    seen.update((port, n) for n in numbers)
                    if not numbers or max(numbers) > 7 or twice:
                        why = f"index {twice[0]} is there twice" if twice else f"'{text}' is no range inside 0-7"
                        yield self.finding(f"{group.subject} {key}", why, device=group.first, keys=(table, key))


class MapsInRange(Rule):
    """QoS maps go from DSCP 0-63 to class 0-7 and from class to queue, priority and group 0-7, all of them said.

    Why: YANG accepts class 8 to 15, and a DSCP that is left out keeps whatever the ASIC had before.
    Fix: list every DSCP and every class in the maps.
    """

    id = "qos.maps"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        sizes = {
            "DSCP_TO_TC_MAP": 64,
            "TC_TO_QUEUE_MAP": 8,
            "TC_TO_PRIORITY_GROUP_MAP": 8,
            "MAP_PFC_PRIORITY_TO_QUEUE": 8,
        }
        for table, size in sizes.items():
            for group in self.facts.alike((table,)):
                for name, row in self.facts.db(group.first).get(table, {}).items():
                    bad = [f"{k}:{v}" for k, v in row.items() if not _within(k, size) or not _within(v, 8)]
                    missing = [str(k) for k in range(size) if str(k) not in row]
                    if bad or missing:
                        text = f"{name} has {', '.join(bad)}" if bad else f"{name} leaves out {', '.join(missing[:8])}"
                        yield self.finding(f"{group.subject} {table}", text, device=group.first, keys=(table, name))


def _within(text: object, size: int) -> bool:
    return str(text).isdigit() and int(str(text)) < size


class MapsAgreeWithPlan(Rule):
    """Each class of the plan goes from its DSCP to its queue and priority group, alike on leaf and spine.

    Why: one switch that maps DSCP 26 elsewhere makes that hop lossy, and the loss shows at the far end of the fabric.
    Fix: render all switches of the fabric from one plan.
    """

    id = "qos.classes"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        tables = ("DSCP_TO_TC_MAP", "TC_TO_QUEUE_MAP", "TC_TO_PRIORITY_GROUP_MAP", "MAP_PFC_PRIORITY_TO_QUEUE")
        for group, qos in _rdma_groups(self, tables):
            db = self.facts.db(group.first)
            dscp, queue, pg, pfc = (next(iter(db.get(table, {}).values()), {}) for table in tables)
            for cls in qos.classes:
                wrong = [d for d in cls.dscp if queue.get(dscp.get(str(d), ""), "") != str(cls.queue)]
                if wrong:
                    text = f"class {cls.name}: DSCP {wrong[0]} does not reach queue {cls.queue}"
                    yield self.finding(group.subject, text, device=group.first, keys=(tables[0],))
                if not cls.lossless:
                    continue
                wrong = [d for d in cls.dscp if pg.get(dscp.get(str(d), ""), "") != str(cls.priority)]
                if wrong:
                    text = f"class {cls.name}: DSCP {wrong[0]} does not reach priority group {cls.priority}"
                    yield self.finding(group.subject, text, device=group.first, keys=(tables[2],))
                if pfc.get(str(cls.priority)) != str(cls.queue):
                    text = f"class {cls.name}: PFC priority {cls.priority} does not stop queue {cls.queue}"
                    yield self.finding(group.subject, text, device=group.first, keys=(tables[3],))


def _rdma_groups(rule: Rule, tables: tuple[str, ...]) -> list[tuple[Alike, Qos]]:
    found = []
    for group in rule.facts.alike(tables):
        fabric = rule.plan.fabrics.get(group.fabric)
        if fabric is not None and fabric.qos is not None:
            found.append((group, fabric.qos))
    return found


class PfcOnLosslessPorts(Rule):
    """Every port that carries RDMA has the QoS maps, PFC on the lossless priorities, and no port has PFC on others.

    Why: PFC on one side of a cable only is the most common cause of RDMA loss; PFC on a lossy priority stops traffic
        that nobody protects. Ports made by a breakout after RoCE was set up stay lossy: all children must be here.
    Fix: write PORT_QOS_MAP for every RDMA port, with pfc_enable equal to the lossless priorities.
    Source: swss issues 2865, 3234 and 842.
    """

    id = "qos.pfc"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for group, qos in _rdma_groups(self, ("PORT_QOS_MAP", "PORT")):
            rows = self.facts.db(group.first).get("PORT_QOS_MAP", {})
            want = ",".join(str(c.priority) for c in qos.lossless)
            on = {port for port, row in rows.items() if row.get("pfc_enable", "") == want}
            for name in group.names:
                for port in sorted(self.facts.lossless_ports[name] - on):
                    have = rows[port].get("pfc_enable", "") if port in rows else "missing"
                    text = f"carries RDMA but pfc_enable is '{have}', the lossless priorities are {want}"
                    keys = ("PORT_QOS_MAP", port) if port in rows else ("PORT_QOS_MAP",)
                    yield self.finding(f"{name} {port}", text, device=name, keys=keys)
            yield from self._rows(group, rows, want)

    def _rows(self, group: Alike, rows: Table, want: str) -> Iterator[Problem]:
        for port, row in rows.items():
            if port == "global":
                continue
            missing = [f for f in _MAP_FIELDS if not row.get(f)]
            text = f"has no {', '.join(missing)}" if missing else ""
            if row.get("pfc_enable") and row["pfc_enable"] != want:
                text = f"has PFC on {row['pfc_enable']}, the lossless priorities are {want}"
            if text:
                keys = ("PORT_QOS_MAP", port)
                yield self.finding(f"{group.subject} {port}", text, device=group.first, keys=keys)


class DecapMap(Rule):
    """The switch-wide DSCP map is set where tunnels end.

    Why: packets that leave a tunnel are classified by the global map; without it RDMA from another leaf is lossy.
    Fix: write PORT_QOS_MAP|global with the same dscp_to_tc_map as the ports.
    """

    id = "qos.global-map"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for group, _ in _rdma_groups(self, ("PORT_QOS_MAP", "VXLAN_TUNNEL")):
            db = self.facts.db(group.first)
            used = {row.get("dscp_to_tc_map") for port, row in db.get("PORT_QOS_MAP", {}).items() if port != "global"}
            have = db.get("PORT_QOS_MAP", {}).get("global", {}).get("dscp_to_tc_map")
            if db.get("VXLAN_TUNNEL") and used != {have}:
                text = f"global map is {have or 'missing'}, ports use {', '.join(sorted(map(str, used)))}"
                yield self.finding(group.subject, text, device=group.first, keys=("PORT_QOS_MAP",))


class Watchdog(Rule):
    """Every port with PFC has the PFC watchdog, on the same priorities, with the plan's times.

    Why: one NIC that sends pause without end stops the fabric; the watchdog is what cuts it off. It does not follow
        later changes of pfc_enable.
    Fix: write PFC_WD for every port with pfc_enable, and pfcwd_sw_enable equal to pfc_enable.
    Source: swss issues 842 and 1055.
    """

    id = "qos.watchdog"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for group, qos in _rdma_groups(self, ("PORT_QOS_MAP", "PFC_WD")):
            db, device = self.facts.db(group.first), group.first
            watch = db.get("PFC_WD", {})
            want = (qos.watchdog_action, str(qos.watchdog_detection_ms), str(qos.watchdog_restoration_ms))
            poll = str(watch.get("GLOBAL", {}).get("POLL_INTERVAL", ""))
            if not poll.isdigit() or int(poll) > qos.watchdog_detection_ms:
                text = f"poll interval '{poll}' ms is missing or longer than the detection time {want[1]} ms"
                yield self.finding(group.subject, text, device=device, keys=("PFC_WD", "GLOBAL"))
            for port, row in db.get("PORT_QOS_MAP", {}).items():
                if port == "global" or not row.get("pfc_enable"):
                    continue
                if row.get("pfcwd_sw_enable") != row["pfc_enable"]:
                    text = f"pfcwd_sw_enable '{row.get('pfcwd_sw_enable', '')}' is not pfc_enable '{row['pfc_enable']}'"
                    yield self.finding(f"{group.subject} {port}", text, device=device, keys=("PORT_QOS_MAP", port))
                entry = watch.get(port)
                have = (
                    (entry.get("action"), entry.get("detection_time"), entry.get("restoration_time")) if entry else None
                )
                if have != want:
                    text = f"watchdog is {have or 'missing'}, the plan says {want}"
                    yield self.finding(f"{group.subject} {port}", text, device=device, keys=("PFC_WD", port))


class LosslessQueueEcn(Rule):
    """Lossless queues have a WRED profile that marks ECN with the plan's thresholds for the port's speed, and DWRR.

    Why: without marking, DCQCN never slows a sender and PFC does all the work; YANG does not ask for a profile.
    Fix: write QUEUE|port|n with wred_profile and scheduler; the profile has `ecn_all` and green thresholds.
    """

    id = "qos.ecn"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for group, qos in _rdma_groups(self, ("PORT_QOS_MAP", "QUEUE", "WRED_PROFILE", "SCHEDULER", "PORT")):
            db = self.facts.db(group.first)
            for cls in qos.lossless:
                judged: dict[str, str] = {}
                for port, bound in db.get("PORT_QOS_MAP", {}).items():
                    if not bound.get("pfc_enable"):
                        continue
                    row = db.get("QUEUE", {}).get(f"{port}|{cls.queue}", {})
                    speed = str(db.get("PORT", {}).get(port, {}).get("speed", ""))
                    key = f"{row.get('wred_profile')} {row.get('scheduler')} {speed}"
                    if key not in judged:
                        marks = cls.marks(int(speed) // 1000 if speed.isdigit() else 0)
                        judged[key] = self._judge(db, row, *marks, cls.ecn_probability)
                    if judged[key]:
                        keys = ("QUEUE", f"{port}|{cls.queue}")
                        yield self.finding(
                            f"{group.subject} {port} queue {cls.queue}", judged[key], device=group.first, keys=keys
                        )

    @staticmethod
    def _judge(db: ConfigDb, row: dict[str, str], low: int, high: int, probability: int) -> str:
        profile = db.get("WRED_PROFILE", {}).get(row.get("wred_profile", ""))
        if profile is None:
            return "is lossless and has no WRED profile"
        if not str(profile.get("ecn", "")).startswith("ecn_") or profile.get("ecn") == "ecn_none":
            return f"WRED profile {row['wred_profile']} does not mark ECN"
        have = tuple(str(profile.get(f"green_{f}")) for f in ("min_threshold", "max_threshold", "drop_probability"))
        if have != (str(low), str(high), str(probability)):
            said = f"{low} to {high} at {probability} %"
            return f"ECN thresholds are {have[0]} to {have[1]} at {have[2]} %, the plan says {said}"
        scheduler = db.get("SCHEDULER", {}).get(row.get("scheduler", ""), {})
        return "" if scheduler.get("type") == "DWRR" else "has no DWRR scheduler"


class LosslessGroups(Rule):
    """Lossless priority groups are exactly those in pfc_enable, with the profile of the port's speed and cable.

    Why: the switch's buffer manager looks for the name pg_lossless_<speed>_<cable>_profile and points the group
        elsewhere when it finds another; a lossless group whose priority has no PFC drops when it is full.
    Fix: name the profile after the port's speed and CABLE_LENGTH, and bind it to the priorities in pfc_enable.
    """

    id = "qos.lossless-groups"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for group, _ in _rdma_groups(self, ("PORT_QOS_MAP", "BUFFER_PG", "BUFFER_PROFILE", "CABLE_LENGTH", "PORT")):
            db = self.facts.db(group.first)
            cables = db.get("CABLE_LENGTH", {}).get("AZURE", {})
            enabled = {
                (port, n)
                for port, row in db.get("PORT_QOS_MAP", {}).items()
                for n in (indexes(row.get("pfc_enable", "")) if row.get("pfc_enable") else ())
            }
            for key, row in db.get("BUFFER_PG", {}).items():
                port, _, text = key.partition("|")
                name = row.get("profile", "")
                if not name.startswith("pg_lossless"):
                    continue
                numbers = indexes(text)
                why = self._judge(db, port, name, cables.get(port, ""))
                if any((port, n) not in enabled for n in numbers):
                    why = f"priority {text} is lossless but not in pfc_enable"
                enabled -= {(port, n) for n in numbers}
                if why:
                    yield self.finding(f"{group.subject} {port}", why, device=group.first, keys=("BUFFER_PG", key))
            for port, number in sorted(enabled):
                text = f"priority {number} is in pfc_enable but has no lossless buffer"
                yield self.finding(f"{group.subject} {port}", text, device=group.first, keys=("BUFFER_PG",))

    @staticmethod
    def _judge(db: ConfigDb, port: str, name: str, cable: str) -> str:
        match = _LOSSLESS_NAME.match(name)
        speed = db.get("PORT", {}).get(port, {}).get("speed", "")
        if not match or match.groups() != (speed, cable):
            return f"profile {name}, the buffer manager wants pg_lossless_{speed}_{cable}_profile"
        return "" if name in db.get("BUFFER_PROFILE", {}) else f"profile {name} does not exist"


class HeadroomFitsCable(Rule):
    """The cable length that headroom is computed for is not shorter than the cable, and the headroom is the table's.

    Why: packets that are under way when pause is sent need room: too little is loss under load only.
    Fix: correct the cable length in the inventory (`cables`, or rack positions) and render again.
    """

    id = "qos.headroom"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for group, qos in _rdma_groups(self, ("CABLE_LENGTH", "BUFFER_PROFILE")):
            db = self.facts.db(group.first)
            cables = db.get("CABLE_LENGTH", {}).get("AZURE", {})
            for name in group.names:
                for port, link in self.facts.linked.get(name, {}).items():
                    if port not in self.facts.lossless_ports[name]:
                        continue
                    said = cables.get(port, "0m").removesuffix("m")
                    if not said.isdigit() or int(said) < link.length_m:
                        text = f"CABLE_LENGTH is {said} m, the cable is {link.length_m} m"
                        yield self.finding(f"{name} {port}", text, device=name, keys=("CABLE_LENGTH", "AZURE", port))
            table = {f"pg_lossless_{h.speed}000_{h.cable_m}m_profile": h for h in qos.headroom}
            for name, row in db.get("BUFFER_PROFILE", {}).items():
                known = table.get(name)
                if known and row.get("xoff") != str(known.xoff):
                    text = f"{name} has xoff {row.get('xoff')}, the table of the silicon says {known.xoff}"
                    yield self.finding(group.subject, text, device=group.first, keys=("BUFFER_PROFILE", name, "xoff"))


class BufferProfiles(Rule):
    """A buffer profile has one kind of threshold; pools fit into the ASIC and count the headroom once.

    Why: YANG accepts both thresholds at once and a pool of any size. A pool that already holds its xoff counts it twice
        and the lossless profiles are silently not programmed.
    Fix: give size and xoff as the silicon table has them.
    Source: sonic-buildimage issue 28658.
    """

    id = "qos.buffers"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for group in self.facts.alike(("BUFFER_PROFILE", "BUFFER_POOL")):
            db, device = self.facts.db(group.first), group.first
            fabric = self.plan.fabrics.get(group.fabric)
            qos = fabric.qos if fabric else None
            for name, row in db.get("BUFFER_PROFILE", {}).items():
                if "dynamic_th" in row and "static_th" in row:
                    text = f"{name} has dynamic_th and static_th"
                    yield self.finding(group.subject, text, device=device, keys=("BUFFER_PROFILE", name))
            for name, row in db.get("BUFFER_POOL", {}).items():
                total = sum(int(row[f]) for f in ("size", "xoff") if row.get(f, "").isdigit())
                if qos and total > qos.pool_size + qos.pool_xoff:
                    text = f"{name} takes {total} bytes with its headroom, the ASIC has {qos.pool_size + qos.pool_xoff}"
                    yield self.finding(group.subject, text, device=device, keys=("BUFFER_POOL", name))


class MinimalHasNoPfc(Rule):
    """A fabric without RDMA has no PFC anywhere.

    Why: PFC that nobody planned spreads congestion of one port over the fabric.
    Fix: remove pfc_enable, or give the fabric the `backend` network in the distributed profile.
    """

    id = "qos.no-pfc"
    severity = Severity.WARNING
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for group in self.facts.alike(("PORT_QOS_MAP",)):
            if group.fabric in self.facts.rdma_fabrics:
                continue
            for port, row in self.facts.db(group.first).get("PORT_QOS_MAP", {}).items():
                if row.get("pfc_enable"):
                    text = f"pfc_enable {row['pfc_enable']} in a fabric without RDMA"
                    yield self.finding(f"{group.subject} {port}", text, device=group.first, keys=("PORT_QOS_MAP", port))
