"""Where a probe runs: which agent reaches a device of the plan, and what its RDMA devices are called.

Two kinds: the nodes of a running lab, and a real site over SSH. Whoever has `validators.devices` open (an acceptance)
gets the same places from them with `places_of`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from fabric.problem import InputError, Problem
from validators.agents.agent import LabAgent, Sessions, SshAgent
from validators.devices.dialects import LINUX, SONIC

if TYPE_CHECKING:
    from fabric.plan import Plan
    from validators.agents.agent import Agent
    from validators.devices.hosts import Host
    from validators.rdma.endpoints import Endpoint


class Places(Protocol):
    """How a probe reaches a site. `physical` is False where ports are virtual: no ASIC, no PFC of its own."""

    physical: bool

    def agent(self, device: str) -> Agent:
        """Return the agent of a server or switch."""

    def reaches(self, device: str) -> bool:
        """Whether the device can be reached at all."""

    def dialect(self, device: str) -> str:
        """Return which commands the device understands (`validators.devices.dialects`)."""

    def rdma_device(self, end: Endpoint) -> str:
        """Return the RDMA device of a NIC port, empty when its address decides."""

    def abandon(self) -> None:
        """End what still runs there, because nobody waits for it any more (Ctrl-C)."""


_WHERE = "without --lab and --hosts the plan's management addresses are asked: give --lab NAME, or --hosts FILE"


def management(plan: Plan, device: str) -> str:
    """Return where a device is reached when nobody says more: its management address, else its own name."""
    known = plan.servers.get(device) or plan.switches[device]
    return known.management.split("/")[0] or device


class LabPlaces:
    """The nodes of a running lab; every node is a Linux machine."""

    physical = False

    def __init__(self, running: Any) -> None:
        self.running = running
        self.nodes = frozenset(node.name for node in running.lab.nodes)

    def agent(self, device: str) -> Agent:
        """Return the node."""
        return LabAgent(self.running, device)

    def reaches(self, device: str) -> bool:
        """A slice of a site has only some of its devices."""
        return device in self.nodes

    def dialect(self, device: str) -> str:
        """Return Linux for all."""
        del device
        return LINUX

    def rdma_device(self, end: Endpoint) -> str:
        """Return the lab's name: tenants of a lab may overlap in addresses, and one kernel has all their devices."""
        return f"{end.server}.{end.port}"

    def abandon(self) -> None:
        """Leave and come back: a lab kills what a connection started when the connection ends."""
        self.running.close()
        self.running = type(self.running)(self.running.folder)


class SshPlaces:
    """A real site. A hosts file says how each device is reached; without one, the plan's management addresses do."""

    physical = True

    def __init__(self, plan: Plan, user: str = "", hosts: dict[str, Host] | None = None) -> None:
        self.plan, self.user, self.hosts = plan, user, hosts
        self._sessions = Sessions()

    def agent(self, device: str) -> Agent:
        """Return SSH to the device. Keys and jump hosts are those of your own SSH configuration."""
        if self.hosts is not None:
            host = self.hosts[device]
            options = ("-p", str(host.port), *(("-i", host.key_file) if host.key_file else ()))
            options += ("-o", f"UserKnownHostsFile={host.known_hosts}") if host.known_hosts else ()
            target = f"{host.username}@{host.hostname}"
            return SshAgent(device, target, options=options, sessions=self._sessions)
        address = management(self.plan, device)
        target = f"{self.user}@{address}" if self.user else address
        return SshAgent(device, target, hint=_WHERE, sessions=self._sessions)

    def reaches(self, device: str) -> bool:
        """With a hosts file, only what it names."""
        return self.hosts is None or device in self.hosts

    def dialect(self, device: str) -> str:
        """Return what the hosts file says, else what the plan's NOS is."""
        if self.hosts is not None and device in self.hosts:
            return self.hosts[device].dialect
        switch = self.plan.switches.get(device)
        return SONIC if switch is not None and switch.nos == "sonic" else LINUX

    def rdma_device(self, end: Endpoint) -> str:
        """The address decides: real hosts have one owner per address."""
        del end
        return ""

    def abandon(self) -> None:
        """End the ssh processes, and their sessions with them: a signal to us alone does not reach them."""
        self._sessions.end()


def lab_places(name: str, plan: Plan) -> LabPlaces:
    """Return the places of a running lab. Raises InputError when it is a lab of another site or plan."""
    from labs.client import attach

    running = attach(name)
    if running.lab.plan_digest and running.lab.plan_digest != plan.digest:
        text = f"the running lab {running.lab.name} is of site {running.lab.site}, made from another plan"
        running.close()
        raise InputError([Problem("probe.lab", name or plan.site, text, "start the lab again from this site")])
    return LabPlaces(running)


def ssh_places(plan: Plan, user: str = "", hosts: str = "") -> SshPlaces:
    """Return the places of a real site; `hosts` is a hosts file as `kvfabric accept` reads it. Raises InputError."""
    from pathlib import Path

    from validators.devices.hosts import read_hosts

    if not hosts:
        return SshPlaces(plan, user)
    return SshPlaces(plan, user, read_hosts(Path(hosts), plan))


def places_of(plan: Plan, devices: Any) -> Places | None:
    """Return the places behind an engine of `validators.devices`; None for stored answers, where nothing can run."""
    from validators.devices.lab import LabDevices
    from validators.devices.ssh import SshDevices

    inner = getattr(devices, "inner", devices)
    if isinstance(inner, LabDevices):
        return LabPlaces(inner.running)
    if isinstance(inner, SshDevices):
        return SshPlaces(plan, hosts=inner.hosts)
    return None
