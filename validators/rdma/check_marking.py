"""The check of marking on the way: a packet with the RoCE DSCP keeps it, outside and inside the tunnel."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from validators.cabling.checks import whole
from validators.check import Check, CheckInputs, Context, Observations, Stage
from validators.devices.listening import LISTENING, heard, listen, new_file, tcpdump
from validators.rdma.checks import apart, ends_by_tenant
from validators.rdma.endpoints import find, wanted
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.plan import Plan


class MarkingInputs(CheckInputs):
    """Two NICs of a tenant: packets with the RoCE class's DSCP go from `sender` to `receiver`."""

    tenant: str
    sender: str
    receiver: str


class DscpPath(Check):
    """A packet that a server marks for the RoCE class keeps its DSCP on every hop, in the outer header too.

    Marked echo requests are captured where they arrive. Where switches are Linux routers, spines are listened on as
    well, so that the hop that changed the mark has a name; a switch ASIC does not show its packets.

    Pass: the DSCP is the planned one wherever the packets were seen.
    Fail: it is another one; the place is the last hop that had a hand in it.
    Error: no packet arrived, or tcpdump did not run.
    Skipped: never; a tenant without two servers with RDMA ports has no case.
    Example:
        dscp-path:
          - {tenant: acme, sender: "compute-001:be0-port0", receiver: "compute-003:be0-port0"}
    """

    stage = Stage.ROCE
    Inputs = MarkingInputs
    passive = False

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One pair of NICs per tenant, under different leaves where there are any."""
        for tenant, ends in ends_by_tenant(plan).items():
            for a, b in apart(ends)[:1]:
                yield MarkingInputs(tenant=tenant, sender=a.name, receiver=b.name)

    @classmethod
    def subject(cls, inputs: MarkingInputs) -> str:
        """Both ends."""
        return f"{inputs.sender} -> {inputs.receiver}"

    @classmethod
    def touches(cls, plan: Plan, inputs: MarkingInputs) -> tuple[str, ...]:
        """Both servers."""
        del plan
        return inputs.sender.partition(":")[0], inputs.receiver.partition(":")[0]

    def collect(self, context: Context, inputs: MarkingInputs) -> Observations:
        """Listen at the receiver and on the spines while the sender sends."""
        plan = context.plan
        a, b = find(plan, inputs.sender)[0], find(plan, inputs.receiver)[0]
        marked = wanted(plan, a.fabric).traffic_class
        spines = [] if context.devices.physical else [s.name for s in plan.switches_of(a.fabric, "spine")]
        leaves = [plan.switches[name] for name in (a.leaf, b.leaf)]
        outer = f"udp port 4789 and src {leaves[0].vtep} and dst {leaves[1].vtep} and greater 1000"
        inner = f"icmp and src {a.address} and dst {b.address}"
        listening = {b.server: inner} | (dict.fromkeys(spines, outer) if a.leaf != b.leaf else {})
        file = new_file()
        with ThreadPoolExecutor(len(listening)) as pool:
            deaf = list(
                pool.map(lambda item: listen(context.devices, item[0], file, tcpdump(item[1])), listening.items())
            )
            command = f"ping -n -I {a.address} -Q {marked} -s 1000 -c 10 -i 0.2 -W 1 {b.address}; true"
            sent = context.devices.run(a.server, command, 20.0)
            told = pool.map(lambda name: heard(context.devices, name, file), listening)
            said = {name: answer if one.ok else one for name, answer, one in zip(listening, told, deaf, strict=True)}
        return {"sent": sent.to_dict(), "heard": {name: answer.to_dict() for name, answer in said.items()}}

    def judge(self, plan: Plan, inputs: MarkingInputs, observations: Observations) -> Result:
        """Compare hop by hop, in the direction of travel."""
        a, b = find(plan, inputs.sender)[0], find(plan, inputs.receiver)[0]
        dscp = wanted(plan, a.fabric).traffic_class >> 2
        marks = {name: _marks(answer) for name, answer in observations["heard"].items()}
        parts = []
        for name in (n for n in marks if n != b.server):
            parts.append(self._part(name, "outer header arriving", marks[name].get("In", set()), dscp, a.leaf))
            parts.append(self._part(name, "outer header leaving", marks[name].get("Out", set()), dscp, name))
        quiet = [part for part in parts if part.state is State.UNKNOWN]
        if len(quiet) < len(parts):
            # flows of one pair of addresses take one spine: the others have nothing to hear
            parts = [part for part in parts if part.state is not State.UNKNOWN]
        told = set().union(*marks[b.server].values()) if marks[b.server] else set()
        arrived = self._part(b.server, "packet arriving", told, dscp, b.leaf)
        if arrived.state is State.UNKNOWN:
            heard_there = observations["heard"][b.server]
            deaf = "" if LISTENING in heard_there["text"] else heard_there["text"].strip()[-160:]
            said = heard_there.get("error") or deaf or observations["sent"]["text"].strip()[-160:]
            text = f"no marked packet was seen: {said}"
            arrived = Result(self.name, arrived.subject, State.ERROR, text, b.server)
        parts.append(arrived)
        bad = [part for part in parts if part.state is State.FAIL]
        # a mark that is wrong early is wrong later too: the first hop is the one to look at
        result = whole(self.name, self.subject(inputs), bad[:1] or parts, f"hops keep DSCP {dscp}")
        labels = {"tenant": inputs.tenant, "vrf": plan.tenants[inputs.tenant].vrf, "direction": self.subject(inputs)}
        return Result(
            self.name, result.subject, result.state, result.text, result.place, parts=tuple(parts), labels=labels
        )

    def _part(self, device: str, what: str, seen: set[int], dscp: int, blame: str) -> Result:
        subject = f"{device}: {what}"
        if not seen:
            return Result(self.name, subject, State.UNKNOWN, "nothing was seen here")
        if seen == {dscp}:
            return Result(self.name, subject, State.PASS, f"DSCP {dscp}", labels={"device": device})
        found = ", ".join(map(str, sorted(seen)))
        text = f"DSCP is {found}, the plan says {dscp}: {blame} changed it"
        return Result(self.name, subject, State.FAIL, text, f"{blame}, DSCP map", labels={"device": blame})


def _marks(answer: dict[str, Any]) -> dict[str, set[int]]:
    """Return direction (`In`, `Out`) -> DSCPs of the first IP header of each packet that tcpdump printed."""
    found: dict[str, set[int]] = {}
    for match in re.finditer(r"\b(In|Out)\s+IP \(tos 0x([0-9a-f]+)", answer.get("text", "")):
        found.setdefault(match[1], set()).add(int(match[2], 16) >> 2)
    return found
