"""One fabric from its inventory: leaves filled with servers and gateways, spines, and the cables between them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fabric.hardware.profiles import nic_models
from fabric.hardware.ranges import natural_key
from fabric.plan import BORDER_LEAF, LEAF, SPINE, SUPER_SPINE
from fabric.topology.placement import ALTERNATING, LeafRow, NoRoomError, Placed, Want, place
from fabric.topology.pods import PlanesError, Wanted, connect_pods
from fabric.topology.switches import DOWN, ClassPorts, Draft, class_ports
from fabric.topology.uplinks import SpinePortsError, UnevenUplinksError, Uplink, connect, spine_count

if TYPE_CHECKING:
    from fabric.allocation.ledger import Ledger
    from fabric.inventory.load import Inventory, Path_
    from fabric.inventory.models import Edge, Fabric, GatewayClass, NicGroup, ServerClass, SwitchClass
    from fabric.problem import Problem

_MOST_LEAVES = 2048
_NIC = re.compile(r"^(?:(\d+)x )?(.+)$")


@dataclass(frozen=True, slots=True)
class NicPort:
    """One port of a server or gateway NIC before it is cabled."""

    name: str
    nic: str
    model: str
    speed: int
    rail: int
    rdma: bool


@dataclass
class FabricDraft:
    """A fabric while it is being built."""

    name: str
    spec: Fabric
    rows: dict[str, LeafRow] = field(default_factory=dict)
    spines: list[Draft] = field(default_factory=list)
    supers: list[Draft] = field(default_factory=list)
    placed: list[Placed] = field(default_factory=list)
    uplinks: list[Uplink] = field(default_factory=list)

    @property
    def leaves(self) -> list[Draft]:
        """Leaves, then border leaves."""
        return [leaf for kind in (LEAF, BORDER_LEAF) if kind in self.rows for leaf in self.rows[kind].leaves]

    @property
    def switches(self) -> list[Draft]:
        """Leaves, border leaves, spines, super-spines."""
        return [*self.leaves, *self.spines, *self.supers]


def switch_spec(spec: Fabric, kind: str) -> SwitchClass | None:
    """The inventory's switch class of a kind."""
    kinds = {LEAF: spec.leaf, BORDER_LEAF: spec.border_leaf, SPINE: spec.spine, SUPER_SPINE: spec.super_spine}
    return kinds[kind]


def parse_nic(text: str) -> tuple[int, str]:
    """Split `8x cx7-1x400g` into how many and which model."""
    match = _NIC.match(text)
    assert match
    return int(match[1] or 1), match[2]


def nic_ports(group: str, spec: NicGroup, carries_backend: bool) -> tuple[NicPort, ...]:
    """The ports of a NIC group: `be0-port0` ... for several NICs, `fe-p0`, `fe-p1` for one. KeyError: unknown model."""
    count, model_name = parse_nic(spec.nic)
    model = nic_models()[model_name]
    rdma = (model.rdma and carries_backend) if spec.rdma is None else spec.rdma
    ports = []
    for n in range(count):
        nic = f"{group}{n}" if count > 1 else group
        ports += [(nic, port) for port in model.ports]
    return tuple(NicPort(f"{nic}-{port}", nic, model_name, model.speed, i, rdma) for i, (nic, port) in enumerate(ports))


def server_names(name: str, spec: ServerClass) -> list[str]:
    """The servers of a class, in order."""
    return [f"{name}-{n:0{spec.digits}d}" for n in range(1, spec.count + 1)]


def gateway_names(name: str, spec: GatewayClass) -> list[str]:
    """The gateways of a class, in order."""
    return [f"{name}-{n:02d}" for n in range(1, spec.count + 1)]


def edge_names(edge: Edge) -> list[str]:
    """The routers outside, in order."""
    return [f"edge-{n:02d}" for n in range(1, edge.count + 1)]


def build_fabric(
    inventory: Inventory, name: str, ledger: Ledger, gateways: list[Want], problems: list[Problem]
) -> FabricDraft | None:
    """Build one fabric; adds problems and returns None when it cannot be built."""
    spec = inventory.site.fabrics[name]
    draft = FabricDraft(name, spec)
    classes = _classes(inventory, name, spec, problems)
    if classes is None:
        return None
    _rows(draft, classes)
    before = len(problems)
    wants = _server_wants(inventory, name, spec, problems) + gateways
    _check_attach(inventory, draft, wants, problems)
    if len(problems) > before:
        return None
    try:
        draft.placed = place((w for w in wants if w.attach != SPINE), draft.rows, ledger, f"cabling/{name}")
    except NoRoomError as error:
        problems.append(_no_room(inventory, name, draft, error))
        return None
    if not draft.leaves:
        draft.rows[LEAF].at(0, 0)
    _top(inventory, draft, classes, ledger, [w for w in wants if w.attach == SPINE], problems)
    return draft


