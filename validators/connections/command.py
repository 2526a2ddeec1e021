"""Run the probes of `kvfabric probe nat|idle|ladder` for the exposures of a plan, with an agent on each side."""

from __future__ import annotations

import itertools
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fabric.gateway import timeouts
from fabric.problem import InputError, Problem
from validators.connections import idle_judge, ladder_judge, nat, nat_judge
from validators.connections.controller import AgentProcess
from validators.connections.from_plan import Target, capacity_problems, targets
from validators.connections.idle import KINDS, IdleSpec
from validators.connections.nat_bench import Bench, Side
from validators.connections.passes import idle_pass, ladder_step
from validators.connections.search import Search
from validators.connections.step import StepObservation, StepSpec
from validators.results import Result, State

if TYPE_CHECKING:
    from fabric.plan import Plan
    from validators.connections.programs import Host


@dataclass(frozen=True)
class Place:
    """Where an agent sits: the host it runs on, its interface, the next hop, and two addresses it speaks for.

    `beside` is the prefix of the second address when `network` is not.
    """

    host: Host
    interface: str
    next_hop: str
    network: str
    addresses: tuple[str, str]
    beside: str = ""


class Testers:
    """The agents of one run, with their ports open; use as a context."""

    def __init__(self, inside: Place, outside: Place, gateway: Host | None) -> None:
        """Start them; raises CouldNotRunError when one does not answer."""
        self.places = {"inside": inside, "outside": outside}
        self.wait_s = 0.15
        self._stack = ExitStack()
        try:
            self.inside = self._start("inside", inside.host)
            self.outside = self._start("outside", outside.host)
            self.gateway = self._start("gateway", gateway) if gateway is not None else None
            for name, place in self.places.items():
                agent = getattr(self, name)
                port = {"interface": place.interface, "addresses": place.network, "next_hop": place.next_hop}
                agent.call("open", name="p", **port)
                if place.beside:
                    agent.call("open", name="beside", **{**port, "addresses": place.beside})
        except BaseException:
            self._stack.close()
            raise

    def _start(self, name: str, host: Host) -> AgentProcess:
        return self._stack.enter_context(AgentProcess(name, host=host))

    def slow_down(self, wait_s: float, rest_s: float) -> None:
        """Wait longer for a packet, and let agents sleep between two looks: in a lab all share one CPU."""
        self.wait_s = wait_s
        for agent in (self.inside, self.outside):
            agent.call("rest", seconds=rest_s)

    def __enter__(self) -> Testers:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def chosen(plan: Plan, tenant: str, exposure: str) -> Target:
    """Return the one exposure that was asked for; raises InputError when it is not one."""
    found = [target for target in targets(plan, tenant=tenant) if exposure in ("", target.exposure.name)]
    if len(found) == 1:
        return found[0]
    names = ", ".join(
        f"{target.exposure.tenant}/{target.exposure.name}" for target in found or targets(plan, tenant=tenant)
    )
    text = f"{len(found)} exposures fit, one is needed: {names}"
    raise InputError([Problem("probe.exposure", exposure or tenant or "site", text, "use --tenant and --exposure")])


def probe_nat(target: Target, testers: Testers) -> Result:
    """Ask all NAT cases of the exposure's mode."""
    ends = target.ends(testers.places["inside"].addresses, testers.places["outside"].addresses)
    beside = Side(testers.inside, "beside") if testers.places["inside"].beside else None
    bench = Bench(Side(testers.inside), Side(testers.outside), testers.wait_s, beside)
    for side in (bench.inside, bench.outside, *([beside] if beside else [])):
        side.listen()
    mode = target.exposure.mode
    if mode == "static":
        seen = nat.static(bench, ends, testers.gateway)
    else:
        seen = nat.masquerade(bench, ends) if mode == "masquerade" else nat.port_forward(bench, ends)
    return nat_judge.judge(target.subject, seen, target.exposed(), labels=target.labels)


