#!/usr/bin/env python3
"""gatewayctl: state, drain and health of one kvfabric gateway. Runs on the gateway; standard library only.

    gatewayctl status [--json]        sessions, flows, what is announced, whether it is drained or withdrawn
    gatewayctl drain [--deadline S]   new flows go to the standby; wait for the old ones to end; then routes move
    gatewayctl undrain                take traffic again
    gatewayctl health [--once]        check every interval; withdraw after N failures, come back after N successes
    gatewayctl metrics                Prometheus text

What was asked for is kept in a file, so that every command can be run again, also after one was killed half way:
`drain` and `undrain` go on where they stopped, and `health` puts back what a restart of FRR or a reload of nftables has
lost.
Exit codes: 0 done, 1 not well (checks fail, or flows were left at the deadline), 2 usage, 3 could not run.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator

CONFIG = Path("/etc/kvfabric/gateway.json")
STATE_FOLDER = Path("/var/lib/kvfabric")
VTYSH = shlex.split(os.environ.get("KVFABRIC_VTYSH", "vtysh"))
SHUTDOWN = "graceful-shutdown"
FULL = 0.98  # of the conntrack table: above it new flows are lost
# a closed flow waits for late packets only: stopping the gateway cuts nothing
OVER = ("TIME_WAIT", "CLOSE", "LAST_ACK")


class CannotRunError(Exception):
    """A tool is missing or refuses."""


def say(text: str) -> None:
    """Write a line at once, so that a watcher sees progress."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def run(argv: list[str], text: str | None = None) -> str:
    """Run a tool and return what it printed."""
    try:
        done = subprocess.run(argv, input=text, capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotRunError(f"{argv[0]}: {error}") from error
    if done.returncode:
        raise CannotRunError(f"{' '.join(argv)}: {(done.stderr or done.stdout).strip()[:300]}")
    return done.stdout


class Gateway:
    """This gateway: its facts, and the state that its operator wants."""

    def __init__(self, config: Path, folder: Path) -> None:
        try:
            self.facts: dict[str, Any] = json.loads(config.read_text())
        except (OSError, ValueError) as error:
            raise CannotRunError(f"{config}: {error}") from error
        self.folder = folder / self.facts["name"]
        self.file = self.folder / "state.json"

    # ------------------------------------------------------------------ state on disk

    def state(self) -> dict[str, Any]:
        """Return the state; an absent or torn file means active."""
        found: dict[str, Any] = {
            "phase": "active", "withdrawn": False, "failures": 0, "successes": 0, "takers": {},
        }  # fmt: skip
        with contextlib.suppress(OSError, ValueError):
            found.update(json.loads(self.file.read_text()))
        return found

    def keep(self, **changes: Any) -> dict[str, Any]:
        """Change the state file, at once or not at all; return the new state."""
        state = {**self.state(), **changes}
        self.folder.mkdir(parents=True, exist_ok=True)
        temporary = self.file.with_suffix(f".{os.getpid()}")
        with temporary.open("w") as stream:
            json.dump(state, stream, indent=1)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(self.file)
        return state

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Let no other drain or undrain run meanwhile."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / "lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise CannotRunError("another drain or undrain is at work") from None
            yield

    # ------------------------------------------------------------------ FRR

    def show(self, command: str) -> Any:
        """Return the JSON answer of a vtysh command."""
        text = run([*VTYSH, "-c", command])
        try:
            return json.loads(text)
        except ValueError:
            raise CannotRunError(f"vtysh -c '{command}': {text.strip()[:200]}") from None

    def configure(self, *lines: str) -> None:
        """Change FRR's running configuration."""
        argv = [*VTYSH, "-c", "configure terminal"]
        for line in lines:
            argv += ["-c", line]
        said = run(argv)
        if "% " in said and "already" not in said:
            raise CannotRunError(f"vtysh: {said.strip()[:300]}")

    def running(self) -> list[str]:
        """Return FRR's running configuration, by line."""
        return [line.strip() for line in run([*VTYSH, "-c", "show running-config"]).splitlines()]

    def mark(self, names: Collection[str], community: str, on: bool, running: list[str] | None = None) -> None:
        """Add a community to all that these route-maps permit, or no longer; twice is once."""
        running = self.running() if running is None else running
        starts = tuple(f"route-map {name} permit " for name in names)
        entries = [number for number, line in enumerate(running) if line.startswith(starts)]
        if on and not entries:
            raise CannotRunError(f"FRR has none of the route-maps {', '.join(names)}")
        text = f"set community {community} additive"
        steps = [
            (running[at], f"{'' if on else 'no '}{text}", "exit")
            for at in entries
            if (text in itertools.takewhile(lambda line: line != "exit", running[at:])) != on
        ]
        if steps:
            self.configure(*(line for step in steps for line in step))

    def graceful_shutdown(self, on: bool, running: list[str] | None = None) -> None:
        """Mark what draws traffic here with the graceful-shutdown community (RFC 8326), or no longer; twice is once.

        Not by `bgp graceful-shutdown`: that marks the way to this gateway's own tunnel end too, and while leaves and
        spines look for a better one than the direct one, packets for the gateway run in circles between them.
        """
        self.mark(self.facts["route_maps"].values(), SHUTDOWN, on, running)

    def tell_gateways(self, draining: bool, running: list[str] | None = None) -> None:
        """Mark the way to this gateway, so that no other passes flows on to one that takes none; it moves no route."""
        self.mark([self.facts["loopback_route_map"]], self.facts["drain_mark"], draining, running)

    def withdraw(self, on: bool, running: list[str] | None = None) -> None:
        """Announce nothing, inside and outside, or everything again; the sessions stay up."""
        running = self.running() if running is None else running
        for name in self.facts["route_maps"].values():
            if (f"route-map {name} deny 1" in running) != on:
                self.configure(f"{'' if on else 'no '}route-map {name} deny 1")

    def sessions(self, key: str, vrf: str) -> dict[str, bool]:
        """Return whether each session is established, by the device at its other end."""
        answer = self.show(f"show bgp{f' vrf {vrf}' if vrf else ''} summary json")
        peers = answer.get("ipv4Unicast", {}).get("peers", {})
        return {
            f"{s['device']} ({s['address']})": peers.get(s["address"], {}).get("state") == "Established"
            for s in self.facts[key]
        }

    # ------------------------------------------------------------------ nftables and conntrack

    def standbys(self) -> dict[str, dict[str, str]]:
        """Return the standby of each tenant that has one: it can be reached, and does not drain itself."""
        serving = {}
        found = {}
        for tenant in self.facts["tenants"]:
            for standby in tenant["standbys"]:
                name = standby["name"]
                if name not in serving:
                    serving[name] = self._serves(standby["vtep"])
                if serving[name]:
                    found[tenant["name"]] = standby
                    break
        return found

    def _serves(self, vtep: str) -> bool:
        if not run(["ip", "route", "show", f"{vtep}/32"]).strip():
            return False
        paths = self.show(f"show bgp ipv4 unicast {vtep}/32 json").get("paths", [])
        marked = [self.facts["drain_mark"] in path.get("community", {}).get("list", []) for path in paths]
        return bool(marked) and not any(marked)

    def hand_over(self, on: bool, standbys: dict[str, dict[str, str]] | None = None) -> dict[str, str]:
        """Send flows that are new here to a standby, or keep them again; returns the standby of each tenant.

        Flows known here go on as before: routes do not move yet. A tenant without a reachable standby has its new flows
        refused. The way to a standby is made by hand, since BGP has none: this gateway's own default route is better.
        """
        table = self.facts["table"]
        standbys = (self.standbys() if standbys is None else standbys) if on else {}
        lines = [f"flush set ip {table} handed_over", f"flush set ip {table} drained"]
        found: dict[str, str] = {}
        for tenant in self.facts["tenants"]:
            standby = standbys.get(tenant["name"])
            if standby:
                self._way_to(tenant, standby)
                lines.append(f"add element ip {table} handed_over {{ {tenant['zone']} }}")
                found[tenant["name"]] = standby["name"]
            if on:
                lines.append(f"add element ip {table} drained {{ {tenant['zone']} }}")
        run(["nft", "-f", "-"], "\n".join(lines) + "\n")
        if found != self.state()["takers"]:
            self.keep(takers=found)
        return found

    @staticmethod
    def _way_to(tenant: dict[str, Any], standby: dict[str, str]) -> None:
        mac, vtep, vxlan = standby["router_mac"], standby["vtep"], tenant["vxlan"]
        run(["bridge", "fdb", "replace", mac, "dev", vxlan, "master", "static"])
        run(["bridge", "fdb", "replace", mac, "dev", vxlan, "dst", vtep, "self", "permanent"])
        run(["ip", "neigh", "replace", vtep, "lladdr", mac, "dev", tenant["bridge"], "nud", "permanent"])
        way = ["default", "via", vtep, "dev", tenant["bridge"], "onlink", "table", str(tenant["handover_table"])]
        run(["ip", "route", "replace", *way])

    def refusing(self) -> bool:
        """Say whether this gateway takes no new flows."""
        return any("elem" in item.get("set", {}) for item in self._nft("set", "drained"))

    def _nft(self, kind: str, name: str = "") -> list[dict[str, Any]]:
        wanted = ["set", "ip", self.facts["table"], name] if name else [kind, "table", "ip", self.facts["table"]]
        found: list[dict[str, Any]] = json.loads(run(["nft", "-j", "list", *wanted]))["nftables"]
        return found

    def counters(self) -> dict[str, dict[str, int]]:
        """Return the table's counters: packets and bytes by name."""
        return {c["name"]: c for item in self._nft("counters") if (c := item.get("counter"))}

    def table_use(self) -> tuple[int, int]:
        """Return how many flows the kernel keeps, and how many it can."""
        folder = Path("/proc/sys/net/netfilter")
        try:
            count, most = (int((folder / f"nf_conntrack_{name}").read_text()) for name in ("count", "max"))
        except OSError as error:
            raise CannotRunError(f"conntrack: {error}") from error
        return count, most

    def flows(self) -> dict[str, int]:
        """Return how many flows are open, by `tenant.exposure`."""
        labels = {e["mark"]: e["label"] for t in self.facts["tenants"] for e in t["exposures"]}
        found = dict.fromkeys(labels.values(), 0)
        for line in _conntrack():
            mark = line.partition(" mark=")[2].partition(" ")[0]
            label = labels.get(int(mark)) if mark.isdigit() else None
            if label and not any(f" {state} " in line for state in OVER):
                found[label] += 1
        return found

    # ------------------------------------------------------------------ checks

    def checks(self) -> dict[str, str]:
        """Return what is wrong, empty when it is well, by check."""
        return {
            "fabric": self._attempt(lambda: self._some_up("fabric_sessions", "")),
            "edge": self._attempt(lambda: self._some_up("edge_sessions", self.facts["edge_vrf"])),
            "nftables": self._attempt(self._table_loaded),
            "conntrack": self._attempt(self._table_free),
        }

    @staticmethod
    def _attempt(check: Callable[[], str]) -> str:
        try:
            return check()
        except CannotRunError as error:
            return str(error)

    def _some_up(self, key: str, vrf: str) -> str:
        sessions = self.sessions(key, vrf)
        return "" if any(sessions.values()) else f"no session is up: {', '.join(sessions) or 'there is none'}"

    def _table_loaded(self) -> str:
        self._nft("set", "drained")
        return ""

    def _table_free(self) -> str:
        count, most = self.table_use()
        most = min(most, self.facts["conntrack_max"])
        return "" if count < FULL * most else f"{count} of {most} flows: new ones are lost"

    def put_back(self) -> None:
        """Make FRR and nftables what the state file says, after either of them was started anew."""
        state, running = self.state(), self.running()
        draining = state["phase"] != "active"
        self.graceful_shutdown(state["phase"] == "drained", running)
        self.tell_gateways(draining, running)
        self.withdraw(state["withdrawn"], running)
        if draining or self.refusing():
            self.hand_over(draining)


def _conntrack() -> Iterator[str]:
    """Yield the lines of the flow table as they come: there may be millions."""
    try:
        process = subprocess.Popen(["conntrack", "-L"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    except OSError:
        try:
            with Path("/proc/net/nf_conntrack").open() as stream:
                yield from stream
        except OSError as error:
            raise CannotRunError(f"neither conntrack nor {error.filename} is there") from None
        return
    assert process.stdout
    yield from process.stdout
    if process.wait():
        raise CannotRunError("conntrack -L failed")