def _rows(draft: FabricDraft, classes: dict[str, ClassPorts]) -> None:
    prefix = draft.spec.prefix or draft.name
    for kind in (LEAF, BORDER_LEAF):
        switch = switch_spec(draft.spec, kind)
        if switch and kind in classes:
            row_prefix = switch.name or f"{prefix}-{kind}"
            draft.rows[kind] = LeafRow(kind, row_prefix, classes[kind], switch.count, _MOST_LEAVES)


def _check_attach(inventory: Inventory, draft: FabricDraft, wants: list[Want], problems: list[Problem]) -> None:
    have = {*draft.rows, SPINE} if draft.spec.spine else set(draft.rows)
    for group, attach in sorted({(want.group, want.attach) for want in wants if want.attach not in have}):
        path: Path_ = ("gateways", group.removeprefix("gateway "))
        if not group.startswith("gateway "):
            path = ("servers", *group.partition(".")[::2])
        text = f"{group} attaches to a {attach}, and fabric '{draft.name}' has none"
        fix = f"add `{attach}:` to the fabric, or attach to another kind of switch"
        problems.append(inventory.problem("topology.attach", path, group, text, fix))


def _top(
    inventory: Inventory,
    draft: FabricDraft,
    classes: dict[str, ClassPorts],
    ledger: Ledger,
    on_spine: list[Want],
    problems: list[Problem],
) -> None:
    """The spines and what is cabled to them."""
    if SPINE in classes:
        _above_leaves(inventory, draft, classes, ledger, problems)
        if on_spine and draft.spines:
            draft.placed += _place_on_spines(inventory, draft, on_spine, problems)
    elif len(draft.leaves) > 1 and draft.spec.managed:
        text = f"{len(draft.leaves)} leaves and no spine to join them"
        path = ("fabrics", draft.name)
        problems.append(inventory.problem("topology.spine", path, draft.name, text, "add `spine:` to the fabric"))


def _classes(inventory: Inventory, name: str, spec: Fabric, problems: list[Problem]) -> dict[str, ClassPorts] | None:
    found: dict[str, ClassPorts] = {}
    before = len(problems)
    for kind in (LEAF, BORDER_LEAF, SPINE, SUPER_SPINE):
        switch = switch_spec(spec, kind)
        if switch:
            ports = class_ports(inventory, ("fabrics", name, kind), switch, problems)
            if ports:
                found[kind] = ports
    return found if len(problems) == before else None


def _server_wants(inventory: Inventory, fabric: str, spec: Fabric, problems: list[Problem]) -> list[Want]:
    """Every NIC port of every server that goes to this fabric, in server order; classes in natural order of name."""
    backend = "backend" in spec.carries
    wants: list[Want] = []
    for class_name in inventory.site.servers:
        server_class = inventory.site.servers[class_name]
        groups = []
        for group, nic in server_class.nics.items():
            if nic.fabric != fabric:
                continue
            path: Path_ = ("servers", class_name, "nics", group, "nic")
            if parse_nic(nic.nic)[1] not in nic_models():
                fix = f"known models: {', '.join(sorted(nic_models()))}"
                problems.append(inventory.problem("hardware.nic", path, nic.nic, "no such NIC model", fix))
                continue
            groups.append((group, nic, nic_ports(group, nic, backend)))
        for server in server_names(class_name, server_class):
            for group, nic, ports in groups:
                placement = nic.placement or spec.placement
                label = f"{class_name}.{group}"
                total = len(ports) * server_class.count
                wants += [
                    Want(server, p.name, label, p.speed, placement, i, len(ports), total, nic.attach)
                    for i, p in enumerate(ports)
                ]
    return wants


def _no_room(inventory: Inventory, name: str, draft: FabricDraft, error: NoRoomError) -> Problem:
    row = draft.rows[error.attach]
    capacity = row.ports.capacity(DOWN, error.speed)
    path = ("fabrics", name, error.attach)
    if not capacity:
        speeds = ", ".join(f"{s}G" for s in row.ports.speeds(DOWN)) or "none"
        text = f"no {error.speed}G port towards servers: the down zone has {speeds}"
        return inventory.problem("topology.speed", path, row.prefix, text, f"add a down zone with {error.speed}G ports")
    text = (
        f"{error.limit} x {capacity} ports of {error.speed}G are not enough for the servers and gateways of this fabric"
    )
    return inventory.problem("topology.room", path, row.prefix, text, "raise `count`, or leave it out")


