"""A rig in network namespaces: a tester's two ports around real nftables gateways, on any Linux host with root.

It proves the probes, and it finds the tester's own limit (the same rig with plain forwarding) before a real gateway is
blamed. Nothing leaves the host; `close` removes everything.
"""

from __future__ import annotations

import itertools
import os
import subprocess
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fabric.problem import CouldNotRunError

if TYPE_CHECKING:
    from types import TracebackType

INSIDE, INSIDE_HOP = "10.1.0.0/16", "10.1.0.1"
OUTSIDE, OUTSIDE_HOP = "198.18.0.0/16", "198.18.0.1"
_SIDES = {"inside": INSIDE_HOP, "outside": OUTSIDE_HOP}

_rigs = itertools.count()

_RULES = """\
table ip site {{
  ct timeout gw-tcp {{
    protocol tcp
    l3proto ip
    policy = {{ {tcp} }}
  }}
  ct timeout gw-udp {{
    protocol udp
    l3proto ip
    policy = {{ {udp} }}
  }}
  ct timeout gw-dns {{
    protocol udp
    l3proto ip
    policy = {{ {dns} }}
  }}
  map forwards {{
    type inet_proto . inet_service : ipv4_addr . inet_service
    elements = {{ tcp . 443 : 10.1.0.10 . 8443, udp . 4433 : 10.1.0.10 . 8433 }}
  }}
  set static-ends {{
    type ipv4_addr
    flags interval
    elements = {{ 10.1.200.0/24, 203.0.113.128/28 }}
  }}
  map static-in {{
    type ipv4_addr : ipv4_addr
    elements = {{ {static_in} }}
  }}
  map static-out {{
    type ipv4_addr : ipv4_addr
    elements = {{ {static_out} }}
  }}
  chain untracked {{
    type filter hook prerouting priority raw; policy accept;
    iifname "outside" ip daddr 10.1.0.0/16 drop
    iifname "inside" ip daddr 203.0.113.0/24 accept
    ip saddr @static-ends notrack
    ip daddr @static-ends notrack
  }}
  chain static-arrives {{
    type filter hook prerouting priority -299; policy accept;
    iifname "outside" ip daddr set ip daddr map @static-in
  }}
  chain static-leaves {{
    type filter hook postrouting priority 300; policy accept;
    oifname "outside" ip saddr set ip saddr map @static-out
  }}
  chain timers {{
    type filter hook prerouting priority mangle; policy accept;
    udp dport 53 ct timeout set "gw-dns"
    udp dport != 53 ct timeout set "gw-udp"
    meta l4proto tcp ct timeout set "gw-tcp"
  }}
  chain arrives {{
    type nat hook prerouting priority dstnat; policy accept;
    ip daddr 203.0.113.{forward} dnat ip addr . port to meta l4proto . th dport map @forwards
    iifname "inside" dnat to ip daddr map @static-in
  }}
  chain leaves {{
    type nat hook postrouting priority srcnat; policy accept;
    oifname "outside" ip saddr 10.1.0.0/16 snat to 203.0.113.{first}-203.0.113.{last} persistent
    oifname "inside" ip saddr 10.1.0.0/16 ct status dnat snat to 203.0.113.{first}
  }}
  set drained {{
    type ifname
  }}
  counter refused-new {{
  }}
  chain passes {{
    type filter hook forward priority filter; policy drop;
    ct state untracked accept
    ct state established,related accept
    iifname @drained ct state new counter name refused-new drop
    ct state invalid drop
    iifname "inside" oifname "outside" accept
    ct status dnat accept
  }}
}}
"""


@dataclass(frozen=True)
class Timers:
    """Rendered timers in seconds, in the words of the connection table."""

    tcp: dict[str, int] = field(
        default_factory=lambda: {
            "established": 6,
            "syn_sent": 3,
            "syn_recv": 3,
            "fin_wait": 4,
            "close_wait": 4,
            "close": 2,
        }
    )
    udp: dict[str, int] = field(default_factory=lambda: {"unreplied": 3, "replied": 5})
    dns: dict[str, int] = field(default_factory=lambda: {"unreplied": 2, "replied": 2})
    icmp_s: int = 4

    def declared(self) -> dict[str, float]:
        """Return the idle truth table that these timers promise."""
        return {
            "icmp": self.icmp_s,
            "udp-one-way": self.udp["unreplied"],
            "udp-two-way": self.udp["replied"],
            "dns": self.dns["replied"],
            "tcp-half-open": self.tcp["syn_sent"],
            "tcp-established": self.tcp["established"],
            "tcp-half-closed": self.tcp["close_wait"],
        }


LONG = Timers(
    {"established": 300, "syn_sent": 60, "syn_recv": 60, "fin_wait": 60, "close_wait": 60, "close": 5},
    {"unreplied": 120, "replied": 120},
    {"unreplied": 20, "replied": 20},
    60,
)


def rules(timers: Timers, *, member: int = 0) -> str:
    """Return the nftables rules of gateway `member`: each gateway masquerades to its own eight addresses."""
    pairs = [(f"10.1.200.{i}", f"203.0.113.{128 + i}") for i in range(16)]
    first = 8 * member
    return _RULES.format(
        tcp=_policy(timers.tcp),
        udp=_policy(timers.udp),
        dns=_policy(timers.dns),
        static_in=", ".join(f"{public} : {private}" for private, public in pairs),
        static_out=", ".join(f"{private} : {public}" for private, public in pairs),
        first=first,
        last=first + 7,
        forward=64,
    )


