"""Verbs through rdma-core's own Python binding, as distributions package it (python3-pyverbs).

The binding's enum module was renamed between releases, and some distributions build it for the system Python only:
both are handled here. Its defaults that do not suit RoCE are set on purpose: `sq_sig_all` (1), `hop_limit` (1).
"""

from __future__ import annotations

import ctypes
import importlib
import random
import time
from typing import TYPE_CHECKING, Any

from validators.rdma.host import gids
from validators.rdma.host.backend import (
    BackendMissingError,
    DeviceError,
    OpenSpec,
    Piece,
    QpSettings,
    TransferError,
    wc_status,
)
from validators.rdma.host.pyverbs_transfer import PyverbsTransfer

if TYPE_CHECKING:
    from collections.abc import Sequence

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


class PyverbsDevice:
    """One opened device; protection domains are made when first named."""

    transport = "RoCEv2 through verbs"

    def __init__(self, modules: dict[str, Any], gid: gids.Gid) -> None:
        self.m = modules
        self.gid = gid
        try:
            self.context = modules["device"].Context(name=gid.device)
            self.attributes = self.context.query_device()
            self.port = self.context.query_port(gid.port)
        except modules["error"].PyverbsError as error:
            raise DeviceError(f"{gid.device} cannot be opened: {error}") from error
        self.domains: dict[str, Any] = {}
        self.open: set[Any] = set()

    def describe(self) -> dict[str, Any]:
        """Device, GID, port MTU and limits."""
        a, p = self.attributes, self.port
        return {
            "device": self.gid.device,
            "port": self.gid.port,
            "netdev": self.gid.netdev,
            "gid": self.gid.gid,
            "gid_index": self.gid.index,
            "gid_type": self.gid.kind,
            "active_mtu": 128 << p.active_mtu,
            "max_mtu": 128 << p.max_mtu,
            "port_active": p.state == self.m["e"].IBV_PORT_ACTIVE,
            "firmware": str(a.fw_version),
            "max_qp_rd_atom": a.max_qp_rd_atom,
            "max_qp_init_rd_atom": a.max_qp_init_rd_atom,
            "max_cqe": a.max_cqe,
            "max_qp_wr": a.max_qp_wr,
        }

    def domain(self, name: str) -> Any:
        """Return the protection domain of that name."""
        if name not in self.domains:
            self.domains[name] = self.m["pd"].PD(self.context)
        return self.domains[name]

    def register(self, domain: str, buffer: Buffer, access: str) -> PyverbsRegion:
        """Register the whole buffer. `access` is what a peer may do: local (nothing), read or write."""
        e = self.m["e"]
        flags = e.IBV_ACCESS_LOCAL_WRITE
        flags |= {"local": 0, "read": e.IBV_ACCESS_REMOTE_READ, "write": e.IBV_ACCESS_REMOTE_WRITE}[access]
        address = ctypes.addressof(ctypes.c_char.from_buffer(buffer.map))
        try:
            mr = self.m["mr"].MR(self.domain(domain), buffer.size, int(flags), address=address)
        except self.m["error"].PyverbsError as error:
            raise DeviceError(f"{buffer.size} bytes cannot be registered on {self.gid.device}: {error}") from error
        region = PyverbsRegion(self, mr, address)
        self.open.add(region)
        return region

    def connect(
        self, domain: str, qps: int, depth: int, settings: QpSettings, cq_entries: int = 0
    ) -> PyverbsConnection:
        """Make `qps` RC queue pairs of `depth` work requests each."""
        connection = PyverbsConnection(self, domain, qps, depth, settings, cq_entries)
        self.open.add(connection)
        return connection

    def open_objects(self) -> int:
        """Regions and connections still open."""
        return len(self.open)

    def close(self) -> None:
        """Close connections before regions, then domains and the device."""
        for thing in sorted(self.open, key=lambda t: isinstance(t, PyverbsRegion)):
            thing.close()
        for domain in self.domains.values():
            domain.close()
        self.domains.clear()
        self.context.close()


class PyverbsRegion:
    """A memory region."""

    def __init__(self, device: PyverbsDevice, mr: Any, address: int) -> None:
        self.device, self.mr = device, mr
        self.address = address
        self.key = int(mr.rkey)
        self.local_key = int(mr.lkey)

    def close(self) -> None:
        """Deregister; safe to call twice."""
        self.mr.close()
        self.device.open.discard(self)


