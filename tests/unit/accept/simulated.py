"""A site that behaves exactly as its plan says, answering the questions of checks; tests then break single things."""

from __future__ import annotations

import json
from ipaddress import ip_interface

from fabric.plan import FABRIC_LINK, SERVER_LINK
from validators.control_plane.expected import homes, own_prefixes, sessions, width_to
from validators.devices.answers import Answer


class SimulatedSite:
    """Devices of a plan. `broken` maps (device, question) to a function from the good data to what is said instead."""

    name = "simulated"
    physical = False
    rounds = None

    def __init__(self, plan, broken=None, physical=False):
        self.plan, self.broken, self.physical = plan, broken or {}, physical
        self.asked: list[tuple[str, str]] = []
        self.ran: list[tuple[str, str]] = []

    def gather(self, asks, sample=0):
        return {ask: self._answer(ask, sample) for ask in asks}

    def _answer(self, ask, sample):
        self.asked.append(tuple(ask))
        method = getattr(self, "say_" + ask.question.replace("-", "_"), None)
        if method is None:
            return Answer(error=f"nobody knows '{ask.question}' here")
        data = method(ask.device)
        fault = self.broken.get(tuple(ask))
        if fault:
            # a fault that differs by sample says so with a keyword-only argument
            data = fault(data, sample=sample) if fault.__code__.co_kwonlyargcount else fault(data)
        return data if isinstance(data, Answer) else Answer(data if isinstance(data, str) else json.dumps(data))

    def run(self, device, command, timeout_s=30.0):
        self.ran.append((device, command))
        return Answer("")

    def close(self):
        pass

    def say_version(self, device):
        return "Linux 6.1\nFRRouting 8.4.4"

    def say_clock(self, device):
        return "1796014800"

    def say_config(self, device):
        return "hostname " + device

    def say_lldp(self, device):
        interfaces = []
        for link in self.plan.links_of.get(device, ()):
            near, far = link.end(device), link.far(device)
            port = {"id": {"type": "ifname", "value": far.interface}, "descr": far.interface}
            interfaces.append(
                {
                    near.interface: {
                        "via": "LLDP",
                        "chassis": {far.device: {"id": {"type": "mac", "value": "02:00:00:00:00:01"}}},
                        "port": port,
                    }
                }
            )
        return {"lldp": {"interface": interfaces}}

    def say_links(self, device):
        found = []
        for link in self.plan.links_of.get(device, ()):
            fabric = self.plan.fabrics[link.fabric]
            mtu = {FABRIC_LINK: fabric.mtu, SERVER_LINK: fabric.server_mtu}.get(link.kind, 9100)
            item = {"ifname": link.end(device).interface, "flags": ["UP", "LOWER_UP"], "operstate": "UP", "mtu": mtu}
            if link.tenant and device in self.plan.switches:
                item["master"] = self.plan.tenants[link.tenant].vrf
            found.append(item)
        return found

    def say_addresses(self, device):
        found = []
        for link in self.plan.links_of.get(device, ()):
            end = link.end(device)
            info = []
            if end.address:
                address = ip_interface(end.address)
                info = [{"family": "inet", "local": str(address.ip), "prefixlen": address.network.prefixlen}]
            found.append({"ifname": end.interface, "addr_info": info})
        return found

    def say_bgp(self, device):
        table = {"ipv4Unicast": {"peers": {}}, "l2VpnEvpn": {"peers": {}}}
        for session in sessions(self.plan, device):
            for family in session.families:
                table[family]["peers"][session.neighbour] = {
                    "remoteAs": session.asn,
                    "state": "Established",
                    "peerUptime": "00:10:00",
                }
        return {"default": table}

    def say_bfd(self, device):
        return [
            {"peer": s.neighbour if s.neighbour[0].isdigit() else "fe80::1", "interface": s.interface, "status": "up",
             "receive-interval": 300, "detect-multiplier": 3}
            for s in sessions(self.plan, device)
        ]  # fmt: skip

    def say_vrf_vni(self, device):
        tenants = [self.plan.tenant_of_vrf[vrf] for vrf in self.plan.switches[device].vrfs]
        return {"vrfs": [{"vrf": t.vrf, "vni": t.vni, "state": "Up"} for t in tenants]}

    def say_evpn_rmac(self, device):
        switch = self.plan.switches[device]
        found = {}
        for vrf in switch.vrfs:
            tenant = self.plan.tenant_of_vrf[vrf]
            vteps = {vtep: s.mac for vtep, s in homes(self.plan, tenant, switch.fabric).items() if s.name != device}
            found[str(tenant.vni)] = {"numRmacs": len(vteps)} | {
                mac: {"routerMac": mac, "vtepIp": vtep} for vtep, mac in vteps.items()
            }
        return found

    def say_evpn_routes(self, device):
        found = {"numPrefix": 0}
        for switch in self.plan.switches_of(self.plan.switches[device].fabric):
            for name, prefixes in own_prefixes(self.plan, switch).items():
                tenant = self.plan.tenants[name]
                table = found.setdefault(f"{switch.router_id}:{tenant.rd_number}", {"rd": "x"})
                for prefix in prefixes:
                    ip, length = prefix.split("/")
                    path = {
                        "ip": ip,
                        "ipLen": int(length),
                        "extendedCommunity": {"string": f"RT:{tenant.rt} ET:8 Rmac:{switch.mac}"},
                        "nexthops": [{"ip": switch.vtep}],
                    }
                    table[f"[5]:[0]:[{length}]:[{ip}]"] = {"paths": [[path]]}
        return found

    def say_routes(self, device):
        switch = self.plan.switches[device]
        found = {}
        for other in self.plan.switches_of(switch.fabric):
            if other.vtep and other.name != device and (wide := width_to(self.plan, switch, other)):
                found[f"{other.vtep}/32"] = [
                    {"protocol": "bgp", "selected": True, "installed": True, "nexthops": [{"fib": True}] * wide}
                ]
        return found

    def say_port_speeds(self, device):
        return "\n".join(
            f"{link.end(device).interface} {link.speed}000 up 1" for link in self.plan.links_of.get(device, ())
        )
