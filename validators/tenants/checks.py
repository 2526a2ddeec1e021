"""The tenant matrix: what the plan allows is reached, what it does not is not."""

from __future__ import annotations

import re
import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import Field

from validators.cabling.checks import whole
from validators.check import Check, CheckInputs, Context, Observations, Stage
from validators.devices.listening import heard, listen, new_file
from validators.results import Result, State
from validators.tenants.arrivals import Heard, Seen, allowed, forbidden, listener, send, send_to_itself
from validators.tenants.pairs import Pair, Reach, members

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.plan import Plan


_TOGETHER = 8


class TenantInputs(CheckInputs):
    """The tenant that sends; `count` packets go to each address, and one answer is enough to count as reached."""

    tenant: str
    count: Annotated[int, Field(ge=1, le=1000)] = 3


class TenantMatrix(Check):
    """A tenant reaches its own servers and its peers', and nobody else.

    One server of the tenant sends to one server of every tenant. Tenants may use the same addresses, and what leaks
    one way is never answered: so packets carry a token that is listened for at the server that is meant (with Python,
    as root or by `sudo -n`). Where that cannot be, answers decide alone if only one server has the address.

    Pass: each allowed pair is answered by the server that is meant; nothing arrives at the server of a forbidden pair.
    Fail: an allowed pair is silent or answered by another, or packets of a forbidden pair arrive or are answered.
    Error: nobody could send, or nobody could listen where only that tells who answered.
    Skipped: a pair whose senders have the address themselves, or a tenant with a single server and no peers.
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
        yield from (TenantInputs(tenant=name) for name in plan.tenants if members(plan, name))

    @classmethod
    def subject(cls, inputs: TenantInputs) -> str:
        """The tenant that sends."""
        return inputs.tenant

    @classmethod
    def touches(cls, plan: Plan, inputs: TenantInputs) -> tuple[str, ...]:
        """The servers that send; the first of the tenant, unless the address is its own."""
        senders = dict.fromkeys(pair.sender for pair in Reach(plan, inputs.tenant).pairs() if pair.sender)
        return tuple(senders) or tuple(server.name for server in members(plan, inputs.tenant)[:1])

    def collect(self, context: Context, inputs: TenantInputs) -> Observations:
        """Send echo requests to one address of every tenant, and listen where they may arrive."""
        # what must be silent is waited for: all at once, but one session is all that an SSH device has
        together = 1 if context.devices.physical else _TOGETHER
        pairs = list(Reach(context.plan, inputs.tenant).pairs())
        with ThreadPoolExecutor(together) as pool:
            found = pool.map(lambda pair: _measured(context, pair, inputs.count), pairs)
            return {"pairs": list(found)}

    def judge(self, plan: Plan, inputs: TenantInputs, observations: Observations) -> Result:
        """Compare pair by pair with the plan's peerings."""
        reach = Reach(plan, inputs.tenant)
        tried = {_who(pair): pair for pair in observations["pairs"]}
        parts = [self._part(reach, tried.get(_who(pair := _as_data(one)), pair)) for one in reach.pairs()]
        return whole(self.name, inputs.tenant, parts, "pairs behave as the plan says")

    def _part(self, reach: Reach, pair: dict[str, Any]) -> Result:
        sender, name = pair["sender"], pair["tenant"]
        subject = f"{sender or 'nobody'} ({reach.tenant}) -> {pair['server']} ({name})"
        labels = {"tenant": reach.tenant, "device": sender, "direction": f"to {name}"}
        if not sender:
            text = f"each server of {reach.tenant} that could send has {pair['address']} itself"
            return Result(self.name, subject, State.SKIPPED, text, labels=labels | {"device": ""})
        seen = _seen(pair, reach)
        if isinstance(seen, str):
            return Result(self.name, subject, State.ERROR, seen, sender, labels=labels)
        state, text = (allowed if name in reach.allowed else forbidden)(seen)
        vrfs = dict.fromkeys(reach.plan.tenants[tenant].vrf for tenant in (reach.tenant, name))
        # packets that went where they should not did so in the VRFs; who could not listen is another matter
        place = pair["server"] if state is State.ERROR else f"VRF{'s' * (len(vrfs) > 1)} {' and '.join(vrfs)}"
        return Result(self.name, subject, state, text, "" if state is State.PASS else place, labels=labels)


def _as_data(pair: Pair) -> dict[str, Any]:
    return {**asdict(pair), "rightly": list(pair.rightly)}


def _who(pair: dict[str, Any]) -> tuple[Any, ...]:
    """Return what makes a pair of the plan and a measured one the same."""
    return (*(pair[name] for name in ("tenant", "sender", "server", "address")), *pair["rightly"])


def _measured(context: Context, pair: Pair, count: int) -> dict[str, Any]:
    found = _as_data(pair)
    if not pair.sender:
        return found
    devices, file, token = context.devices, new_file(), secrets.token_hex(4)
    begun = {name: listen(devices, name, file, listener(token)) for name in pair.ears}
    sent = devices.run(pair.sender, send(pair.address, token, count), 15.0)
    last = send_to_itself(pair.address, token)
    ended = {name: heard(devices, name, file, last) if one.ok else one for name, one in begun.items()}
    return {**found, **sent.to_dict(), "heard": {name: answer.to_dict() for name, answer in ended.items()}}


def _seen(pair: dict[str, Any], reach: Reach) -> Seen | str:
    """What is known of a pair, or why nothing could be sent."""
    if "text" not in pair:
        return "this pair was not tried"
    if pair.get("error"):
        return f"could not send: {pair['error']}"
    match = re.search(r"(\d+) packets transmitted, (\d+) (?:packets )?received", pair["text"])
    if match is None:
        return f"ping did not run: {pair['text'].strip()[-120:] or 'it printed nothing'}"
    if not int(match[1]):
        return "nothing was sent"
    there, address = pair["heard"], pair["address"]
    rightly = {name: Heard.of(there.get(name)) for name in pair["rightly"]}
    here = Heard.of(there.get(pair["server"]))
    return Seen(pair["server"], address, int(match[1]), int(match[2]), here, rightly, reach.is_shared(address))
