"""A site that behaves exactly as its plan says, answering the questions of checks; tests then break single things."""

from __future__ import annotations

import hashlib
import json
from ipaddress import IPv4Network, ip_interface

from fabric.plan import FABRIC_LINK, SERVER_LINK
from validators.control_plane.expected import homes, own_prefixes, sessions, width_to
from validators.devices.answers import Answer
from validators.drift.checks import rendered
from validators.gateways.checks import facts_of

PM_HEAD = """\
    Parameter        Unit    Min       Avg       Max       Threshold    Threshold    Threshold     Threshold    Threshold    Threshold
                                                           High         High         Crossing      Low          Low          Crossing
                                                           Alarm        Warning      Alert-High    Alarm        Warning      Alert-Low
    ---------------  ------  --------  --------  --------  -----------  -----------  ------------  -----------  -----------  -----------
"""
PM_ROW = "    Tx Power         dBm     -8.22     -8.23     -8.24     -5.0         -6.0         False         -16.99       -16.003      False\n"


def nft_items(plan, device):
    """What `nft -j list table` says on a gateway that was just rendered, as far as checks look at it."""
    edge = {"match": {"op": "==", "left": {"meta": {"key": "oifname"}}, "right": "@edge_ports"}}
    forwards = []
    for tenant in facts_of(plan, device)["tenants"]:
        exposures = {e.name: e for e in plan.tenants[tenant["name"]].exposures}
        mark = {"match": {"op": "==", "left": {"meta": {"key": "mark"}}, "right": tenant["zone"]}}
        for facts in tenant["exposures"]:
            exposure = exposures[facts["name"]]
            for protocol, policy in facts["timeouts"].items():
                timer = {"name": f"{protocol}.{facts['label']}", "protocol": "tcp" if protocol == "tcp" else "udp"}
                yield {"ct timeout": timer | {"policy": policy}}
            if exposure.mode == "masquerade":
                address = {"range": facts["pool"]}
                yield {"rule": {"chain": "post_nat", "expr": [edge, mark, {"snat": {"addr": address}}]}}
            for port in exposure.ports:
                public = str(IPv4Network(exposure.public[0])[0])
                key = [public, port.protocol, port.public_port]
                forwards.append([{"concat": key}, {"concat": [port.private_address, port.private_port]}])
            if exposure.mode == "static":
                pair = (exposure.public[0].removesuffix("/32"), exposure.private[0].removesuffix("/32"))
                for chain, field, (before, after) in (
                    ("pre_static", "daddr", pair),
                    ("post_static", "saddr", pair[::-1]),
                ):
                    key = {"payload": {"protocol": "ip", "field": field}}
                    match = {"match": {"op": "==", "left": key, "right": before}}
                    yield {"rule": {"chain": chain, "expr": [match, {"mangle": {"key": key, "value": after}}]}}
    yield {"map": {"name": "forwards", "elem": forwards}}


