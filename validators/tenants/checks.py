"""The tenant matrix: what the plan allows is reached, what it does not is not."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_interface
from typing import TYPE_CHECKING

from validators.cabling.checks import whole
from validators.check import Check, CheckInputs, Context, Observations, Stage
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.plan import Plan, Server, Tenant


_TOGETHER = 8


class TenantInputs(CheckInputs):
    """The tenant that sends; `count` packets go to each address, and one answer is enough to count as reached."""

    tenant: str
    count: int = 3


class TenantMatrix(Check):
    """A tenant reaches its own servers and its peers', and nobody else.

    One server of the tenant sends to one server of every tenant. Tenants may use the same addresses, so an answer from
    an address that a tenant within reach has too proves nothing; such a pair is skipped where no other address is.

    Pass: each allowed pair answers, each forbidden pair is silent.
    Fail: an allowed pair is silent, or a forbidden pair answers.
    Error: the sender could not be asked, or its program did not run.
    Skipped: a pair that nobody can tell apart, or a tenant with a single server and no peers.
    Example:
        tenant-matrix:
          - {tenant: acme}
    """

    stage = Stage.TENANTS
    Inputs = TenantInputs
    passive = False

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per tenant with servers."""
        yield from (TenantInputs(tenant=name) for name in plan.tenants if _members(plan, name))

    @classmethod
    def subject(cls, inputs: TenantInputs) -> str:
        """The tenant that sends."""
        return inputs.tenant

    @classmethod
    def touches(cls, plan: Plan, inputs: TenantInputs) -> tuple[str, ...]:
        """The server that sends."""
        return tuple(server.name for server in _members(plan, inputs.tenant)[:1])

    def collect(self, context: Context, inputs: TenantInputs) -> Observations:
        """Send echo requests from one server to one address of every tenant."""
        sender = _members(context.plan, inputs.tenant)[0]
        found: Observations = {"sender": sender.name, "pairs": {}}
        targets = _targets(context.plan, inputs.tenant, sender)
        # what must be silent is waited for: all at once, but one session is all that an SSH device has
        together = 1 if context.devices.physical else _TOGETHER
        with ThreadPoolExecutor(together) as pool:
            jobs = {
                tenant: pool.submit(
                    context.devices.run, sender.name, f"ping -n -c {inputs.count} -i 0.2 -W 1 {address}; true", 15.0
                )
                for tenant, (_, address) in targets.items()
            }
            for tenant, (server, address) in targets.items():
                found["pairs"][tenant] = {"server": server, "address": address, **jobs[tenant].result().to_dict()}
        return found

    def judge(self, plan: Plan, inputs: TenantInputs, observations: Observations) -> Result:
        """Compare pair by pair with the plan's peerings."""
        sender = plan.tenants[inputs.tenant]
        allowed = {sender.name, *sender.peers}
        parts = []
        for name, pair in observations["pairs"].items():
            state, text = _verdict(
                pair, name in allowed, name not in allowed and pair["address"] in _within_reach(plan, sender)
            )
            subject = f"{observations['sender']} ({sender.name}) -> {pair['server']} ({name})"
            place = _place(state, observations["sender"], (sender.vrf, plan.tenants[name].vrf))
            labels = {"tenant": sender.name, "device": observations["sender"], "direction": f"to {name}"}
            parts.append(Result(self.name, subject, state, text, place, labels=labels))
        return whole(self.name, inputs.tenant, parts, "pairs behave as the plan says")


def _place(state: State, server: str, vrfs: tuple[str, str]) -> str:
    """Where to look: at the server when it could not even send, at the VRFs when packets went where they should not."""
    if state in {State.PASS, State.SKIPPED}:
        return ""
    if state is State.ERROR:
        return server
    return f"VRFs {' and '.join(vrfs)}" if vrfs[0] != vrfs[1] else f"VRF {vrfs[0]}"


def _members(plan: Plan, tenant: str) -> list[Server]:
    return [s for s in plan.servers.values() if any(p.tenant == tenant and p.address for p in s.ports)]


def _within_reach(plan: Plan, tenant: Tenant) -> set[str]:
    """The addresses of a tenant and of its peers."""
    names = {tenant.name, *tenant.peers}
    return {
        str(ip_interface(p.address).ip)
        for s in plan.servers.values()
        for p in s.ports
        if p.tenant in names and p.address
    }


def _targets(plan: Plan, tenant: str, sender: Server) -> dict[str, tuple[str, str]]:
    """Return tenant -> (server, address) to send to: another server where there is one."""
    found = {}
    fabrics = {port.fabric for port in sender.ports if port.tenant == tenant}
    reach = _within_reach(plan, plan.tenants[tenant])
    allowed = {tenant, *plan.tenants[tenant].peers}
    for name in plan.tenants:
        candidates = [
            (server.name, str(ip_interface(port.address).ip))
            for server in _members(plan, name)
            for port in reversed(server.ports)
            if server.name != sender.name and port.tenant == name and port.address and port.fabric in fabrics
        ]
        # an address that only this tenant has tells most
        candidates.sort(key=lambda one: name not in allowed and one[1] in reach)
        if candidates:
            found[name] = candidates[0]
    return found


def _verdict(pair: dict[str, str], allowed: bool, ambiguous: bool) -> tuple[State, str]:
    if pair.get("error"):
        return State.ERROR, f"could not send: {pair['error']}"
    match = re.search(r"(\d+) packets transmitted, (\d+) (?:packets )?received", pair["text"])
    if match is None:
        return State.ERROR, f"ping did not run: {pair['text'].strip()[-120:] or 'it printed nothing'}"
    sent, received = int(match[1]), int(match[2])
    if ambiguous:
        return State.SKIPPED, f"{pair['address']} is an address of a tenant within reach too"
    if not sent:
        return State.ERROR, "nothing was sent"
    if allowed:
        good = received > 0
        return (
            State.PASS if good else State.FAIL
        ), f"{received} of {sent} answered{'' if good else ', and the plan allows it'}"
    return (
        State.FAIL if received else State.PASS
    ), f"{received} of {sent} answered, the plan forbids it" if received else "silent, as it must be"
