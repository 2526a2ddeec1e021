"""Lab model, messages, slices and FRR readings, without a lab."""

from __future__ import annotations

import socket
import threading
from dataclasses import replace

import pytest

from fabric.build import load_plan
from fabric.problem import InputError
from fabric.resources import data_folder
from labs import balancer, converge, model, outside, wire
from labs import slice as slicing
from labs.site import start
from tests.conftest import run_cli

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def plan():
    return load_plan("lab")


def test_a_lab_survives_json(plan):
    lab = slicing.make(plan, "lab")
    assert model.Lab.from_json(lab.to_json()) == lab
    assert model.faults(lab) == []
    assert len(lab.expect.sessions) == 26


def test_a_slice_keeps_names_and_darkens_the_rest(plan):
    lab = slicing.make(plan, "lab", slicing.parse_counts("spines=1,servers=1"))
    assert [n.name for n in lab.nodes if n.kind == "spine"] == ["spine-01"]
    assert "Ethernet264" in lab.node("leaf-01").dark
    # a neighbour on an interface has no address; the servers that are left out are nobody's neighbours
    assert lab.node("leaf-01").absent == ()
    with pytest.raises(InputError):
        slicing.parse_counts("racks=2,leaves=x")


def test_neighbours_with_addresses_that_a_slice_leaves_out_are_known(plan):
    lab = slicing.make(plan, "lab", slicing.parse_counts("gateways=0"))
    leaf = lab.node("leaf-01")
    links = [k for k in plan.links_of["leaf-01"] if k.far("leaf-01").device in plan.gateways]
    assert leaf.absent == tuple(str(k.far("leaf-01").address).partition("/")[0] for k in links) != ()
    assert {k.end("leaf-01").interface for k in links} <= set(leaf.dark)
    near = slicing.make(plan, "lab", slicing.parse_counts("leaves=1"))
    assert len(near.node("gw-01").absent) == 1
    assert slicing.make(plan, "lab").node("leaf-01").absent == ()


def test_faults_of_a_lab_are_found():
    nodes = (model.Node("a", "leaf"), model.Node("a", "toaster"))
    link = model.Link("l", model.End("a", "averylonginterfacename"), model.End("b", "x"))
    text = " ".join(model.faults(model.Lab("x", nodes, (link,))))
    assert "twice" in text
    assert "unknown kind" in text
    assert "longer than" in text
    assert "not in the lab" in text


def test_messages_survive_noise_and_splitting():
    splitter = wire.Splitter()
    line = b"kernel says\n" + wire.encode({"id": 1, "data": wire.pack(b"\x00\n")})
    found = [m for byte in line for m in splitter.feed(bytes([byte]))]
    assert found == [{"id": 1, "data": wire.pack(b"\x00\n")}]
    assert splitter.noise == 1


def test_missing_says_what_is_absent():
    expect = model.Expectation(
        sessions=(model.Session("leaf", "Ethernet0"),),
        vteps=(model.Vtep("leaf", "10.0.0.1", {"100": "Vrf-a"}, {"100": ("10.0.0.2",)}),),
        routes=(model.Route("leaf", "Vrf-a", "10.1.0.0/31"),),
    )
    silent = {subject: {} for subject in ("bgp", "bfd", "vni", "rmac", "route")}
    assert len(converge.missing(expect, {"leaf": converge.Observation("leaf", silent)})) == 6
    assert converge.missing(expect, {}) == []
    del silent["bfd"], silent["route"]
    found = converge.missing(expect, {"leaf": converge.Observation("leaf", silent)})
    assert found[0] == "leaf: bfdd, zebra of FRR does not answer"
    assert len(found) == 5
    assert converge.missing(expect, {"leaf": converge.Observation("leaf", trouble="gone")}) == ["leaf: gone"]


STAT = """# pxname,svname,status,stot,check_status,check_desc,last_chk
acme-443,FRONTEND,OPEN,7,,,
acme-443,forward,UP,4,L4OK,Layer4 check passed,
acme-443,forward-2,DOWN 1/2,3,* L4CON,Layer4 connection problem,Connection refused
acme-443,BACKEND,UP,7,,,
acme-2222,FRONTEND,STOP,0,,,
acme-2222,forward,DOWN,0,L4TOUT,Layer4 timeout,
"""


