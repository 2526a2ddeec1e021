"""What arrived where: echo requests with a token of their own, listened for at the servers that have the address.

An answer only says that somebody answered. A listener that heard nothing is believed only when it heard a request with
the same token, of another length, that its server sent to itself at the end.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from validators.devices.listening import LISTENING
from validators.results import State

if TYPE_CHECKING:
    from collections.abc import Mapping

# of ping's payload in bytes; an ICMP header of 8 comes on top (RFC 792)
_SIZE, _OWN_SIZE, _ICMP = 56, 104, 8
# ping repeats a pattern of 4 bytes over its payload and writes the time over the first 16 bytes at most
_PATTERN_AT = _ICMP + 32


def send(address: str, token: str, count: int) -> str:
    """Return the command that sends requests with a token of 8 hexadecimal digits."""
    return f"ping -n -c {count} -i 0.2 -W 1 -s {_SIZE} -p {token} {address}; true"


def send_to_itself(address: str, token: str) -> str:
    """Return the command by which a listener's server shows that it would be heard."""
    return f"ping -n -c 1 -W 1 -s {_OWN_SIZE} -p {token} {address}"


# in one line, as a shell on a terminal wants it. A packet socket (packet(7)) sees what arrives before any firewall of
# the host; its filter (4 instructions of classic BPF: protocol 1) keeps all that is not ICMP in the kernel
_PROGRAM = (
    "import ctypes, socket, struct; "
    "p = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3)); "
    'f = ctypes.create_string_buffer(struct.pack("HBBI" * 4, 48, 0, 0, 9, 21, 0, 1, 1, 6, 0, 0, 65535, 6, 0, 0, 0)); '
    'p.setsockopt(socket.SOL_SOCKET, 26, struct.pack("HP", 4, ctypes.addressof(f))); '
    'print("{listening} all ports", flush=True); '
    'any(print("echo request on", a[0], "seq", i[6] * 256 + i[7], "length", len(i), flush=True) '
    "for d, a in iter(lambda: p.recvfrom(4096), 0) if a[1] == 2048 and a[2] != socket.PACKET_OUTGOING "
    "for i in [d[(d[0] & 15) * 4 :]] if i[0:1] == bytes([8]) "
    'and i[{at}:{at} + 4] == bytes.fromhex("{token}"))'
)


def listener(token: str) -> str:
    """Return the program that prints each echo request with the token that arrives on any port; it needs Python 3."""
    return f"python3 -c '{_PROGRAM.format(listening=LISTENING, at=_PATTERN_AT, token=token)}'"


@dataclass(frozen=True, slots=True)
class Heard:
    """How many requests arrived at a server; `deaf` says why nobody knows."""

    count: int
    deaf: str = ""

    @staticmethod
    def of(answer: Mapping[str, Any] | None) -> Heard:
        """Read what the listener printed. A request on several ports (a bond and its member) is one by its number."""
        if answer is None:
            return Heard(0, "nobody listened")
        text = str(answer.get("text", ""))
        arrived = {seq for seq, length in _requests(text) if length == _SIZE + _ICMP}
        if arrived:
            return Heard(len(arrived))
        if error := answer.get("error"):
            return Heard(0, str(error))
        if LISTENING not in text:
            return Heard(0, (text.strip().splitlines() or ["it did not begin"])[-1][-160:])
        if not any(length == _OWN_SIZE + _ICMP for _, length in _requests(text)):
            return Heard(0, "it did not hear what the server sent to itself")
        return Heard(0)


def _requests(text: str) -> list[tuple[int, int]]:
    """Number and length of each echo request."""
    found = re.finditer(r"^echo request on \S+ seq (\d+) length (\d+)$", text, re.MULTILINE)
    return [(int(match[1]), int(match[2])) for match in found]


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of a pair: requests sent and answered, what was heard at its server and at those that rightly have
    the address too, and whether several servers have the address."""

    server: str
    address: str
    sent: int
    answered: int
    there: Heard
    rightly: Mapping[str, Heard]
    shared: bool


def allowed(seen: Seen) -> tuple[State, str]:
    """Judge a pair that the plan allows: the right server must answer."""
    answered = f"{seen.answered} of {seen.sent} answered"
    if not seen.answered:
        came = f"; {seen.there.count} arrived at {seen.server}: the way back is missing" if seen.there.count else ""
        return State.FAIL, f"{answered}, and the plan allows it{came}"
    if seen.there.count:
        return State.PASS, f"{answered}, and arrived at {seen.server}"
    if not seen.there.deaf:
        return State.FAIL, f"{answered}, but nothing arrived at {seen.server}: somebody else has {seen.address}"
    if seen.shared:
        return State.ERROR, f"{answered}, nobody knows by whom: others have {seen.address} too, and {_deaf(seen)}"
    return State.PASS, f"{answered} ({_deaf(seen)})"


def forbidden(seen: Seen) -> tuple[State, str]:
    """Judge a pair that the plan forbids: nothing may arrive, whether or not an answer finds its way back."""
    if seen.there.count:
        back = "" if seen.answered else ", though no answer came back"
        return State.FAIL, f"{seen.there.count} of {seen.sent} arrived at {seen.server}, the plan forbids it{back}"
    if not seen.rightly:
        if seen.answered:
            return State.FAIL, f"{seen.answered} of {seen.sent} answered, the plan forbids it"
        return State.PASS, f"silent, as it must be ({_deaf(seen) if seen.there.deaf else 'and nothing arrived'})"
    names = " and ".join(seen.rightly)
    if seen.there.deaf:
        return State.ERROR, f"{names} may be reached as {seen.address} too, so answers say nothing, and {_deaf(seen)}"
    if seen.answered and not any(heard.count or heard.deaf for heard in seen.rightly.values()):
        text = f"nothing arrived at {seen.server} nor at {names}, yet {seen.answered} of {seen.sent} were answered"
        return State.UNKNOWN, f"{text}: who has {seen.address}?"
    counts = ", ".join(_at(name, heard) for name, heard in seen.rightly.items())
    return (
        State.PASS,
        f"nothing arrived at {seen.server}, as it must be; {counts}, with the same address {seen.address}",
    )


def _at(name: str, heard: Heard) -> str:
    return f"{name} could not be listened at ({heard.deaf})" if heard.deaf else f"{heard.count} arrived at {name}"


def _deaf(seen: Seen) -> str:
    return f"{seen.server} could not be listened at: {seen.there.deaf}"
