"""The passive checks of the gateways stage: what gateways say of themselves, compared with the plan."""

from __future__ import annotations

import json
from abc import abstractmethod
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Any

from fabric.strict_json import loads
from validators.cabling.checks import whole
from validators.check import Check, CheckInputs, DeviceInputs, Observations, Stage, answer_of
from validators.devices.answers import UnreadableError
from validators.drift.checks import rendered
from validators.gateways.nft_json import NatTable, parse
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fabric.plan import Exposure, Plan


class _GatewayCheck(Check, abstract=True):
    stage = Stage.GATEWAYS
    Inputs = DeviceInputs

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per gateway."""
        yield from (DeviceInputs(device=name) for name in plan.gateways)


def facts_of(plan: Plan, gateway: str) -> dict[str, Any]:
    """Return what was rendered as the gateway's own facts: zones, marks, pools, timers, announcements."""
    found: dict[str, Any] = json.loads(rendered(plan, gateway)["gateway.json"])
    return found


class GatewayServing(_GatewayCheck):
    """Every gateway takes traffic: its checks are well, its sessions up, and it is neither drained nor withdrawn.

    Pass: `gatewayctl status` finds everything well and the gateway active, and says so of every session of the plan.
    Fail: it is draining, drained, withdrawn or refusing new flows, a session is down, or a check of its own fails.
    Error: gatewayctl cannot run, or says nothing of a session or of a check of its own.
    Skipped: never.
    Example:
        gateway-serving:
          - {device: gw-01}
    """

    questions = ("gateway",)

    def judge(self, plan: Plan, inputs: DeviceInputs, observations: Observations) -> Result:
        """Compare point by point."""
        device = inputs.device
        try:
            status = loads(answer_of(observations, device, "gateway"))
            checks, sessions, phase = status["checks"], status["sessions"], status["phase"]
            refusing, withdrawn = status["refusing"], status["withdrawn"]
        except (ValueError, KeyError, TypeError):
            message = f"{device}: `gatewayctl status --json` did not print a status"
            raise UnreadableError(message) from None
        _require_all_said(checks, _SELF_CHECKS, str)
        wrong = [(f"check {name}", text, f"{device} {name}") for name, text in checks.items() if text != "ok"]
        wrong += [(f"session {name}", "is down", f"{device} session {name}") for name, up in sessions.items() if not up]
        wrong += [("phase", f"is {phase}", f"{device}: `gatewayctl undrain`")] if phase != "active" else []
        wrong += [("routes", "are withdrawn", f"{device}: `gatewayctl status`")] if withdrawn else []
        if refusing and phase == "active":
            wrong.append(("new flows", "are refused although it is active", f"{device} nft set drained"))
        if not wrong:
            _require_all_said(sessions, _session_names(facts_of(plan, device)), bool)
            return Result(self.name, device, State.PASS, f"active, {len(sessions)} sessions up")
        parts = [
            Result(self.name, f"{device} {what}", State.FAIL, text, place, labels={"device": device})
            for what, text, place in wrong
        ]
        return whole(self.name, device, parts, "")


# what gatewayctl asks itself
_SELF_CHECKS = ("fabric", "edge", "nftables", "conntrack")


def _session_names(facts: dict[str, Any]) -> list[str]:
    return [f"{one['device']} ({one['address']})" for one in facts["fabric_sessions"] + facts["edge_sessions"]]


def _require_all_said(said: dict[str, Any], names: Iterable[str], kind: type) -> None:
    """Raise UnreadableError for names of which nothing is said: that is not the same as that all is well."""
    if silent := [name for name in names if not isinstance(said.get(name), kind)]:
        message = f"`gatewayctl status --json` says nothing of {', '.join(silent)}"
        raise UnreadableError(message)


