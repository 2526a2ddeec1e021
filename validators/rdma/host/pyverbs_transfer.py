"""The work requests of one transfer for pyverbs: built once and linked; long transfers rewrite a ring of them."""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from validators.rdma.host.verbs import VerbsTransfer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from validators.rdma.host.backend import Piece
    from validators.rdma.host.pyverbs_backend import PyverbsConnection
    from validators.rdma.host.verbs import VerbsRegion


@dataclass(slots=True)
class Chain:
    """Linked work requests, their memory elements, and for rewriting: their bound setters and sizes in bytes."""

    requests: list[Any]
    elements: list[Any]
    aim: list[Callable[[int, int], None]]
    sizes: array[int]


class PyverbsTransfer(VerbsTransfer):
    """Linked chains of work requests; long transfers rewrite a ring of them."""

    def __init__(
        self,
        connection: PyverbsConnection,
        verb: str,
        pieces: Sequence[Piece],
        local: VerbsRegion,
        remote: dict[str, int],
    ) -> None:
        super().__init__(connection, verb, pieces, local, remote)
        m, e = connection.device.m, connection.device.m["e"]
        self.opcode = {"read": e.IBV_WR_RDMA_READ, "write": e.IBV_WR_RDMA_WRITE}[verb]
        self.signaled = int(e.IBV_SEND_SIGNALED)
        self.new_sge, self.new_wr = m["wr"].SGE, m["wr"].SendWR
        self.near, self.far, self.sizes = array("Q"), array("Q"), array("I")
        if self.reused:
            self._flatten()
        self.built = [self._build(chain) for chain in range(self.ring)]
        self.fresh = True

    def _flatten(self) -> None:
        """Work out every address once: rewriting a request then costs two calls of the binding and no arithmetic."""
        here, there = self.local.address, self.remote["address"]
        self.near = array("Q", [here + piece.local for piece in self.pieces])
        self.far = array("Q", [there + piece.remote for piece in self.pieces])
        self.sizes = array("I", [piece.size for piece in self.pieces])

    def _build(self, chain: int) -> Chain:
        first, end = self.slices[chain]
        requests: list[Any] = []
        elements: list[Any] = []
        following = None
        for index in range(end - 1, first - 1, -1):
            piece = self.pieces[index]
            sge = self.new_sge(self.local.address + piece.local, piece.size, self.local.local_key)
            last = index == end - 1
            flags = self.signaled if last else 0
            request = self.new_wr(wr_id=chain, opcode=self.opcode, num_sge=1, sg=[sge], send_flags=flags)
            request.set_wr_rdma(self.remote["key"], self.remote["address"] + piece.remote)
            if self.reused:
                request.sg_list = sge  # the request then reads the element's own memory, which can be rewritten
            if following is not None:
                request.next_wr = following
            following = request
            requests.append(request)
            elements.append(sge)
        requests.reverse()
        elements.reverse()
        aim = [request.set_wr_rdma for request in requests] if self.reused else []
        return Chain(requests, elements, aim, self.sizes[first:end])

    def post_each_signaled(self) -> None:
        """Post the first request of each chain by itself: a flood has chains of one."""
        for chain in self.built:
            for request in chain.requests:
                request.send_flags = self.signaled
            self.connection.qps[0].post_send(chain.requests[0])

    def poster(self) -> Callable[[int], None]:
        """Return a function that posts the head of a chain; the chain hangs on it."""
        qps, count = self.connection.qps, len(self.connection.qps)
        if not self.reused:
            heads = [chain.requests[0] for chain in self.built]

            def post(chain: int) -> None:
                qps[chain % count].post_send(heads[chain])
        else:
            self._restart_ring()

            def post(chain: int) -> None:
                if chain >= self.ring:
                    self.built[chain % self.ring] = self._rebuilt(chain)
                qps[chain % count].post_send(self.built[chain % self.ring].requests[0])

        return post

    def _restart_ring(self) -> None:
        if not self.fresh:
            for chain in range(self.ring):
                self.built[chain] = self._rebuilt(chain)
        self.fresh = False

    def _rebuilt(self, chain: int) -> Chain:
        """Point a finished chain's requests at other pieces; its objects, links and flags stay."""
        first, end = self.slices[chain]
        slot = self.built[chain % self.ring]
        if end - first != len(slot.requests):
            self._free(slot)
            return self._build(chain)
        key = self.remote["key"]
        # a piece costs what these two lines cost: no attribute is looked up here that could be looked up before
        for aim, element, near, far in zip(
            slot.aim, slot.elements, self.near[first:end], self.far[first:end], strict=True
        ):
            element.addr = near
            aim(key, far)
        sizes = self.sizes[first:end]
        if sizes != slot.sizes:
            for element, size in zip(slot.elements, sizes, strict=True):
                element.length = size
            slot.sizes = sizes
        slot.requests[-1].wr_id = chain
        return slot

    def _free(self, slot: Chain) -> None:
        slot.aim = []  # bound methods would keep the requests alive
        # the binding frees these only when closed, and a request frees its element list: not one that it borrowed
        if not self.reused:
            for request in slot.requests:
                request.close()

    def close(self) -> None:
        """Free every work request."""
        for slot in self.built:
            self._free(slot)
        self.built = []