class PyverbsConnection:
    """Queue pairs of one domain that share a completion queue."""

    def __init__(
        self, device: PyverbsDevice, domain: str, qps: int, depth: int, settings: QpSettings, cq_entries: int
    ) -> None:
        self.device, self.depth, self.settings = device, depth, settings
        m, e = device.m, device.m["e"]
        # every posted request completes when a queue pair fails, so the queue must hold all of them
        self.cq_entries = min(cq_entries or qps * depth + 16, device.attributes.max_cqe)
        cap = m["qp"].QPCap(max_send_wr=depth, max_recv_wr=1, max_send_sge=1, max_recv_sge=1)
        try:
            self.cq, self.poll = _completion_queue(m, device.context, self.cq_entries)
            init = m["qp"].QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=cap, sq_sig_all=0)
            pd = device.domain(domain)
            self.qps = [m["qp"].QP(pd, init) for _ in range(qps)]
        except m["error"].PyverbsError as error:
            raise DeviceError(f"{qps} queue pairs of depth {depth} cannot be made: {error}") from error
        self.psn = [random.randrange(1 << 24) for _ in self.qps]  # noqa: S311 - a start value, not a secret

    def local_info(self) -> dict[str, Any]:
        """GID, queue pair numbers, start sequence numbers and limits."""
        d = self.device.describe()
        return {
            "gid": d["gid"],
            "qpn": [int(qp.qp_num) for qp in self.qps],
            "psn": self.psn,
            "active_mtu": d["active_mtu"],
            "max_qp_rd_atom": d["max_qp_rd_atom"],
        }

    def establish(self, peer: dict[str, Any]) -> None:
        """Bring every queue pair to RTS. MTU and outstanding reads become what both ends allow."""
        for index, qp in enumerate(self.qps):
            try:
                self._connect_one(qp, index, peer)
            except self.device.m["error"].PyverbsError as error:
                mine = self.device.describe()
                text = f"cannot connect {mine['gid']} (mtu {mine['active_mtu']}, {mine['netdev']})"
                text += f" to {peer['gid']} (mtu {peer['active_mtu']}): {error}"
                raise DeviceError(text) from error

    def _connect_one(self, qp: Any, index: int, peer: dict[str, Any]) -> None:
        m, e, s = self.device.m, self.device.m["e"], self.settings
        mine = self.device.describe()
        attr = m["qp"].QPAttr(port_num=self.device.gid.port)
        attr.qp_access_flags = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_WRITE
        attr.pkey_index = 0
        qp.to_init(attr)
        route = m["addr"].GlobalRoute(
            dgid=m["addr"].GID(peer["gid"]),
            sgid_index=self.device.gid.index,
            hop_limit=s.hop_limit,
            traffic_class=s.traffic_class,
        )
        attr.ah_attr = m["addr"].AHAttr(is_global=1, gr=route, port_num=self.device.gid.port)
        attr.path_mtu = (min(s.mtu, mine["active_mtu"], peer["active_mtu"]) // 128).bit_length() - 1
        attr.dest_qp_num = peer["qpn"][index]
        attr.rq_psn = peer["psn"][index]
        attr.max_dest_rd_atomic = min(s.max_rd_atomic, mine["max_qp_rd_atom"])
        attr.min_rnr_timer = s.min_rnr_timer
        qp.to_rtr(attr)
        attr.sq_psn = self.psn[index]
        attr.max_rd_atomic = min(s.max_rd_atomic, mine["max_qp_init_rd_atom"], peer["max_qp_rd_atom"])
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
        self, verb: str, pieces: Sequence[Piece], local: PyverbsRegion, remote: dict[str, int]
    ) -> PyverbsTransfer:
        """Build the chains of a transfer."""
        return PyverbsTransfer(self, verb, pieces, local, remote)

    def flood(self, verb: str, local: PyverbsRegion, remote: dict[str, int], wait_s: float) -> None:
        """Post a full queue pair of signaled requests and look late: what does not come back was overrun.

        Raises TransferError with `CQ_OVERRUN` when completions are missing, else with the first bad status if any.
        """
        pieces = [Piece(0, 0, 64)] * self.depth
        flooding = PyverbsTransfer(self, verb, pieces, local, remote)
        flooding.signal_all()
        start = time.perf_counter()
        for requests, _ in flooding.built:
            self.qps[0].post_send(requests[0])
        time.sleep(wait_s / 4)
        found: list[tuple[int, str]] = []
        while time.perf_counter() - start < wait_s and len(found) < self.depth:
            found += self.poll()
            time.sleep(0.001)
        flooding.close()
        took = time.perf_counter() - start
        bad = next((status for _, status in found if status), "")
        if len(found) < self.depth:
            text = f"{len(found)} of {self.depth} completions came from a queue of {self.cq_entries} entries asked for"
            raise TransferError("CQ_OVERRUN", f"{text}{', first bad one ' + bad if bad else ''}", took)
        if bad:
            raise TransferError(bad, f"work completion {bad}", took)

    def close(self) -> None:
        """Destroy queue pairs, then the queue; safe to call twice."""
        for qp in self.qps:
            qp.close()
        self.cq.close()
        self.device.open.discard(self)


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