class _NatCheck(_GatewayCheck, abstract=True):
    questions = ("nft",)
    stands_on = ("gateway-serving",)

    def judge(self, plan: Plan, inputs: DeviceInputs, observations: Observations) -> Result:
        """Compare exposure by exposure."""
        device = inputs.device
        table = parse(answer_of(observations, device, "nft"))
        parts = []
        for tenant in facts_of(plan, device)["tenants"]:
            by_name = {exposure.name: exposure for exposure in plan.tenants[tenant["name"]].exposures}
            for facts in tenant["exposures"]:
                for wrong, place in self.wrong(table, tenant, facts, by_name[facts["name"]]):
                    parts.append(_exposure_part(self.name, device, tenant, facts, (State.FAIL, wrong, place)))
                if not parts or parts[-1].subject != _subject(device, facts):
                    parts.append(_exposure_part(self.name, device, tenant, facts, (State.PASS, "as planned", "")))
        return whole(self.name, device, parts, "exposures are as planned")

    @abstractmethod
    def wrong(
        self, table: NatTable, tenant: dict[str, Any], facts: dict[str, Any], exposure: Exposure
    ) -> Iterator[tuple[str, str]]:
        """Yield what is wrong with one exposure and where in the rules."""


def _subject(device: str, facts: dict[str, Any]) -> str:
    return f"{device} {facts['label']}"


def _exposure_part(
    check: str, device: str, tenant: dict[str, Any], facts: dict[str, Any], verdict: tuple[State, str, str]
) -> Result:
    state, text, place = verdict
    labels = {"device": device, "tenant": tenant["name"], "vrf": tenant["vrf"], "mode": facts["mode"]}
    where = f"{device} table ip kvfabric, {place}" if place else ""
    return Result(check, _subject(device, facts), state, text, where, labels=labels)


class NatRules(_NatCheck):
    """A gateway translates every exposure as planned: its share of the pool, its forwards, its one-to-one pairs.

    Pass: the kernel's rules hold exactly the planned addresses and ports.
    Fail: a pool, a forward or a pair is missing, wrong or too much.
    Error: the rules cannot be read.
    Skipped: when the gateway does not take traffic.
    Example:
        nat-rules:
          - {device: gw-01}
    """

    def wrong(
        self, table: NatTable, tenant: dict[str, Any], facts: dict[str, Any], exposure: Exposure
    ) -> Iterator[tuple[str, str]]:
        """Compare the rules of the exposure's mode."""
        if exposure.mode == "masquerade":
            pools = table.pools.get(tenant["zone"], set())
            if pools != {tuple(facts["pool"])}:
                found = ", ".join(f"{first} to {last}" for first, last in sorted(pools)) or "no address"
                text = f"sources leave with {found}, the plan says {facts['pool'][0]} to {facts['pool'][1]}"
                yield text, f"chain post_nat, tenant {tenant['name']}"
        elif exposure.mode == "portForward":
            public = str(IPv4Network(exposure.public[0]).network_address)
            wanted = {(public, p.protocol, p.public_port, p.private_address, p.private_port) for p in exposure.ports}
            found_here = {forward for forward in table.forwards if forward[0] == public}
            for one in sorted(wanted ^ found_here):
                how = "is missing" if one in wanted else "is there and not in the plan"
                yield f"forward {one[0]} {one[1]} {one[2]} to {one[3]} {one[4]} {how}", "map forwards"
        else:
            for public, private in zip(exposure.public, exposure.private, strict=True):
                if (_plain(public), _to(private)) not in table.inbound:
                    yield f"{public} does not arrive at {private}", "chain pre_static"
                if (_plain(private), _to(public)) not in table.outbound:
                    yield f"{private} does not leave with {public}", "chain post_static"


def _plain(prefix: str) -> str:
    return prefix.removesuffix("/32")


def _to(prefix: str) -> str:
    return prefix.partition("/")[0]