def _policy(timers: dict[str, int]) -> str:
    return ", ".join(f"{state} : {seconds}" for state, seconds in timers.items())


class Rig:
    """Namespaces `inside` and `outside` with a tester port each, and gateways, one of which has the cables."""

    def __init__(
        self, timers: Timers = LONG, *, gateways: int = 1, nat: bool = True, own_cpu: bool = False, tag: str = ""
    ) -> None:
        """Build it; raises CouldNotRunError without root, ip or nft. `nat=False` only forwards packets."""
        self.tag = tag or f"kv{os.getpid() % 100000}-{next(_rigs)}"
        self.inside, self.outside = (f"{self.tag}-{name}" for name in ("in", "out"))
        self.gateways = [f"{self.tag}-gw{i}" for i in range(gateways)]
        self.active = 0
        try:
            self._build(timers, nat=nat, own_cpu=own_cpu)
        except BaseException:
            self.close()
            raise

    @property
    def gateway(self) -> str:
        """The namespace of the active gateway."""
        return self.gateways[self.active]

    def _build(self, timers: Timers, *, nat: bool, own_cpu: bool) -> None:
        for name in (self.inside, self.outside, *self.gateways):
            _run("ip", "netns", "add", name)
        for member, name in enumerate(self.gateways):
            self._set_up_gateway(name, rules(timers, member=member) if nat else "", timers)
        for side, space in _SIDES.items():
            far = getattr(self, side)
            _run(
                "ip", "link", "add", side, "netns", self.gateway, "type", "veth", "peer", "name", "tester", "netns", far
            )
            _run("ip", "-n", far, "link", "set", "tester", "up")
            _run("ip", "-n", self.gateway, "addr", "add", f"{space}/16", "dev", side)
            _run("ip", "-n", self.gateway, "link", "set", side, "up")
        if own_cpu:
            self._own_cpu(self.gateway)

    def _own_cpu(self, name: str) -> None:
        """Let the gateway forward on the last CPU, not inside the tester's send call: its knee is then its own."""
        cpus = os.cpu_count() or 1
        if cpus > 1:
            mask = f"{1 << (cpus - 1):x}"
            for side in ("inside", "outside"):
                place = f"/sys/class/net/{side}/queues/rx-0/rps_cpus"
                _run("ip", "netns", "exec", name, "sh", "-c", f"echo {mask} > {place}", check=False)

    def _set_up_gateway(self, name: str, text: str, timers: Timers) -> None:
        _run("ip", "-n", name, "link", "set", "lo", "up")
        _run("ip", "-n", name, "route", "add", "blackhole", "203.0.113.0/24")
        _run("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        for key, value in (("icmp_timeout", timers.icmp_s), ("tcp_max_retrans", 255)):
            _run("ip", "netns", "exec", name, "sysctl", "-qw", f"net.netfilter.nf_conntrack_{key}={value}")
        if text:
            _run("ip", "netns", "exec", name, "nft", "-f", "-", stdin=text)

    def cut(self) -> None:
        """Take the active gateway off the wire, as when it dies."""
        for side in _SIDES:
            _run("ip", "-n", self.gateway, "link", "set", side, "down")

    def switch(self, member: int) -> None:
        """Plug the tester's cables into another gateway; it knows nothing of the flows of the last one."""
        before, self.active = self.gateway, member
        for side, hop in _SIDES.items():
            if before != self.gateway:
                _run("ip", "-n", before, "link", "set", side, "netns", self.gateway)
                _run("ip", "-n", self.gateway, "addr", "add", f"{hop}/16", "dev", side)
            _run("ip", "-n", self.gateway, "link", "set", side, "up")

    def give_addresses(self, ends: dict[str, tuple[str, str]]) -> None:
        """Give the kernel of a side an address and a default route, for services and clients with real sockets."""
        for side, (address, hop) in ends.items():
            space = getattr(self, side)
            _run("ip", "-n", space, "link", "set", "lo", "up")
            _run("ip", "-n", space, "addr", "add", f"{address}/16", "dev", "tester")
            _run("ip", "-n", space, "route", "add", "default", "via", hop)

    def drain(self, *, undo: bool = False) -> None:
        """Refuse new flows at the active gateway and keep the open ones, or undo that."""
        verb = "delete" if undo else "add"
        elements = '{ "inside", "outside" }'
        _run("ip", "netns", "exec", self.gateway, "nft", f"{verb} element ip site drained {elements}")

    def prefix(self, space: str) -> list[str]:
        """Return the words that run a command in one of the rig's namespaces."""
        return ["ip", "netns", "exec", space]

    def close(self) -> None:
        """Remove the namespaces and all that is in them."""
        for name in (self.inside, self.outside, *self.gateways):
            _run("ip", "netns", "del", name, check=False)

    def __enter__(self) -> Rig:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _run(*words: str, stdin: str = "", check: bool = True) -> str:
    try:
        done = subprocess.run(words, input=stdin, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired) as error:
        if not check:
            return ""
        raise CouldNotRunError(f"{words[0]}: {error}") from error
    if check and done.returncode != 0:
        raise CouldNotRunError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout
