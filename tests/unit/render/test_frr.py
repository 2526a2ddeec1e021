from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from fabric.analysis.frr_conf import parse
from fabric.gateway.targets import default_route_target
from fabric.plan import FABRIC_LINK, GATEWAY_LINK, SERVER_LINK
from fabric.prefix_counts import expected_from, of_fabric, prefix_limit
from fabric.render import frr, sonic

if TYPE_CHECKING:
    from fabric.plan import Plan

pytestmark = pytest.mark.unit


def lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines()]


def block(text: str, first: str) -> list[str]:
    """The lines of a top-level section; a BGP instance is opened once before it is filled."""
    found = text.rsplit(f"\n{first}\n", 1)[1]
    return lines(found.split("\nexit", 1)[0])


def test_sonic_and_linux_routers_differ_only_in_the_fpm_lines(xoc_256: Plan) -> None:
    for name in ("be-leaf-01", "fe-border-leaf-01", "be-spine-01"):
        on_sonic, on_linux = sonic.render(xoc_256, name)["frr.conf"], frr.render(xoc_256, name)["frr.conf"]
        assert on_sonic.replace("no fpm use-next-hop-groups\nfpm address 127.0.0.1\n!\n", "") == on_linux
        assert on_sonic != on_linux


def test_every_session_of_the_plan_is_configured_with_its_as(xoc_256: Plan) -> None:
    for name, switch in xoc_256.switches.items():
        text = lines(sonic.render(xoc_256, name)["frr.conf"])
        for link in xoc_256.links_of[name]:
            far = link.far(name)
            if link.kind == FABRIC_LINK:
                asn = xoc_256.switches[far.device].asn
                assert f"neighbor {link.end(name).interface} interface remote-as {asn}" in text
            elif link.kind == GATEWAY_LINK:
                assert f"neighbor {far.address.split('/')[0]} remote-as {xoc_256.gateways[far.device].asn}" in text
        assert f"router bgp {switch.asn}" in text


def test_numbered_fabrics_use_the_far_address(peers_apart: Plan) -> None:
    text = lines(sonic.render(peers_apart, "leaf-01")["frr.conf"])
    link = peers_apart.link_at["leaf-01", "Ethernet256"]
    assert f"neighbor {link.b.address.split('/')[0]} remote-as {peers_apart.switches['spine-01'].asn}" in text
    assert not [line for line in text if " interface remote-as " in line]


def test_underlay_carries_own_loopbacks_and_nothing_else(lab: Plan) -> None:
    text = block(sonic.render(lab, "leaf-01")["frr.conf"], f"router bgp {lab.switches['leaf-01'].asn}")
    networks = [line for line in text if line.startswith("network ")]
    assert networks == [f"network {lab.switches['leaf-01'].router_id}/32", f"network {lab.switches['leaf-01'].vtep}/32"]
    assert not [line for line in text if line.startswith("redistribute")]
    assert "neighbor FABRIC prefix-list LOOPBACKS out" in text
    assert "neighbor FABRIC prefix-list LOOPBACKS in" in text


def test_the_underlay_takes_the_site_s_own_pools_only(lab: Plan, xoc_256: Plan) -> None:
    for plan, device in ((lab, "leaf-01"), (lab, "spine-01"), (xoc_256, "be-leaf-01")):
        found = re.findall(r"prefix-list LOOPBACKS seq \d+ permit (.+)", sonic.render(plan, device)["frr.conf"])
        assert found == ["172.30.8.0/22 ge 32", "172.30.12.0/22 ge 32"]


