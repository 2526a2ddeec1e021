"""Back-ends by name, and which one a host gets when it may choose."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, cast

from validators.rdma.host.backend import BackendMissingError, DeviceError

if TYPE_CHECKING:
    from validators.rdma.host.backend import Backend, Device, OpenSpec

NAMES = ("pyverbs", "ibverbs", "tcp", "fake")
_REAL = ("pyverbs", "ibverbs")


def open_device(name: str, spec: OpenSpec) -> tuple[str, Device]:
    """Open a device with the named back-end, or with the first real one for `auto`: never TCP without being asked.

    Raises BackendMissingError with the reason of every one tried, or DeviceError.
    """
    if name != "auto":
        return name, _load(name).open(spec)
    reasons = []
    for candidate in _REAL:
        try:
            return candidate, _load(candidate).open(spec)
        except BackendMissingError as error:
            reasons.append(f"{candidate}: {error}")
    fix = "install pyverbs of rdma-core there (Debian: python3-pyverbs); --backend tcp runs the same without RDMA"
    raise BackendMissingError("; ".join([*reasons, fix]))


def _load(name: str) -> Backend:
    if name not in NAMES:
        raise DeviceError(f"no back-end {name}; there are {', '.join(NAMES)}")
    module = importlib.import_module(f"validators.rdma.host.{name}_backend")
    return cast("Backend", module.Backend())
