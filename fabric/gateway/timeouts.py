"""How long a gateway keeps an idle flow, by protocol and state: the declared side of the idle-timeout truth table.

`idleTimeout` of an exposure is the time an established flow may be silent. Flows that are not yet or no longer
established are kept for less, so that half-open and finished flows do not fill the pool. All times are whole seconds;
the names of the states are those of Linux conntrack. ICMP has one timer for the whole gateway, since nftables has no
policy for it.
"""

from __future__ import annotations

ICMP_S = 60  # RFC 5508 REQ-1: an ICMP query session is kept at least 60 s
DNS_S = 10  # a question and its answer; the RFC 4787 REQ-5 exception for well-known ports
DNS_PORT = 53
DEFAULT_IDLE_S = 120
MIN_IDLE_S, MAX_IDLE_S = 1, 86_400

_TCP_MOST = {
    "syn_sent": 20,
    "syn_recv": 20,
    "fin_wait": 120,
    "close_wait": 120,
    "last_ack": 20,
    "time_wait": 10,
    "close": 5,
}
_UDP_ONE_WAY_S = 30
SHORTEST_SCALED_S = 2


def tcp(idle_s: int) -> dict[str, int]:
    """Return the TCP timers of an exposure by conntrack state.

    `retrans` and `unack` replace `established` while data is unacknowledged; they are equal to it so that idle means
    idle whatever the last packet was. Half-closed flows (`fin_wait`, `close_wait`) may go on for up to two minutes of
    silence: a server may stream after the client's FIN.
    """
    timers = {state: min(most, idle_s) for state, most in _TCP_MOST.items()}
    return {"established": idle_s, "retrans": idle_s, "unack": idle_s, **timers}


def udp(idle_s: int) -> dict[str, int]:
    """Return the UDP timers of an exposure: one way (`unreplied`) and two-way (`replied`)."""
    return {"unreplied": min(_UDP_ONE_WAY_S, idle_s), "replied": idle_s}


def dns(idle_s: int) -> dict[str, int]:
    """Return the timers of UDP flows to port 53."""
    return {"unreplied": min(DNS_S, idle_s), "replied": min(DNS_S, idle_s)}


def truth_table(idle_s: int) -> dict[str, int]:
    """Return the declared idle time of each row that can be measured: `udp-one-way`, `tcp-established` and so on.

    Linux calls a UDP flow two-way when a packet comes more than two seconds after its first; a question and an answer
    (`udp-two-packets`) are kept no longer than a question without one.
    """
    states, datagrams = tcp(idle_s), udp(idle_s)
    return {
        "icmp": ICMP_S,
        "udp-one-way": datagrams["unreplied"],
        "udp-two-packets": datagrams["unreplied"],
        "udp-two-way": datagrams["replied"],
        "dns": dns(idle_s)["replied"],
        "tcp-half-open": states["syn_sent"],
        "tcp-established": states["established"],
        "tcp-half-closed": states["fin_wait"],
    }


def scaled(seconds: float, scale: float) -> int:
    """Return a timer as a lab renders it at a scale: whole seconds, at least two, so that flows can be set up in it."""
    return int(seconds) if scale == 1 else max(SHORTEST_SCALED_S, round(seconds * scale))
