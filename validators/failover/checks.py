"""The check of the fabric's own failover: a spine dies, and traffic goes on over the others."""

from __future__ import annotations

import itertools
import re
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from fabric.plan import SPINE
from validators.check import Check, CheckInputs, Context, NotJudgedError, Observations, Stage
from validators.control_plane.expected import sessions
from validators.control_plane.frr_json import bgp_peers
from validators.devices.answers import Ask
from validators.results import Measurement, Result, State, combine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from fabric.plan import Plan, ServerPort, Switch

_TABLE = "kvfabric_cut"
_ENDED = "requests-ended:"
_BEFORE_S, _AFTER_S, _START_S = 1.5, 4.0, 1.5
# what the commands that cut and heal may take together, before the requests end too early; the least that is seen after
_SLACK_S, _LEAST_S = 5.0, 1.5
_STEP_S = 0.02
# as many misses in a row are a gap; a single late packet is not
_GAP = 4
_BACK_S = 40.0


class FabricFailoverInputs(CheckInputs):
    """The spine that dies, whose packets are counted, and for how long one may be without an answer, in ms."""

    spine: str
    tenant: str
    within_ms: Annotated[float, Field(gt=0)] = 2500.0


class FabricFailover(Check):
    """When a spine dies without a word, traffic between leaves goes on over the others in time.

    Echo requests run between two servers of a tenant all the time, over every pair of their addresses. The spine then
    loses every packet while its ports stay up, so that only BFD can notice (in a lab), or its ports go down (SONiC).
    The plan's catalog asks this of the first spine of each fabric; others are a line each, in a file for `--also`.

    Pass: every flow has answers again within the limit, also when the spine comes back.
    Fail: a flow is silent for longer, or for good.
    Error: nothing was answered before the event, or the spine did not come back.
    Unknown: on a slow machine, the requests ended before it could be seen how the flows took the spine's return.
    Skipped: without --allow-disruptive; in a fabric with a single spine.
    Example:
        fabric-failover:
          - {spine: be-spine-01, tenant: acme, within_ms: 2500}
    """

    stage = Stage.FAILOVER
    Inputs = FabricFailoverInputs
    passive = False
    disruptive = True

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """The first spine of each fabric in which a tenant has servers under two leaves."""
        for fabric in plan.fabrics.values():
            spines = plan.switches_of(fabric.name, SPINE) if fabric.managed else ()
            tenant = next((name for name in plan.tenants if _pairs(plan, name, fabric.name)), "")
            if len(spines) > 1 and tenant:
                yield FabricFailoverInputs(spine=spines[0].name, tenant=tenant)

    @classmethod
    def subject(cls, inputs: FabricFailoverInputs) -> str:
        """The spine."""
        return f"{inputs.spine} dies"

    @classmethod
    def touches(cls, plan: Plan, inputs: FabricFailoverInputs) -> tuple[str, ...]:
        """The spine."""
        del plan
        return (inputs.spine,)

    def collect(self, context: Context, inputs: FabricFailoverInputs) -> Observations:
        """Count packets while the spine dies and while it comes back."""
        plan = context.plan
        spine = plan.switches[inputs.spine]
        pairs = _pairs(plan, inputs.tenant, spine.fabric)
        seconds = _START_S + _BEFORE_S + 2 * _AFTER_S + _SLACK_S
        cut, heal = _deed(spine, physical=context.devices.physical)
        with ThreadPoolExecutor(len(pairs)) as pool:
            flows = {
                f"{a.address.partition('/')[0]} -> {b.address.partition('/')[0]}": pool.submit(
                    context.devices.run, server, _ping(a, b, seconds), seconds + 20
                )
                for server, a, b in pairs
            }
            time.sleep(_START_S + _BEFORE_S)
            events = []
            with context.undo.before(spine.name, heal, f"bring {spine.name} back"):
                events.append({"at": _at(context, spine.name, cut), "text": f"{spine.name} dies"})
                time.sleep(_AFTER_S)
            events.append({"at": _at(context, spine.name, "true"), "text": "it is back"})
            said = {name: job.result().to_dict() for name, job in flows.items()}
        return {"flows": said, "events": events, "back_s": _back(context, spine.name)}

    def judge(self, plan: Plan, inputs: FabricFailoverInputs, observations: Observations) -> Result:
        """Find the longest silence of each flow around the events."""
        flows = {name: arrivals(answer["text"]) for name, answer in observations["flows"].items()}
        events = observations["events"]
        first = events[0]["at"]
        heard = {name: times for name, times in flows.items() if any(at < first for at in times)}
        if not heard or first <= 0:
            message = f"nothing was answered before {inputs.spine} died: nothing was measured"
            raise NotJudgedError(message)
        start, end = first - _BEFORE_S, events[-1]["at"] + _AFTER_S
        gaps = {name: gaps_of(times, first, end) for name, times in heard.items()}
        ends = {name: min(end, ended(observations["flows"][name]["text"], end)) for name in heard}
        parts = [self._flow(name, gaps[name], inputs, heard[name], ends[name]) for name in heard]
        if (short := min(ends.values()) - events[-1]["at"]) < _LEAST_S:
            text = f"the requests ended {abs(short):.1f} s {'before' if short < 0 else 'after'} the spine was back: "
            text += "how the flows took its return was not seen; try again on a less busy machine"
            parts.append(Result(self.name, inputs.spine, State.UNKNOWN, text, inputs.spine))
        back = observations["back_s"]
        if back is None:
            text = f"its BGP sessions did not come back within {_BACK_S:g} s"
            parts.append(Result(self.name, inputs.spine, State.ERROR, text, inputs.spine))
        worst = max((b - a for found in gaps.values() for a, b in found), default=0.0) * 1e3
        state = combine(part.state for part in parts)
        text = f"{sum(bool(found) for found in gaps.values())} of {len(heard)} flows were interrupted, "
        text += f"for at most {worst:.0f} ms; {inputs.within_ms:g} ms are allowed"
        bad = next((part for part in parts if part.state is state and state is not State.PASS), None)
        drawn = [
            {"name": name, "gaps": [[(a - start) * 1e3, (b - start) * 1e3] for a, b in found]}
            for name, found in gaps.items()
        ]
        timeline = {
            "start_ms": 0, "end_ms": round((end - start) * 1e3), "budget_ms": inputs.within_ms, "flows": drawn,
            "events": [{"at_ms": (event["at"] - start) * 1e3, "text": event["text"]} for event in events],
        }  # fmt: skip
        return Result(
            self.name, self.subject(inputs), state, f"{bad.subject}: {bad.text}" if bad else text,
            bad.place if bad else "",
            (Measurement("longest interruption", round(worst, 1), "ms", len(heard), tool=f"ping every {_STEP_S:g} s"),),
            tuple(parts), {"tenant": inputs.tenant, "vrf": plan.tenants[inputs.tenant].vrf, "device": inputs.spine},
            {"timeline": timeline},
        )  # fmt: skip

    def _flow(
        self,
        name: str,
        gaps: Sequence[tuple[float, float]],
        inputs: FabricFailoverInputs,
        times: Sequence[float],
        end: float,
    ) -> Result:
        longest = max((b - a for a, b in gaps), default=0.0) * 1e3
        lost = times[-1] < end - 1.0
        late = longest > inputs.within_ms or lost
        text = f"silent for {longest:.0f} ms" if gaps else "not interrupted"
        text += " and not heard again" if lost else ""
        labels = {"tenant": inputs.tenant, "direction": name}
        place = f"{inputs.spine}: BFD and BGP of the leaves towards it" if late else ""
        return Result(self.name, name, State.FAIL if late else State.PASS, text, place, labels=labels)