def test_a_limit_ends_the_session_of_an_origin_and_warns_of_a_sum(lab: Plan, xoc_256: Plan) -> None:
    def said(plan: Plan, device: str) -> list[str]:
        text = sonic.render(plan, device)["frr.conf"]
        return [line.removeprefix("neighbor ") for line in lines(text) if "maximum-prefix" in line]

    assert said(lab, "leaf-01") == ["FABRIC maximum-prefix 64 warning-only", "GATEWAYS maximum-prefix 64 restart 5"]
    assert said(lab, "spine-01") == ["FABRIC maximum-prefix 64 restart 5"]
    spines = len(xoc_256.switches_of("backend", "spine"))
    leaves = len(xoc_256.switches_of("backend", "leaf"))
    assert of_fabric(xoc_256, "backend") == 2 * leaves + spines
    assert said(xoc_256, "be-leaf-01") == [f"FABRIC maximum-prefix {prefix_limit(2 * leaves + spines)} warning-only"]
    assert expected_from(xoc_256, "be-leaf-01") == 2
    gateways = {link.a.device for link in xoc_256.links_of["fe-border-leaf-01"] if link.kind == GATEWAY_LINK}
    assert expected_from(xoc_256, "fe-border-leaf-01") == 2 + 2 * len(gateways) > 2


@pytest.mark.parametrize(
    ("expected", "limit"), [(0, 64), (1, 64), (16, 64), (17, 128), (32, 128), (33, 256), (1000, 4096)]
)
def test_a_limit_is_four_times_the_plan_as_a_power_of_two(expected: int, limit: int) -> None:
    assert prefix_limit(expected) == limit


def test_policy_for_gateways_is_only_where_gateways_are(lab: Plan, xoc_256: Plan) -> None:
    backend, border = (sonic.render(xoc_256, name)["frr.conf"] for name in ("be-leaf-01", "fe-border-leaf-01"))
    assert not re.search(r"RANK|EVPN-IN|GATEWAYS", backend)
    most = max(rank for gateway in xoc_256.gateways.values() for rank in gateway.ranks.values())
    assert len(re.findall(r"community-list standard RANK-", border)) == most + 1 == 2
    assert "neighbor FABRIC route-map EVPN-IN in" in lines(border)


def test_a_gateway_is_never_a_way_between_leaves(lab: Plan) -> None:
    text = sonic.render(lab, "leaf-01")["frr.conf"]
    asn = next(iter(lab.gateways.values())).asn
    assert f"bgp as-path access-list GATEWAYS seq 5 permit ^{asn}$" in text
    assert "neighbor GATEWAYS route-map GATEWAYS-IN in" in lines(text)
    assert block(text, "route-map GATEWAYS-IN permit 10") == [
        "match as-path GATEWAYS",
        "match ip address prefix-list LOOPBACKS",
    ]


def test_rank_becomes_local_preference(lab: Plan) -> None:
    text = sonic.render(lab, "leaf-01")["frr.conf"]
    assert "bgp community-list standard RANK-0 seq 5 permit 50001:0" in text
    assert block(text, "route-map EVPN-IN permit 10") == ["match community RANK-0", "set local-preference 210"]
    assert block(text, "route-map EVPN-IN permit 20") == ["match community RANK-1", "set local-preference 209"]
    assert "route-map EVPN-IN permit 1000" in text
    assert "neighbor FABRIC route-map EVPN-IN in" in lines(text)


def test_paths_are_at_least_the_neighbors(xoc_256: Plan) -> None:
    for name in xoc_256.switches:
        text = sonic.render(xoc_256, name)["frr.conf"]
        widths = {int(n) for n in re.findall(r"maximum-paths (\d+)", text)}
        assert min(widths) >= len(xoc_256.links_of[name]) or min(widths) >= 64


def test_route_targets_are_the_tenant_s_own_and_fit(lab: Plan) -> None:
    for vrf in lab.switches["leaf-01"].vrfs:
        tenant = lab.tenant_of_vrf[vrf]
        text = block(sonic.render(lab, "leaf-01")["frr.conf"], f"router bgp {lab.switches['leaf-01'].asn} vrf {vrf}")
        assert [line.split()[-1] for line in text if line.startswith("route-target export")] == [tenant.rt]
        imports = {line.split()[-1] for line in text if line.startswith("route-target import")}
        assert imports == {tenant.rt, default_route_target(tenant.rt)}
        for target in imports:
            asn, number = map(int, target.split(":"))
            assert asn < 2**16
            assert number < 2**32
        assert f"rd {lab.switches['leaf-01'].router_id}:{tenant.rd_number}" in text


