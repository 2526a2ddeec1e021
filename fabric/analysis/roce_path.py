"""The proof that RoCE holds from one NIC to another, hop by hop, from the rendered files alone.

Each value carries the file and key that it came from and what the plan wants there. Every equal-cost path is looked at;
one is printed in full, with what is known of the hash that chooses (see `fabric.analysis.ecmp_path`).
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from fabric.analysis.ecmp_path import Ecmp, cables_between, ecmp_of
from fabric.analysis.facts import Facts
from fabric.analysis.rendered import CONFIG_DB, NETWORK_SH, ROCE_SH, Rendered
from fabric.analysis.rules.addresses import VXLAN_OVERHEAD
from fabric.analysis.rules.hosts import settings_of
from fabric.analysis.rules.qos import indexes
from fabric.hints import names_hint
from fabric.plan import FABRIC_LINK
from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from fabric.analysis.rendered import ConfigDb
    from fabric.plan import Link, Plan, Qos, Server, ServerPort, TrafficClass

MODEL = (
    "Rendered files only. VXLAN copies the inner DSCP and ECN to the outer header and CE back on the way out "
    "(RFC 6040); each value is compared with what the plan wants there."
)
LEFT_OUT = (
    "whether devices have loaded these files, cabling, optics, what the ASIC's hash chooses, traffic of other classes"
)
_ECN = ("not ECN-capable", "ECT(1)", "ECT(0)", "CE")


@dataclass(frozen=True, slots=True)
class Value:
    """One setting: what it is, what the plan wants, where it was read. `ok` is None when there was nothing to read."""

    name: str
    value: str
    want: str
    file: str
    key: str
    ok: bool | None
    line: int = 0


@dataclass(frozen=True, slots=True)
class Hop:
    """One port on the way; `way` is `out` or `in`, `packet` what the packet's headers say there."""

    device: str
    interface: str
    way: str
    values: tuple[Value, ...]
    packet: str = ""

    @property
    def wrong(self) -> tuple[Value, ...]:
        """The values that do not agree."""
        return tuple(v for v in self.values if v.ok is False)


@dataclass(frozen=True, slots=True)
class Proof:
    """One path in full (`hops`), how many equal-cost paths there are, and every port of any path that disagrees."""

    source: str
    target: str
    traffic: str
    tunnelled: bool
    paths: int
    hops: tuple[Hop, ...]
    wrong: tuple[Hop, ...]
    unknown: tuple[Hop, ...]
    ecmp: Ecmp

    @property
    def holds(self) -> bool:
        """Whether every value on every path was read and agrees."""
        return not self.wrong and not self.unknown

    def to_dict(self) -> dict[str, Any]:
        """Return the proof as JSON-ready data."""
        more = {"ecmp": self.ecmp.to_dict(), "model": MODEL, "left_out": LEFT_OUT}
        return {"holds": self.holds, **asdict(self), **more}


def _port(plan: Plan, name: str, fabric: str = "", rail: int = -1) -> tuple[str, ServerPort]:
    server, colon, nic = name.partition(":")
    found = plan.servers.get(server)
    if found is None:
        fix = names_hint(server, plan.servers, "servers")
        raise InputError([Problem("path.server", name, "there is no such server", fix)])
    ports = [p for p in found.ports if p.tenant and (nic in {p.name, p.nic} if colon else p.rdma)]
    ports = [p for p in ports if not fabric or p.fabric == fabric]
    ports.sort(key=lambda p: p.rail != rail)
    if not ports:
        raise InputError([_no_port(name, found, fabric)])
    return server, ports[0]


def _no_port(name: str, server: Server, fabric: str) -> Problem:
    """Why a server has no port to prove: RDMA is off where it is, or the name is another."""
    has = ", ".join(p.name for p in server.ports if p.rdma and p.tenant)
    if has:
        where = f" in {fabric}" if fabric else ""
        return Problem("path.nic", name, f"has no such RDMA port with a tenant{where}", f"RDMA ports: {has}")
    fabrics = ", ".join(dict.fromkeys(p.fabric for p in server.ports)) or "no fabric"
    text = f"is in {fabrics} only, without RDMA: there is no lossless class to prove"
    fix = f"`kvfabric show SITE {server.name} OTHER` prints the ways between two servers, RDMA or not"
    return Problem("path.nic", name, text, fix)