def test_a_balancer_tells_refused_from_not_reached():
    backends = {"forward": "203.0.113.20:443", "forward-2": "203.0.113.21:443"}
    web = model.Service("vip-01", "acme-443", "192.0.2.1:443", backends)
    ssh = model.Service("vip-01", "acme-2222", "192.0.2.1:2222", {"forward": "203.0.113.20:2222"})
    said = {subject: {} for subject in ("bgp", "bfd", "vni", "rmac", "route")}
    listeners = balancer.parse(STAT)
    assert listeners["acme-443"].up
    assert not listeners["acme-2222"].up
    assert listeners["acme-443"].backends[1].reached

    def missing(service, now):
        seen = converge.Observation("vip-01", said, now)
        return converge.missing(model.Expectation(services=(service,)), {"vip-01": seen})

    assert missing(web, listeners) == []
    assert missing(ssh, listeners) == ["vip-01: VIP 192.0.2.1:2222 (acme-2222) does not listen"]
    assert missing(web, None) == ["vip-01: haproxy does not answer: VIP 192.0.2.1:443 is not served"]
    timeout = balancer.parse(STAT.replace("L4OK,Layer4 check passed", "L4TOUT,Layer4 timeout"))
    assert missing(web, timeout) == ["vip-01: VIP 192.0.2.1:443 does not reach 203.0.113.20:443: L4TOUT Layer4 timeout"]
    fewer = balancer.parse(STAT.replace("acme-443,forward,", "acme-443,other,"))
    assert missing(web, fewer) == ["vip-01: VIP 192.0.2.1:443 lacks backend 203.0.113.20:443"]


def _haproxy(tmp_path, answers):
    """An haproxy's socket that gives these answers in turn; the last one stays."""
    path = tmp_path / balancer.SOCKET.removeprefix("/")
    path.parent.mkdir(parents=True)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def serve():
        while True:
            client, _ = listener.accept()
            with client:
                client.recv(100)
                client.sendall((answers.pop(0) if len(answers) > 1 else answers[0]).encode())

    threading.Thread(target=serve, daemon=True).start()


def test_a_check_on_its_way_is_waited_for_since_nobody_knows_the_last_ones_reason(tmp_path, monkeypatch):
    monkeypatch.setattr(balancer, "_PAUSE_S", 0.01)
    forgotten = STAT.replace(",Connection refused", ",")
    assert balancer.parse(forgotten)["acme-443"].backends[1].unsaid
    assert not any(b.unsaid for one in balancer.parse(STAT).values() for b in one.backends)
    _haproxy(tmp_path, [forgotten, forgotten, STAT])
    assert balancer.read(tmp_path)["acme-443"].backends[1].reached


def test_a_check_that_nobody_answers_is_not_waited_for_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(balancer, "_PAUSE_S", 0.01)
    _haproxy(tmp_path, [STAT.replace(",Connection refused", ",")])
    assert not balancer.read(tmp_path)["acme-443"].backends[1].reached
    assert balancer.read(tmp_path / "nowhere") is None


def test_the_outside_gets_files(plan, tmp_path):
    lab = slicing.make(plan, "lab")
    outside.write(plan, tmp_path, lab)
    assert {n.name for n in lab.nodes if n.kind in model.OUTSIDE} == {path.name for path in tmp_path.iterdir()}
    assert "router bgp 64999" in (tmp_path / "edge-01" / "frr.conf").read_text()
    balancing = (tmp_path / "vip-02" / "haproxy.cfg").read_text()
    assert "bind 192.0.2.1:443" in balancing
    assert "server forward-2 203.0.113.21:443" in balancing
    assert "192.0.2.2/32" in (tmp_path / "vip-02" / "network.sh").read_text()
    assert not (tmp_path / "internet-01" / "haproxy.cfg").exists()


def test_a_balancer_shows_what_the_slice_can_serve(plan):
    lab = slicing.make(plan, "lab", slicing.parse_counts("servers=1"))
    shown = {item.name: item.backends for item in lab.expect.services if item.node == "vip-01"}
    assert shown == {"acme-443": {"forward": "203.0.113.20:443"}, "acme-2222": {"forward": "203.0.113.20:2222"}}
    nobody = slicing.make(plan, "lab", {"servers": 0})
    assert not nobody.has("vip-01")
    assert nobody.has("internet-01")
    assert not slicing.make(plan, "lab", slicing.parse_counts("gateways=0")).has("internet-01")


def test_public_addresses_of_the_outside_are_refused(plan):
    tenant = plan.tenants["acme"]
    taken = replace(tenant.exposures[2], public=("198.51.100.7/32",))
    other = replace(plan, tenants={**plan.tenants, "acme": replace(tenant, exposures=(taken,))})
    with pytest.raises(InputError, match=r"198\.51\.100"):
        slicing.make(other, "lab")


def test_the_refusal_names_the_line_of_the_address(tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    for name in ("site.yaml", "tenants.yaml"):
        (folder / name).write_text((data_folder("inventories") / "lab" / name).read_text())
    text = (folder / "tenants.yaml").read_text().replace("203.0.113.30/32", "198.51.100.7/32")
    (folder / "tenants.yaml").write_text(text)
    line = next(n for n, row in enumerate(text.splitlines(), 1) if "198.51.100.7" in row)
    done = run_cli("lab", "export", str(folder), "--out", str(tmp_path / "out"))
    assert done.returncode == 2
    assert f"{folder}/tenants.yaml:{line}: error: tenants.acme.expose.2.public: tenant acme " in done.stderr
    with pytest.raises(InputError, match=rf"tenants\.yaml:{line}"):
        start(str(folder))