class SimulatedSite:
    """Devices of a plan. `broken` maps (device, question) to a function from the good data to what is said instead."""

    name = "simulated"
    physical = False
    rounds = None
    unproven = ()

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

    def files(self, device):
        return rendered(self.plan, device, "" if self.physical else "frr")

    def say_version(self, device):
        if self.physical and device in self.plan.switches:
            return "SONiC Software Version: SONiC.202505\nDistribution: Debian 12.11"
        return "Linux 6.1\nFRRouting 8.4.4\ndaemons: zebra bgpd bfdd staticd"

    def say_pauses(self, device):
        return ""

    def say_pauses_since(self, device):
        return "1796014800.5\n"

    def say_clock(self, device):
        return "1796014800"

    def say_config(self, device):
        return self.files(device)["frr.conf"]

    def say_config_db(self, device):
        return self.files(device)["config_db.json"]

    def say_roce(self, device):
        return "be0-port0: trust is dscp\nbe0-port0: DSCP map has 26:3\nexit 0"

    def say_gateway(self, device):
        facts = facts_of(self.plan, device)
        sessions = {f"{s['device']} ({s['address']})": True for s in facts["fabric_sessions"] + facts["edge_sessions"]}
        checks = dict.fromkeys(("fabric", "edge", "nftables", "conntrack"), "ok")
        return {"phase": "active", "refusing": False, "withdrawn": False, "checks": checks, "sessions": sessions}

    def say_nft(self, device):
        return {"nftables": list(nft_items(self.plan, device))}

    def say_nft_running(self, device):
        return self.files(device)["nftables.conf"]

    say_nft_file = say_nft_running

    def say_file_sums(self, device):
        return "".join(
            f"{hashlib.sha256(text.encode()).hexdigest()}  {name}\n" for name, text in self.files(device).items()
        )

    def say_pfc(self, device):
        rows = "".join(f"{p.interface} " + "0 " * 8 + "\n" for p in self.plan.switches[device].ports if p.link)
        return f"Port Rx PFC0\n-----\n{rows}\nPort Tx PFC0\n-----\n{rows}"

    def say_queues(self, device):
        queues = {f"UC{n}": {"totalpacket": "0", "droppacket": "0"} for n in range(8)}
        return {p.interface: queues for p in self.plan.switches[device].ports if p.link}

    def say_watchdog(self, device):
        qos = self.plan.fabrics[self.plan.switches[device].fabric].qos
        told = f"{qos.watchdog_action} {qos.watchdog_detection_ms} {qos.watchdog_restoration_ms} disable\n"
        watched = json.loads(rendered(self.plan, device)["config_db.json"])["PFC_WD"]
        rows = "".join(f"{port} {told}" for port in watched if port != "GLOBAL")
        return f"PORT ACTION DETECTION RESTORATION HISTORY\n---- ----\n{rows}"

    def _watermarks(self, device, prefix):
        """A table as watermarkstat prints it: no byte of headroom was used, and queues held a little."""
        ports = [port.interface for port in self.plan.switches[device].ports]
        rows = "".join(
            f"{port} " + " ".join("0" if prefix == "PG" else "508" for _ in range(8)) + "\n" for port in ports
        )
        return f"Port {' '.join(f'{prefix}{n}' for n in range(8))}\n{'----- ' * 9}\n{rows}"

    def say_headroom_watermark(self, device):
        return "Ingress headroom per PG:\n" + self._watermarks(device, "PG")

    def say_queue_watermark(self, device):
        return "Egress shared pool occupancy per unicast queue:\n" + self._watermarks(device, "UC")

    def say_headroom_pool_watermark(self, device):
        return "Headroom pool maximum occupancy:\n Pool Bytes\n--- ---\ningress_lossless_pool 0\n"

    def say_pool_watermark(self, device):
        rows = "egress_lossless_pool 9144\ningress_lossless_pool 9144\n"
        return f"Shared pool maximum occupancy:\n Pool Bytes\n--- ---\n{rows}"

    def say_counterpoll(self, device):
        kinds = ("QUEUE_WATERMARK_STAT", "PG_WATERMARK_STAT", "BUFFER_POOL_WATERMARK_STAT")
        rows = "".join(f"{kind} default (60000) enable\n" for kind in kinds)
        return f"Type Interval (in ms) Status\n---- ---- ----\n{rows}"

    def say_carrier(self, device):
        return "".join(f"{link.end(device).interface} 1\n" for link in self.plan.links_of.get(device, ()))

    def say_optics_pm(self, device):
        port = next(p.interface for p in self.plan.switches[device].ports if p.link)
        return f"{port}:\n{PM_HEAD}{PM_ROW}Ethernet999: Transceiver performance monitoring not applicable\n"

    def say_fec(self, device):
        rows = "".join(f"{p.interface} U 13 0 4 1.2e-8 0\n" for p in self.plan.switches[device].ports if p.link)
        titles = "IFACE STATE FEC_CORR FEC_UNCORR FEC_SYMBOL_ERR FEC_PRE_BER FEC_POST_BER"
        return f"{titles}\n--- --- ---\n{rows}"

    def say_optics(self, device):
        ports = [p.interface for p in self.plan.switches[device].ports if p.link]
        return "".join(f"{port}: SFP EEPROM detected\n        RX1Power: -1.5dBm\n" for port in ports)

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
                    "peerUptimeMsec": 600_000,
                    "connectionsEstablished": 2,
                    "connectionsDropped": 1,
                }
        return {"default": table}

    say_bgp_counters = say_bgp

    def say_bfd_counters(self, device):
        sent = len(self.asked)  # no two looks are the same
        return [
            peer | {"control-packet-output": sent, "session-up": 2, "session-down": 1} for peer in self.say_bfd(device)
        ]

    def say_bfd(self, device):
        return [
            {"peer": s.neighbour if s.neighbour[0].isdigit() else "fe80::1", "interface": s.interface, "status": "up",
             "receive-interval": 300, "detect-multiplier": 3}
            for s in sessions(self.plan, device)
        ]  # fmt: skip

    def say_vrf_vni(self, device):
        tenants = [self.plan.tenant_of_vrf[vrf] for vrf in self.plan.switches[device].vrfs]
        return {"vrfs": [{"vrf": t.vrf, "vni": t.vni, "state": "Up"} for t in tenants]}

    def say_evpn_rds(self, device):
        router = self.plan.switches.get(device) or self.plan.gateways[device]
        return {
            str(t.vni): {"vni": t.vni, "rd": f"{router.router_id}:{t.rd_number}"} for t in self.plan.tenants.values()
        }

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