def _require_reachable(plan: Plan, source: str, first: ServerPort, target: str, last: ServerPort) -> None:
    one, two = first.tenant, last.tenant
    if first.link == last.link:
        raise InputError([Problem("path.same", f"{source} to {target}", "is one port", "name two ports")])
    if one != two and two not in plan.tenants[one].peers:
        text = f"tenants {one} and {two} are not peers, so no packet goes this way"
        fix = f"choose servers of one tenant, or add `peers: [{two}]` to tenant {one}"
        raise InputError([Problem("path.tenants", f"{source} to {target}", text, fix)])


class _Prover:
    def __init__(self, facts: Facts, qos: Qos, cls: TrafficClass, fabric: str) -> None:
        self.facts, self.plan, self.rendered = facts, facts.plan, facts.rendered
        self.qos, self.cls = qos, cls
        self.mtu = self.plan.fabrics[fabric].mtu
        self.server_mtu = self.plan.fabrics[fabric].server_mtu
        self.dscp = str(cls.dscp[0])
        self.plain, self.tunnelled = "", ""

    def packets(self, server: str) -> None:
        """Work out what headers say on server links and inside the fabric, from what the sender's file sets."""
        text = settings_of(self.rendered.text(server, ROCE_SH)).get("TOS", "")
        if text.isdigit() and int(text) < 256:
            marks = f"DSCP {int(text) >> 2}, {_ECN[int(text) & 3]}"
            self.plain, self.tunnelled = marks, f"outer {marks} and inner alike, {VXLAN_OVERHEAD} bytes of VXLAN"
        else:
            self.plain = self.tunnelled = f"unknown: {ROCE_SH} of {server} sets no TOS"

    def _value(
        self, device: str, file: str, name: str, value: object, want: str, *keys: str, ok: bool | None = None
    ) -> Value:
        text = "" if value is None else str(value)
        good = (text == want) if ok is None else ok
        line = self.rendered.line_of(device, file, *keys) if file == CONFIG_DB and not good else 0
        return Value(name, text or "missing", want, self.rendered.path(device, file), "|".join(keys), good, line)

    def nic(self, server: str, port: ServerPort, way: str) -> Hop:
        """The NIC's marking, class and pause, and its MTU."""
        text = self.rendered.text(server, ROCE_SH)
        have = settings_of(text)
        pfc = ",".join("1" if i in {c.priority for c in self.qos.lossless} else "0" for i in range(8))
        tos = str(self.cls.dscp[0] << 2 | 2)
        ports = have.get("PORTS", "").split()
        interface = self.facts.node(server).interfaces.get(port.name)
        mtu = interface.mtu if interface else 0
        wants = (("DSCP", self.dscp), ("TOS (DSCP and ECT)", tos), ("PRIORITY", str(self.cls.priority)), ("PFC", pfc))
        values = [self._value(server, ROCE_SH, n, have.get(n.split()[0]), w, n.split()[0]) for n, w in wants]
        values.append(
            self._value(server, ROCE_SH, "set on", have.get("PORTS"), port.name, "PORTS", ok=port.name in ports)
        )
        values.append(self._value(server, NETWORK_SH, "MTU", mtu, str(self.server_mtu), f"ip link set {port.name} mtu"))
        return Hop(server, port.name, way, tuple(values), self.plain)

    def switch(self, device: str, link: Link, way: str, decap: bool = False) -> Hop:
        """A switch port: what classifies, stores, pauses, schedules and marks the packet."""
        interface = link.end(device).interface
        packet = self.tunnelled if link.kind == FABRIC_LINK else self.plain
        if CONFIG_DB not in self.rendered.files.get(device, {}):
            value = Value("QoS", "not in these files", "config_db.json", "", "", None)
            return Hop(device, interface, way, (value,), packet)
        db = self.facts.db(device)
        maps = db.get("PORT_QOS_MAP", {}).get(interface, {})
        values = (
            self._into(device, interface, link, db, maps, decap)
            if way == "in"
            else self._out(device, interface, link, db, maps)
        )
        mtu = db.get("PORT", {}).get(interface, {}).get("mtu", "0")
        need = self.server_mtu + (VXLAN_OVERHEAD if link.kind == FABRIC_LINK else 0)
        room = int(mtu) - need if str(mtu).isdigit() else -1
        values.append(
            self._value(device, CONFIG_DB, "MTU left", room, "0 or more", "PORT", interface, "mtu", ok=room >= 0)
        )
        return Hop(device, interface, way, tuple(values), packet)

    def _right_class(self, db: ConfigDb, maps: dict[str, str]) -> str:
        """The traffic class that leads to the queue and priority group of the class on this switch."""
        queues = db.get("TC_TO_QUEUE_MAP", {}).get(maps.get("tc_to_queue_map", ""), {})
        groups = db.get("TC_TO_PRIORITY_GROUP_MAP", {}).get(maps.get("tc_to_pg_map", ""), {})
        want = (str(self.cls.queue), str(self.cls.priority))
        return next((tc for tc in queues if (queues[tc], groups.get(tc)) == want), want[1])

    def _class_of(self, db: ConfigDb, maps: dict[str, str]) -> tuple[str, str]:
        name = maps.get("dscp_to_tc_map", "")
        return name, db.get("DSCP_TO_TC_MAP", {}).get(name, {}).get(self.dscp, "")

    def _pause(self, device: str, interface: str, db: ConfigDb, maps: dict[str, str]) -> list[Value]:
        enabled = maps.get("pfc_enable", "")
        on = self.cls.priority in indexes(enabled) if enabled else False
        watch = db.get("PFC_WD", {}).get(interface, {})
        times = (
            f"{watch.get('detection_time')}/{watch.get('restoration_time')} ms {watch.get('action')}" if watch else None
        )
        want = f"{self.qos.watchdog_detection_ms}/{self.qos.watchdog_restoration_ms} ms {self.qos.watchdog_action}"
        return [
            self._value(
                device,
                CONFIG_DB,
                "PFC on",
                enabled,
                str(self.cls.priority),
                "PORT_QOS_MAP",
                interface,
                "pfc_enable",
                ok=on,
            ),
            self._value(device, CONFIG_DB, "watchdog", times, want, "PFC_WD", interface),
        ]

    def _into(
        self, device: str, interface: str, link: Link, db: ConfigDb, maps: dict[str, str], decap: bool
    ) -> list[Value]:
        name, tc = self._class_of(db, maps)
        pg = db.get("TC_TO_PRIORITY_GROUP_MAP", {}).get(maps.get("tc_to_pg_map", ""), {}).get(tc, "")
        want = str(self.cls.priority)
        found = [
            self._value(
                device,
                CONFIG_DB,
                f"DSCP {self.dscp} to class",
                tc,
                self._right_class(db, maps),
                "DSCP_TO_TC_MAP",
                name,
                self.dscp,
            ),
            self._value(
                device,
                CONFIG_DB,
                "priority group",
                pg,
                want,
                "TC_TO_PRIORITY_GROUP_MAP",
                maps.get("tc_to_pg_map", "-"),
                tc or "-",
            ),
        ]
        key = f"{interface}|{want}"
        profile = db.get("BUFFER_PG", {}).get(key, {}).get("profile")
        xoff = db.get("BUFFER_PROFILE", {}).get(profile or "", {}).get("xoff", "0")
        try:
            need = self.qos.headroom_for(link.speed, link.length_m).xoff
        except KeyError:
            need = 0
        text = f"{xoff} bytes ({profile})" if profile else None
        enough = bool(profile) and str(xoff).isdigit() and int(xoff) >= need
        what = f"headroom for {link.length_m} m"
        found.append(self._value(device, CONFIG_DB, what, text, f"{need} bytes or more", "BUFFER_PG", key, ok=enough))
        if decap:
            outer = db.get("PORT_QOS_MAP", {}).get("global", {}).get("dscp_to_tc_map")
            found.append(self._value(device, CONFIG_DB, "map after the tunnel", outer, name, "PORT_QOS_MAP", "global"))
        return found + self._pause(device, interface, db, maps)

    def _out(self, device: str, interface: str, link: Link, db: ConfigDb, maps: dict[str, str]) -> list[Value]:
        _, tc = self._class_of(db, maps)
        queue = db.get("TC_TO_QUEUE_MAP", {}).get(maps.get("tc_to_queue_map", ""), {}).get(tc, "")
        want = str(self.cls.queue)
        row = db.get("QUEUE", {}).get(f"{interface}|{want}", {})
        wred = db.get("WRED_PROFILE", {}).get(row.get("wred_profile", ""), {})
        low, high, percent = (wred.get(f"green_{f}") for f in ("min_threshold", "max_threshold", "drop_probability"))
        marks = f"{low} to {high} at {percent} %" if wred else None
        least, most = self.cls.marks(link.speed)
        marks_want = f"{least} to {most} at {self.cls.ecn_probability} %"
        stopped = (
            db.get("MAP_PFC_PRIORITY_TO_QUEUE", {})
            .get(maps.get("pfc_to_queue_map", ""), {})
            .get(str(self.cls.priority))
        )
        return [
            self._value(
                device, CONFIG_DB, "queue", queue, want, "TC_TO_QUEUE_MAP", maps.get("tc_to_queue_map", "-"), tc or "-"
            ),
            self._value(
                device,
                CONFIG_DB,
                "scheduler",
                row.get("scheduler"),
                "any",
                "QUEUE",
                f"{interface}|{want}",
                ok=bool(row.get("scheduler")),
            ),
            self._value(
                device, CONFIG_DB, "ECN marking", marks, marks_want, "QUEUE", f"{interface}|{want}", "wred_profile"
            ),
            self._value(
                device,
                CONFIG_DB,
                "queue that pause stops",
                stopped,
                want,
                "MAP_PFC_PRIORITY_TO_QUEUE",
                maps.get("pfc_to_queue_map", "-"),
            ),
            *self._pause(device, interface, db, maps),
        ]


