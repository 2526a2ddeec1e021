"""One physical network found in Hedgehog wiring: switches that fabric connections join, and who hangs off them."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fabric.hardware.ranges import natural_key
from fabric.interop.importing.draft import Draft, Flow, port_list, site_name
from fabric.interop.importing.nics import choose
from fabric.interop.names import split_index
from fabric.interop.readers.hedgehog import ROLES
from fabric.interop.readers.yaml_documents import dig
from fabric.plan import BORDER_LEAF, LEAF, SERVER, SPINE

if TYPE_CHECKING:
    from fabric.interop.cable_map import Cable, CableEnd
    from fabric.interop.readers.yaml_documents import Mapping

_PORT = re.compile(r"^E1/(\d{1,3})(?:/(\d))?$")
_NIC_PORT = re.compile(r"^(?P<group>[a-z][a-z-]*?)(?P<number>\d*)-(?P<port>[a-z]+\d+)$")
# stands for switches of which there is no profile: it can be split in every way that wiring files use
_MODEL = "celestica-ds5000"
_UNSPLIT_SERVER_SPEED = 400
_UNSPLIT_SPEED = 800


@dataclass
class WiringFabric:
    """The switches of one network by name, and the cables that touch them."""

    name: str
    carries: list[str]
    switches: dict[str, Mapping]
    cables: list[Cable] = field(default_factory=list)

    @property
    def leaves(self) -> list[str]:
        """Leaves and border leaves."""
        return [name for name in self.switches if self.role(name) in {LEAF, BORDER_LEAF}]

    def role(self, switch: str) -> str:
        """Leaf, border leaf or spine."""
        return ROLES.get(str(dig(self.switches[switch], "spec", "role")), LEAF)

    def spec(self, draft: Draft) -> dict[str, Any]:
        """The fabric as the inventory says it."""
        spec: dict[str, Any] = {"carries": self.carries, "placement": self.placement()}
        for role, key in ((LEAF, "leaf"), (BORDER_LEAF, "border-leaf"), (SPINE, "spine")):
            members = sorted((name for name in self.switches if self.role(name) == role), key=natural_key)
            if members:
                spec[key] = self._switch_class(draft, role, members)
        if "leaf" not in spec:
            spec["leaf"] = spec.pop("border-leaf")
        return spec

    def _switch_class(self, draft: Draft, role: str, members: list[str]) -> dict[str, Any]:
        stem = split_index(members[0])[0]
        prefix = site_name(stem)
        expected = [f"{prefix}-{n:02d}" for n in range(1, len(members) + 1)]
        if members != expected:
            draft.note(f"the names of switches {stem}* (they are called {expected[0]} and on)")
        spec: dict[str, Any] = {"model": self._model(draft, members), "name": prefix, "count": len(members)}
        down = self._zones(draft, members, down=True)
        up = self._zones(draft, members, down=False)
        if down:
            spec["down"] = down[0] if len(down) == 1 else down
        if up and role != SPINE:
            spec["up"] = up[0]
            if len(up) > 1:
                draft.note(f"uplinks of {stem}* in {len(up)} breakouts (only {up[0]['breakout']} is kept)")
        return spec

    def _model(self, draft: Draft, members: list[str]) -> str:
        from fabric.hardware.profiles import switch_models

        profile = str(dig(self.switches[members[0]], "spec", "profile") or "")
        if profile in switch_models():
            return profile
        draft.note(f"switch profile '{profile}' of {members[0]} and others ({_MODEL} instead)")
        return _MODEL

    def _zones(self, draft: Draft, members: list[str], *, down: bool) -> list[Flow]:
        """Cages in use in one direction, by breakout mode: the union over the switches of the class."""
        modes: dict[str, set[int]] = {}
        for name in members:
            for cable in self.cables:
                for here, there in ((cable.a, cable.b), (cable.b, cable.a)):
                    if here.device != name or self._is_down(here, there) is not down:
                        continue
                    match = _PORT.match(here.port)
                    if match:
                        modes.setdefault(self.mode(draft, here, there), set()).add(int(match[1]))
                    else:
                        draft.note(f"port {here}: not an E1/n port")
        return [Flow(ports=port_list(cages), breakout=mode) for mode, cages in modes.items()]

    def _is_down(self, here: CableEnd, there: CableEnd) -> bool:
        return there.device not in self.switches or self.role(there.device) != SPINE or self.role(here.device) == SPINE

    def mode(self, draft: Draft, here: CableEnd, there: CableEnd) -> str:
        """The breakout of a port: what the wiring says, else one that suits what is at the other end."""
        cage = here.port.rpartition("/")[0] if here.port.count("/") == 2 else here.port
        said = dig(self.switches[here.device], "spec", "portBreakouts")
        if isinstance(said, dict) and isinstance(said.get(cage), str):
            return str(said[cage])
        if there.device in self.switches:
            return f"1x{_UNSPLIT_SPEED}G"
        draft.note(f"the speed of unsplit server ports is not in the wiring ({_UNSPLIT_SERVER_SPEED}G assumed)")
        return f"1x{_UNSPLIT_SERVER_SPEED}G"

    def placement(self, servers: list[str] | None = None) -> str:
        """How server ports are spread over leaves, from the cables."""
        homes: dict[str, list[str]] = {}
        for cable in sorted(self.cables, key=lambda c: natural_key(c.a.port)):
            if cable.a.role == SERVER and (servers is None or cable.a.device in servers):
                homes.setdefault(cable.a.device, []).append(cable.b.device)
        shapes = Counter(_shape(leaves) for leaves in homes.values())
        return shapes.most_common(1)[0][0] if shapes else "alternating"

    def nics(self, draft: Draft, servers: list[str]) -> dict[str, Flow]:
        """The NIC groups of a server class in this fabric, from the ports of its first server."""
        first = [cable for cable in self.cables if cable.a.device == servers[0]]
        groups: dict[str, list[Cable]] = {}
        for cable in sorted(first, key=lambda c: natural_key(c.a.port)):
            match = _NIC_PORT.match(cable.a.port)
            groups.setdefault(match["group"] if match else "nic", []).append(cable)
        nics = {}
        for group, cables in groups.items():
            cards = len({_card(cable.a.port) for cable in cables})
            mode = self.mode(draft, cables[0].b, cables[0].a)
            speed = int(mode.partition("x")[2].rstrip("G") or 0)
            choice = choose("", cards, len(cables) // cards or 1, speed)
            if choice is None:
                draft.note(f"{servers[0]} ports {group}: no NIC model has {speed}G ports")
                continue
            if any(cable.lag for cable in cables):
                draft.note("link aggregation of servers (each port is routed on its own)")
            if group == "nic":
                draft.note(f"port names such as {cables[0].a.port} ({choice} has its own)")
            nics[site_name(group)] = Flow(nic=str(choice), fabric=self.name, placement=self.placement(servers))
        return nics


def _card(port: str) -> str:
    match = _NIC_PORT.match(port)
    return f"{match['group']}{match['number']}" if match else "nic"


def _shape(leaves: list[str]) -> str:
    if len(set(leaves)) == 1:
        return "single-homed" if len(leaves) > 1 else "alternating"
    if len(leaves) > 2 and leaves == sorted(leaves, key=natural_key):
        return "rail-optimised"
    return "alternating"


def split_fabrics(switches: dict[str, Mapping], cables: list[Cable], stems: list[str]) -> list[WiringFabric]:
    """Group switches that are joined, directly or over others, into fabrics; each gets the cables that touch it."""
    parent = {name: name for name in switches}

    def root(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    for cable in cables:
        if cable.a.device in parent and cable.b.device in parent:
            parent[root(cable.a.device)] = root(cable.b.device)
    groups: dict[str, dict[str, Mapping]] = {}
    for name, document in switches.items():
        groups.setdefault(root(name), {})[name] = document
    fabrics, taken = [], set[str]()
    for members in groups.values():
        name, carries = _identity(list(members), stems)
        while name in taken:
            name += "-2"
        taken.add(name)
        own = [cable for cable in cables if cable.a.device in members or cable.b.device in members]
        fabrics.append(WiringFabric(name, carries, members, own))
    return fabrics


def _identity(members: list[str], stems: list[str]) -> tuple[str, list[str]]:
    """A fabric's name and what it carries: from its switches' names, else from the file's, else plain `fabric`."""
    words = [*members, *stems] if len(stems) == 1 else members
    if any(word.startswith("be-") or "backend" in word for word in words):
        return "backend", ["backend"]
    if any(word.startswith("fe-") or "frontend" in word for word in words):
        return "frontend", ["frontend", "storage"]
    return "fabric", ["frontend", "storage"]
