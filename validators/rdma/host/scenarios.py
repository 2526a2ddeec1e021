"""What must be refused, and what must fail soon: each scenario says what happened and how long it took to see it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from validators.rdma.host import gids
from validators.rdma.host.backend import DENIED, DeviceError, TransferError
from validators.rdma.host.drive import transfer

if TYPE_CHECKING:
    from collections.abc import Callable

    from validators.rdma.host.backend import Prepared
    from validators.rdma.host.drive import Driver

_FLOOD_WAIT_S = 2.0
_CUT_START_S = 1.0
"""What the process that cuts the link needs to start, on a slow machine."""
_GUESSES = (1, -1, 0x100, 0x0100_0000, 0x5A5A_5A00)
"""What a guess adds to a real key: its neighbours, and other values in the index and the variant part."""


def access(driver: Driver) -> dict[str, Any]:
    """Prove that a reader with the right address and a wrong, foreign or revoked key gets nothing.

    First the right key must work, or the refusals prove nothing.
    """
    tries = []
    remote = driver.allocate("blocks")
    driver.fill("blocks")
    tries.append(_try(driver, "right key", "main", remote, allowed=True))
    tries.append(_try(driver, "right key, other tenant's protection domain", "other", remote))
    # a region of a session of its own: its key is good, but not for a reader of this session
    session = driver.allocate("other session", "session 2")
    driver.fill("other session")
    tries.append(_try(driver, "key of another session", "main", session, region="other session"))
    for number, step in enumerate(_GUESSES):
        guess = {**remote, "key": max(1, (remote["key"] + step) % 2**32)}
        tries.append(_try(driver, f"guessed key {number + 1}", "main", guess))
    beyond = {**remote, "address": remote["address"] + _whole_pages(driver.work.total)}
    tries.append(_try(driver, "right key, beyond the region", "main", beyond))
    driver.channel.ask("revoke", region="blocks")
    tries.append(_try(driver, "revoked key", "main", remote))
    return {"tries": tries}


def _try(
    driver: Driver, name: str, domain: str, remote: dict[str, int], *, allowed: bool = False, region: str = "blocks"
) -> dict[str, Any]:
    """Connect anew (a refusal breaks the queue pair) and try once; tell whether any byte came, by WRITE to `region`."""
    if driver.verb == "read":
        driver.buffer.clear()
    else:
        driver.channel.ask("clear", region=region)
    connection = driver.connect(name, domain)
    prepared = driver.prepare(connection, remote)
    outcome: dict[str, Any] = {"name": name, "allowed": allowed, "status": "SUCCESS", "text": "", "detected_s": 0.0}
    try:
        prepared.run(driver.deadline_s)
    except TransferError as error:
        outcome |= {"status": error.status, "text": str(error), "detected_s": error.detected_s}
    outcome["refused"] = outcome["status"] in DENIED
    untouched = (
        driver.buffer.is_clear() if driver.verb == "read" else driver.channel.ask("is_clear", region=region)["clear"]
    )
    outcome["bytes_came"] = not untouched
    prepared.close()
    connection.close()
    driver.channel.ask("disconnect", name=name)
    return outcome


def stale(driver: Driver) -> dict[str, Any]:
    """Let the owner serve old blocks, blocks of another precision and of another session; each must be seen."""
    remote = driver.allocate("blocks")
    connection = driver.connect("main", "main")
    prepared = driver.prepare(connection, remote)
    cases = {
        "current": {},
        "stale generation": {"generation": driver.identity["generation"] - 1},
        "wrong name space": {"precision": "fp8" if driver.identity["precision"] != "fp8" else "fp16"},
        "wrong block": {"content": "", "session": "somebody else's"},
    }
    found = {}
    for name, changes in cases.items():
        driver.fill("blocks", **changes)
        prepared.run(driver.deadline_s)
        found[name] = driver.check("blocks")
    prepared.close()
    connection.close()
    return {"cases": found}


def peer_dies(driver: Driver) -> dict[str, Any]:
    """Kill the peer's process in the middle of transfers; report when and how it was seen."""
    delay = float(driver.request.get("after_s", 0.5))
    return _until_failure(driver, lambda: driver.channel.ask("die", after_s=delay), delay)


