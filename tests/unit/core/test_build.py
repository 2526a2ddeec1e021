"""The plan: counts of the reference design, placement rules, addresses, and growth that changes only what must."""

from __future__ import annotations

from ipaddress import IPv4Interface
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fabric.allocation.ledger import Ledger
from fabric.build import build_plan, load_plan, plan_site
from fabric.inventory.load import Inventory, load_inventory
from fabric.inventory.scaffold import Scaffold, scaffold
from fabric.plan import FABRIC_LINK, GATEWAY_LINK, SERVER_LINK, Plan
from tests.conftest import SHIPPED

if TYPE_CHECKING:
    from fabric.inventory.models import Site

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("size", "leaves", "spines", "servers"),
    [
        ("xoc-64", 1, 1, 8),
        ("xoc-128", 2, 1, 16),
        ("xoc-256", 4, 2, 32),
        ("xoc-512", 8, 4, 64),
        ("xoc-1024", 16, 8, 128),
    ],
)
@pytest.mark.parametrize("suffix", ["", "-rail"])
def test_reference_counts(size: str, leaves: int, spines: int, servers: int, suffix: str) -> None:
    plan = load_plan(size + suffix)
    assert len(plan.switches_of("backend", "leaf")) == leaves
    assert len(plan.switches_of("backend", "spine")) == spines
    assert sum(server.kind == "compute" for server in plan.servers.values()) == servers
    for leaf in plan.switches_of("backend", "leaf"):
        links = plan.links_of[leaf.name]
        assert sum(link.kind == SERVER_LINK for link in links) == 64
        assert sum(link.kind == FABRIC_LINK for link in links) == 32


def leaves_of(plan: Plan, server: str, fabric: str = "backend") -> list[str]:
    return [plan.links[p.link].b.device for p in plan.servers[server].ports if p.fabric == fabric]


def test_single_homed_puts_eight_servers_on_a_leaf() -> None:
    plan = load_plan("xoc-256")
    homes: dict[str, set[str]] = {}
    for server in plan.servers.values():
        if server.kind == "compute":
            (leaf,) = set(leaves_of(plan, server.name))
            homes.setdefault(leaf, set()).add(server.name)
    assert {leaf: len(found) for leaf, found in homes.items()} == {f"be-leaf-0{n}": 8 for n in range(1, 5)}


@pytest.mark.parametrize(
    ("size", "spread"), [("xoc-64", 1), ("xoc-128", 2), ("xoc-256", 4), ("xoc-512", 8), ("xoc-1024", 8)]
)
def test_rail_optimised_spreads_rails_evenly(size: str, spread: int) -> None:
    plan = load_plan(f"{size}-rail")
    for server in plan.servers:
        homes = leaves_of(plan, server)
        assert len(set(homes)) == spread
        assert homes == sorted(homes)


def test_alternating_uses_a_pair_of_leaves() -> None:
    plan = load_plan("xoc-256")
    assert leaves_of(plan, "compute-007", "frontend") == ["fe-leaf-01", "fe-leaf-02"]


@pytest.mark.parametrize("name", SHIPPED)
def test_every_shipped_site_is_consistent(name: str) -> None:
    plan = load_plan(name)
    used: set[tuple[str, str]] = set()
    for link in plan.links.values():
        for end in (link.a, link.b):
            assert (end.device, end.port) not in used, f"{end.device} {end.port} is used twice"
            used.add((end.device, end.port))
        if link.a.address:
            assert IPv4Interface(link.a.address).network == IPv4Interface(link.b.address).network
    for switch in plan.switches.values():
        for port in switch.ports:
            assert not port.link or plan.links[port.link].end(switch.name).interface == port.interface
    singles = [s.router_id for s in plan.switches.values() if s.managed] + [g.router_id for g in plan.gateways.values()]
    assert len(set(singles)) == len(singles)
    asns = [s.asn for s in plan.switches.values() if s.managed and s.kind != "spine"]
    assert len(set(asns)) == len(asns)
    assert plan.graph.number_of_edges() == len(plan.links)


def test_gateway_links_sit_on_a_vlan_of_a_tomahawk_5_switch(xoc_256: Plan) -> None:
    links = [link for link in xoc_256.links.values() if link.kind == GATEWAY_LINK]
    assert len(links) == 4
    assert all(3900 <= link.vlan <= 3999 and link.a.address and link.b.address for link in links)


def test_minimal_profile_has_no_rdma() -> None:
    plan = load_plan("minimal")
    assert all(fabric.qos is None for fabric in plan.fabrics.values())
    assert not any(port.rdma for server in plan.servers.values() for port in server.ports)


def test_same_inventory_same_plan(xoc_256: Plan) -> None:
    assert load_plan("xoc-256").digest == xoc_256.digest


