"""Listening on a Linux host while somebody sends: it is known to listen before the first packet goes out.

It ends by itself after a minute and removes what it wrote, should nobody come back for it or the session end. A user
who is not root listens by `sudo -n`, where that is granted.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from validators.devices.answers import Answer, Devices

# how long somebody listens at most, how often it is asked whether it does (every 0.1 s), how long the last packet takes
_LISTEN_S, _START_TRIES, _AFTER_S = 60, 50, 0.5
# what a program that listens says when it has begun
LISTENING = "listening on"
_PACKETS = 40
_RUN_AS = 'as=; test "$(id -u)" = 0 || ! sudo -n true 2>/dev/null || as="sudo -n"'


def new_file() -> str:
    """Return the path of a file on a host that nobody can know before."""
    return f"/tmp/kvfabric-tcpdump-{secrets.token_hex(8)}"  # noqa: S108


def tcpdump(expression: str) -> str:
    """Return the program that prints packets (pcap-filter(7)) of all ports."""
    # in immediate mode, since what waits in a buffer is lost when it is ended
    return f"$(command -v tcpdump || echo tcpdump) --immediate-mode -n -v -l -c {_PACKETS} -i any '{expression}'"


def listen(devices: Devices, device: str, file: str, program: str) -> Answer:
    """Start a program that prints what it hears, and return when it says `LISTENING`, or has ended."""
    # one that is ended with its session could not remove its file
    listener = f"$as timeout {_LISTEN_S} {program} >{file} 2>&1"
    tidy = f"trap '' HUP; {listener} & echo $! >{file}.pid; wait; sleep 10; rm -f {file} {file}.pid"
    ready = f"grep -q '{LISTENING}' {file} || {{ test -s {file}.pid && ! test -e /proc/$(cat {file}.pid); }}"
    wait = f"for n in $(seq {_START_TRIES}); do {{ {ready}; }} 2>/dev/null && break; sleep 0.1; done"
    return devices.run(device, f"{_RUN_AS}; ( {tidy} ) </dev/null >/dev/null 2>&1 & {wait}", 20.0)


def heard(devices: Devices, device: str, file: str, last: str = "") -> Answer:
    """Run the command `last`, end the listening on a device, and return what was printed."""
    first = f"{last} >/dev/null 2>&1; " if last else ""
    end = f"$as kill $(cat {file}.pid) 2>/dev/null; cat {file}; rm -f {file} {file}.pid"
    return devices.run(device, f"{_RUN_AS}; {first}sleep {_AFTER_S:g}; {end}", 20.0)
