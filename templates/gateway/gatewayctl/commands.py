"""The commands of gatewayctl; on a gateway both files are one program (`fabric.render.gateway`)."""

# ruff: noqa: I001  the import above the line is for the checker only
from __future__ import annotations

from gateway import CONFIG, STATE_FOLDER, CannotRunError, Gateway, say

# ---------------------------------------------------------------------- commands
import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SETTLE_S = 3.0  # from the BGP update to the last packet that still comes
POLL_S = 1.0
PORTS_PER_ADDRESS = 64_512


def status(gateway: Gateway, as_json: bool) -> int:
    """Print what the gateway is doing."""
    state = gateway.state()
    checks = gateway.checks()
    count, most = gateway.table_use()
    found = {
        "name": gateway.facts["name"],
        "phase": state["phase"],
        "refusing": gateway.refusing() if not checks["nftables"] else None,
        "withdrawn": state["withdrawn"],
        "checks": {name: text or "ok" for name, text in checks.items()},
        "sessions": {
            **(gateway.sessions("fabric_sessions", "") if not checks["fabric"] else {}),
            **(gateway.sessions("edge_sessions", gateway.facts["edge_vrf"]) if not checks["edge"] else {}),
        },
        "conntrack": {"count": count, "max": most},
        "flows": gateway.flows(),
        "announced": [] if state["withdrawn"] else gateway.facts["announced"],
        "graceful_shutdown": state["phase"] == "drained",
        "new_flows_go_to": state["takers"],
    }
    if as_json:
        say(json.dumps(found, indent=2))
    else:
        say(f"{found['name']}: {found['phase']}{', withdrawn' if state['withdrawn'] else ''}")
        for name, text in found["checks"].items():
            say(f"  {name:10} {text}")
        for name, up in found["sessions"].items():
            say(f"  session    {name}: {'up' if up else 'DOWN'}")
        say(f"  flows      {count} of {most}; open: {_by_label(found['flows']) or 'none'}")
        for line in _takers(gateway, found["new_flows_go_to"]) if state["phase"] != "active" else ():
            say(f"  {line}")
        marked = ", graceful shutdown: others are preferred" if found["graceful_shutdown"] else ""
        for item in found["announced"]:
            say(f"  announces  {item['prefix']} MED {item['med']}{marked}")
    return 1 if any(checks.values()) else 0


def _by_label(flows: dict[str, int]) -> str:
    return ", ".join(f"{label} {count}" for label, count in flows.items() if count)


def drain(gateway: Gateway, deadline_s: float | None, settle_s: float, force: bool) -> int:
    """Give new flows to the standby, wait for the old ones to end, then give it the routes too."""
    name = gateway.facts["name"]
    with gateway.alone():
        standbys = gateway.standbys()
        alone = [tenant["name"] for tenant in gateway.facts["tenants"] if tenant["name"] not in standbys]
        if alone and not force:
            raise CannotRunError(
                f"{', '.join(alone)}: no other gateway takes new flows (drained, or not to be reached), so a drain "
                "would refuse them: bring one back first, or --force"
            )
        state = gateway.state()
        now = time.time()
        if state["phase"] in ("active", "returning") or deadline_s is not None:
            wait = gateway.facts["drain_deadline_s"] if deadline_s is None else deadline_s
            state = gateway.keep(phase="draining", since=now, deadline=now + wait, cut={})
        say(f"{name}: draining, {max(0, state['deadline'] - now):.0f} s to the deadline")
        gateway.tell_gateways(True)
        takers = gateway.hand_over(True, standbys)
        for line in _takers(gateway, takers):
            say(f"  {line}")
        left = _wait_for_flows(gateway, state["deadline"])
        gateway.graceful_shutdown(True)
        gateway.keep(phase="drained", cut={label: n for label, n in left.items() if n})
        say(f"  routes are marked graceful-shutdown; {settle_s:.0f} s for all others to move")
        time.sleep(settle_s)
    if any(left.values()):
        say(f"  deadline: {sum(left.values())} flows are cut: {_by_label(left)}")
        return 1
    say("  drained: no flow was cut, the gateway can stop")
    return 0


