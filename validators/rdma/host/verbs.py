"""What every binding of verbs has in common: limits, connecting to a peer, windows of chains, and a flooded queue."""

from __future__ import annotations

import random
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from validators.rdma.host.backend import DeviceError, Piece, QpSettings, TransferError
from validators.rdma.host.chains import chain_length, chain_slices, run_window
from validators.rdma.host.tracked import TrackedDevice

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from validators.rdma.host import gids
    from validators.rdma.host.backend import Times

_ALIVE_STATE = 4
"""IBV_PORT_ACTIVE."""


class VerbsDevice(TrackedDevice, ABC):
    """A device opened by a binding; protection domains are made when first named."""

    transport = "RoCEv2 through verbs"
    # exceptions of the binding
    errors: tuple[type[Exception], ...]

    def __init__(self, gid: gids.Gid, context: Any, attributes: Any, port: Any) -> None:
        super().__init__()
        self.gid, self.context, self.attributes, self.port = gid, context, attributes, port
        self.domains: dict[str, Any] = {}

    @abstractmethod
    def new_domain(self) -> Any:
        """Make a protection domain."""

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
            "port_active": p.state == _ALIVE_STATE,
            "max_qp_rd_atom": a.max_qp_rd_atom,
            # a binding that does not say how many it may start is taken at how many it may serve
            "max_qp_init_rd_atom": getattr(a, "max_qp_init_rd_atom", a.max_qp_rd_atom),
            "max_cqe": a.max_cqe,
            "max_qp_wr": a.max_qp_wr,
        }

    def domain(self, name: str) -> Any:
        """Return the protection domain of that name."""
        if name not in self.domains:
            self.domains[name] = self.new_domain()
        return self.domains[name]

    def close(self) -> None:
        """Close what is open, then domains and the device."""
        super().close()
        for domain in self.domains.values():
            domain.close()
        self.domains.clear()
        self.context.close()


class VerbsRegion:
    """A memory region of a binding's `mr`."""

    def __init__(self, device: VerbsDevice, mr: Any, address: int) -> None:
        self.device, self.mr, self.address = device, mr, address
        self.key, self.local_key = int(mr.rkey), int(mr.lkey)
        device.regions_open.add(self)

    def close(self) -> None:
        """Deregister; safe to call twice."""
        self.mr.close()
        self.device.regions_open.discard(self)


class VerbsConnection(ABC):
    """Queue pairs of one domain that share a completion queue; a binding makes them and brings them up."""

    cq: Any

    def __init__(
        self, device: VerbsDevice, domain: str, qps: int, depth: int, settings: QpSettings, cq_entries: int
    ) -> None:
        self.device, self.depth, self.settings = device, depth, settings
        # every posted request completes when a queue pair fails, so the queue must hold all of them
        self.cq_entries = min(cq_entries or qps * depth + 16, device.attributes.max_cqe)
        self.poll: Callable[[], Sequence[tuple[int, str]]]
        try:
            self.qps: list[Any] = self.make(device.domain(domain), qps)
        except device.errors as error:
            raise DeviceError(f"{qps} queue pairs of depth {depth} cannot be made: {error}") from error
        self.psn = [random.randrange(1 << 24) for _ in self.qps]  # noqa: S311 - a start value, not a secret
        device.connections_open.add(self)

    @abstractmethod
    def make(self, domain: Any, qps: int) -> list[Any]:
        """Make the completion queue (set `cq` and `poll`) and the queue pairs."""

    @abstractmethod
    def connect_one(self, qp: Any, index: int, peer: dict[str, Any], agreed: dict[str, int]) -> None:
        """Bring one queue pair to RTS; `agreed` has mtu, max_rd_atomic and max_dest_rd_atomic."""

    @abstractmethod
    def in_force(self) -> list[dict[str, Any]]:
        """Settings of each queue pair as the device reports them; what a binding cannot read back is left out."""

    @abstractmethod
    def prepare(self, verb: str, pieces: Sequence[Piece], local: VerbsRegion, remote: dict[str, int]) -> VerbsTransfer:
        """Build the chains of a transfer."""

    def local_info(self) -> dict[str, Any]:
        """GID, queue pair numbers, start sequence numbers and limits."""
        d = self.device.describe()
        limits = {name: d[name] for name in ("gid", "active_mtu", "max_qp_rd_atom")}
        return {**limits, "qpn": [int(qp.qp_num) for qp in self.qps], "psn": self.psn}

    def establish(self, peer: dict[str, Any]) -> None:
        """Bring every queue pair to RTS. MTU and outstanding reads become what both ends allow. Raises DeviceError."""
        mine, asked = self.device.describe(), self.settings
        agreed = {
            "mtu": min(asked.mtu, mine["active_mtu"], peer["active_mtu"]),
            "max_dest_rd_atomic": min(asked.max_rd_atomic, mine["max_qp_rd_atom"]),
            "max_rd_atomic": min(asked.max_rd_atomic, mine["max_qp_init_rd_atom"], peer["max_qp_rd_atom"]),
        }
        for index, qp in enumerate(self.qps):
            try:
                self.connect_one(qp, index, peer, agreed)
            except self.device.errors as error:
                text = f"cannot connect {mine['gid']} (mtu {mine['active_mtu']}, {mine['netdev']})"
                text += f" to {peer['gid']} (mtu {peer['active_mtu']}): {error}"
                raise DeviceError(text) from error

    def flood(self, verb: str, local: VerbsRegion, remote: dict[str, int], wait_s: float) -> None:
        """Post a full queue pair of signaled requests and look late: what does not come back was overrun.

        Raises TransferError with `CQ_OVERRUN` when completions are missing, else with the first bad status if any.
        """
        flooding = self.prepare(verb, [Piece(0, 0, 64)] * self.depth, local, remote)
        start = time.perf_counter()
        flooding.post_each_signaled()
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
        self.device.connections_open.discard(self)


class VerbsTransfer(ABC):
    """Chains of work requests in windows; a binding builds and posts them. Long transfers reuse a ring of chains."""

    def __init__(
        self, connection: Any, verb: str, pieces: Sequence[Piece], local: VerbsRegion, remote: dict[str, int]
    ) -> None:
        self.connection, self.verb, self.pieces, self.local, self.remote = connection, verb, pieces, local, remote
        self.length = chain_length(len(pieces), len(connection.qps), connection.depth)
        self.slices = chain_slices(len(pieces), self.length)
        self.stride = len(connection.qps) * max(1, connection.depth // self.length)
        fits = len(pieces) <= connection.settings.most_prebuilt
        self.ring = len(self.slices) if fits else min(self.stride, len(self.slices))
        self.reused = self.ring < len(self.slices)

    @abstractmethod
    def poster(self) -> Callable[[int], None]:
        """Return a function that posts a chain on its queue pair; called once per run."""

    @abstractmethod
    def post_each_signaled(self) -> None:
        """Post every request by itself on the first queue pair, each asking for a completion."""

    def run(self, deadline_s: float, time_posts: bool = False) -> Times:
        """Post and wait. Raises TransferError."""
        poll, post = self.connection.poll, self.poster()
        return run_window(len(self.slices), self.stride, post, poll, deadline_s, time_posts)

    @abstractmethod
    def close(self) -> None:
        """Free every work request."""
