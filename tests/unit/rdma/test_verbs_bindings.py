"""The verbs bindings through doubles of their modules: what is asked of them, and what their answers become."""

from __future__ import annotations

import sys
from enum import IntFlag
from types import SimpleNamespace

import pytest

from validators.rdma.host import gids
from validators.rdma.host.backend import BackendMissingError, DeviceError, OpenSpec, Piece, QpSettings, TransferError
from validators.rdma.host.gids import Gid
from validators.rdma.host.memory import Buffer
from validators.rdma.host.registry import open_device

pytestmark = pytest.mark.unit

GID = Gid("mlx5_0", 1, 3, "0000:0000:0000:0000:0000:ffff:0a00:0001", "RoCE v2", "eth0")
PEER = {"gid": GID.gid, "active_mtu": 2048, "max_qp_rd_atom": 8, "qpn": [7, 8], "psn": [1, 2]}
NO_ACCESS = 10


class VerbsError(OSError):
    pass


class Thing:
    """Anything with close, which keeps count of what is open."""

    alive = 0

    def __init__(self) -> None:
        Thing.alive += 1
        self.closed = False

    def close(self) -> None:
        Thing.alive -= not self.closed
        self.closed = True


class Queue(Thing):
    def __init__(self, entries: int) -> None:
        super().__init__()
        self.entries, self.ready, self.status = entries, [], 0

    def poll(self, most: int) -> list:
        found, self.ready = self.ready[:most], self.ready[most:]
        return [SimpleNamespace(wr_id=request.wr_id, status=self.status) for request in found]


class Pair(Thing):
    qp_num = 99

    def __init__(self, init) -> None:
        super().__init__()
        self.init, self.posted, self.calls = init, [], {}

    def to_init(self, port: int, access: int) -> None:
        self.calls["init"] = (port, access)

    def to_rtr(self, remote, sgid_index: int, **more) -> None:
        self.calls["rtr"] = (remote, sgid_index, more)

    def to_rts(self, *values) -> None:
        self.calls["rts"] = values

    def query(self):
        names = ("timeout", "retry_cnt", "rnr_retry", "max_rd_atomic")
        found = dict(zip(names, self.calls["rts"][1:], strict=True))
        _, _, more = self.calls["rtr"]
        return {**found, "max_dest_rd_atomic": more["max_dest_rd_atomic"], "path_mtu": more["mtu"]}, None

    def post_send(self, requests) -> None:
        requests = requests if isinstance(requests, list) else [requests]
        self.posted.append(requests)
        self.init.send_cq.ready += [request for request in requests if request.send_flags]


class Domain(Thing):
    def reg_mr(self, address: int, size: int, access: int):
        if size > 1 << 20:
            raise VerbsError(12, "no memory")
        region = Thing()
        region.rkey, region.lkey, region.access = 5, 6, access
        return region

    def create_qp(self, init) -> Pair:
        return Pair(init)


class Context(Thing):
    def query_device(self):
        return SimpleNamespace(max_qp_rd_atom=16, max_cqe=4096, max_qp_wr=1024)

    def query_port(self, port: int):
        return SimpleNamespace(active_mtu=5, max_mtu=5, state=4)

    def alloc_pd(self) -> Domain:
        return Domain()

    def create_cq(self, entries: int) -> Queue:
        return Queue(entries)


class Access(IntFlag):
    LOCAL_WRITE = 1
    REMOTE_WRITE = 2
    REMOTE_READ = 4


def _plain(names: str):
    def make(*values, **more):
        return SimpleNamespace(**dict(zip(names.split(), values, strict=False)), **more)

    return make


@pytest.fixture
def module(monkeypatch):
    monkeypatch.setattr(gids, "choose", lambda *_: GID)
    double = SimpleNamespace(
        VerbsError=VerbsError,
        AccessFlags=Access,
        QPType=SimpleNamespace(RC=2),
        WROpcode=SimpleNamespace(RDMA_READ=4, RDMA_WRITE=0),
        SendFlags=SimpleNamespace(SIGNALED=2),
        QPInitAttr=_plain("send_cq recv_cq"),
        QPInfo=_plain("qp_num psn lid gid port mtu"),
        SGE=_plain("addr length lkey"),
        SendWR=_plain("wr_id sg_list opcode send_flags remote_addr rkey"),
        get_device_list=lambda: [SimpleNamespace(name="mlx5_0", open=Context)],
    )
    monkeypatch.setitem(sys.modules, "ibverbs", double)
    Thing.alive = 0
    return double