def _takers(gateway: Gateway, takers: dict[str, str]) -> list[str]:
    names = [tenant["name"] for tenant in gateway.facts["tenants"]]
    return [f"{name}: new flows {f'go to {to}' if (to := takers.get(name)) else 'are refused'}" for name in names]


def _wait_for_flows(gateway: Gateway, deadline: float) -> dict[str, int]:
    said = -1
    while True:
        flows = gateway.flows()
        total = sum(flows.values())
        if total != said:
            say(f"  {total} flows open{': ' if total else ''}{_by_label(flows)}")
            said = total
        left = deadline - time.time()
        if not total or left <= 0:
            return flows
        time.sleep(min(POLL_S, left))


def undrain(gateway: Gateway, settle_s: float) -> int:
    """Take traffic again: first the routes that bring the flows, then the flows.

    Routes do not move everywhere at once. Until they have, new flows are passed on as before, so that none meets two
    gateways on its two ways.
    """
    with gateway.alone():
        returns = gateway.state()["phase"] != "active"
        if returns:
            gateway.keep(phase="returning", cut={})
        gateway.graceful_shutdown(False)
        if returns:
            say(f"{gateway.facts['name']}: routes return; {settle_s:.0f} s for all others to move")
            time.sleep(settle_s)
        gateway.hand_over(False)
        gateway.tell_gateways(False)
        gateway.keep(phase="active", cut={})
    say(f"{gateway.facts['name']}: active")
    return 0


def health(gateway: Gateway, once: bool) -> int:
    """Check again and again; leave the network after N failures and come back after N successes."""
    while True:
        well = _health_cycle(gateway)
        if once:
            return 0 if well else 1
        time.sleep(gateway.facts["health"]["interval_s"])


def _health_cycle(gateway: Gateway) -> bool:
    needed = gateway.facts["health"]["failures"]
    wrong = {name: text for name, text in gateway.checks().items() if text}
    state = gateway.state()
    failures = state["failures"] + 1 if wrong else 0
    successes = 0 if wrong else state["successes"] + 1
    withdrawn = state["withdrawn"]
    if wrong and failures >= needed:
        withdrawn = True
    elif not wrong and successes >= needed:
        withdrawn = False
    counts = {"failures": min(failures, needed), "successes": min(successes, needed)}
    if any(state[key] != value for key, value in {**counts, "withdrawn": withdrawn}.items()):
        gateway.keep(**counts, withdrawn=withdrawn)
    if withdrawn != state["withdrawn"]:
        say(f"{gateway.facts['name']}: {'withdrawn' if withdrawn else 'announced again'}")
    for name, text in wrong.items():
        say(f"{gateway.facts['name']}: {name}: {text} ({failures} of {needed})")
    try:
        gateway.put_back()
    except CannotRunError as error:
        say(f"{gateway.facts['name']}: {error}")
    return not wrong


def metrics(gateway: Gateway) -> int:
    """Print counters and gauges for Prometheus."""
    counters, flows, state = gateway.counters(), gateway.flows(), gateway.state()
    count, most = gateway.table_use()
    me = f'gateway="{gateway.facts["name"]}"'
    lines = [
        f"kvfabric_gateway_conntrack_flows{{{me}}} {count}",
        f"kvfabric_gateway_conntrack_max{{{me}}} {most}",
        f"kvfabric_gateway_drained{{{me}}} {int(state['phase'] != 'active')}",
        f"kvfabric_gateway_withdrawn{{{me}}} {int(state['withdrawn'])}",
    ]
    for tenant in gateway.facts["tenants"]:
        whose = f'{me},tenant="{tenant["name"]}",vrf="{tenant["vrf"]}"'
        lines.append(_metric("denied_packets_total", whose, counters, f"denied.{tenant['name']}", "packets"))
        lines += _dropped(whose, counters, tenant["name"])
        for exposure in tenant["exposures"]:
            label = exposure["label"]
            of = f'{whose},exposure="{exposure["name"]}",mode="{exposure["mode"]}"'
            if exposure["mode"] != "static":  # which has none
                lines.append(_metric("new_connections_total", of, counters, f"new.{label}", "packets"))
            for way in ("out", "in"):
                for unit in ("packets", "bytes"):
                    direction = f'{of},direction="{way}"'
                    lines.append(_metric(f"{unit}_total", direction, counters, f"{way}.{label}", unit))
            lines.append(f"kvfabric_gateway_flows{{{of}}} {flows.get(label, 0)}")
            if exposure["addresses"]:
                ports = exposure["addresses"] * PORTS_PER_ADDRESS
                lines.append(f"kvfabric_gateway_nat_pool_ports{{{of}}} {ports}")
    lines += _dropped(me, counters, "")
    sys.stdout.write(_grouped(lines))
    return 0


