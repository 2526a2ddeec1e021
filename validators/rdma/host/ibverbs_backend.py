"""Verbs through the PyPI package `ibverbs` (BSD-3, one abi3 wheel for every CPython from 3.9, finds libibverbs itself).

It releases the interpreter while it posts and polls. It does not read back the address vector of a queue pair, so that
the traffic class in force is only proved by counters on the way.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from validators.rdma.host import gids
from validators.rdma.host.backend import BackendMissingError, DeviceError, OpenSpec, QpSettings, mtu_code, wc_status
from validators.rdma.host.verbs import VerbsConnection, VerbsDevice, VerbsRegion, VerbsTransfer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from validators.rdma.host.backend import Piece
    from validators.rdma.host.memory import Buffer

_POLLED = 64


class Backend:
    """The package `ibverbs`."""

    name = "ibverbs"

    def open(self, spec: OpenSpec) -> IbverbsDevice:
        """Open the device that carries `spec.address`. Raises BackendMissingError or DeviceError."""
        try:
            module = importlib.import_module("ibverbs")
        except ImportError as error:
            raise BackendMissingError(f"ibverbs cannot be imported: {error}") from error
        return IbverbsDevice(module, gids.choose(spec.address, spec.device, spec.gid_type))


class IbverbsDevice(VerbsDevice):
    """One opened device."""

    def __init__(self, module: Any, gid: gids.Gid) -> None:
        self.m = module
        # the package checks arguments itself before it calls the library
        self.errors = (module.VerbsError, ValueError)
        found = [device for device in module.get_device_list() if device.name == gid.device]
        if not found:
            raise DeviceError(f"{gid.device} is not among the devices of libibverbs: is its provider installed?")
        try:
            context = found[0].open()
            super().__init__(gid, context, context.query_device(), context.query_port(gid.port))
        except self.errors as error:
            raise DeviceError(f"{gid.device} cannot be opened: {error}") from error

    def new_domain(self) -> Any:
        """Make a protection domain."""
        return self.context.alloc_pd()

    def register(self, domain: str, buffer: Buffer, access: str) -> VerbsRegion:
        """Register the whole buffer. `access` is what a peer may do: local (nothing), read or write."""
        flags = self.m.AccessFlags
        allowed = {"local": 0, "read": flags.REMOTE_READ, "write": flags.REMOTE_WRITE}[access]
        try:
            mr = self.domain(domain).reg_mr(buffer.address, buffer.size, int(flags.LOCAL_WRITE | allowed))
        except self.errors as error:
            raise DeviceError(f"{buffer.size} bytes cannot be registered on {self.gid.device}: {error}") from error
        return VerbsRegion(self, mr, buffer.address)

    def connect(
        self, domain: str, qps: int, depth: int, settings: QpSettings, cq_entries: int = 0
    ) -> IbverbsConnection:
        """Make `qps` RC queue pairs of `depth` work requests each."""
        return IbverbsConnection(self, domain, qps, depth, settings, cq_entries)


class IbverbsConnection(VerbsConnection):
    """Queue pairs of the package."""

    device: IbverbsDevice

    def make(self, domain: Any, qps: int) -> list[Any]:
        """Make the completion queue and the queue pairs."""
        m = self.device.m
        self.cq = self.device.context.create_cq(self.cq_entries)
        self.poll = _poll(self.cq)
        init = m.QPInitAttr(self.cq, self.cq, qp_type=m.QPType.RC, max_send_wr=self.depth, max_recv_wr=1)
        return [domain.create_qp(init) for _ in range(qps)]

    def connect_one(self, qp: Any, index: int, peer: dict[str, Any], agreed: dict[str, int]) -> None:
        """Bring one queue pair to RTS."""
        m, s, gid = self.device.m, self.settings, self.device.gid
        access = m.AccessFlags.LOCAL_WRITE | m.AccessFlags.REMOTE_READ | m.AccessFlags.REMOTE_WRITE
        qp.to_init(gid.port, int(access))
        mtu = mtu_code(agreed["mtu"])
        remote = m.QPInfo(peer["qpn"][index], peer["psn"][index], 0, gids.packed(peer["gid"]), gid.port, mtu)
        qp.to_rtr(
            remote, gid.index, mtu=mtu, hop_limit=s.hop_limit, min_rnr_timer=s.min_rnr_timer,
            max_dest_rd_atomic=agreed["max_dest_rd_atomic"], traffic_class=s.traffic_class,
        )  # fmt: skip
        qp.to_rts(self.psn[index], s.timeout, s.retry_cnt, s.rnr_retry, agreed["max_rd_atomic"])

    def in_force(self) -> list[dict[str, Any]]:
        """Settings as the device reports them, without the address vector."""
        rows = []
        for qp in self.qps:
            found, _ = qp.query()
            row = {name: int(found[name]) for name in _READ_BACK}
            rows.append({"qpn": int(qp.qp_num), **row, "mtu": 128 << int(found["path_mtu"])})
        return rows

    def prepare(
        self, verb: str, pieces: Sequence[Piece], local: VerbsRegion, remote: dict[str, int]
    ) -> IbverbsTransfer:
        """Build the chains of a transfer."""
        return IbverbsTransfer(self, verb, pieces, local, remote)


_READ_BACK = ("max_rd_atomic", "max_dest_rd_atomic", "timeout", "retry_cnt", "rnr_retry")


class IbverbsTransfer(VerbsTransfer):
    """Lists of work requests, one per chain; those of a long transfer are built when they are posted."""

    def __init__(
        self,
        connection: IbverbsConnection,
        verb: str,
        pieces: Sequence[Piece],
        local: VerbsRegion,
        remote: dict[str, int],
    ) -> None:
        super().__init__(connection, verb, pieces, local, remote)
        m = connection.device.m
        self.new_sge, self.new_wr = m.SGE, m.SendWR
        self.opcode = int({"read": m.WROpcode.RDMA_READ, "write": m.WROpcode.RDMA_WRITE}[verb])
        self.signaled = int(m.SendFlags.SIGNALED)
        self.built = [] if self.reused else [self._build(chain) for chain in range(len(self.slices))]

    def _build(self, chain: int) -> list[Any]:
        first, end = self.slices[chain]
        here, key, there = self.local.address, self.remote["key"], self.remote["address"]
        return [
            self.new_wr(
                chain, [self.new_sge(here + piece.local, piece.size, self.local.local_key)], self.opcode,
                self.signaled if index == end - 1 else 0, there + piece.remote, key,
            )
            for index, piece in enumerate(self.pieces[first:end], start=first)
        ]  # fmt: skip

    def poster(self) -> Callable[[int], None]:
        """Return a function that posts a chain in one call."""
        qps, count, built = self.connection.qps, len(self.connection.qps), self.built
        if self.reused:
            return lambda chain: qps[chain % count].post_send(self._build(chain))
        return lambda chain: qps[chain % count].post_send(built[chain])

    def post_each_signaled(self) -> None:
        """Post every request by itself."""
        for requests in self.built:
            for request in requests:
                request.send_flags = self.signaled
                self.connection.qps[0].post_send(request)

    def close(self) -> None:
        """Let go of the requests; the package frees them."""
        self.built = []


def _poll(queue: Any) -> Callable[[], list[tuple[int, str]]]:
    def poll() -> list[tuple[int, str]]:
        return [(c.wr_id, wc_status(c.status) if c.status else "") for c in queue.poll(_POLLED)]

    return poll