@pytest.fixture
def ready(module):
    """An open device, registered memory and a connection, all of which must be gone afterwards."""
    name, device = open_device("ibverbs", OpenSpec("10.0.0.1"))
    buffer = Buffer(1 << 16)
    region = device.register("main", buffer, "local")
    settings = QpSettings(mtu=4096, traffic_class=106, max_rd_atomic=16, timeout=12)
    connection = device.connect("main", 2, 8, settings)
    connection.establish(PEER)
    assert name == "ibverbs"
    yield SimpleNamespace(device=device, region=region, connection=connection)
    device.close()
    assert device.open_objects() == 0
    assert Thing.alive == 0


def test_queue_pairs_get_what_was_asked_within_what_both_ends_allow(ready) -> None:
    pair = ready.connection.qps[1]
    remote, index, more = pair.calls["rtr"]
    assert (remote.qp_num, remote.psn, index, remote.mtu) == (8, 2, 3, 4)
    assert remote.gid == b"\0" * 10 + b"\xff\xff\x0a\0\0\x01"
    assert more["traffic_class"] == 106
    assert more["hop_limit"] == 64
    assert pair.calls["rts"][1:] == (12, 6, 7, 8)
    forced = ready.connection.in_force()[0]
    assert (forced["mtu"], forced["max_rd_atomic"], forced["max_dest_rd_atomic"]) == (2048, 8, 16)
    assert "traffic_class" not in forced
    assert ready.connection.cq.entries == 2 * 8 + 16


@pytest.mark.parametrize(("verb", "opcode"), [("read", 4), ("write", 0)])
def test_a_transfer_is_posted_in_chains_whose_last_request_alone_completes(ready, verb: str, opcode: int) -> None:
    pieces = [Piece(64 * n, 64 * (40 - n), 64) for n in range(41)]
    prepared = ready.connection.prepare(verb, pieces, ready.region, {"address": 1000, "key": 77})
    times = prepared.run(5.0)
    chains = [chain for pair in ready.connection.qps for chain in pair.posted]
    assert times.posts == times.completions == len(chains) == 11
    assert all([bool(request.send_flags) for request in chain].index(True) == len(chain) - 1 for chain in chains)
    requests = sorted((r for chain in chains for r in chain), key=lambda r: r.sg_list[0].addr)
    assert [r.remote_addr for r in requests] == [1000 + piece.remote for piece in pieces]
    assert {(r.opcode, r.rkey, r.sg_list[0].lkey) for r in requests} == {(opcode, 77, 6)}
    prepared.close()


def test_long_transfers_are_built_while_they_run(ready) -> None:
    ready.connection.settings = QpSettings(most_prebuilt=10)
    pieces = [Piece(0, 64 * n, 64) for n in range(100)]
    prepared = ready.connection.prepare("read", pieces, ready.region, {"address": 0, "key": 77})
    assert prepared.built == []
    prepared.run(5.0)
    posted = [r.remote_addr for pair in ready.connection.qps for chain in pair.posted for r in chain]
    assert sorted(posted) == [piece.remote for piece in pieces]


def test_a_bad_completion_has_its_name_and_a_lost_one_is_an_overrun(ready, monkeypatch) -> None:
    ready.connection.cq.status = NO_ACCESS
    prepared = ready.connection.prepare("read", [Piece(0, 0, 64)], ready.region, {"address": 0, "key": 1})
    with pytest.raises(TransferError) as caught:
        prepared.run(1.0)
    assert caught.value.status == "REM_ACCESS_ERR"
    ready.connection.cq.status = 0
    remote = {"address": 0, "key": 1}
    ready.connection.flood("read", ready.region, remote, 0.05)
    monkeypatch.setattr(ready.connection.cq, "poll", lambda _most: [])
    with pytest.raises(TransferError, match="0 of 8 completions") as caught:
        ready.connection.flood("read", ready.region, remote, 0.05)
    assert caught.value.status == "CQ_OVERRUN"


def test_what_is_missing_or_refused_says_so(module, monkeypatch) -> None:
    _, device = open_device("ibverbs", OpenSpec("10.0.0.1"))
    with pytest.raises(DeviceError, match="cannot be registered"):
        device.register("main", Buffer(2 << 20), "read")
    assert device.register("main", Buffer(4096), "write").mr.access == Access.LOCAL_WRITE | Access.REMOTE_WRITE
    device.close()
    module.get_device_list = list
    with pytest.raises(DeviceError, match="provider"):
        open_device("ibverbs", OpenSpec("10.0.0.1"))
    monkeypatch.setitem(sys.modules, "ibverbs", None)
    with pytest.raises(BackendMissingError, match="ibverbs cannot be imported"):
        open_device("ibverbs", OpenSpec("10.0.0.1"))
    with pytest.raises(BackendMissingError, match=r"pyverbs: .*; ibverbs: .*--backend tcp"):
        open_device("auto", OpenSpec("10.0.0.1"))
