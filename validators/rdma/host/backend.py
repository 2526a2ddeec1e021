"""The small interface under the probe: a device, registered memory, a connection, and a prepared transfer.

A back-end is one module with a `Backend` class. What it moves bytes with is its `transport`, which is printed in every
result, so that TCP or a copy in memory is never mistaken for RDMA.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from validators.rdma.host.memory import Buffer


class BackendMissingError(Exception):
    """This back-end cannot be used here: the binding, the library or a device is not there."""


class DeviceError(Exception):
    """A device, an address or a setting is not as asked for; the text says what was found instead."""


class TransferError(Exception):
    """A transfer ended badly. `status` is a work completion status name, or `deadline` when nothing came back."""

    def __init__(self, status: str, text: str, detected_s: float = 0.0) -> None:
        self.status = status
        self.detected_s = detected_s
        super().__init__(text)


# ibv_wc_status in the order of its values (man ibv_poll_cq)
WC_STATUS = (
    "SUCCESS", "LOC_LEN_ERR", "LOC_QP_OP_ERR", "LOC_EEC_OP_ERR", "LOC_PROT_ERR", "WR_FLUSH_ERR", "MW_BIND_ERR",
    "BAD_RESP_ERR", "LOC_ACCESS_ERR", "REM_INV_REQ_ERR", "REM_ACCESS_ERR", "REM_OP_ERR", "RETRY_EXC_ERR",
    "RNR_RETRY_EXC_ERR", "LOC_RDD_VIOL_ERR", "REM_INV_RD_REQ_ERR", "REM_ABORT_ERR", "INV_EECN_ERR",
    "INV_EEC_STATE_ERR", "FATAL_ERR", "RESP_TIMEOUT_ERR", "GENERAL_ERR", "TM_ERR", "TM_RNDV_INCOMPLETE",
)  # fmt: skip
DENIED = frozenset({"REM_ACCESS_ERR", "REM_INV_REQ_ERR", "REM_OP_ERR", "LOC_PROT_ERR"})
"""Statuses that mean the other side refused the access."""


def wc_status(code: int) -> str:
    """Name of a work completion status."""
    return WC_STATUS[code] if 0 <= code < len(WC_STATUS) else f"status {code}"


def mtu_code(mtu: int) -> int:
    """Value of ibv_mtu for an MTU in bytes: 256 is 1, 4096 is 5."""
    return (mtu // 128).bit_length() - 1


@dataclass(frozen=True)
class QpSettings:
    """What a queue pair is asked to use. MTU in bytes; `timeout` is the exponent of 4.096 us x 2^timeout.

    `retry_cnt` 7 means for ever on Soft-RoCE, so that a dead peer is never seen there: the default is 6.
    Work requests of up to `most_prebuilt` pieces are kept built; those of a longer transfer are rewritten as it runs.
    `traffic_class` is DSCP x 4 + ECN bits. A device may allow fewer outstanding reads or a smaller MTU; what is in
    force is read back and compared.
    """

    mtu: int = 4096
    traffic_class: int = 0
    hop_limit: int = 64
    max_rd_atomic: int = 16
    timeout: int = 14
    retry_cnt: int = 6
    rnr_retry: int = 7
    min_rnr_timer: int = 12
    most_prebuilt: int = 65_536

    @property
    def detection_s(self) -> float:
        """Longest time a dead path needs to surface, in s: each try may take up to four timeouts (IBTA 9.7.6.1.3)."""
        return 4.096e-6 * float(1 << self.timeout) * 4 * (self.retry_cnt + 1)


@dataclass(frozen=True)
class OpenSpec:
    """Which device to open. `address` chooses the GID; `device` may be empty when the address decides it."""

    address: str
    device: str = ""
    port: int = 1
    gid_type: str = "RoCE v2"


@dataclass(frozen=True)
class Piece:
    """One work request: `size` bytes between a local and a remote offset, both in bytes from their region's start."""

    local: int
    remote: int
    size: int


@dataclass
class Times:
    """One transfer: descriptor rewriting, time inside post calls, first post to last completion; seconds."""

    rewriting_s: float = 0.0
    posting_s: float = 0.0
    completion_s: float = 0.0
    posts: int = 0
    completions: int = field(default=0)


class Region(Protocol):
    """Registered memory. `address` and `key` are what a peer needs to reach it."""

    address: int
    key: int

    def close(self) -> None:
        """Deregister: from then on `key` opens nothing."""


class Prepared(Protocol):
    """A transfer whose descriptors are built; run as often as wanted."""

    def run(self, deadline_s: float, time_posts: bool = False) -> Times:
        """Post everything, wait for everything. Raises TransferError at the first bad completion or the deadline.

        The time inside posts is only taken with `time_posts`, as taking it disturbs the other times.
        """

    def close(self) -> None:
        """Free the descriptors."""


class Connection(Protocol):
    """Queue pairs to one peer."""

    def local_info(self) -> dict[str, Any]:
        """What the peer needs, JSON-ready."""

    def establish(self, peer: dict[str, Any]) -> None:
        """Connect to the peer described by its `local_info`. Raises DeviceError with both ends' settings."""

    def in_force(self) -> list[dict[str, Any]]:
        """Settings of each queue pair read back from the device."""

    def prepare(self, verb: str, pieces: Sequence[Piece], local: Region, remote: dict[str, int]) -> Prepared:
        """Build descriptors for `read` or `write`; `remote` has `address` and `key`."""

    def close(self) -> None:
        """Destroy the queue pairs."""


class Device(Protocol):
    """An opened device with any number of protection domains, named by a word."""

    transport: str

    def describe(self) -> dict[str, Any]:
        """Device, netdev, GID, link MTU and limits, JSON-ready."""

    def register(self, domain: str, buffer: Buffer, access: str) -> Region:
        """Register memory in a domain; `access` is `local`, `read` or `write` (what a peer may do)."""

    def connect(self, domain: str, qps: int, depth: int, settings: QpSettings, cq_entries: int = 0) -> Connection:
        """Make queue pairs in a domain. `cq_entries` 0 sizes the completion queue so that it cannot overrun."""

    def open_objects(self) -> int:
        """How many regions and connections are open: 0 means nothing is left registered."""

    def close(self) -> None:
        """Free everything."""


class Backend(Protocol):
    """A way to move bytes."""

    name: str

    def open(self, spec: OpenSpec) -> Device:
        """Open a device. Raises BackendMissingError or DeviceError."""
