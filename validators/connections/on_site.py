"""The gateway probes on a real site: agents over SSH on the test hosts that the hosts file names."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING

from validators.check import NotJudgedError
from validators.connections.command import Place, Testers
from validators.connections.programs import CommandHost
from validators.devices.hosts import INSIDE, OUTSIDE
from validators.devices.ssh import SshDevices
from validators.results import State

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fabric.plan import Plan
    from validators.check import Context
    from validators.connections.from_plan import Target
    from validators.devices.hosts import Host

_EXAMPLE = "data: {tester: {side: %s, port: INTERFACE, hop: ADDRESS, network: PREFIX, hosts: [ADDRESS, ADDRESS]}}"


def hosts_of(context: Context) -> Mapping[str, Host] | None:
    """Return the hosts file of a real site; None where there is none."""
    inner = getattr(context.devices, "inner", context.devices)
    return inner.hosts if isinstance(inner, SshDevices) else None


def testers_of(plan: Plan, hosts: Mapping[str, Host], target: Target) -> Testers:
    """Start agents on the test hosts of an exposure, and on its gateway when that can be reached by key.

    Raises NotJudgedError (skipped) that says what the hosts file lacks, and CouldNotRunError.
    """
    outside = next((host for host in hosts.values() if host.tester and host.tester.side == OUTSIDE), None)
    if outside is None:
        message = f"the hosts file names no tester outside the gateways: add a host with `{_EXAMPLE % OUTSIDE}`"
        raise NotJudgedError(message, State.SKIPPED)
    inside = next((host for host in hosts.values() if _speaks_for(plan, host, target)), None)
    if inside is None:
        private = ", ".join(target.exposure.private)
        message = f"no tester of the hosts file speaks for {target.subject} ({private}): give one of its servers"
        message += f" `{_EXAMPLE % INSIDE}`, with addresses of {private} that no kernel has"
        raise NotJudgedError(message, State.SKIPPED)
    near = [hosts[name] for name in plan.groups[target.exposure.group].gateways if name in hosts]
    gateway = next((host for host in near if host.key_file), None)
    return Testers(_place(inside), _place(outside), _over_ssh(gateway) if gateway else None)


def _speaks_for(plan: Plan, host: Host, target: Target) -> bool:
    tester, exposure = host.tester, target.exposure
    if tester is None or tester.side != INSIDE or host.name not in plan.servers:
        return False
    if not any(port.tenant == exposure.tenant for port in plan.servers[host.name].ports):
        return False
    # the other host of a forward or a pair is only a neighbour that tries the hairpin
    spoken = tester.hosts if exposure.mode == "masquerade" else tester.hosts[:1]
    private = [IPv4Network(prefix) for prefix in exposure.private]
    return all(any(IPv4Address(address) in prefix for prefix in private) for address in spoken)


def _place(host: Host) -> Place:
    assert host.tester is not None
    tester = host.tester
    return Place(_over_ssh(host), tester.port, tester.hop, tester.network, tester.hosts)


def _over_ssh(host: Host) -> CommandHost:
    """Programs get there by the system's own ssh, which asks nobody for a password: by key or agent."""
    words = ["ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-p", str(host.port), "-l", host.username]
    words += ["-i", str(Path(host.key_file).expanduser())] if host.key_file else []
    if host.known_hosts:
        words += ["-o", f"UserKnownHostsFile={host.known_hosts}", "-o", "StrictHostKeyChecking=yes"]
    # raw sockets are root's
    sudo = [] if host.username == "root" else ["sudo", "-n"]
    return CommandHost([*words, host.hostname, *sudo])