def test_every_instance_is_there_before_one_imports_from_it(lab: Plan) -> None:
    text = sonic.render(lab, "leaf-01")["frr.conf"]
    first = text.index("\n  import vrf")
    for vrf in lab.switches["leaf-01"].vrfs:
        assert text.index(f"router bgp {lab.switches['leaf-01'].asn} vrf {vrf}\n") < first


def test_peers_are_leaked_on_the_spot_and_only_their_subnets(lab: Plan) -> None:
    text = sonic.render(lab, "leaf-01")["frr.conf"]
    acme = block(text, f"router bgp {lab.switches['leaf-01'].asn} vrf Vrf-acme")
    assert [line for line in acme if line.startswith("import vrf")] == [
        "import vrf route-map PEERS-acme",
        "import vrf Vrf-storage",
    ]
    assert "ip prefix-list PEERS-acme seq 5 permit 10.250.0.0/24 le 32" in text
    globex = block(text, f"router bgp {lab.switches['leaf-01'].asn} vrf Vrf-globex")
    assert not [line for line in globex if line.startswith("import vrf")]
    assert "PEERS-globex" not in text


def test_a_vrf_tells_only_its_own_subnets(lab: Plan) -> None:
    text = sonic.render(lab, "leaf-01")["frr.conf"]
    acme = block(text, f"router bgp {lab.switches['leaf-01'].asn} vrf Vrf-acme")
    assert "advertise ipv4 unicast route-map OWN-acme" in acme
    prefixes = re.findall(r"ip prefix-list OWN-acme seq \d+ permit (\S+) le 32", text)
    assert prefixes == [subnet.prefix for subnet in lab.tenants["acme"].subnets if subnet.fabric == "fabric"]


def test_a_guest_vrf_only_listens(peers_apart: Plan) -> None:
    text = sonic.render(peers_apart, "leaf-01")["frr.conf"]
    guest = block(text, f"router bgp {peers_apart.switches['leaf-01'].asn} vrf Vrf-storage")
    assert not [line for line in guest if line.split()[0] in {"redistribute", "advertise", "import"}]
    assert f"route-target import {peers_apart.tenants['storage'].rt}" in guest
    assert f"route-target import {default_route_target(peers_apart.tenants['storage'].rt)}" not in guest


def test_clients_of_a_shared_tenant_do_not_see_each_other(peers_apart: Plan) -> None:
    """acme and globex share a leaf and both peer with storage: no statement joins the two."""
    text = sonic.render(peers_apart, "leaf-01")["frr.conf"]
    for one, other in (("acme", "globex"), ("globex", "acme")):
        vrf = block(text, f"router bgp {peers_apart.switches['leaf-01'].asn} vrf Vrf-{one}")
        assert f"import vrf Vrf-{other}" not in vrf
        assert peers_apart.tenants[other].rt not in " ".join(vrf).split()
        assert peers_apart.tenants[other].subnets[0].prefix not in re.findall(
            rf"PEERS-{one} seq \d+ permit (\S+)", text
        )


def test_service_addresses_are_reached_by_every_port_of_the_server_here(lab: Plan) -> None:
    text = lines(sonic.render(lab, "leaf-01")["frr.conf"])
    server = lab.servers["compute-001"]
    service = server.services[0]
    here = [p for p in server.ports if lab.links[p.link].b.device == "leaf-01" and p.tenant == service.tenant]
    assert here
    for port in here:
        assert f"ip route {service.address}/32 {port.address.split('/')[0]}" in text


def test_our_own_reader_understands_the_file(xoc_256: Plan) -> None:
    conf = parse(sonic.render(xoc_256, "fe-leaf-01")["frr.conf"])
    switch = xoc_256.switches["fe-leaf-01"]
    assert set(conf.bgp) == {"", *switch.vrfs}
    assert {name: vrf.vni for name, vrf in conf.vrfs.items()} == {v: xoc_256.tenant_of_vrf[v].vni for v in switch.vrfs}
    assert conf.bfd_profiles["fabric"] == {
        "detect-multiplier": "3",
        "receive-interval": "300",
        "transmit-interval": "300",
    }


# ------------------------------------------------------------------------------------------------------- Linux router


