"""Hedgehog wiring: what its validator demands, and what it lets through although it should not."""

from __future__ import annotations

from dataclasses import replace
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from fabric.interop.formats import write
from fabric.interop.hedgehog import VPC_NAME_MAX, dns_name, unbundled_name
from fabric.interop.tenants_as_vpcs import namespace_subnets

if TYPE_CHECKING:
    from fabric.plan import Plan

pytestmark = pytest.mark.unit


def objects(text: str, kind: str = "") -> list[dict[str, Any]]:
    return [document for document in yaml.safe_load_all(text) if not kind or document["kind"] == kind]


def name(document: dict[str, Any]) -> str:
    return str(document["metadata"]["name"])


def test_one_yaml_file_a_managed_fabric(xoc256: Plan) -> None:
    assert list(write(xoc256, "wiring")) == ["wiring-backend.yaml", "wiring-frontend.yaml"]


@pytest.mark.parametrize("site", ["lab", "xoc256"])
def test_names_are_unique_and_short_enough(site: str, request: pytest.FixtureRequest) -> None:
    plan: Plan = request.getfixturevalue(site)
    for text in write(plan, "wiring").values():
        found = [(d["kind"], name(d)) for d in objects(text)]
        assert len(found) == len(set(found))
        assert all(len(name(d)) <= VPC_NAME_MAX for d in objects(text, "VPC"))
        assert all(len(name(d)) <= VPC_NAME_MAX for d in objects(text, "IPv4Namespace"))
        assert all(d["metadata"]["namespace"] == "default" for d in objects(text))


def test_switches_say_role_profile_mac_breakouts_and_namespace(xoc256: Plan) -> None:
    switches = objects(write(xoc256, "wiring")["wiring-frontend.yaml"], "Switch")
    roles = {name(d): d["spec"]["role"] for d in switches}
    assert roles["fe-spine-01"] == "spine"
    assert roles["fe-leaf-01"] == "server-leaf"
    assert roles["fe-border-leaf-01"] == "border-leaf"
    assert all(d["spec"]["vlanNamespaces"] == ["default"] for d in switches)
    assert {d["spec"]["profile"] for d in switches} == {"celestica-ds5000"}
    macs = [d["spec"]["boot"]["mac"] for d in switches]
    assert len(set(macs)) == len(macs)
    breakouts = next(d for d in switches if name(d) == "fe-leaf-01")["spec"]["portBreakouts"]
    assert breakouts["E1/1"] == "4x200G"
    assert breakouts["E1/2"] == "1x800G"
    # the two SFP28 cages have a speed, not a breakout
    assert "E1/65" not in breakouts


def test_half_filled_wiring_is_never_written(xoc256: Plan) -> None:
    for text in write(xoc256, "wiring").values():
        for document in objects(text, "Switch"):
            assert not {"asn", "ip", "protocolIP", "vtepIP"} & set(document["spec"])
        assert "ip:" not in text


def test_parallel_links_are_one_connection(xoc256: Plan) -> None:
    connections = objects(write(xoc256, "wiring")["wiring-backend.yaml"], "Connection")
    joined = [d for d in connections if "fabric" in d["spec"]]
    assert len(joined) == 4 * 2
    assert {len(d["spec"]["fabric"]["links"]) for d in joined} == {16}
    ports = [
        end["port"]
        for d in connections
        for link in d["spec"].get("fabric", {}).get("links", [d["spec"].get("unbundled", {}).get("link")])
        for end in link.values()
    ]
    assert len(ports) == len(set(ports))


