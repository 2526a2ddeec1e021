"""Entry point on a probe host: a request as JSON on standard input, a row as JSON on standard output.

The work is done in a child process. If it hangs inside a driver (no binding can be interrupted there) the parent kills
it at the deadline and says so; the kernel then frees everything the child had registered.
"""

from __future__ import annotations

import json
import os
import select
import signal
import sys
import time
from typing import Any

from validators.rdma.host.backend import BackendMissingError, DeviceError, TransferError
from validators.rdma.host.channel import ChannelError
from validators.rdma.host.meeting import leave


def run(request: dict[str, Any]) -> dict[str, Any]:
    """Do what a request asks; failures become an `error` with a kind: missing, device, transfer or peer."""
    try:
        return _role(request)
    except BackendMissingError as error:
        return _error("missing", str(error))
    except DeviceError as error:
        return _error("device", str(error))
    except TransferError as error:
        return {**_error("transfer", str(error)), "status": error.status, "detected_s": error.detected_s}
    except ChannelError as error:
        return _error("peer", str(error))


def _role(request: dict[str, Any]) -> dict[str, Any]:
    """Load the end that is asked for and no more: what comes in a zip is compiled anew in every process."""
    if request["role"] == "serve":
        from validators.rdma.host.serve import serve

        return serve(request)
    from validators.rdma.host.drive import drive
    from validators.rdma.host.scenarios import SCENARIOS

    return drive(request, SCENARIOS)


def supervised(request: dict[str, Any]) -> dict[str, Any]:
    """Run a request in a child and return its row, or an error of kind `hung` or `died`."""
    deadline_s = float(request.get("deadline_s", 120.0))
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(json.dumps(run(request)).encode())
        os._exit(0)
    os.close(writing)
    data, hung = _collect(reading, time.monotonic() + deadline_s)
    if hung:
        os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    if hung:
        return _error("hung", f"not done within {deadline_s:g} s; the process was killed, the kernel freed its memory")
    if not data:
        how = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"
        return {**_error("died", f"the probe process ended by {how}"), "signal": os.WTERMSIG(status)}
    row: dict[str, Any] = json.loads(data)
    return row


def _collect(reading: int, end: float) -> tuple[bytes, bool]:
    parts: list[bytes] = []
    while True:
        ready, _, _ = select.select([reading], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            return b"".join(parts), True
        part = os.read(reading, 1 << 16)
        if not part:
            return b"".join(parts), False
        parts.append(part)


def _error(kind: str, text: str) -> dict[str, Any]:
    return {"error": {"kind": kind, "text": text}}


def main() -> None:
    """Read one request, write one row."""
    request = json.loads(sys.stdin.buffer.read())
    try:
        row = supervised(request)
    finally:
        leave(request.get("meeting", ""))
    sys.stdout.write(json.dumps(row) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
