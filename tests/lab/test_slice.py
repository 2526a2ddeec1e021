"""A slice of a production site, as it would be on a small machine: xoc-256 with 18 of its devices."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from fabric.problem import CouldNotRunError
from fabric.render.registry import render_site
from labs import engines, site
from tests.lab.traffic import wait_until

pytestmark = pytest.mark.lab

COUNTS = "leaves=2,spines=2,gateways=2,servers=4"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    root = Path(f"/run/kvslice-{os.getpid()}") if os.geteuid() == 0 else tmp_path_factory.mktemp("s")
    patch.setenv("KVFABRIC_LAB_STATE", str(root))
    try:
        engines.choose("uml")
    except CouldNotRunError as error:
        pytest.skip(f"no lab here: {error}")
    started = site.start("xoc-256", name="slice", counts=COUNTS, engine="uml", say=print)
    missing = list(started.missing)
    if missing:  # 21 nodes on a machine that is busy with other things take their time
        missing = started.running.call("converge", timeout_s=300)["missing"]
    print(started.seconds)
    assert (started.complaints, missing) == ((), [])
    yield started.running
    started.running.stop()
    assert not list(root.iterdir())
    root.rmdir()
    patch.undo()


def test_devices_are_those_of_production(lab, xoc_256):
    # the rest is the world outside, which the lab makes
    names = {node.name for node in lab.lab.nodes} & set(xoc_256.kind_of)
    assert len(names) == 18
    assert (lab.lab.site, lab.lab.plan_digest) == ("xoc-256", xoc_256.digest)
    for name in ("be-leaf-02", "fe-border-leaf-01", "be-spine-01"):
        said = json.loads(lab.run(name, ["vtysh", "-c", "show bgp ipv4 unicast summary json"]).check().out)
        assert said["as"] == xoc_256.switches[name].asn
        assert said["routerId"] == xoc_256.switches[name].router_id


def test_files_are_the_whole_ones_and_missing_peers_are_dark(lab, xoc_256):
    [(_, files)] = list(render_site(xoc_256, ["be-leaf-01"], "frr"))
    running = lab.share / "nodes" / "be-leaf-01"
    assert {path.name: path.read_text() for path in running.iterdir()} == files
    ports = json.loads(lab.run("be-leaf-01", ["ip", "-j", "link"]).check().out)
    carrier = {port["ifname"]: "LOWER_UP" in port["flags"] for port in ports}
    planned = {end.interface for link in xoc_256.links_of["be-leaf-01"] for end in (link.a, link.b) if end.device == "be-leaf-01"}  # fmt: skip
    assert planned <= set(carrier)
    lit = {end.interface for link in lab.lab.links_of("be-leaf-01") for end in link.ends() if end.node == "be-leaf-01"}
    assert {name for name in planned if carrier[name]} == lit


def _address(plan, server, port):
    link = next(k for k in plan.links_of[server] if k.end(server).interface == port)
    return link.end(server).address.partition("/")[0]


def _ping(lab, node, target, *more):
    return lab.run(node, ["ping", "-n", "-c3", "-i0.3", "-W5", *more, target]).rc == 0


def test_tenants_of_production_hold(lab, xoc_256):
    far = _address(xoc_256, "compute-009", "be0-port0")
    assert _ping(lab, "compute-001", far, "-M", "do", "-s", "8972")
    assert _ping(lab, "compute-001", _address(xoc_256, "compute-009", "fe-p0"))
    assert not _ping(lab, "compute-017", _address(xoc_256, "compute-001", "fe-p0"))
    # out through a gateway and one of two edge routers
    assert wait_until(lambda: _ping(lab, "compute-001", "198.51.100.1"), 30)