def test_vpcs_are_l3vni_with_their_own_vlans_inside_their_namespace(xoc256: Plan) -> None:
    text = write(xoc256, "wiring")["wiring-frontend.yaml"]
    spaces = {name(d): [ip_network(s) for s in d["spec"]["subnets"]] for d in objects(text, "IPv4Namespace")}
    vlans = []
    for vpc in objects(text, "VPC"):
        assert vpc["spec"]["mode"] == "l3vni"
        assert vpc["spec"]["vlanNamespace"] == "default"
        for subnet in vpc["spec"]["subnets"].values():
            prefix = ip_network(subnet["subnet"])
            assert any(prefix.subnet_of(space) for space in spaces[vpc["spec"]["ipv4Namespace"]])
            vlans.append(subnet["vlan"])
    assert len(vlans) == len(set(vlans)) == len(xoc256.tenants)
    assert all(1000 <= vlan <= 2999 for vlan in vlans)


def test_every_attachment_names_a_connection_and_a_subnet_of_the_file(lab: Plan) -> None:
    text = write(lab, "wiring")["wiring-fabric.yaml"]
    connections = {name(d) for d in objects(text, "Connection")}
    subnets = {f"{name(d)}/{s}" for d in objects(text, "VPC") for s in d["spec"]["subnets"]}
    attachments = objects(text, "VPCAttachment")
    assert {d["spec"]["connection"] for d in attachments} <= connections
    assert {d["spec"]["subnet"] for d in attachments} <= subnets
    assert len(attachments) == sum(1 for s in lab.servers.values() for p in s.ports if p.tenant)


def test_tenants_with_the_same_addresses_get_separate_namespaces(lab: Plan) -> None:
    text = write(lab, "wiring")["wiring-fabric.yaml"]
    homes = {name(d): d["spec"]["ipv4Namespace"] for d in objects(text, "VPC")}
    assert homes["acme"] != homes["globex"]


def test_a_peering_that_hedgehog_cannot_express_is_said_in_the_file(lab: Plan) -> None:
    tenants = dict(lab.tenants)
    tenants["globex"] = replace(tenants["globex"], peers=("storage",))
    text = write(replace(lab, tenants=tenants), "wiring")["wiring-fabric.yaml"]
    assert "# tenants globex and storage: not peered" in text
    assert [name(d) for d in objects(text, "VPCPeering")] == ["acme--storage"]


def test_gateways_are_files_of_their_own_with_what_hydration_needs(xoc256: Plan) -> None:
    files = write(xoc256, "wiring-gateways")
    assert list(files) == ["gateways-frontend.yaml"]
    text = files["gateways-frontend.yaml"]
    gateway = objects(text, "Gateway")[0]
    ports = {
        link["gateway"]["port"]
        for d in objects(text, "Connection")
        for link in d["spec"]["gateway"]["links"]
        if link["gateway"]["port"].startswith(name(gateway) + "/")
    }
    assert {f"{name(gateway)}/{port}" for port in gateway["spec"]["interfaces"]} == ports
    groups = {name(d) for d in objects(text, "GatewayGroup")}
    assert {g["name"] for g in gateway["spec"]["groups"]} <= groups


def test_long_names_stay_distinct_when_cut() -> None:
    one, two = dns_name("a-very-long-tenant", 11), dns_name("a-very-long-tenant-2", 11)
    assert one != two
    assert max(len(one), len(two)) <= 11


def test_connection_names_fit_a_label() -> None:
    one = unbundled_name("a-server-class-with-a-long-name-001", "backend0-port0", "a-long-leaf-name-01")
    two = unbundled_name("a-server-class-with-a-long-name-001", "backend0-port0", "a-long-leaf-name-02")
    assert max(len(one), len(two)) <= 63
    assert one != two


def test_a_namespace_never_has_more_than_ten_subnets_and_holds_all() -> None:
    prefixes = [ip_network(f"10.{n}.0.0/24") for n in range(0, 60, 3)]
    spaces = [ip_network(s) for s in namespace_subnets(prefixes)]  # type: ignore[arg-type]
    assert len(spaces) <= 10
    assert all(any(p.subnet_of(s) for s in spaces) for p in prefixes)  # type: ignore[arg-type]