def probe_idle(
    target: Target,
    testers: Testers,
    *,
    scale: float = 1.0,
    per_s: float = 2000.0,
    run: int = 1,
    opening: AbstractContextManager[Any] | None = None,
) -> Result:
    """Measure the idle truth table; a masquerade exposure starts inside, a port forward outside at its own ports.

    Of passes at the same time each has a `run` of its own (1 to 15), and opens its flows inside `opening`.
    """
    declared = target.idle()
    if not declared:
        text = "a static exposure keeps no state and has no idle timeout"
        raise InputError(
            [Problem("probe.stateless", target.subject, text, "choose a masquerade or portForward exposure")]
        )
    rendered = {kind: timeouts.scaled(seconds, scale) for kind, seconds in declared.items()}
    ages = {kind: idle_judge.ages_around(rendered[kind]) for kind in KINDS if kind in declared}
    inside, outside = testers.places["inside"].addresses[0], testers.places["outside"].addresses[0]
    if target.exposure.mode == "masquerade":
        spec = IdleSpec(inside, outside, ages, target.idle_ports(), per_s=per_s, run=run)
        rows = idle_pass(testers.inside, testers.outside, spec, opening=opening)
    else:
        ports = {port.protocol: port.public_port for port in target.exposure.ports}
        kinds = {kind: ports[kind.split("-")[0]] for kind in ages if kind.split("-")[0] in ports}
        public = target.ends((inside, inside), (outside, outside)).public
        spec = IdleSpec(outside, public, {kind: ages[kind] for kind in kinds}, kinds, per_s=per_s, run=run)
        rows = idle_pass(testers.outside, testers.inside, spec, opening=opening)
    return idle_judge.judge(target.subject, rows, declared, rendered=rendered, labels=target.labels)


def probe_ladder(
    target: Target,
    testers: Testers,
    *,
    protocol: str,
    connections: int,
    start: float,
    highest: float,
    wanted: float | None,
    precision: float = 0.05,
) -> Result:
    """Climb to the knee from the inside out."""
    problems = capacity_problems(target, connections)
    if problems or target.exposure.mode == "portForward":
        text = "a ladder runs from the inside out; a port forward lets nothing out"
        raise InputError(problems or [Problem("probe.direction", target.subject, text, "choose another exposure")])
    inside, outside = testers.places["inside"].addresses[0], testers.places["outside"].addresses[0]
    space = target.space((inside, 1), (outside, 1))
    search, runs = Search(start, highest, precision), itertools.count()

    def run(rate: float) -> StepObservation:
        if testers.gateway is not None:
            testers.gateway.call("forget", prefix=f"{inside}/32")
        # with nobody to empty the table every step takes connections that were not used before
        number = next(runs)
        skip = 0 if testers.gateway is not None else number * connections
        spec = StepSpec(protocol, connections, rate, space, skip=skip, run=number % 15 + 1)
        return ladder_step(testers.inside, testers.outside, spec, gateway=testers.gateway)

    steps = ladder_judge.climb(run, search)
    return ladder_judge.judge_ladder(
        target.subject, steps, search, wanted_per_s=wanted, pool=target.pool(), labels=target.labels
    )


def as_text(result: Result) -> str:
    """Return a result, with the place to look at, and its parts as lines."""
    # a pass that only strings its parts together says nothing that does not follow
    told = result.state is State.PASS and result.text == "; ".join(part.text for part in result.parts)
    text = f"all {len(result.parts)} hold" if told and len(result.parts) > 1 else result.text
    lines = [f"{result.state.value:8} {result.subject}: {text}" + (f" ({result.place})" if result.place else "")]
    lines += [f"  {part.state.value:8} {part.text}" for part in result.parts]
    return "\n".join(lines)


def to_dict(result: Result) -> dict[str, Any]:
    """Return a result as JSON-ready data."""
    from dataclasses import asdict

    return asdict(result)
