"""Rows of a probe become results: what was promised, what was measured, and each reason for a failure by its own name.

Acceptance values are ours or the operator's, never a draft's: those forbid their numbers to be used as pass or fail.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fabric.kv.link import payload_gbps
from validators.results import Measurement, Result, State, combine

if TYPE_CHECKING:
    from fabric.plan import Plan
    from validators.rdma.endpoints import Wanted
    from validators.rdma.launch import Row

_TOOL = "kvfabric probe rdma"
_COMPARED = ("mtu", "traffic_class", "dscp", "hop_limit", "max_rd_atomic", "timeout", "retry_cnt")
_VERBS = frozenset({"pyverbs", "ibverbs"})
RETRANSMISSIONS = (
    "hw.local_ack_timeout_err", "hw.packet_seq_err", "hw.out_of_sequence", "hw.implied_nak_seq_err",
    "hw.roce_adp_retrans", "hw.to_retransmits", "hw.seq_err_naks_rcvd", "hw.oos_drop_count",
    "hw.completer_retry_err", "hw.rcvd_seq_err", "hw.out_of_seq_request", "hw.duplicate_request",
)  # fmt: skip
"""Counters of mlx5, bnxt_re and Soft-RoCE that grow when something had to be sent again."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What the operator accepts: least share of the MTU's payload ceiling, most p99 per transfer, retransmissions.

    0 and None mean that the figure is reported and not judged.
    """

    least_share: float = 0.0
    most_p99_ms: float | None = None
    no_retransmissions: bool = False


def judge(plan: Plan | None, row: Row, wanted: Wanted | None, limits: Limits, test_id: str = "") -> Result:
    """Judge one flow of any scenario; the plan, if given, joins it to its VRF."""
    flow, drive = row.flow, row.drive
    tenant = plan.tenants.get(flow.reader.tenant) if plan else None
    labels = {
        "tenant": flow.reader.tenant,
        "vrf": tenant.vrf if tenant else "",
        "fabric": flow.reader.fabric,
        "device": flow.reader.server,
        "port": flow.reader.port,
        "direction": "rx",
        "owner_port": f"{flow.owner.leaf} {flow.owner.leaf_port}",
        "reader_port": f"{flow.reader.leaf} {flow.reader.leaf_port}",
        "backend": str(drive.get("backend", "")),
        "transport": str(drive.get("transport", "none")),
    }
    if wanted is not None:
        labels["priority"] = str(wanted.priority)
    if problem := _broken(row):
        parts: tuple[Result, ...] = (problem,)
    else:
        parts = (*_JUDGES[drive["scenario"]](row, wanted, limits), _released(row))
    state = combine(part.state for part in parts)
    return Result(
        check=f"rdma.{drive.get('scenario', 'probe')}",
        subject=flow.name,
        state=state,
        text="; ".join(part.text for part in parts if part.state is state) or "nothing was measured",
        place=f"{flow.owner.leaf} {flow.owner.leaf_port} -> {flow.reader.leaf} {flow.reader.leaf_port}",
        measurements=tuple(_measurements(drive, flow.reader.speed_gbps)) if "payload_gbps" in drive else (),
        parts=parts,
        labels=labels,
        evidence={"drive": drive, "serve": row.serve},
        test_id=test_id,
        duration_s=float(drive.get("ended", 0.0)) - float(drive.get("began", 0.0)),
    )


def _part(name: str, row: Row, good: bool | None, text: str) -> Result:
    state = State.ERROR if good is None else State.PASS if good else State.FAIL
    return Result(check=f"rdma.{name}", subject=row.flow.name, state=state, text=text)


def _broken(row: Row) -> Result | None:
    """A row that is an error: a failed transfer or device fails, a missing tool or agent could not judge."""
    found = row.drive.get("error") or (row.serve.get("error") if row.serve.get("role") != "serve" else None)
    if not found or ("error" not in row.drive and row.drive.get("scenario") == "peer-dies"):
        return None
    kind = found["kind"]
    cause = row.serve.get("error", {}).get("text", "") if kind == "peer" else ""
    text = f"{kind}: {found['text']}" + (f" (other end: {cause})" if cause else "")
    other = row.serve.get("error", {}).get("kind", "") if kind == "peer" else kind
    return _part(kind, row, None if other in {"missing", "agent", "peer", "died", ""} else False, text)


def _transfer(row: Row, wanted: Wanted | None, limits: Limits) -> list[Result]:
    drive = row.drive
    parts = [_content(row), _settings(row, wanted)]
    line = row.flow.reader.speed_gbps
    share = drive["payload_gbps"] / payload_gbps(line, _mtu(drive))
    if limits.least_share:
        text = f"{drive['payload_gbps']:.2f} Gb/s payload is {share:.1%} of what {line} Gb/s at this MTU allow"
        parts.append(_part("rate", row, share >= limits.least_share, f"{text}, wanted {limits.least_share:.0%}"))
    if limits.most_p99_ms is not None:
        p99 = drive["completion_s"]["p99"] * 1e3
        parts.append(_part("p99", row, p99 <= limits.most_p99_ms, f"p99 {p99:.3f} ms, at most {limits.most_p99_ms:g}"))
    if limits.no_retransmissions:
        parts.append(_retransmissions(row))
    return parts


def _content(row: Row) -> Result:
    """Green completions are not enough: every block must be the one that was asked for."""
    bad: dict[str, int] = {}
    total = 0
    for check in row.drive["content"]:
        for verdict, count in check["counts"].items():
            total += count
            if verdict != "ok" and count:
                bad[verdict] = bad.get(verdict, 0) + count
    text = ", ".join(f"{count} {verdict}" for verdict, count in bad.items())
    return _part("content", row, not bad and total > 0, f"blocks: {text}" if bad else f"{total} blocks are as stamped")


def _settings(row: Row, wanted: Wanted | None) -> Result:
    """Compare what was asked of the queue pairs, and what the plan wants, with what the device says is in force."""
    asked = dict(row.drive["wanted"])
    if wanted is not None:
        asked |= {"mtu": wanted.mtu, "traffic_class": wanted.traffic_class}
    asked["dscp"] = asked["traffic_class"] >> 2
    forced = row.drive["in_force"]["local"] + row.drive["in_force"]["remote"]
    if not forced:
        return _part("settings", row, None, "no setting could be read back")
    wrong = sorted(
        {
            f"{name} is {one[name]}, wanted {asked[name]}"
            for one in forced
            for name in _COMPARED
            if name in one and one[name] != asked[name]
        }
    )
    # counters on the way prove the class where a binding cannot read it back
    silent = [name for name in _COMPARED if name not in {"dscp", *forced[0]} and row.drive["backend"] in _VERBS]
    note = f"; this binding does not read back {', '.join(silent)}" if silent else ""
    return _part("settings", row, not wrong, "; ".join(wrong) or f"queue pair settings are as wanted{note}")


def _retransmissions(row: Row) -> Result:
    grown, seen = {}, False
    for end in ("local", "remote"):
        before, after = (row.drive["counters"][when][end] for when in ("before", "after"))
        for name in RETRANSMISSIONS:
            if name in before and name in after:
                seen = True
                if after[name] > before[name]:
                    grown[f"{end} {name}"] = after[name] - before[name]
    if not seen:
        return _part("retransmissions", row, None, "no retransmission counter could be read on either end")
    text = ", ".join(f"{name} +{count}" for name, count in grown.items())
    return _part("retransmissions", row, not grown, text or "nothing was sent again")


def _access(row: Row, wanted: Wanted | None, limits: Limits) -> list[Result]:
    del wanted, limits
    parts = []
    for one in row.drive["tries"]:
        if one["allowed"]:
            good = one["status"] == "SUCCESS"
            parts.append(_part("access", row, True if good else None, f"{one['name']}: {one['status']}"))
            continue
        good = one["refused"] and not one["bytes_came"]
        said = f"refused ({one['status']})" if one["refused"] else f"not refused ({one['status']})"
        parts.append(_part("access", row, good, f"{one['name']}: {said}{', bytes came' if one['bytes_came'] else ''}"))
    return parts


def _stale(row: Row, wanted: Wanted | None, limits: Limits) -> list[Result]:
    del wanted, limits
    parts = []
    for name, found in row.drive["cases"].items():
        expected = "ok" if name == "current" else name
        good = found["counts"][expected] == sum(found["counts"].values()) > 0
        seen = ", ".join(f"{count} {verdict}" for verdict, count in found["counts"].items() if count)
        parts.append(_part("identity", row, good, f"served {name}: {seen}"))
    return parts


def _failure(row: Row, wanted: Wanted | None, limits: Limits) -> list[Result]:
    """A provoked failure passes when it is seen, and within the stated time."""
    del wanted, limits
    drive = row.drive
    took, stated = drive["detection_s"], drive["stated_s"]
    if drive["status"] == "not applicable":
        return [Result(check="rdma.detection", subject=row.flow.name, state=State.SKIPPED, text=drive["text"])]
    text = f"{drive['text']} ({drive['status']}), seen after {took:.3f} s, stated {stated:.3f} s"
    return [_part("detection", row, drive["failed"] and took <= stated, text)]


def _released(row: Row) -> Result:
    left = row.drive.get("left_open", 0) + row.drive.get("peer_left_open", 0)
    return _part("released", row, not left, f"{left} objects left registered" if left else "nothing left registered")


def _mtu(drive: dict[str, Any]) -> int:
    """RDMA MTU in force, for the ceiling; TCP has none, its ceiling is taken at 4096."""
    forced = drive["in_force"]["local"]
    return int(forced[0].get("mtu", 4096)) if forced else 4096


def _measurements(drive: dict[str, Any], line_gbps: int) -> list[Measurement]:
    trials, times = drive["transfers"], drive["completion_s"]
    rates = [8e-9 * drive["bytes"] / seconds for seconds in (times["max"], times["min"])]
    share = drive["payload_gbps"] / payload_gbps(line_gbps, _mtu(drive))
    spread = (rates[1] - rates[0]) / 2
    found = [
        Measurement("rate", drive["payload_gbps"], "Gb/s payload, one way", trials, spread, tool=_TOOL),
        Measurement("share of MTU ceiling", share, "ratio", trials, tool=_TOOL),
    ]
    for name in ("preparation", "posting", "completion"):
        values = drive[f"{name}_s"]
        found += [
            Measurement(f"{name} {share}", values[share] * 1e3, "ms", values["count"], tool=_TOOL)
            for share in ("p50", "p95", "p99", "p99.9")
        ]
    return found


_JUDGES = {
    "transfer": _transfer,
    "access": _access,
    "stale": _stale,
    "peer-dies": _failure,
    "link-lost": _failure,
    "wrong-gid": _failure,
    "overrun": _failure,
}
