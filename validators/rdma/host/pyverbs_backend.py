"""Verbs through rdma-core's own Python binding, as distributions package it (python3-pyverbs).

The binding's enum module was renamed between releases, and some distributions build it for the system Python only:
both are handled here. Its defaults that do not suit RoCE are set on purpose: `sq_sig_all` (1), `hop_limit` (1).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from validators.rdma.host import gids
from validators.rdma.host.backend import (
    BackendMissingError,
    DeviceError,
    OpenSpec,
    QpSettings,
    mtu_code,
    wc_status,
)
from validators.rdma.host.pyverbs_transfer import PyverbsTransfer
from validators.rdma.host.verbs import VerbsConnection, VerbsDevice, VerbsRegion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from validators.rdma.host.backend import Piece
    from validators.rdma.host.memory import Buffer


def _load() -> dict[str, Any]:
    try:
        names = ("device", "pd", "mr", "cq", "qp", "wr", "addr")
        modules: dict[str, Any] = {name: importlib.import_module(f"pyverbs.{name}") for name in names}
        modules["error"] = importlib.import_module("pyverbs.pyverbs_error")
    except ImportError as error:
        raise BackendMissingError(f"pyverbs cannot be imported: {error}") from error
    for name in ("pyverbs.libibverbs_enums", "pyverbs.enums"):
        try:
            modules["e"] = importlib.import_module(name)
        except ImportError:
            continue
        return modules
    raise BackendMissingError("pyverbs has neither libibverbs_enums nor enums: unknown release")


class Backend:
    """pyverbs of rdma-core."""

    name = "pyverbs"

    def open(self, spec: OpenSpec) -> PyverbsDevice:
        """Open the device that carries `spec.address`. Raises BackendMissingError or DeviceError."""
        modules = _load()
        return PyverbsDevice(modules, gids.choose(spec.address, spec.device, spec.gid_type))


class PyverbsDevice(VerbsDevice):
    """One opened device."""

    def __init__(self, modules: dict[str, Any], gid: gids.Gid) -> None:
        self.m = modules
        self.errors = (modules["error"].PyverbsError,)
        try:
            context = modules["device"].Context(name=gid.device)
            super().__init__(gid, context, context.query_device(), context.query_port(gid.port))
        except self.errors as error:
            raise DeviceError(f"{gid.device} cannot be opened: {error}") from error

    def new_domain(self) -> Any:
        """Make a protection domain."""
        return self.m["pd"].PD(self.context)

    def register(self, domain: str, buffer: Buffer, access: str) -> VerbsRegion:
        """Register the whole buffer. `access` is what a peer may do: local (nothing), read or write."""
        e = self.m["e"]
        flags = e.IBV_ACCESS_LOCAL_WRITE
        flags |= {"local": 0, "read": e.IBV_ACCESS_REMOTE_READ, "write": e.IBV_ACCESS_REMOTE_WRITE}[access]
        try:
            mr = self.m["mr"].MR(self.domain(domain), buffer.size, int(flags), address=buffer.address)
        except self.errors as error:
            raise DeviceError(f"{buffer.size} bytes cannot be registered on {self.gid.device}: {error}") from error
        return VerbsRegion(self, mr, buffer.address)

    def connect(
        self, domain: str, qps: int, depth: int, settings: QpSettings, cq_entries: int = 0
    ) -> PyverbsConnection:
        """Make `qps` RC queue pairs of `depth` work requests each."""
        return PyverbsConnection(self, domain, qps, depth, settings, cq_entries)


class PyverbsConnection(VerbsConnection):
    """Queue pairs of pyverbs."""

    device: PyverbsDevice

    def make(self, domain: Any, qps: int) -> list[Any]:
        """Make the completion queue and the queue pairs."""
        m, e = self.device.m, self.device.m["e"]
        cap = m["qp"].QPCap(max_send_wr=self.depth, max_recv_wr=1, max_send_sge=1, max_recv_sge=1)
        self.cq, self.poll = _completion_queue(m, self.device.context, self.cq_entries)
        init = m["qp"].QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=cap, sq_sig_all=0)
        return [m["qp"].QP(domain, init) for _ in range(qps)]

    def connect_one(self, qp: Any, index: int, peer: dict[str, Any], agreed: dict[str, int]) -> None:
        """Bring one queue pair to RTS."""
        m, e, s, gid = self.device.m, self.device.m["e"], self.settings, self.device.gid
        attr = m["qp"].QPAttr(port_num=gid.port)
        attr.qp_access_flags = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_WRITE
        attr.pkey_index = 0
        qp.to_init(attr)
        route = m["addr"].GlobalRoute(
            dgid=m["addr"].GID(peer["gid"]),
            sgid_index=gid.index,
            hop_limit=s.hop_limit,
            traffic_class=s.traffic_class,
        )
        attr.ah_attr = m["addr"].AHAttr(is_global=1, gr=route, port_num=gid.port)
        attr.path_mtu = mtu_code(agreed["mtu"])
        attr.dest_qp_num = peer["qpn"][index]
        attr.rq_psn = peer["psn"][index]
        attr.max_dest_rd_atomic = agreed["max_dest_rd_atomic"]
        attr.min_rnr_timer = s.min_rnr_timer
        qp.to_rtr(attr)
        attr.sq_psn = self.psn[index]
        attr.max_rd_atomic = agreed["max_rd_atomic"]
        attr.timeout, attr.retry_cnt, attr.rnr_retry = s.timeout, s.retry_cnt, s.rnr_retry
        qp.to_rts(attr)

    def in_force(self) -> list[dict[str, Any]]:
        """Settings of each queue pair as the device reports them."""
        e = self.device.m["e"]
        mask = e.IBV_QP_STATE | e.IBV_QP_AV | e.IBV_QP_PATH_MTU | e.IBV_QP_DEST_QPN | e.IBV_QP_TIMEOUT
        mask |= e.IBV_QP_RETRY_CNT | e.IBV_QP_RNR_RETRY | e.IBV_QP_MAX_QP_RD_ATOMIC | e.IBV_QP_MAX_DEST_RD_ATOMIC
        rows = []
        for qp in self.qps:
            attr, _ = qp.query(mask)
            rows.append(
                {
                    "qpn": int(qp.qp_num),
                    "peer_qpn": int(attr.dest_qp_num),
                    "mtu": 128 << int(attr.path_mtu),
                    "traffic_class": int(attr.ah_attr.traffic_class),
                    "hop_limit": int(attr.ah_attr.hop_limit),
                    "gid_index": int(attr.ah_attr.sgid_index),
                    "max_rd_atomic": int(attr.max_rd_atomic),
                    "max_dest_rd_atomic": int(attr.max_dest_rd_atomic),
                    "timeout": int(attr.timeout),
                    "retry_cnt": int(attr.retry_cnt),
                    "rnr_retry": int(attr.rnr_retry),
                }
            )
        return rows

    def prepare(
        self, verb: str, pieces: Sequence[Piece], local: VerbsRegion, remote: dict[str, int]
    ) -> PyverbsTransfer:
        """Build the chains of a transfer."""
        return PyverbsTransfer(self, verb, pieces, local, remote)


def _completion_queue(m: dict[str, Any], context: Any, entries: int) -> tuple[Any, Any]:
    """Return a queue and its poll function: the extended queue where the provider has it, as it costs a tenth."""
    cq = m["cq"]
    try:
        queue = cq.CQEX(context, cq.CqInitAttrEx(cqe=entries))
    except m["error"].PyverbsError:
        plain = cq.CQ(context, entries)
        return plain, _plain_poll(plain)
    return queue, _extended_poll(queue, cq.PollCqAttr())


def _plain_poll(queue: Any) -> Any:
    def poll() -> list[tuple[int, str]]:
        _, completions = queue.poll(64)
        return [(c.wr_id, wc_status(c.status) if c.status else "") for c in completions]

    return poll


def _extended_poll(queue: Any, attributes: Any) -> Any:
    def poll() -> list[tuple[int, str]]:
        if queue.start_poll(attributes):
            return []
        found = []
        while True:
            status = queue.status
            found.append((queue.wr_id, wc_status(status) if status else ""))
            if len(found) >= 256 or queue.poll_next():
                break
        queue.end_poll()
        return found

    return poll