def numbers(plan: Plan) -> dict[str, object]:
    """Everything the ledger promises to keep, by name."""
    found: dict[str, object] = {}
    for switch in plan.switches.values():
        found[switch.name] = (switch.asn, switch.router_id, switch.vtep, switch.management)
    for gateway in plan.gateways.values():
        found[gateway.name] = (gateway.router_id, gateway.vtep, gateway.management)
    for tenant in plan.tenants.values():
        found[f"tenant {tenant.name}"] = (tenant.vni, tenant.vlan, tenant.rt)
    for server in plan.servers.values():
        found[server.name] = server.services
        for port in server.ports:
            far = plan.links[port.link].b
            found[f"{server.name}:{port.name}"] = (far.device, far.port, port.address)
    for link in plan.links.values():
        if link.kind == FABRIC_LINK:
            found[link.a.device + link.a.port] = (link.b.device, link.b.port)
    return found


def changed(inventory: Inventory, **fields: object) -> Inventory:
    return Inventory(inventory.site.model_copy(update=fields), inventory.folder, inventory.places)


def grown(site: Site, cls: str, count: int) -> dict[str, object]:
    return {**site.servers, cls: site.servers[cls].model_copy(update={"count": count})}


@given(
    storage=st.integers(1, 9),
    compute=st.integers(28, 44),
    order=st.permutations(["acme", "globex", "initech", "storage"]),
    servers_first=st.booleans(),
)
@settings(max_examples=15, deadline=None)
def test_growth_and_reordering_keep_every_number(
    storage: int, compute: int, order: list[str], servers_first: bool
) -> None:
    inventory = load_inventory("xoc-256")
    ledger = Ledger()
    before = numbers(build_plan(inventory, ledger)[0])
    site = inventory.site
    servers = grown(site, "storage", storage)
    servers["compute"] = site.servers["compute"].model_copy(update={"count": compute})
    if servers_first:
        servers = dict(reversed(servers.items()))
    tenants = {name: site.tenants[name] for name in order}
    keep = {f"storage-{n:03d}" for n in range(1, storage + 1)} | {f"compute-{n:03d}" for n in range(1, compute + 1)}
    for name, tenant in tenants.items():
        hosts = [h for pattern in tenant.servers for h in _expand(pattern) if h in keep]
        tenants[name] = tenant.model_copy(update={"servers": hosts, "expose": []})
    more_leaves = compute > 32
    after = numbers(build_plan(changed(inventory, servers=servers, tenants=tenants), ledger.copy())[0])
    for name, value in before.items():
        if name in after and not (more_leaves and name.startswith("be-leaf") and "E1" in name):
            assert after[name] == value, name


def _expand(pattern: str) -> tuple[str, ...]:
    from fabric.hardware.ranges import expand_hosts

    return expand_hosts(pattern)


def test_a_renamed_tenant_and_server_class_keep_their_numbers(tmp_path: Path) -> None:
    for name, text in scaffold(Scaffold("grow", "xoc-64")).items():
        (tmp_path / name).write_text(text)
    first = plan_site(tmp_path)
    first.save_ledger()
    tenants = (tmp_path / "tenants.yaml").read_text()
    (tmp_path / "tenants.yaml").write_text(tenants.replace("  acme:\n", "  apex:\n    was: acme\n"))
    second = plan_site(tmp_path)
    assert second.plan.tenants["apex"].vni == first.plan.tenants["acme"].vni
    assert second.plan.servers["compute-001"].ports == tuple(
        _owner(port, "apex") for port in first.plan.servers["compute-001"].ports
    )


def _owner(port: object, tenant: str) -> object:
    from dataclasses import replace

    return replace(port, tenant=tenant)  # type: ignore[type-var]


def test_out_of_numbers_names_the_pool(tmp_path: Path) -> None:
    from fabric.problem import InputError

    for name, text in scaffold(Scaffold("small", "xoc-256")).items():
        (tmp_path / name).write_text(text)
    (tmp_path / "pools.yaml").write_text("pools: {leaf_asn: 65101-65103, vteps: 172.30.12.0/30}\n")
    with pytest.raises(InputError) as caught:
        plan_site(tmp_path)
    texts = [str(p) for p in caught.value.problems]
    assert any("leaf-asn" in t and "held by" in t and "pools.yaml:1" in t for t in texts), texts
    assert any("pool 'vtep'" in t for t in texts)


@pytest.mark.parametrize("profile", ["minimal", "distributed"])
@pytest.mark.parametrize("placement", ["single-homed", "rail-optimised"])
@pytest.mark.parametrize("management", [False, True])
def test_new_sites_plan_as_they_are(tmp_path: Path, profile: str, placement: str, management: bool) -> None:
    files = scaffold(Scaffold("fresh", "xoc-512", profile, placement, management=management))
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    planned = plan_site(tmp_path)
    assert planned.problems == ()
    assert ("oob" in planned.plan.fabrics) is management


def test_shipped_sites_are_what_new_writes() -> None:
    from fabric.resources import data_folder

    for size in ("xoc-64", "xoc-1024"):
        files = scaffold(Scaffold(size, size))
        for name, text in files.items():
            assert (data_folder("inventories") / size / name).read_text() == text