def link_lost(driver: Driver) -> dict[str, Any]:
    """Take the peer's link down in the middle of transfers, longer than the detection time; it comes back by itself."""
    delay = float(driver.request.get("after_s", 0.5))
    lasting = driver.settings.detection_s + 2.0
    outcome = _until_failure(
        driver, lambda: driver.channel.ask("cut", after_s=delay, lasting_s=lasting), delay, _CUT_START_S
    )
    left = delay + lasting - outcome["seen_after_s"]
    time.sleep(max(0.0, min(left, lasting)) + 1.0)
    return outcome


def _until_failure(driver: Driver, begin: Callable[[], Any], delay: float, allowance_s: float = 0.0) -> dict[str, Any]:
    remote = driver.allocate("blocks")
    connection = driver.connect("main", "main")
    prepared = driver.prepare(connection, remote)
    driver.fill("blocks")
    stated = driver.settings.detection_s + allowance_s
    begin()
    start = time.perf_counter()
    outcome: dict[str, Any] = {"failed": False, "status": "SUCCESS", "text": "nothing failed", "stated_s": stated}
    rounds = _run_until(prepared, start + delay + stated + 2.0, stated + 2.0, outcome)
    outcome |= {"transfers": rounds, "seen_after_s": time.perf_counter() - start}
    outcome["detection_s"] = max(0.0, outcome["seen_after_s"] - delay)
    prepared.close()
    connection.close()
    return outcome


def _run_until(prepared: Prepared, end: float, deadline_s: float, outcome: dict[str, Any]) -> int:
    rounds = 0
    while time.perf_counter() < end:
        try:
            prepared.run(deadline_s)
        except TransferError as error:
            outcome |= {"failed": True, "status": error.status, "text": str(error)}
            break
        rounds += 1
    return rounds


def wrong_gid(driver: Driver) -> dict[str, Any]:
    """Connect to a GID that nobody has; it must fail with both GIDs named, at connect or at the first transfer."""
    nobody = gids.gid_of(driver.request["nobody_gid"])
    mine = driver.device.describe()["gid"]
    remote = driver.allocate("blocks")
    start = time.perf_counter()
    outcome: dict[str, Any] = {"failed": False, "status": "SUCCESS", "text": "nothing failed", "stage": "none"}
    try:
        connection = driver.connect("main", "main", far_gid=nobody)
        prepared = driver.prepare(connection, remote)
        try:
            prepared.run(driver.settings.detection_s + 2.0)
        finally:
            prepared.close()
            connection.close()
    except DeviceError as error:
        outcome |= {"failed": True, "status": "connect", "text": str(error), "stage": "connect"}
    except TransferError as error:
        text = f"{error} (from {mine} to {nobody})"
        outcome |= {"failed": True, "status": error.status, "text": text, "stage": "transfer"}
    took = time.perf_counter() - start
    # resolving an address that nobody answers for takes the kernel some seconds before any packet can be sent
    return {**outcome, "detection_s": took, "stated_s": driver.settings.detection_s + 10.0}


def overrun(driver: Driver) -> dict[str, Any]:
    """Ask for a completion queue smaller than what is posted; it must be seen, not hang.

    The engine sizes its queue for every request it can have outstanding, so this undoes that on purpose.
    """
    remote = driver.allocate("blocks")
    asked = 4
    connection = driver.connect("main", "main", cq_entries=asked)
    flood = getattr(connection, "flood", None)
    start = time.perf_counter()
    outcome: dict[str, Any] = {"failed": False, "status": "SUCCESS", "text": "nothing failed", "asked_entries": asked}
    if flood is None:
        outcome |= {"status": "not applicable", "text": "this back-end has no completion queue"}
    else:
        try:
            flood(driver.verb, driver.region, remote, _FLOOD_WAIT_S)
        except TransferError as error:
            outcome |= {"failed": True, "status": error.status, "text": str(error)}
    connection.close()
    return {**outcome, "detection_s": time.perf_counter() - start, "stated_s": _FLOOD_WAIT_S + 2.0}


def _whole_pages(size: int) -> int:
    return -(-size // 4096) * 4096


SCENARIOS: dict[str, Callable[[Driver], dict[str, Any]]] = {
    "transfer": transfer,
    "access": access,
    "stale": stale,
    "peer-dies": peer_dies,
    "link-lost": link_lost,
    "wrong-gid": wrong_gid,
    "overrun": overrun,
}
