"""Chains of work requests for pyverbs, through doubles of its classes: what the device would find in memory when posted."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from validators.rdma.host.backend import Piece, QpSettings
from validators.rdma.host.pyverbs_transfer import PyverbsTransfer

pytestmark = pytest.mark.unit

HERE, THERE = 1 << 40, 2 << 40


class Element:
    def __init__(self, addr: int, length: int, lkey: int) -> None:
        self.addr, self.length, self.lkey = addr, length, lkey


class Request:
    """As the binding's: a request copies its elements, unless `sg_list` makes it read another's own memory."""

    closed = 0

    def __init__(self, wr_id: int, opcode: str, num_sge: int, sg: list[Element], send_flags: int) -> None:
        del num_sge
        self.wr_id, self.opcode, self.send_flags, self.next_wr = wr_id, opcode, send_flags, None
        self.sg_list = Element(sg[0].addr, sg[0].length, sg[0].lkey)
        self.target = (0, 0)

    def set_wr_rdma(self, rkey: int, addr: int) -> None:
        self.target = (rkey, addr)

    def close(self) -> None:
        Request.closed += 1


class Pair:
    def __init__(self, ready: list[int]) -> None:
        self.ready, self.moved = ready, []

    def post_send(self, request: Any) -> None:
        chain = []
        while request is not None:
            chain.append((request.sg_list.addr, request.target[1], request.sg_list.length))
            assert (request.send_flags != 0) == (request.next_wr is None), "the last of a chain alone completes"
            last, request = request, request.next_wr
        self.moved += chain
        self.ready.append(last.wr_id)


def transfer(pieces: list[Piece], most_prebuilt: int) -> Any:
    ready: list[int] = []

    def poll() -> list[tuple[int, str]]:
        found = [(chain, "") for chain in ready]
        ready.clear()
        return found

    e = SimpleNamespace(IBV_WR_RDMA_READ="READ", IBV_WR_RDMA_WRITE="WRITE", IBV_SEND_SIGNALED=2)
    device = SimpleNamespace(m={"e": e, "wr": SimpleNamespace(SGE=Element, SendWR=Request)})
    settings = QpSettings(most_prebuilt=most_prebuilt)
    connection = SimpleNamespace(device=device, qps=[Pair(ready), Pair(ready)], depth=8, poll=poll, settings=settings)
    region = SimpleNamespace(address=HERE, local_key=6)
    return PyverbsTransfer(connection, "read", pieces, region, {"address": THERE, "key": 77})


def moved(prepared: Any) -> list[tuple[int, int, int]]:
    for pair in prepared.connection.qps:
        pair.moved.clear()
    prepared.run(5.0)
    return sorted(one for pair in prepared.connection.qps for one in pair.moved)


@pytest.mark.parametrize("prebuilt", [1_000, 10])
@pytest.mark.parametrize("count", [40, 41, 8, 3])
def test_every_piece_moves_once_in_every_run_also_where_requests_are_rewritten(prebuilt, count) -> None:
    # scattered at the far end, and of two sizes, as a model with other layers at its end has them
    pieces = [Piece(64 * n, 64 * (7 * n % count), 64 if n < 25 else 128) for n in range(count)]
    prepared = transfer(pieces, prebuilt)
    wanted = sorted((HERE + p.local, THERE + p.remote, p.size) for p in pieces)
    for _ in range(3):
        assert moved(prepared) == wanted
    assert prepared.reused == (count > prebuilt and count > 8)
    prepared.close()


def test_requests_that_are_kept_are_freed_and_those_that_borrow_are_left() -> None:
    for prebuilt, freed in ((100, 40), (10, 0)):
        Request.closed = 0
        prepared = transfer([Piece(64 * n, 64 * n, 64) for n in range(40)], prebuilt)
        prepared.run(5.0)
        prepared.close()
        assert Request.closed == freed