def _above_leaves(
    inventory: Inventory, draft: FabricDraft, classes: dict[str, ClassPorts], ledger: Ledger, problems: list[Problem]
) -> None:
    """The spines, and super-spines where the fabric has them, with their cables."""
    spec = draft.spec.spine
    assert spec
    prefix = spec.name or f"{draft.spec.prefix or draft.name}-spine"
    try:
        if draft.spec.super_spine:
            _pods_and_planes(draft, prefix, classes, ledger)
        else:
            count = spine_count(draft.leaves, classes[SPINE], spec.count)
            draft.spines = [Draft(f"{prefix}-{i + 1:02d}", SPINE, i, classes[SPINE]) for i in range(count)]
            draft.uplinks = connect(draft.leaves, draft.spines, ledger, f"uplinks/{draft.name}")
    except UnevenUplinksError as error:
        text = f"{error.uplinks} uplinks of {error.leaf} cannot be divided evenly over {error.spines} switches above it"
        fix = "change the `count` of the tier above, or the number of `up` ports"
        problems.append(inventory.problem("topology.uneven", ("fabrics", draft.name, SPINE), draft.name, text, fix))
    except SpinePortsError as error:
        text = (
            f"{error.wanted} uplinks of {error.speed}G and {error.had} ports of that speed for them in the tier above"
        )
        fix = "raise the `count` of the tier above, or give it a `down` zone of that speed"
        path = ("fabrics", draft.name, SPINE)
        problems.append(inventory.problem("topology.spine-ports", path, draft.name, text, fix))
    except PlanesError as error:
        text = f"{error.count} super-spines cannot be divided evenly over {error.planes} planes, one a spine of a pod"
        path = ("fabrics", draft.name, SUPER_SPINE)
        problems.append(inventory.problem("topology.planes", path, draft.name, text, "change `count`, or leave it out"))


def _pods_and_planes(draft: FabricDraft, prefix: str, classes: dict[str, ClassPorts], ledger: Ledger) -> None:
    spec = draft.spec
    assert spec.spine
    assert spec.super_spine
    assert spec.pod_leaves
    wanted = Wanted(
        pod_leaves=spec.pod_leaves,
        spine_ports=classes[SPINE],
        super_ports=classes[SUPER_SPINE],
        spine_prefix=prefix,
        super_prefix=spec.super_spine.name or f"{spec.prefix or draft.name}-super",
        spines=spec.spine.count,
        supers=spec.super_spine.count,
    )
    tiers = connect_pods(draft.rows, wanted, ledger, f"uplinks/{draft.name}")
    draft.spines, draft.supers, draft.uplinks = tiers.spines, tiers.supers, tiers.uplinks


def _place_on_spines(
    inventory: Inventory, draft: FabricDraft, wants: list[Want], problems: list[Problem]
) -> list[Placed]:
    placed = []
    for want in sorted(wants, key=lambda w: (natural_key(w.server), w.position)):
        spine = draft.spines[want.position % len(draft.spines)]
        port = spine.peek(DOWN, want.speed)
        if port is None:
            text = f"{spine.name} has no free {want.speed}G port for {want.server} {want.port}"
            fix = "attach gateways to border leaves, or add a spine zone of that speed"
            problems.append(inventory.problem("topology.room", ("gateways",), want.group, text, fix))
            continue
        spine.used[port.name] = f"{want.server}:{want.port}--{spine.name}:{port.name}"
        placed.append(Placed(want, spine, port))
    return placed


def gateway_wants(inventory: Inventory, fabric: str) -> list[Want]:
    """The ports of the gateways that attach to this fabric: `in0`, `in1` ..., alternating over a pair of switches."""
    wants = []
    for class_name, spec in inventory.site.gateways.items():
        if gateway_fabric(inventory, spec) != fabric:
            continue
        count, model = parse_nic(spec.nic)
        nic = nic_models().get(model)
        if nic is None:
            continue
        width = count * len(nic.ports)
        wants += [
            Want(
                name,
                f"in{i}",
                f"gateway {class_name}",
                nic.speed,
                ALTERNATING,
                i,
                width,
                width * spec.count,
                spec.attach,
            )
            for name in gateway_names(class_name, spec)
            for i in range(width)
        ]
    return wants


def gateway_fabric(inventory: Inventory, spec: GatewayClass) -> str | None:
    """The fabric a gateway class attaches to: as said, else the first that carries `frontend`."""
    if spec.fabric:
        return spec.fabric
    return next((name for name, fabric in inventory.site.fabrics.items() if "frontend" in fabric.carries), None)
