"""What `nft -j list table` says of NAT: pools, forwards, pairs and timers. Source: libnftables-json(5)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from ipaddress import IPv4Network
from typing import TYPE_CHECKING, Any

from fabric.strict_json import loads
from validators.devices.answers import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Iterator

# nft leaves out what is the kernel's own: seconds of a `ct timeout` policy (nft(8), CT TIMEOUT)
DEFAULTS = {
    "tcp": {
        "syn_sent": 120, "syn_recv": 60, "established": 432_000, "fin_wait": 120, "close_wait": 60, "last_ack": 30,
        "time_wait": 120, "close": 10, "retrans": 300, "unack": 300,
    },
    "udp": {"unreplied": 30, "replied": 120},
}  # fmt: skip

Forward = tuple[str, str, int, str, int]


@dataclass
class NatTable:
    """A gateway's NAT as its kernel has it.

    `pools` maps a tenant's mark to the address ranges its sources leave with (first, last); `forwards` are (public
    address, protocol, public port, private address, private port); `inbound` and `outbound` are the stateless pairs
    (from, to); `timers` maps a policy's name to seconds by conntrack state.
    """

    pools: dict[int, set[tuple[str, str]]] = field(default_factory=dict)
    forwards: set[Forward] = field(default_factory=set)
    inbound: set[tuple[str, str]] = field(default_factory=set)
    outbound: set[tuple[str, str]] = field(default_factory=set)
    timers: dict[str, dict[str, int]] = field(default_factory=dict)


def parse(text: str) -> NatTable:
    """Read `nft -j list table`. Raises UnreadableError."""
    try:
        items = loads(text)["nftables"]
    except (ValueError, KeyError, TypeError):
        message = f"`nft -j list table` printed no ruleset: {text.strip()[:60]!r}"
        raise UnreadableError(message) from None
    found = NatTable()
    for item in items:
        if "ct timeout" in item:
            policy = item["ct timeout"]
            found.timers[policy["name"]] = DEFAULTS.get(policy["protocol"], {}) | (policy.get("policy") or {})
        elif "map" in item and item["map"]["name"] == "forwards":
            found.forwards = set(_forwards(item["map"].get("elem", ())))
        elif "rule" in item:
            _rule(item["rule"], found)
    return found


def _forwards(elements: Any) -> Iterator[Forward]:
    for key, value in elements:
        public, protocol, port = key["concat"]
        private, to = value["concat"]
        yield str(public), str(protocol), int(port), str(private), int(to)


def _rule(rule: dict[str, Any], found: NatTable) -> None:
    expressions = rule.get("expr", [])
    # one with `!=` chooses everything but what it names
    matches = [e["match"] for e in expressions if "match" in e and e["match"]["op"] == "=="]
    if rule["chain"] == "post_nat":
        mark = next((m["right"] for m in matches if m["left"] == {"meta": {"key": "mark"}}), None)
        for one in expressions:
            # a hairpin has a source NAT too, towards the tenant and not towards the edge
            if "snat" in one and mark is not None and any(m["right"] == "@edge_ports" for m in matches):
                found.pools.setdefault(int(mark), set()).add(_range(one["snat"]["addr"]))
    for name, chain, pairs in (("daddr", "pre_static", found.inbound), ("saddr", "post_static", found.outbound)):
        if rule["chain"] != chain:
            continue
        payload = {"payload": {"protocol": "ip", "field": name}}
        before = next((m["right"] for m in matches if m["left"] == payload), None)
        after = next((e["mangle"]["value"] for e in expressions if e.get("mangle", {}).get("key") == payload), None)
        if before is not None and after is not None:
            pairs.add((_text(before), _text(after)))


def _range(value: Any) -> tuple[str, str]:
    if isinstance(value, dict) and "range" in value:
        return str(value["range"][0]), str(value["range"][1])
    if isinstance(value, dict) and "prefix" in value:
        network = IPv4Network(f"{value['prefix']['addr']}/{value['prefix']['len']}")
        return str(network[0]), str(network[-1])
    return str(value), str(value)


def _text(value: Any) -> str:
    if isinstance(value, dict) and "|" in value:
        # the host part stays (`addr & hostmask | network`): the network says where to
        return str(value["|"][-1])
    if isinstance(value, dict) and "prefix" in value:
        return f"{value['prefix']['addr']}/{value['prefix']['len']}"
    return json.dumps(value) if isinstance(value, dict | list) else str(value)
