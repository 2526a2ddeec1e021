"""Checks of the inventory as a whole, before and after devices are made: references, pools, names, AS numbers.

Fields are checked one by one by the inventory's types; what follows needs to see two places at once.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from fabric.hardware.ranges import expand_hosts
from fabric.hints import names_hint
from fabric.plan import ABOVE_LEAVES, SPINE
from fabric.topology.fabrics import edge_names, gateway_names, server_names
from fabric.topology.media import media_text

if TYPE_CHECKING:
    from ipaddress import IPv4Network

    from fabric.inventory.load import Inventory, Path_
    from fabric.inventory.models import Site
    from fabric.plan import Switch
    from fabric.problem import Problem
    from fabric.topology.fabrics import FabricDraft


RESERVED_TENANTS = frozenset({"edge"})


def infrastructure(site: Site) -> list[tuple[str, IPv4Network]]:
    """The named address ranges of the site's own devices."""
    pools = site.pools
    ranges = [(name, getattr(pools, name)) for name in ("management", "loopbacks", "vteps", "links", "gateway_links")]
    return [*ranges, ("edge.links", site.edge.links)] if site.edge else ranges


class SiteChecks:
    """Adds what it finds to `problems`."""

    def __init__(self, inventory: Inventory, problems: list[Problem]) -> None:
        self.inventory, self.site, self.problems = inventory, inventory.site, problems

    def _bad(self, rule: str, path: Path_, subject: str, text: str, fix: str) -> None:
        self.problems.append(self.inventory.problem(rule, path, subject, text, fix))

    def references(self) -> None:
        """Every name that points at a fabric finds one; profile, MTU and pools make sense together."""
        fabrics = self.site.fabrics
        known = f"fabrics here: {', '.join(fabrics)}"
        for name, server in self.site.servers.items():
            for group, nic in server.nics.items():
                if nic.fabric not in fabrics:
                    path: Path_ = ("servers", name, "nics", group, "fabric")
                    self._bad("inventory.fabric", path, f"servers {name}", f"no fabric '{nic.fabric}'", known)
        for name, gateway in self.site.gateways.items():
            if gateway.fabric and gateway.fabric not in fabrics:
                path = ("gateways", name, "fabric")
                self._bad("inventory.fabric", path, f"gateways {name}", f"no fabric '{gateway.fabric}'", known)
            elif not gateway.fabric and not any("frontend" in f.carries for f in fabrics.values()):
                text = "no fabric carries `frontend`, so there is nothing to attach to"
                self._bad("inventory.fabric", ("gateways", name), f"gateways {name}", text, "say `fabric:`")
        for name, fabric in fabrics.items():
            if (fabric.super_spine is None) != (fabric.pod_leaves is None) or (fabric.super_spine and not fabric.spine):
                text = "three tiers need `spine`, `super-spine` and `pod_leaves` together"
                fix = "add what is missing, or remove `super-spine` and `pod_leaves` for two tiers"
                self._bad("topology.tiers", ("fabrics", name), f"fabric {name}", text, fix)
        self.tenant_names()
        self._check_profile()
        self._check_mtu()
        self._check_pools()
        self._check_cables()

    def _check_profile(self) -> None:
        carriers = [name for name, fabric in self.site.fabrics.items() if "backend" in fabric.carries]
        if self.site.profile == "minimal" and carriers:
            text = f"the minimal profile has no backend fabric, and '{carriers[0]}' carries one"
            fix = "use `profile: distributed`, or remove `backend` from `carries`"
            self._bad("inventory.profile", ("fabrics", carriers[0], "carries"), "profile", text, fix)
        if self.site.profile == "distributed" and not carriers:
            text = "the distributed profile needs a fabric that carries `backend`"
            self._bad("inventory.profile", ("profile",), "profile", text, "add one, or use `profile: minimal`")
        if self.site.gateways and not self.site.edge:
            text = "gateways need to know the routers outside: `edge` is missing"
            self._bad("inventory.edge", ("gateways",), "edge", text, "add `edge: {asn: 64999}`")

    def _check_mtu(self) -> None:
        for name, fabric in self.site.fabrics.items():
            if fabric.managed and fabric.server_mtu + 50 > fabric.mtu:
                text = f"server packets of {fabric.server_mtu} bytes and 50 of VXLAN do not fit an MTU of {fabric.mtu}"
                fix = f"server_mtu: {fabric.mtu - 64}"
                self._bad("inventory.mtu", ("fabrics", name), f"fabric {name}", text, fix)

    def _check_pools(self) -> None:
        """Address pools of the infrastructure must be apart, and apart from each other both ways."""
        ranges = infrastructure(self.site)
        for i, (name, network) in enumerate(ranges):
            for other, second in ranges[i + 1 :]:
                if network.overlaps(second):
                    text = f"{name} {network} and {other} {second} overlap"
                    self._bad("pools.overlap", ("pools", other), f"pool {other}", text, "give them disjoint ranges")
        pools = self.site.pools
        for left, right in (("spine_asn", "leaf_asn"), ("vlans", "gateway_vlans")):
            a, b = getattr(pools, left), getattr(pools, right)
            if a.first <= b.last and b.first <= a.last:
                text = f"{left} {a.first}-{a.last} and {right} {b.first}-{b.last} overlap"
                self._bad("pools.overlap", ("pools", right), f"pool {right}", text, "give them disjoint ranges")
        self._check_management_gateway()
        for name, most in (
            ("vlans", 4094),
            ("gateway_vlans", 4094),
            ("spine_asn", 4294967294),
            ("leaf_asn", 4294967294),
        ):
            last = getattr(pools, name).last
            if last > most:
                text = f"{last} is too large, the largest is {most}"
                self._bad("pools.range", ("pools", name), f"pool {name}", text, "lower it")

    def _check_management_gateway(self) -> None:
        network, router = self.site.pools.management, self.site.pools.management_gateway
        if router is None:
            return
        ends = (network.network_address, network.broadcast_address)
        if router not in network or (router in ends and network.prefixlen < 31):
            text = f"{router} is no host address of pools.management, {network}: no device could reach it"
            usual = network.broadcast_address if network.prefixlen > 30 else network[-2]
            fix = f"such as {usual}, which it is when nothing is said"
            self._bad("pools.gateway", ("pools", "management_gateway"), "pool management", text, fix)

    def _check_cables(self) -> None:
        """Some medium reaches as far as each cable is long."""
        cables = self.site.cables
        media = cables.reach
        most = max(media.values())
        for name in ("server_leaf", "leaf_spine", "gateway", "external"):
            if getattr(cables, name) > most:
                field = name.replace("_", "-")
                text = f"{getattr(cables, name)} m is longer than any medium reaches: {media_text(media)}"
                self._bad(
                    "cables.length", ("cables", field), "cables", text, "shorten it, or say in `media` what reaches"
                )

    def racks(self) -> dict[str, str]:
        """Return the rack of each device; a device in two racks is a problem."""
        found: dict[str, str] = {}
        for name, rack in self.site.racks.items():
            for pattern in rack.devices:
                for device in expand_hosts(pattern):
                    if device in found:
                        text = f"{device} already stands in rack {found[device]}"
                        self._bad("rack.twice", ("racks", name, "devices"), f"rack {name}", text, "keep one")
                    found[device] = name
        return found

    def rack_members(self, known: set[str]) -> None:
        """Every device that a rack names is one of the site's."""
        for name, rack in self.site.racks.items():
            missing = [d for pattern in rack.devices for d in expand_hosts(pattern) if d not in known]
            if missing:
                shown = ", ".join(missing[:5]) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
                close = difflib.get_close_matches(missing[0], known, 1)
                fix = f"did you mean {close[0]}?" if close else "see `kvfabric plan SITE` for the devices, or remove it"
                text = f"holds {shown}, and the site has no such device"
                self._bad("rack.unknown-device", ("racks", name, "devices"), f"rack {name}", text, fix)

    def tenant_names(self) -> None:
        """No tenant's VRF is one that gateways have for themselves."""
        for name in RESERVED_TENANTS & self.site.tenants.keys():
            text = f"its VRF would be Vrf-{name}, which gateways use for the side of the edge routers"
            self._bad("tenant.reserved", ("tenants", name), f"tenant {name}", text, "choose another name")

    def as_numbers(self, switches: dict[str, Switch]) -> None:
        """AS numbers said by hand must not meet others: eBGP between two devices of one AS would be iBGP."""
        holders: dict[int, str] = {}
        if self.site.gateways:
            holders[self.site.pools.gateway_asn] = "the gateways"
        edge = self.site.edge
        if edge:
            other = holders.setdefault(edge.asn, "the edge routers")
            if other != "the edge routers":
                text = f"AS {edge.asn} is used by {other} and the edge routers"
                self._bad("pools.asn", ("edge", "asn"), "edge", text, "give the edge its own AS number")
        for switch in switches.values():
            if not switch.managed:
                continue
            holder = f"the {switch.kind}s of {switch.fabric}" if switch.kind in ABOVE_LEAVES else switch.name
            holder += f" pod {switch.pod}" if switch.kind == SPINE and switch.pod else ""
            other = holders.setdefault(switch.asn, holder)
            if other != holder:
                text = f"AS {switch.asn} is used by {other} and {holder}"
                path = ("fabrics", switch.fabric, switch.kind)
                self._bad("pools.asn", path, switch.name, text, "leave `asn` to the pool, or choose another")

    def names(self, fabrics: dict[str, FabricDraft]) -> None:
        """Every device of the site has a name of its own: files, cables and addresses go by it."""
        seen: dict[str, tuple[str, Path_]] = {}
        named: list[tuple[str, str, Path_]] = []
        for fabric, draft in fabrics.items():
            named += [(d.name, f"a {d.kind} of {fabric}", ("fabrics", fabric, d.kind)) for d in draft.switches]
        named += [
            (s, "a server", ("servers", c)) for c, spec in self.site.servers.items() for s in server_names(c, spec)
        ]
        for c, gateway in self.site.gateways.items():
            named += [(name, "a gateway", ("gateways", c)) for name in gateway_names(c, gateway)]
        if self.site.edge:
            named += [(name, "an edge router", ("edge",)) for name in edge_names(self.site.edge)]
        self.rack_members({name for name, _, _ in named})
        told: set[Path_] = set()
        for name, what, path in named:
            other, _ = seen.setdefault(name, (what, path))
            if seen[name][1] != path and path not in told:
                told.add(path)
                text = f"'{name}' would be both {other} and {what}"
                self._bad("inventory.name-twice", path, name, text, "give one of the classes another name or prefix")

    def group_members(self, groups: dict[str, tuple[str, ...]]) -> None:
        """Groups name gateways of the site, each once."""
        known = {gateway for name, spec in self.site.gateways.items() for gateway in gateway_names(name, spec)}
        for name, members in groups.items():
            if len(set(members)) != len(members):
                text = f"group '{name}' names a gateway twice"
                self._bad("gateway.group", ("groups", name), f"group {name}", text, "name each gateway once")
            for member in dict.fromkeys(members):
                if member not in known:
                    text = f"group '{name}' names '{member}', and there is no such gateway"
                    fix = names_hint(member, sorted(known), "gateways here")
                    self._bad("gateway.group", ("groups", name), f"group {name}", text, fix)
