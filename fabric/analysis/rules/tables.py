"""Tables of config_db beside the large ones: VLAN members, management, services, hashing, tunnels, neighbours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.analysis.rendered import CONFIG_DB
from fabric.analysis.rule import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.problem import Problem

_SERVICES = ("bgp", "lldp")
_HASHED = frozenset({"SRC_IP", "DST_IP", "L4_SRC_PORT"})


class VlanMembers(Rule):
    """Ports are members of the access VLANs of their gateway links, untagged, and of no other VLAN.

    Why: the gateway's /31 is on the VLAN's SVI; without its member, or with another port in it, the session never
        comes up or two gateways share a segment.
    Fix: render the switch again; look for a VLAN_MEMBER row edited by hand.
    """

    id = "tables.vlan-members"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for device in self.facts.sonic:
            links = self.plan.links_of.get(device, ())
            want = {f"Vlan{k.vlan}|{k.end(device).interface}": "untagged" for k in links if k.vlan}
            rows = self.facts.db(device).get("VLAN_MEMBER", {})
            have = {key: str(row.get("tagging_mode", "")) for key, row in rows.items()}
            for key in sorted(want.keys() | have.keys()):
                if want.get(key) != have.get(key):
                    text = f"VLAN_MEMBER {key} is {have.get(key) or 'missing'}, it should be {want.get(key, 'absent')}"
                    yield self.finding(f"{device} {key}", text, device=device, keys=("VLAN_MEMBER", key))


class Management(Rule):
    """The management port has the plan's address, and its way out is the management network's router.

    Why: with another address, router or none, the switch is out of reach after the reload that was to configure it.
    Fix: render the switch again; look for a MGMT_INTERFACE row edited by hand.
    """

    id = "tables.management"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for device in self.facts.sonic:
            switch = self.plan.switches.get(device)
            rows = self.facts.db(device).get("MGMT_INTERFACE", {})
            want = f"eth0|{switch.management}" if switch else ""
            if want and [key for key in rows if "|" in key] != [want]:
                text = f"MGMT_INTERFACE has {', '.join(rows) or 'no row'}, it should have {want}"
                yield self.finding(device, text, device=device, keys=("MGMT_INTERFACE",))
            elif want and switch:
                router, have = self.plan.management_gateway(switch.management), rows[want].get("gwaddr", "nobody")
                if have != router:
                    text = f"MGMT_INTERFACE has {have} as its router, the site says {router}"
                    yield self.finding(device, text, device=device, keys=("MGMT_INTERFACE", want))


class Services(Rule):
    """BGP and LLDP are enabled, and equal-cost paths are chosen by addresses and UDP source port.

    Why: a disabled container is a switch without routes or neighbours; a hash without the source port sends all queue
        pairs and all tunnels of two endpoints over one cable.
    Fix: render the switch again; look for FEATURE and SWITCH_HASH rows edited by hand.
    """

    id = "tables.services"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for device in self.facts.sonic:
            db = self.facts.db(device)
            for name in _SERVICES:
                state = db.get("FEATURE", {}).get(name, {}).get("state", "missing")
                if state != "enabled":
                    text = f"FEATURE {name} is {state}, it should be enabled"
                    yield self.finding(f"{device} {name}", text, device=device, keys=("FEATURE", name))
            listed = db.get("SWITCH_HASH", {}).get("GLOBAL", {}).get("ecmp_hash", "")
            fields = listed.split(",") if isinstance(listed, str) else listed if isinstance(listed, list) else ()
            missing = [field for field in sorted(_HASHED) if field not in fields]
            if missing:
                text = f"SWITCH_HASH leaves out {', '.join(missing)}"
                yield self.finding(device, text, device=device, keys=("SWITCH_HASH", "GLOBAL", "ecmp_hash"))


class SiteServices(Rule):
    """Switches ask the site's NTP, DNS and TACACS+ servers and report to its log servers, and no others.

    Why: a switch without a clock, logs or logins is found out on the day they are needed; one with a server of another
        site gives that site its logs and lets its people in.
    Fix: say the servers under `services` in the inventory and render again.
    """

    id = "tables.site-services"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        said = self.plan.settings
        own = said.get("config_db", {})
        want = {
            "NTP_SERVER": said.get("ntp", ()),
            "SYSLOG_SERVER": said.get("syslog", ()),
            "DNS_NAMESERVER": said.get("dns", ()),
            "TACPLUS_SERVER": said.get("tacacs", {}).get("servers", ()),
        }
        for device in self.facts.sonic:
            for table, servers in want.items():
                have = self.facts.db(device).get(table, {})
                if any(table in tables for tables in own.values()):
                    continue
                if set(servers) != set(have):
                    text = f"{table} has {', '.join(have) or 'nobody'}, the site says {', '.join(servers) or 'nobody'}"
                    yield self.finding(f"{device} {table}", text, device=device, keys=(table,))


class EvpnTunnel(Rule):
    """The EVPN overlay uses a VXLAN tunnel that is there.

    Why: without VXLAN_EVPN_NVO, or with another name in it, the switch has maps and no tunnels: tenants work on one
        leaf and nowhere else.
    Fix: render the switch again; `source_vtep` is the name of the row in VXLAN_TUNNEL.
    """

    id = "tables.evpn-tunnel"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for device in self.facts.sonic:
            db = self.facts.db(device)
            tunnels = db.get("VXLAN_TUNNEL", {})
            used = [str(row.get("source_vtep", "")) for row in db.get("VXLAN_EVPN_NVO", {}).values()]
            if sorted(used) != sorted(tunnels):
                said, has = ", ".join(used) or "no tunnel", ", ".join(tunnels) or "none"
                text = f"VXLAN_EVPN_NVO uses {said}, VXLAN_TUNNEL has {has}"
                yield self.finding(device, text, device=device, keys=("VXLAN_EVPN_NVO",))


class Neighbours(Rule):
    """The neighbours written down are those that the cables lead to.

    Why: SONiC's own checks, and people, read them; a wrong one sends somebody to the wrong cable.
    Fix: render the switch again; look for DEVICE_NEIGHBOR rows edited by hand.
    """

    id = "tables.neighbours"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for device in self.facts.sonic:
            db = self.facts.db(device)
            far = {link.far(device).device for link in self.plan.links_of.get(device, ())}
            have = {
                "DEVICE_NEIGHBOR": {str(row.get("name", "")) for row in db.get("DEVICE_NEIGHBOR", {}).values()},
                "DEVICE_NEIGHBOR_METADATA": set(db.get("DEVICE_NEIGHBOR_METADATA", {})),
            }
            for table, names in have.items():
                for name in sorted(far ^ names):
                    text = f"{table} {'leaves out' if name in far else 'names'} {name or 'nobody'}"
                    yield self.finding(f"{device} {name}", text, device=device, keys=(table,))
