"""Checks of BGP and BFD sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from validators.cabling.checks import whole
from validators.check import Check, CheckInputs, DeviceInputs, Observations, Stage, answer_of
from validators.control_plane.expected import Session, routers, sessions
from validators.control_plane.frr_json import bfd_of, bfd_peers, bgp_peers
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.plan import Plan


class _SessionCheck(Check, abstract=True):
    stage = Stage.CONTROL_PLANE
    Inputs = DeviceInputs

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per router with sessions in the plan."""
        yield from (DeviceInputs(device=device) for device in routers(plan) if sessions(plan, device))


def _part(check: str, device: str, session: Session, state: State, text: str) -> Result:
    place = "" if state is State.PASS else f"{device} {session.port} ({session.interface}), link {session.link}"
    labels = {"device": device, "port": session.port, "link": session.link}
    return Result(check, f"{device} {session.port} -> {session.far}", state, text, place, labels=labels)


class BgpSessions(_SessionCheck):
    """Every BGP session of the plan is established with the right AS and with the address families it should carry.

    Pass: each planned session is Established in IPv4 unicast, and in L2VPN EVPN inside the site.
    Fail: a session is down, carries too few families, has another AS, or exists without being planned.
    Error: FRR gives no summary, for example because bgpd does not run.
    Skipped: never.
    Example:
        bgp-sessions:
          - {device: be-leaf-01}
    """

    questions = ("bgp",)
    stands_on = ("port-vrf", "port-address")

    def judge(self, plan: Plan, inputs: DeviceInputs, observations: Observations) -> Result:
        """Compare session by session."""
        peers = bgp_peers(answer_of(observations, inputs.device, "bgp"))
        planned = sessions(plan, inputs.device)
        parts = [_part(self.name, inputs.device, s, *_bgp_verdict(s, peers.get(s.neighbour, {}))) for s in planned]
        for extra in sorted(peers.keys() - {s.neighbour for s in planned}):
            text = f"a session with {extra} is configured, and no plan has it"
            parts.append(
                Result(self.name, f"{inputs.device} {extra}", State.FAIL, text, f"{inputs.device} neighbor {extra}")
            )
        return whole(self.name, inputs.device, parts, "BGP sessions are established")


def _bgp_verdict(session: Session, families: dict[str, dict[str, Any]]) -> tuple[State, str]:
    if not families:
        return State.FAIL, f"no BGP neighbour {session.neighbour} towards {session.far}"
    for family in session.families:
        peer = families.get(family)
        if peer is None:
            return State.FAIL, f"the session to {session.far} does not carry {family}"
        if peer.get("state") != "Established":
            return State.FAIL, f"BGP {family} to {session.far} is {peer.get('state', 'unknown')}, not Established"
        if session.asn and int(peer.get("remoteAs", 0)) != session.asn:
            return State.FAIL, f"{session.far} has AS {peer.get('remoteAs')}, the plan says {session.asn}"
    uptime = next(iter(families.values())).get("peerUptime", "")
    return State.PASS, f"established with AS {session.asn}" + (f" for {uptime}" if uptime else "")


class BfdSessions(_SessionCheck):
    """Every BGP session of the plan is watched by BFD, and BFD says that it is up.

    Pass: each planned session has a BFD session in state up.
    Fail: BFD is down or missing for a session, so that a dead path is noticed only by BGP's hold time.
    Error: FRR gives no BFD peers, for example because bfdd does not run.
    Skipped: never.
    Example:
        bfd-sessions:
          - {device: be-leaf-01}
    """

    questions = ("bfd",)
    stands_on = ("bgp-sessions",)

    def judge(self, plan: Plan, inputs: DeviceInputs, observations: Observations) -> Result:
        """Compare session by session; unnumbered sessions are found by interface."""
        peers = bfd_peers(answer_of(observations, inputs.device, "bfd"))
        parts = []
        for session in sessions(plan, inputs.device):
            peer = bfd_of(peers, session.neighbour)
            if peer is None:
                state, text = State.FAIL, f"no BFD session towards {session.far}"
            elif peer.get("status") != "up":
                state, text = (
                    State.FAIL,
                    f"BFD to {session.far} is {peer.get('status')} ({peer.get('diagnostic', 'no reason given')})",
                )
            else:
                state, text = (
                    State.PASS,
                    f"up, {peer.get('receive-interval', '?')} ms x {peer.get('detect-multiplier', '?')}",
                )
            parts.append(_part(self.name, inputs.device, session, state, text))
        return whole(self.name, inputs.device, parts, "BFD sessions are up")
