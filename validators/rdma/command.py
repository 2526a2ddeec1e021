"""From the options of `kvfabric probe rdma` to results: workload, question, limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fabric.problem import InputError, Problem
from validators.rdma import probe
from validators.rdma.judge import Limits
from validators.rdma.launch import Ask
from validators.rdma.question import Question, groups_of
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Callable

    from fabric.kv.size import PiecePlan
    from fabric.plan import Plan
    from validators.rdma.places import Places


def run(plan: Plan, places: Places, asked: dict[str, Any], say: Callable[[str], None]) -> tuple[list[Result], str]:
    """Run the probe; returns the results and what the workload was. `asked` holds the options by name."""
    from fabric.analysis.flows.amounts import read_bytes

    groups, note, identity = _workload(asked)
    ask = Ask(
        backend=asked["backend"],
        scenario=asked["scenario"],
        verb=asked["verb"],
        groups=groups,
        qps=asked["qps"],
        depth=asked["depth"],
        repeats=asked["repeats"],
        duration_s=asked["duration"],
        settings={"timeout": asked["timeout_exponent"]} if asked["timeout_exponent"] else {},
        identity=identity,
        deadline_s=90.0 + asked["duration"],
    )
    question = Question(
        kind=asked["kind"],
        owner=asked["owner"],
        reader=asked["reader"],
        count=asked["count"],
        readers=tuple(asked["readers"]),
        pool=tuple(asked["pool"]),
        restore_bytes=int(read_bytes(asked["size"])) if asked["size"] else 0,
        deadline_s=asked["deadline"],
        tenant=asked["tenant"],
        traffic_class=asked["traffic_class"],
    )
    limits = Limits(asked["least_share"], asked["most_p99_ms"], asked["no_retransmissions"])
    results = probe.run(plan, question, ask, places, limits, say, asked["counters"], watermarks=True)
    if asked["model"] and asked["prefill_tokens_per_s"]:
        results += [fallback(result, asked) for result in results if "drive" in result.evidence and result.measurements]
    return results, note


def fallback(result: Result, asked: dict[str, Any]) -> Result:
    """Say what a serving stack should do at the measured rate: move the rank's cache, or compute it again.

    Neither is a failure: falling back is a decision, told apart from a transfer that broke.
    """
    rate = next(m.value for m in result.measurements if m.name == "rate")
    move_s = _pieces(asked).total * 8e-9 / rate
    again_s = asked["tokens"] / asked["prefill_tokens_per_s"]
    choice = "move" if move_s < again_s else "recompute"
    text = f"{choice}: a rank's cache takes {move_s * 1e3:.1f} ms at the measured {rate:.2f} Gb/s,"
    text += f" computing it again {again_s * 1e3:.1f} ms"
    labels = {**result.labels, "decision": choice}
    return Result("rdma.fallback", result.subject, State.PASS, text, labels=labels)


def _workload(asked: dict[str, Any]) -> tuple[tuple[tuple[int, int], ...], str, dict[str, Any]]:
    if not asked["model"]:
        whole, most = int(asked["piece"]) * int(asked["pieces"]), int(asked["max_bytes"])
        if whole > most:
            text = f"are {whole} bytes on each end, more than --max-bytes {most}"
            subject = f"{asked['pieces']} pieces of {asked['piece']} bytes"
            fix = f"fewer pieces, or --max-bytes {whole}"
            raise InputError([Problem("probe.bytes", subject, text, fix)])
        explicit = ((int(asked["piece"]), int(asked["pieces"])),)
        return explicit, f"{asked['pieces']} pieces of {asked['piece']} bytes", {}
    plan = _pieces(asked)
    identity = {"model": plan.model, "precision": plan.dtype, "kernel_config": plan.kernel_config}
    groups, note = groups_of(plan, asked["max_bytes"])
    return groups, f"{plan.model}, {plan.tokens} tokens, {plan.kernel_config}: {note}", identity


def _pieces(asked: dict[str, Any]) -> PiecePlan:
    from fabric.kv.model import load_model
    from fabric.kv.size import Layout, piece_plan

    return piece_plan(
        load_model(asked["model"]),
        asked["tokens"],
        dtype=asked["dtype"],
        tp=asked["tp"],
        block_tokens=asked["block_tokens"],
        layout=Layout(asked["layout"]),
    )