def _pairs(plan: Plan, tenant: str, fabric: str) -> list[tuple[str, ServerPort, ServerPort]]:
    """(server, its port, port of another server under another leaf) for each pair of the first two such servers."""
    found: dict[str, list[tuple[str, ServerPort]]] = {}
    for server in plan.servers.values():
        for port in server.ports:
            if port.tenant == tenant and port.fabric == fabric and port.address and port.link:
                found.setdefault(server.name, []).append((plan.links[port.link].far(server.name).device, port))
    names = list(found)
    for near in names[:1]:
        for far in names[1:]:
            pairs = [(near, a, b) for leaf, a in found[near] for other, b in found[far] if leaf != other]
            if pairs:
                return pairs[:6]
    return []


def _deed(spine: Switch, *, physical: bool) -> tuple[str, str]:
    """Return the commands that make a spine lose every packet, and that take it back; both may run twice."""
    ports = [port.interface for port in spine.ports if port.link]
    if physical:
        down, up = (
            "; ".join(f"sudo config interface {verb} {port}" for port in ports) for verb in ("shutdown", "startup")
        )
        return down, up
    names = ", ".join(f'"{port}"' for port in ports)
    chains = " ".join(
        f"chain {hook} {{ type filter hook {hook} devices = {{ {names} }} priority -500; policy drop; }};"
        for hook in ("ingress", "egress")
    )
    remove = f"nft delete table netdev {_TABLE} 2>/dev/null; true"
    table = f"table netdev {_TABLE} {{ {chains} }}"
    return f"{remove}; echo '{table}' | nft -f -", remove