def test_a_linux_router_has_its_files(lab: Plan) -> None:
    always = {"frr.conf", "daemons", "network.sh", "sysctl.conf", "kvfabric-network.service", "install.sh"}
    assert set(frr.render(lab, "leaf-01")) == always | {"nftables.conf", "kvfabric-rules.service"}
    assert set(frr.render(lab, "spine-01")) == always


def test_network_makes_each_vrf_with_its_tunnel(lab: Plan) -> None:
    text = lines(frr.render(lab, "leaf-01")["network.sh"])
    switch = lab.switches["leaf-01"]
    for vrf in switch.vrfs:
        tenant = lab.tenant_of_vrf[vrf]
        bridge = f"Vlan{tenant.vlan}"
        assert f"have {vrf} || ip link add {vrf} type vrf table {10000 + tenant.vlan}" in text
        assert f"ip link set {bridge} address {switch.mac} addrgenmode none" in text
        assert f"ip link set {bridge} master {vrf}" in text
        tunnel = next(line for line in text if f"type vxlan id {tenant.vni} " in line)
        assert f"local {switch.vtep} dstport 4789 nolearning ttl 64 tos inherit" in tunnel
        assert f"ip route replace unreachable default table {10000 + tenant.vlan} metric 4278198272" in text
        assert not [line for line in text if line.startswith("ip addr") and line.endswith(f"dev {bridge}")]


def test_network_puts_server_ports_in_their_vrf_before_their_address(lab: Plan) -> None:
    text = lines(frr.render(lab, "leaf-01")["network.sh"])
    for link in lab.links_of["leaf-01"]:
        if link.kind == SERVER_LINK:
            vrf = lab.tenants[link.tenant].vrf
            at = text.index(f"ip link set {link.b.interface} master {vrf} mtu 9036 up")
            assert text[at + 1] == f"ip addr replace {link.b.address} dev {link.b.interface}"


def test_gateway_link_address_is_on_the_port_itself(lab: Plan) -> None:
    text = lines(frr.render(lab, "leaf-01")["network.sh"])
    link = next(link for link in lab.links_of["leaf-01"] if link.kind == GATEWAY_LINK)
    assert f"ip addr replace {link.b.address} dev {link.b.interface}" in text


def test_a_port_of_no_tenant_stays_dark(peers_apart: Plan) -> None:
    link = next(link for link in peers_apart.links.values() if link.a.device == "idle-001")
    text = lines(frr.render(peers_apart, link.b.device)["network.sh"])
    assert f"ip link set {link.b.interface} down" in text
    assert not [line for line in text if link.b.interface in line.split() and "up" in line.split()]


def test_tunnelled_flows_are_spread(lab: Plan) -> None:
    text = frr.render(lab, "leaf-01")["nftables.conf"]
    for vrf in lab.switches["leaf-01"].vrfs:
        assert f'"Vlan{lab.tenant_of_vrf[vrf].vlan}"' in text
    assert "meta mark 0 meta mark set 0x100" in text


def test_each_spine_prefers_another_leafs_way_to_the_gateways(lab: Plan, xoc_256: Plan) -> None:
    """A leaf that loses its gateway link already knows the other leaf's way; else the standby would reset its flows."""
    preferred = {}
    for spine in ("spine-01", "spine-02"):
        text = frr.render(lab, spine)["frr.conf"]
        underlay, evpn = (
            lines(text.split(name)[1].split("exit-")[0])
            for name in ("address-family ipv4 unicast", "address-family l2vpn evpn")
        )
        ports = [
            {line.split()[1] for line in part if line.endswith("route-map GATEWAY-WAY in")} for part in (underlay, evpn)
        ]
        assert ports[0] == ports[1]
        (port,) = ports[0]
        preferred[spine] = lab.link_at[spine, port].far(spine).device
    assert preferred == {"spine-01": "leaf-01", "spine-02": "leaf-02"}
    # only the spines of the fabric that gateways plug into
    having = {name for name in xoc_256.switches if "GATEWAY-WAY" in frr.render(xoc_256, name)["frr.conf"]}
    assert having == {"fe-spine-01", "fe-spine-02"}
