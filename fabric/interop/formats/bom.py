"""What to buy: switches, servers, NICs, a transceiver for every cage in use, and cables by kind and length.

A breakout cable is one item however many legs it has, and the switch end of it is one transceiver; the published bill
counts one per link instead. Copper and active optical cables bring their own plugs and need no transceiver.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from fabric.interop.formats._csv_text import csv_text
from fabric.interop.physical import is_assembly, physical_cables, ways
from fabric.plan import EDGE
from fabric.topology.media import media_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.hardware.profiles import NicModel
    from fabric.interop.physical import PhysicalCable
    from fabric.plan import Plan

NAME = "bom"
SUMMARY = "CSV, bill of materials: switches, NICs, transceivers per cage, cables by length"
HEADER = (
    "section",
    "item",
    "description",
    "used_by",
    "quantity",
    "speed_gbps",
    "breakout",
    "connector",
    "medium",
    "length_m",
    "remark",
)
_SWITCH_KINDS = frozenset({"leaf", "border-leaf", "spine"})


def write(plan: Plan, fabrics: tuple[str, ...]) -> dict[str, str]:
    """Return `bom.csv`."""
    cables = physical_cables(plan, [link for link in plan.links.values() if link.fabric in fabrics])
    rows = [
        *_devices(plan, fabrics),
        *_nics(plan, fabrics),
        *_transceivers(plan, cables),
        *_cables(plan, cables),
    ]
    return {"bom.csv": csv_text(HEADER, rows)}


def _rows(section: str, counted: Counter[tuple[object, ...]]) -> Iterator[list[object]]:
    """One row an item: `counted` keys are the columns of HEADER from `item` on, the quantity left out."""
    for key, quantity in counted.items():
        item, description, used_by, *rest = key
        yield [section, item, description, used_by, quantity, *rest]


def _devices(plan: Plan, fabrics: tuple[str, ...]) -> Iterator[list[object]]:
    switches: Counter[tuple[object, ...]] = Counter()
    for switch in plan.switches.values():
        if switch.fabric in fabrics:
            used_by = f"{switch.fabric} {switch.kind}"
            switches[switch.model, f"{switch.nos} switch", used_by, "", "", "", "", "", ""] += 1
    servers: Counter[tuple[object, ...]] = Counter()
    for server in plan.servers.values():
        if any(port.fabric in fabrics for port in server.ports):
            xpus = f", {server.xpus} xPU" if server.xpus else ""
            servers[server.server_class, f"{server.kind} server{xpus}", "", "", "", "", "", "", ""] += 1
    gateways: Counter[tuple[object, ...]] = Counter()
    for gateway in plan.gateways.values():
        if gateway.fabric in fabrics:
            gateways[gateway.gateway_class, "x86 gateway", gateway.fabric, "", "", "", "", "", ""] += 1
    yield from _rows("switch", switches)
    yield from _rows("server", servers)
    yield from _rows("gateway", gateways)


def _nics(plan: Plan, fabrics: tuple[str, ...]) -> Iterator[list[object]]:
    from fabric.hardware.profiles import nic_models

    known = nic_models()
    cards = {
        (server.name, port.nic): (server.server_class, port)
        for server in plan.servers.values()
        for port in server.ports
        if port.fabric in fabrics
    }
    counted: Counter[tuple[object, ...]] = Counter()
    for server_class, port in cards.values():
        counted[_card(known, port.model, server_class, port.speed)] += 1
    for gateway in plan.gateways.values():
        if gateway.fabric in fabrics and gateway.nic:
            speed = known[gateway.nic].speed if gateway.nic in known else ""
            counted[_card(known, gateway.nic, gateway.gateway_class, speed)] += gateway.nic_count
    yield from _rows("nic", counted)
    outside: Counter[tuple[object, ...]] = Counter()
    for gateway in plan.gateways.values():
        for link in (plan.links[name] for name in gateway.externals if gateway.fabric in fabrics):
            what = f"{link.speed}G port towards the edge"
            remark = "the inventory does not say the model of this NIC"
            outside["", what, gateway.gateway_class, link.speed, "", "", "", "", remark] += 1
    yield from _rows("nic_port", outside)


def _card(known: dict[str, NicModel], name: str, used_by: str, speed: object) -> tuple[object, ...]:
    model = known.get(name)
    description = f"{model.vendor} {model.description}" if model else ""
    return name, description, used_by, speed, "", model.connector if model else "", "", "", ""


def _transceivers(plan: Plan, cables: list[PhysicalCable]) -> Iterator[list[object]]:
    counted: dict[str, Counter[tuple[object, ...]]] = {"switch": Counter(), "server": Counter(), "gateway": Counter()}
    seen = set()
    for cable in cables:
        for cage in cable.ends:
            kind = plan.kind_of[cage.device]
            if is_assembly(cable.medium) or kind == EDGE or (cage.device, cage.cage) in seen:
                continue
            seen.add((cage.device, cage.cage))
            rate = ways(cage.mode) * cable.speed
            split = f" as {cage.mode}" if ways(cage.mode) > 1 else ""
            row = (
                "-".join(filter(None, (cage.connector, f"{rate}G", cable.medium))),
                " ".join(filter(None, (f"{rate}G", cage.connector, f"transceiver{split}, {cable.medium}"))),
                _used_by(plan, cage.device),
                rate,
                cage.mode,
                cage.connector,
                cable.medium,
                "",
                _remark(plan, cable.speed, "" if cage.connector else "the inventory does not say the connector"),
            )
            counted["switch" if kind in _SWITCH_KINDS else kind][row] += 1
    for section, rows in counted.items():
        yield from _rows(f"{section}_transceiver", rows)


def _remark(plan: Plan, speed: int, more: str) -> str:
    """That the medium is ours and not the inventory's (management ports are copper, whatever their length)."""
    limits = media_text(plan.settings["media"]) if speed > 1 else ""
    return "; ".join(filter(None, (limits and f"medium by length, the inventory says none: {limits}", more)))


def _used_by(plan: Plan, device: str) -> str:
    if device in plan.switches:
        switch = plan.switches[device]
        return f"{switch.fabric} {switch.kind}"
    if device in plan.servers:
        return plan.servers[device].server_class
    return plan.gateways[device].gateway_class if device in plan.gateways else plan.kind_of[device]


def _cables(plan: Plan, cables: list[PhysicalCable]) -> Iterator[list[object]]:
    counted: Counter[tuple[object, ...]] = Counter()
    for cable in cables:
        split = cable.ways > 1
        mode = f"{cable.ways}x{cable.speed}G"
        plugs = "/".join(sorted({cage.connector for cage in cable.ends if cage.connector}))
        unsaid = "" if all(cage.connector for cage in cable.ends) else "the inventory does not say every connector"
        length = f"{cable.length_m}m" if cable.length_m else "length not said"
        what = f"breakout cable, {cable.ways} legs of {cable.speed}G" if split else f"cable, {cable.speed}G"
        counted[
            f"{cable.medium}-{mode}-{length.replace(' ', '-')}",
            f"{cable.medium} {what}, {length}",
            cable.legs[0].fabric,
            cable.speed * cable.ways,
            mode if split else "",
            plugs,
            cable.medium,
            cable.length_m or "",
            _remark(plan, cable.speed, unsaid),
        ] += 1
    yield from _rows("cable", counted)