def _dropped(labels: str, counters: dict[str, dict[str, int]], tenant: str) -> list[str]:
    """Return the drop counters of a tenant (`drop.invalid.acme`), or those of nobody (`drop.invalid`)."""
    found = []
    for name in counters:
        kind, _, rest = name.partition(".")
        reason, _, whose = rest.partition(".")
        if (kind, whose) == ("drop", tenant):
            found.append(_metric("dropped_packets_total", f'{labels},reason="{reason}"', counters, name, "packets"))
    return found


def _metric(metric: str, labels: str, counters: dict[str, dict[str, int]], name: str, unit: str) -> str:
    return f"kvfabric_gateway_{metric}{{{labels}}} {counters.get(name, {}).get(unit, 0)}"


def _grouped(lines: list[str]) -> str:
    """Put the samples of a metric together, below its type, as the text format wants."""
    families: dict[str, list[str]] = {}
    for line in lines:
        families.setdefault(line.partition("{")[0], []).append(line)
    return "".join(
        f"# TYPE {name} {'counter' if name.endswith('_total') else 'gauge'}\n" + "\n".join(samples) + "\n"
        for name, samples in families.items()
    )


def main(argv: list[str] | None = None) -> int:
    """Read the command line and run one command."""
    parser = argparse.ArgumentParser(prog="gatewayctl", description="State, drain and health of a kvfabric gateway.")
    parser.add_argument("--config", type=Path, default=Path(os.environ.get("KVFABRIC_GATEWAY", CONFIG)))
    parser.add_argument("--state", type=Path, default=Path(os.environ.get("KVFABRIC_STATE", STATE_FOLDER)))
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb_help = {
        "status": "phase, checks, sessions, open flows and announcements; exit 1 when a check fails",
        "drain": "pass new flows on, wait for the old ones, then move the routes; exit 1 when one was cut, 3 refused",
        "undrain": "take routes back, then new flows",
        "health": "check and withdraw or announce, again and again",
        "metrics": "Prometheus text",
    }
    parsers = {name: verbs.add_parser(name, help=text, description=text) for name, text in verb_help.items()}
    parsers["status"].add_argument("--json", action="store_true", help="the same as data")
    draining = parsers["drain"]
    draining.add_argument("--deadline", type=float, metavar="S", help="seconds from now; default: the plan's")
    draining.add_argument("--force", action="store_true", help="also where nobody else can take new flows")
    for verb in (draining, parsers["undrain"]):
        verb.add_argument("--settle", type=float, metavar="S", default=SETTLE_S, help="wait while routes move")
    parsers["health"].add_argument("--once", action="store_true", help="one round, for a timer")
    asked = parser.parse_args(argv)
    try:
        gateway = Gateway(asked.config, asked.state)
        verbs_by_name: dict[str, Callable[[], int]] = {
            "status": lambda: status(gateway, asked.json),
            "drain": lambda: drain(gateway, asked.deadline, asked.settle, asked.force),
            "undrain": lambda: undrain(gateway, asked.settle),
            "health": lambda: health(gateway, asked.once),
            "metrics": lambda: metrics(gateway),
        }
        return verbs_by_name[asked.verb]()
    except CannotRunError as error:
        sys.stderr.write(f"gatewayctl: {error}\n")
        return 3
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


if __name__ == "__main__":
    sys.exit(main())
