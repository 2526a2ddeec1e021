"""The files themselves: there, readable, named right, and about the device whose folder they are in."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from fabric.analysis.frr_words import strays
from fabric.analysis.rendered import CONFIG_DB, FRR_CONF, NETWORK_SH, NFTABLES
from fabric.analysis.rule import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.problem import Problem

_HOSTNAME = re.compile(r"^[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?$")
_MAP_NAME = re.compile(r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,31}$")
_INTERFACE_LENGTH = 15  # IFNAMSIZ is 16 with the ending NUL


class FilesPresent(Rule):
    """Every managed switch and every gateway has its files, and none is empty.

    Why: an empty file is valid to most checkers, and a device left out of a render is noticed when it boots.
    Fix: render the whole site, without --limit.
    """

    id = "files.present"

    def check(self) -> Iterator[Problem]:
        for switch in self.facts.managed_switches:
            files = self.rendered.files.get(switch.name, {})
            linux = NETWORK_SH in files or switch.nos == "frr"
            yield from self._look(switch.name, (NETWORK_SH if linux else CONFIG_DB, FRR_CONF))
        for gateway in self.plan.gateways:
            yield from self._look(gateway, (NETWORK_SH, FRR_CONF, NFTABLES))

    def _look(self, device: str, names: tuple[str, ...]) -> Iterator[Problem]:
        files = self.rendered.files.get(device)
        if files is None:
            yield self.finding(device, "has no rendered files")
            return
        for name in names:
            if not files.get(name, "").strip():
                word = "is empty" if name in files else "is missing"
                yield self.finding(device, f"{name} {word}", device=device, file=name)


class Readable(Rule):
    """config_db.json is a JSON object of tables, of rows, of fields.

    Why: a file that cannot be read is not checked by any other rule.
    Fix: render the device again.
    """

    id = "files.readable"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for device in self.facts.sonic:
            self.facts.db(device)
        yield from self.rendered.problems


class Hostnames(Rule):
    """The hostname in each file is the device's name and a legal one.

    Why: YANG accepts a hostname with a space; LLDP and cabling checks then match no device.
    Fix: name devices with letters, digits and hyphens.
    Source: RFC 1123 section 2.1.
    """

    id = "files.hostname"

    def check(self) -> Iterator[Problem]:
        for device in self.facts.sonic:
            name = str(self.facts.db(device).get("DEVICE_METADATA", {}).get("localhost", {}).get("hostname", ""))
            if name != device or not _HOSTNAME.match(name):
                keys = ("DEVICE_METADATA", "localhost", "hostname")
                yield self.finding(device, f"hostname is '{name}'", device=device, file=CONFIG_DB, keys=keys)
        for device, conf in self.facts.routers.items():
            if conf.hostname != device:
                yield self.finding(
                    device, f"hostname is '{conf.hostname}'", device=device, file=FRR_CONF, line=conf.hostname_line
                )


class Statements(Rule):
    """Every line of frr.conf begins with a statement that FRR has where the line stands.

    Why: FRR refuses the file for half a paste or a note without `!`, or leaves the line out; a reader of the plan takes
        it for configuration.
    Fix: remove the line, or put `!` before it; `check --external` asks vtysh about the rest of each line.
    Source: the FRR manual.
    """

    id = "files.statements"
    file = FRR_CONF

    def check(self) -> Iterator[Problem]:
        for device in self.facts.routers:
            for line, text in strays(self.rendered.text(device, FRR_CONF)):
                yield self.finding(device, text, device=device, line=line)


class NameLengths(Rule):
    """Interface and VRF names have at most 15 characters, map names 32.

    Why: Linux cuts or refuses longer interface names, and a VRF is an interface there.
    Fix: tenant names of at most 11 characters give VRFs of at most 15.
    """

    id = "files.name-lengths"

    def check(self) -> Iterator[Problem]:
        for device, node in self.facts.nodes.items():
            tunnels = [f"{n}-{t.vlan}" for n in self.facts.db(device).get("VXLAN_TUNNEL", {}) for t in node.tunnels]
            for name in (*node.interfaces, *node.vrfs, *tunnels):
                if len(name) > _INTERFACE_LENGTH:
                    text = f"the name {name} has {len(name)} characters, Linux takes {_INTERFACE_LENGTH}"
                    yield self.finding(device, text, device=device, file=node.file)
        for group in self.facts.alike(("DSCP_TO_TC_MAP", "WRED_PROFILE", "SCHEDULER")):
            for table in ("DSCP_TO_TC_MAP", "WRED_PROFILE", "SCHEDULER"):
                for name in self.facts.db(group.first).get(table, {}):
                    if not _MAP_NAME.match(name):
                        yield self.finding(
                            group.subject,
                            f"{table} has the name '{name}'",
                            device=group.first,
                            file=CONFIG_DB,
                            keys=(table, name),
                        )


class RoutingMode(Rule):
    """SONiC switches say `split-unified`, and leave BGP to frr.conf.

    Why: in another mode the frr.conf that was written is thrown away at the next start. BGP tables in config_db beside
        it are two masters.
    Fix: set docker_routing_config_mode to split-unified and write no BGP_* table.
    Source: sonic-buildimage issue 27014.
    """

    id = "files.routing-mode"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for device in self.facts.sonic:
            db = self.facts.db(device)
            mode = db.get("DEVICE_METADATA", {}).get("localhost", {}).get("docker_routing_config_mode")
            if mode != "split-unified":
                keys = ("DEVICE_METADATA", "localhost")
                yield self.finding(
                    device, f"docker_routing_config_mode is {mode or 'missing'}", device=device, keys=keys
                )
            for table in db:
                if table.startswith("BGP_"):
                    yield self.finding(device, f"has the table {table} beside frr.conf", device=device, keys=(table,))


class Metadata(Rule):
    """AS, router id, platform and hardware SKU in DEVICE_METADATA are those of frr.conf and the hardware profile.

    Why: SONiC starts services by the SKU, and tools read the AS from here.
    Fix: render both files of the switch together.
    """

    id = "files.metadata"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        from fabric.hardware.profiles import switch_profile

        for device in self.facts.sonic:
            row = self.facts.db(device).get("DEVICE_METADATA", {}).get("localhost", {})
            conf, switch = self.facts.routers.get(device), self.plan.switches.get(device)
            want: dict[str, str] = {}
            if conf is not None and conf.default is not None:
                want |= {"bgp_asn": str(conf.default.asn), "bgp_router_id": conf.default.router_id}
            if switch:
                profile = switch_profile(switch.model)
                want |= {"hwsku": profile.hwsku, "platform": profile.platform}
            for field, value in want.items():
                if str(row.get(field, value)) != value:
                    keys = ("DEVICE_METADATA", "localhost", field)
                    yield self.finding(device, f"{field} is {row[field]}, expected {value}", device=device, keys=keys)
