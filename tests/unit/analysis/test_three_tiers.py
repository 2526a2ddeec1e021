"""Pods joined by super-spines: how they are cabled, what capacity says of them, and who says no to them."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import yaml

from fabric import build
from fabric.analysis.capacity import tiers
from fabric.analysis.check import check_site
from fabric.analysis.failures import Sweep
from fabric.analysis.flows.network import Network, mix
from fabric.analysis.flows.traffic import Played
from fabric.build import load_plan, plan_site
from fabric.cli.main import main
from fabric.interop.diagram.model import panels
from fabric.plan import FABRIC_LINK, SPINE, SUPER_SPINE
from fabric.problem import CouldNotRunError, InputError
from fabric.render.registry import render_site
from fabric.resources import data_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from fabric.plan import Plan

pytestmark = pytest.mark.unit

_SHIPPED = data_folder("inventories") / "pods-100k"


def small(tmp_path: Path, change: Callable[[dict], object] = lambda site: None) -> Path:
    """The shipped site of three tiers with fewer servers: three backend pods of two leaves, four spines each."""
    site = yaml.safe_load((_SHIPPED / "site.yaml").read_text())
    backend, frontend = site["fabrics"]["backend"], site["fabrics"]["frontend"]
    backend["pod_leaves"], backend["spine"]["count"] = 2, 4
    frontend["border-leaf"]["count"] = 2
    site["servers"]["compute"]["count"], site["servers"]["storage"]["count"] = 44, 4
    site["gateways"]["gw"]["count"] = 2
    site["groups"] = {"internet": ["gw-01", "gw-02"]}
    site["tenants"] = {"acme": {"servers": "compute-[00001-00044]", "subnets": {"backend": "10.0.0.0/18"}}}
    site["tenants"]["acme"]["subnets"]["frontend"] = "10.16.0.0/18"
    change(site)
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "site.yaml").write_text(yaml.safe_dump(site, sort_keys=False))
    return tmp_path


@pytest.fixture(scope="module")
def pods(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    return load_plan(small(tmp_path_factory.mktemp("pods")))


def test_pods_and_planes(pods: Plan) -> None:
    leaves = [s for s in pods.switches_of("backend") if s.kind == "leaf"]
    assert Counter(s.pod for s in leaves) == {"01": 2, "02": 2, "03": 2}
    spines = pods.switches_of("backend", SPINE)
    assert Counter(s.pod for s in spines) == {"01": 4, "02": 4, "03": 4}
    for link in pods.links.values():
        if link.kind == FABRIC_LINK and link.fabric == "backend":
            one, two = pods.switches[link.a.device], pods.switches[link.b.device]
            if two.kind == SPINE:
                assert one.pod == two.pod
            else:
                assert (one.kind, two.kind) == (SPINE, SUPER_SPINE)
                assert one.name.rpartition("-")[2] == two.pod.rpartition("-")[2]  # a spine stays in its plane


def test_every_spine_reaches_every_super_spine_of_its_plane(pods: Plan) -> None:
    network = Network(pods, "backend")
    assert (network.super_cables.count > 0).all()
    # all uplinks are cabled, and evenly: 32 from each spine
    assert set(network.super_cables.count.sum(axis=1)) == {32}


def test_as_numbers_follow_rfc_7938(pods: Plan) -> None:
    by_pod: dict[str, set[int]] = {}
    for s in pods.switches_of("backend", SPINE):
        by_pod.setdefault(s.pod, set()).add(s.asn)
    supers = {s.asn for s in pods.switches_of("backend", SUPER_SPINE)}
    assert all(len(numbers) == 1 for numbers in by_pod.values())
    assert len(set.union(*by_pod.values())) == 3
    assert len(supers) == 1
    assert not supers & set.union(*by_pod.values())


def test_growing_moves_no_cable_of_what_was_there(tmp_path: Path) -> None:
    before = plan_site(small(tmp_path))
    before.save_ledger()
    small(tmp_path, lambda site: site["servers"]["compute"].update(count=60))
    after = load_plan(tmp_path)
    assert len({s.pod for s in after.switches_of("backend", SPINE)}) == 4
    kept = [link for link in before.plan.links.values() if link.kind == FABRIC_LINK]
    assert kept
    assert all(link.id in after.links for link in kept)


def test_paths_cross_pods_in_one_plane_and_stay_inside_otherwise(pods: Plan) -> None:
    network = Network(pods, "backend")
    pod = [network.pod_of_leaf[e.leaf] for e in network.endpoints]
    leaf = [e.leaf for e in network.endpoints]
    a = 0
    same_pod = next(i for i in range(len(pod)) if pod[i] == pod[a] and leaf[i] != leaf[a])
    other = next(i for i in range(len(pod)) if pod[i] != pod[a])
    entropy = mix(np.arange(2000, dtype=np.uint64))
    near = network.paths(np.full(2000, a), np.full(2000, same_pod), entropy)
    assert (near[:, 2:4] == -1).all()
    far = network.paths(np.full(2000, a), np.full(2000, other), entropy)
    assert (far >= 0).all()
    for path in far[:50]:
        hops = [network.name_of(int(k)).split(" -> ") for k in path]
        assert all(here[1].split()[0] == there[0].split()[0] for here, there in pairwise(hops))
    assert len(np.unique(far[:, 1])) == 32  # every uplink of the leaf
    assert len(np.unique(far[:, 2])) == 4 * 32  # and of the four spines


def test_tiers_and_patterns(pods: Plan) -> None:
    leaf, spine = (t for t in tiers(pods) if t.fabric == "backend")
    assert (leaf.tier, leaf.switches, leaf.above, leaf.endpoints, leaf.ratio) == ("leaf", 6, 12, 352, 1.0)
    assert (spine.tier, spine.switches, spine.endpoints) == ("spine", 12, 0)
    assert spine.ratio == pytest.approx(16 / 32)  # two leaves with 4 cables each of 8 to each spine, 32 up
    played = Played.on(Network(pods, "backend"), "prefill-decode")
    assert played
    few, many = played.run(1), played.run(16)
    assert few.hashed < many.hashed <= many.ideal * 1.001
    assert {t.tier for t in many.loads} >= {"spine to super-spine", "super-spine to spine"}


def test_oversubscribed_super_spines_bind_the_ideal_too(tmp_path: Path) -> None:
    def few_up(site: dict) -> None:
        site["fabrics"]["backend"]["spine"]["up"]["ports"] = "33-34"

    network = Network(load_plan(small(tmp_path, few_up)), "backend")
    played = Played.on(network, "prefill-decode")
    assert played
    crossing = network.pod_of(network.first_hops[played.source]) != network.pod_of(network.first_hops[played.target])
    # each pod has 4 spines x 2 x 800G up
    assert played.ideal <= 3 * 6400 + 400 * int((~crossing).sum())
    assert played.run(8).hashed <= played.ideal * 1.001


@pytest.mark.parametrize("ask", [lambda p: list(render_site(p)), check_site, Sweep, panels])
def test_what_covers_two_tiers_says_so(pods: Plan, ask: Callable[[Plan], object]) -> None:
    with pytest.raises(CouldNotRunError, match="super-spines"):
        ask(pods)


@pytest.mark.parametrize(
    "words",
    [
        "accept pods-100k --list",
        "catalog pods-100k",
        "check pods-100k",
        "failures pods-100k",
        "lab up pods-100k",
        "path pods-100k --from compute-00001 --to compute-00002",
        "render pods-100k --out x",
        "snapshot pods-100k --out x",
    ],
)
def test_what_covers_two_tiers_says_so_before_it_plans(
    words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "SiteBuilder", None)  # planning a hundred thousand takes a minute
    with pytest.raises(SystemExit) as caught:
        main(words.split())
    assert caught.value.code == 3
    said = capsys.readouterr().err
    assert "super-spines (backend, frontend)" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        (lambda s: s["fabrics"]["backend"].pop("pod_leaves"), "topology.tiers"),
        (lambda s: s["fabrics"]["backend"].pop("super-spine"), "topology.tiers"),
        (lambda s: s["fabrics"]["backend"]["super-spine"].update(count=30), "topology.planes"),
        (lambda s: s["fabrics"]["backend"]["spine"].update(count=5), "topology.uneven"),
        (lambda s: s["fabrics"]["backend"]["super-spine"].update(count=4), "topology.spine-ports"),
    ],
)
def test_what_cannot_be_built_is_refused(tmp_path: Path, change: Callable[[dict], object], rule: str) -> None:
    with pytest.raises(InputError) as caught:
        load_plan(small(tmp_path, change))
    assert rule in {p.rule for p in caught.value.problems}


def test_the_shipped_site_has_a_hundred_thousand_accelerators() -> None:
    plan = load_plan("pods-100k")
    assert sum(server.xpus for server in plan.servers.values()) == 100_352
    backend = next(t for t in tiers(plan) if t.fabric == "backend" and t.tier == "spine")
    assert (backend.switches, backend.above, backend.ratio) == (1568, 1024, 1.0)