class NatTimeouts(_NatCheck):
    """A gateway keeps idle flows for as long as each exposure declares, by protocol and state.

    Pass: every timer of every exposure has the planned seconds.
    Fail: a timer differs or its policy is missing.
    Error: the rules cannot be read.
    Skipped: when the gateway does not take traffic.
    Example:
        nat-timeouts:
          - {device: gw-01}
    """

    def wrong(
        self, table: NatTable, tenant: dict[str, Any], facts: dict[str, Any], exposure: Exposure
    ) -> Iterator[tuple[str, str]]:
        """Compare timer by timer."""
        del tenant, exposure
        for protocol, wanted in facts["timeouts"].items():
            name = f"{protocol}.{facts['label']}"
            found = table.timers.get(name)
            if found is None:
                yield f"there are no timers for {protocol}", f"ct timeout {name}"
                continue
            differ = [f"{s} {found.get(s, 0)} s (planned {n} s)" for s, n in wanted.items() if found.get(s) != n]
            if differ:
                yield f"idle {protocol} flows are kept otherwise: {', '.join(differ)}", f"ct timeout {name}"


class GatewayDrift(_GatewayCheck):
    """A gateway has the rendered files, and its kernel has the rules of its file and no others.

    What gatewayctl fills at run time (the sets of a drain) is not compared.

    Pass: the files' checksums are those of the rendered ones, and the running rules are those of the file.
    Fail: a file differs or is missing, or a rule was added, changed or removed by hand.
    Error: files or rules cannot be read.
    Skipped: when the gateway does not take traffic, or a check of its rules failed, which says more.
    Example:
        gateway-drift:
          - {device: gw-01}
    """

    # the last: the file's rules as this gateway's nft prints them
    questions = ("file-sums", "nft-running", "nft-file")
    stands_on = ("gateway-serving", "nat-rules", "nat-timeouts")

    def judge(self, plan: Plan, inputs: DeviceInputs, observations: Observations) -> Result:
        """Compare files, then rules line by line."""
        device = inputs.device
        parts = _files(self.name, device, rendered(plan, device), answer_of(observations, device, "file-sums"))
        running = _rules(answer_of(observations, device, "nft-running"))
        loaded = _rules(answer_of(observations, device, "nft-file"))
        for extra, lines in ((False, loaded - running), (True, running - loaded)):
            for chain, line in sorted(lines):
                text = f"runs `{line}`, which is not in its file" if extra else f"does not run `{line}` of its file"
                place = f"{device} table ip kvfabric, {chain}"
                parts.append(Result(self.name, f"{device} {chain}", State.FAIL, text, place, labels={"device": device}))
        return whole(self.name, device, parts, f"files are as rendered, and {len(running)} rules run as written")


def _files(check: str, device: str, files: dict[str, str], said: str) -> list[Result]:
    import hashlib

    sums = {words[1].lstrip("*"): words[0] for line in said.splitlines() if len(words := line.split()) == 2}
    parts = []
    for name, text in files.items():
        good = sums.get(name) == hashlib.sha256(text.encode()).hexdigest()
        what = "as rendered" if good else "differs from the rendered one" if name in sums else "is not there"
        place = "" if good else f"{device} /etc/kvfabric/{name}"
        state = State.PASS if good else State.FAIL
        parts.append(Result(check, f"{device} {name}", state, what, place, labels={"device": device}))
    return parts


def _rules(text: str) -> set[tuple[str, str]]:
    """Return (block, line) of `nft -s list table`, without the elements that gatewayctl fills."""
    found: set[tuple[str, str]] = set()
    block, filled = "", False
    for line in (" ".join(line.split()) for line in text.splitlines()):
        if line.endswith("{") and not line.startswith("elements"):
            block, filled = line.removesuffix(" {"), False
        filled = filled or "gatewayctl fills it" in line
        if line and line != "}" and not (filled and line.startswith("elements")):
            found.add((block, line))
    if not any(line.startswith("table ") for _, line in found):
        message = f"`nft list table` printed no rules: {text.strip()[:60]!r}"
        raise UnreadableError(message)
    return found