def _ping(a: ServerPort, b: ServerPort, seconds: float) -> str:
    near, far = (port.address.partition("/")[0] for port in (a, b))
    return f"ping -n -D -I {near} -i {_STEP_S:g} -w {seconds:.0f} {far}; date +{_ENDED}%s.%N"


def _at(context: Context, device: str, command: str) -> float:
    """Run a command and return when it had been done, by the device's clock (s since 1970). Raises NotJudgedError."""
    answer = context.devices.run(device, f"{{ {command}; }} && date +%s.%N")
    last = answer.text.strip().splitlines()[-1:] or [""]
    try:
        return float(last[0])
    except ValueError:
        message = f"{device}: could not run `{command[:60]}`: {answer.error or answer.text.strip()[-160:]}"
        raise NotJudgedError(message) from None


def _back(context: Context, device: str) -> float | None:
    """Wait for a device's BGP sessions; returns seconds, None when they did not come."""
    wanted = {session.neighbour for session in sessions(context.plan, device)}
    started = time.monotonic()
    while time.monotonic() - started < _BACK_S:
        answer = next(iter(context.gather([Ask(device, "bgp")], fresh=True).values()))
        peers: dict[str, dict[str, Any]] = bgp_peers(answer.text) if answer.ok else {}
        up = {name for name, one in peers.items() if all(p.get("state") == "Established" for p in one.values())}
        if wanted <= up:
            return round(time.monotonic() - started, 2)
        time.sleep(0.5)
    return None


def arrivals(text: str) -> list[float]:
    """When each answer of `ping -D` came, in seconds since 1970."""
    return [float(match[1]) for match in re.finditer(r"^\[(\d+\.\d+)\] \d+ bytes from", text, re.MULTILINE)]


def ended(text: str, otherwise: float) -> float:
    """When the requests ended, in seconds since 1970."""
    found = re.search(rf"^{_ENDED}(\d+\.\d+)$", text, re.MULTILINE)
    return float(found[1]) if found else otherwise


def gaps_of(times: Sequence[float], start: float, end: float) -> list[tuple[float, float]]:
    """Return (from, to) of each silence between `start` and `end` that is longer than a few packets."""
    near = [at for at in times if at <= end]
    return [(a, b) for a, b in itertools.pairwise(near) if b >= start and b - a > _GAP * _STEP_S]
