"""Shorter timers for a lab: what a gateway runs, with each of its timers at a scale, and what it ran again afterwards.

The rules are taken from the gateway's kernel and not rendered anew: a timer that somebody has set wrong there is then
measured wrong. What was there is kept on the gateway meanwhile, so that a probe after one that was killed finds it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from fabric.gateway import timeouts
from fabric.problem import CouldNotRunError
from validators.gateways.nft_json import DEFAULTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from labs.client import Running

_ICMP = "/proc/sys/net/netfilter/nf_conntrack_icmp_timeout"
_KEPT, _KEPT_ICMP = "/run/kvprobe-timers.nft", "/run/kvprobe-timers.icmp"
_TAKE_BACK = f"[ ! -e {_KEPT} ] || {{ nft -f {_KEPT} && cat {_KEPT_ICMP} > {_ICMP} && rm {_KEPT} {_KEPT_ICMP}; }}"
# for who cannot end the block: the rules of the gateway's own file, and nothing is kept any more
PLANNED = (
    f"nft -f /etc/kvfabric/nftables.conf && sysctl -q -e -p /etc/kvfabric/sysctl.conf; rm -f {_KEPT} {_KEPT_ICMP}; true"
)
_ANEW = "table ip kvfabric\ndelete table ip kvfabric\n"
_POLICY = re.compile(r"(ct timeout (\w+)\.(\S+) \{[^}]*policy = )\{([^}]*)\}")
_SECONDS = {"d": 86_400, "h": 3600, "m": 60, "s": 1}


@contextmanager
def scaled_timers(lab: Running, gateway: str, scale: float | Mapping[str, float], icmp: float = 1.0) -> Iterator[None]:
    """Give a gateway of the lab timers at a scale while the block runs, then what it had again.

    A scale for all exposures is one for ICMP too; else `scale` has one each (`tenant.exposure`), and `icmp` its own.
    Raises CouldNotRunError when the gateway has no rules.
    """
    each, icmp = (scale, icmp) if isinstance(scale, Mapping) else ({"": scale}, scale)
    _shell(lab, gateway, _TAKE_BACK)
    before = written(_shell(lab, gateway, "nft list table ip kvfabric"))
    icmp_s = int(_shell(lab, gateway, f"cat {_ICMP}"))
    given = before
    for label, one in each.items():
        given = shortened(given, one, label)
    short_icmp_s = timeouts.scaled(icmp_s, icmp)
    if (given, short_icmp_s) == (before, icmp_s):
        yield
        return
    _shell(lab, gateway, f"cat > {_KEPT} && cat {_ICMP} > {_KEPT_ICMP}", f"{_ANEW}{before}")
    try:
        _shell(lab, gateway, f"nft -f - && echo {short_icmp_s} > {_ICMP}", f"{_ANEW}{given}")
        yield
    finally:
        _shell(lab, gateway, _TAKE_BACK)


def written(text: str) -> str:
    """Return what `nft list table` printed so that nft reads it again: with every timer, in seconds."""

    def policy(found: re.Match[str]) -> str:
        timers = DEFAULTS.get(found[2], DEFAULTS["udp"]) | {
            name: _seconds(value) for name, value in re.findall(r"(\w+) ?: ?(\w+)", found[4])
        }
        return f"{found[1]}{{ {', '.join(f'{name} : {seconds}' for name, seconds in timers.items())} }}"

    return _POLICY.sub(policy, text)


def _seconds(value: str) -> int:
    """Return the seconds of nft's `1h2m3s`, or of a plain number."""
    if value.isdigit():
        return int(value)
    return sum(int(number) * _SECONDS[unit] for number, unit in re.findall(r"(\d+)(\D)", value))


def shortened(text: str, scale: float, label: str = "") -> str:
    """Return rules with the connection timers of an exposure (`tenant.exposure`), or of all, at a scale."""

    def policy(found: re.Match[str]) -> str:
        if label not in ("", found[3]):
            return found[0]
        numbers = re.sub(r"(?<=: )\d+", lambda number: str(timeouts.scaled(int(number[0]), scale)), found[4])
        return f"{found[1]}{{{numbers}}}"

    return _POLICY.sub(policy, text)


def _shell(lab: Running, gateway: str, script: str, stdin: str = "") -> str:
    done = lab.run(gateway, ["sh", "-c", script], stdin=stdin.encode())
    if done.rc:
        raise CouldNotRunError(f"{gateway}: timers cannot be set: {(done.err or done.out).strip()[:300]}")
    return str(done.out)
