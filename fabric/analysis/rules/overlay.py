"""VRFs, VNIs, VLANs and the tunnel in config_db, and their agreement with frr.conf."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.analysis.rendered import CONFIG_DB, FRR_CONF
from fabric.analysis.rule import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.problem import Problem


class VrfVniMapped(Rule):
    """The VNI of a VRF is mapped to a VLAN of the tunnel, and that VLAN exists.

    Why: YANG checks neither. Without the map there is no L3VNI: routes arrive and no packet is encapsulated.
    Fix: render VRF, VLAN and VXLAN_TUNNEL_MAP from the same tenant.
    """

    id = "overlay.vrf-vni-mapped"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for group in self.facts.alike(("VRF", "VXLAN_TUNNEL_MAP", "VLAN")):
            db, device = self.facts.db(group.first), group.first
            mapped = {row.get("vni") for row in db.get("VXLAN_TUNNEL_MAP", {}).values()}
            for vrf, row in db.get("VRF", {}).items():
                vni = row.get("vni", "0")
                if vni not in {"0", ""} and vni not in mapped:
                    text = f"{vrf} has VNI {vni}, which VXLAN_TUNNEL_MAP does not map"
                    yield self.finding(group.subject, text, device=device, keys=("VRF", vrf, "vni"))
            for key, row in db.get("VXLAN_TUNNEL_MAP", {}).items():
                if row.get("vlan") not in db.get("VLAN", {}):
                    text = f"VNI {row.get('vni')} is mapped to {row.get('vlan')}, which is not in VLAN"
                    yield self.finding(group.subject, text, device=device, keys=("VXLAN_TUNNEL_MAP", key, "vlan"))


class VniUnique(Rule):
    """A VNI belongs to one VRF and one VLAN, everywhere the same.

    Why: two VRFs with one VNI are one network to the hardware; a VRF with different VNIs on two leaves is two networks.
    Fix: let the ledger give the numbers; never write a VNI twice.
    Source: sonic-buildimage issue 9489.
    """

    id = "overlay.vni-unique"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        vrf_of: dict[tuple[str, str], tuple[str, str]] = {}
        vni_of: dict[tuple[str, str], tuple[str, str]] = {}
        for group in self.facts.alike(("VRF", "VXLAN_TUNNEL_MAP")):
            db, device = self.facts.db(group.first), group.first
            for vrf, row in db.get("VRF", {}).items():
                vni = str(row.get("vni", "0"))
                if vni in {"0", ""}:
                    continue
                other, where = vrf_of.setdefault((group.fabric, vni), (vrf, device))
                if other != vrf:
                    text = f"VNI {vni} is used by {vrf} and by {other} on {where}"
                    yield self.finding(group.subject, text, device=device, keys=("VRF", vrf, "vni"))
                other, where = vni_of.setdefault((group.fabric, vrf), (vni, device))
                if other != vni:
                    text = f"{vrf} has VNI {vni} here and {other} on {where}"
                    yield self.finding(group.subject, text, device=device, keys=("VRF", vrf, "vni"))
            yield from self._map(group.subject, device)

    def _map(self, subject: str, device: str) -> Iterator[Problem]:
        seen: dict[str, str] = {}
        for key, row in self.facts.db(device).get("VXLAN_TUNNEL_MAP", {}).items():
            for number in (f"VNI {row.get('vni')}", str(row.get("vlan"))):
                if seen.setdefault(number, key) != key:
                    text = f"{number} is mapped twice: {seen[number]} and {key}"
                    yield self.finding(subject, text, device=device, keys=("VXLAN_TUNNEL_MAP", key))


class SviInVrf(Rule):
    """The SVI of an L3VNI is in the tenant's VRF and has no address.

    Why: routes of the VRF leave through this SVI; outside the VRF they go nowhere, and YANG does not notice.
    Fix: write VLAN_INTERFACE|VlanN with the VRF of the VNI that is mapped to the VLAN.
    """

    id = "overlay.svi-in-vrf"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for group in self.facts.alike(("VRF", "VXLAN_TUNNEL_MAP", "VLAN_INTERFACE")):
            db, device = self.facts.db(group.first), group.first
            vrf_of = {str(row.get("vni")): vrf for vrf, row in db.get("VRF", {}).items()}
            svis = db.get("VLAN_INTERFACE", {})
            for row in db.get("VXLAN_TUNNEL_MAP", {}).values():
                vlan, want = str(row.get("vlan")), vrf_of.get(str(row.get("vni")), "")
                have = svis.get(vlan, {}).get("vrf_name", "")
                if want and have != want:
                    text = (
                        f"{vlan} carries VNI {row.get('vni')} of {want} but its SVI is in {have or 'the default VRF'}"
                    )
                    yield self.finding(group.subject, text, device=device, keys=("VLAN_INTERFACE", vlan))
                if any(key.startswith(f"{vlan}|") for key in svis):
                    text = f"the SVI of the L3VNI, {vlan}, has an address"
                    yield self.finding(group.subject, text, device=device, keys=("VLAN_INTERFACE", vlan))


class OneSviPerVrf(Rule):
    """A tenant VRF has exactly one SVI, the one of its L3VNI.

    Why: with a second SVI in the VRF, FRR may take it for the L3VNI's and remote routes leave unencapsulated.
    Fix: use routed ports for tenants; keep addresses off VLANs in tenant VRFs.
    Source: sonic-buildimage issue 28228, frr issue 23028.
    """

    id = "overlay.one-svi"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for group in self.facts.alike(("VRF", "VLAN_INTERFACE")):
            db, device = self.facts.db(group.first), group.first
            svis: dict[str, list[str]] = {vrf: [] for vrf in db.get("VRF", {})}
            for key, row in db.get("VLAN_INTERFACE", {}).items():
                if "|" not in key and row.get("vrf_name") in svis:
                    svis[row["vrf_name"]].append(key)
            for vrf, names in svis.items():
                if len(names) != 1:
                    text = f"{vrf} has {len(names)} SVIs ({', '.join(names) or 'none'}), exactly one is needed"
                    yield self.finding(group.subject, text, device=device, keys=("VLAN_INTERFACE", *names[1:2]))


class VlanRange(Rule):
    """VLAN ids are 2 to 4094 and the row's vlanid equals its name.

    Why: other tools accept ids up to 9999; the ASIC does not, and 1 and 4095 are taken.
    Fix: keep the VLAN pools inside 2-4094.
    """

    id = "overlay.vlan-range"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for group in self.facts.alike(("VLAN",)):
            for name, row in self.facts.db(group.first).get("VLAN", {}).items():
                number = name.removeprefix("Vlan")
                if not number.isdigit() or not 2 <= int(number) <= 4094 or str(row.get("vlanid", number)) != number:
                    text = f"{name} with vlanid {row.get('vlanid', 'missing')} is no usable VLAN"
                    yield self.finding(group.subject, text, device=group.first, keys=("VLAN", name))


class VtepSource(Rule):
    """The tunnel starts at the leaf's VTEP, which is an address of Loopback1.

    Why: packets of a tunnel whose source is no local address are dropped on the way back.
    Fix: write VXLAN_TUNNEL src_ip and LOOPBACK_INTERFACE|Loopback1 from the same plan field.
    """

    id = "overlay.vtep-source"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for device in self.facts.sonic:
            db = self.facts.db(device)
            tunnels = db.get("VXLAN_TUNNEL", {})
            switch = self.plan.switches.get(device)
            if not tunnels:
                if switch and switch.vtep and switch.vrfs:
                    yield self.finding(device, "has tenants but no VXLAN_TUNNEL", device=device, keys=("VXLAN_TUNNEL",))
                continue
            for name, row in tunnels.items():
                source = row.get("src_ip", "")
                if f"Loopback1|{source}/32" not in db.get("LOOPBACK_INTERFACE", {}):
                    text = f"tunnel {name} starts at {source}, which is not on Loopback1"
                    yield self.finding(device, text, device=device, keys=("VXLAN_TUNNEL", name, "src_ip"))
                elif switch and source != switch.vtep:
                    text = f"tunnel {name} starts at {source}, the plan's VTEP is {switch.vtep}"
                    yield self.finding(device, text, device=device, keys=("VXLAN_TUNNEL", name, "src_ip"))


class VniInBothFiles(Rule):
    """`vni` under `vrf` in frr.conf equals VRF|vni in config_db.

    Why: each is lost on its own in some releases; if they differ, zebra and the ASIC disagree about the L3VNI.
    Fix: render both files from the same tenant; after a reload compare `show vrf vni`.
    Source: sonic-buildimage issue 21177, frr issue 18059.
    """

    id = "overlay.vni-agrees"
    file = FRR_CONF

    def check(self) -> Iterator[Problem]:
        for device, conf in self.facts.routers.items():
            here = self.facts.node(device).vrfs
            there = {name: vrf.vni for name, vrf in conf.vrfs.items() if vrf.vni}
            if here == there:
                continue
            for vrf in sorted({*here, *there}):
                if here.get(vrf) != there.get(vrf):
                    known = conf.vrfs.get(vrf)
                    file = self.facts.node(device).file
                    text = f"{vrf} has VNI {there.get(vrf, 'none')} in frr.conf and {here.get(vrf, 'none')} in {file}"
                    yield self.finding(f"{device} {vrf}", text, device=device, line=known.vni_line if known else 0)


class VrfWherePorts(Rule):
    """A leaf has the VRFs of the tenants that have ports on it, with the plan's VNI and no others.

    Why: a missing VRF leaves servers without a network; a stale one keeps a removed tenant's routes alive.
    Fix: render again from the current plan.
    """

    id = "overlay.vrfs-present"
    file = CONFIG_DB

    def check(self) -> Iterator[Problem]:
        for switch in self.facts.managed_switches:
            if switch.name not in self.rendered.files:
                continue
            node = self.facts.node(switch.name)
            want = {vrf: self.plan.tenant_of_vrf[vrf].vni for vrf in switch.vrfs if vrf in self.plan.tenant_of_vrf}
            if node.vrfs == want:
                continue
            for vrf in sorted({*node.vrfs, *want}):
                if node.vrfs.get(vrf) != want.get(vrf):
                    text = (
                        f"{vrf} has VNI {node.vrfs.get(vrf, 'none')}, the plan says {want.get(vrf, 'no such VRF here')}"
                    )
                    yield self.finding(f"{switch.name} {vrf}", text, device=switch.name, file=node.file)