def prove(
    plan: Plan, rendered: Rendered, source: str, target: str, traffic: str = "", source_port: int | None = None
) -> Proof:
    """Prove a pair; `source_port` is the UDP source port of a QP, for the hash.

    Raises InputError for unknown servers, ports or classes, for ports that no fabric joins, and for tenants that do not
    reach each other.
    """
    one, first = _port(plan, source)
    two, last = _port(plan, target, first.fabric, first.rail)
    _require_reachable(plan, source, first, target, last)
    qos = plan.fabrics[first.fabric].qos
    classes = {c.name: c for c in qos.lossless} if qos else {}
    if qos is None or (traffic and traffic not in classes):
        text = f"fabric {first.fabric} has no lossless class {traffic}".rstrip()
        raise InputError(
            [Problem("path.class", f"{source} to {target}", text, f"classes: {', '.join(classes) or 'none'}")]
        )
    cls = classes[traffic] if traffic else qos.lossless[0]
    prover = _Prover(Facts(plan, rendered), qos, cls, first.fabric)
    prover.packets(one)
    near, far = plan.links[first.link], plan.links[last.link]
    head = [prover.nic(one, first, "out"), prover.switch(near.b.device, near, "in")]
    tail = [prover.switch(far.b.device, far, "out"), prover.nic(two, last, "in")]
    middles = _middles(prover, near.b.device, far.b.device, first.fabric)
    if near.b.device != far.b.device and not middles:
        raise InputError([Problem("path.none", f"{source} to {target}", "no spine joins their leaves")])
    every = [*head, *dict.fromkeys(hop for middle in middles for hop in middle), *tail]
    hops = (*head, *(middles[0] if middles else ()), *tail)
    unknown = tuple(h for h in every if any(v.ok is None for v in h.values))
    return Proof(
        f"{one}:{first.name}",
        f"{two}:{last.name}",
        cls.name,
        near.b.device != far.b.device,
        max(1, len(middles)),
        hops,
        tuple(h for h in every if h.wrong),
        unknown,
        ecmp_of(prover.facts, first, last, source_port),
    )


def _middles(prover: _Prover, near: str, far: str, fabric: str) -> list[tuple[Hop, ...]]:
    """The hops between two leaves for every pair of cables over every spine."""
    if near == far:
        return []
    ups, downs = cables_between(prover.facts, near, far, fabric)
    found: list[tuple[Hop, ...]] = []
    for spine, cables in ups.items():
        goes = [(prover.switch(near, up, "out"), prover.switch(spine, up, "in")) for up in cables]
        comes = [
            (prover.switch(spine, down, "out"), prover.switch(far, down, "in", decap=True)) for down in downs[spine]
        ]
        found += [(*go, *come) for go in goes for come in comes]
    return found
