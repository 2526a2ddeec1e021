"""FRR configuration as a set of statements, so that two texts which mean the same compare equal.

`show running-config` orders sections its own way, leaves out what is a default, and splits or joins some statements.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from validators.devices.answers import UnreadableError

# what the device says of itself, and what no rendered file decides
_HEAD = re.compile(
    r"(frr (version|defaults)|hostname|domainname|log|service|no service|(no )?ip(v6)? forwarding|line vty|password|"
    r"enable password|username|agentx|debug|Building|Current)\b"
)
# defaults that FRR does not print, by the section they are in
_UNSAID = frozenset({"detect-multiplier 3", "receive-interval 300", "transmit-interval 300"})
_ENDS = frozenset({"exit", "exit-vrf", "exit-address-family", "end"})


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement with the sections around it, outermost first."""

    sections: tuple[str, ...]
    text: str

    @property
    def place(self) -> str:
        """Where it stands, in FRR's words."""
        return ", ".join(self.sections) or "top level"


def statements(text: str) -> dict[Statement, int]:
    """Return each statement of a configuration with its line."""
    found: dict[Statement, int] = {}
    stack: list[tuple[int, str]] = []
    for number, line in enumerate(text.splitlines(), 1):
        body = " ".join(line.split())
        if not body or body[0] in "!#" or body in _ENDS:
            continue
        depth = len(line) - len(line.lstrip())
        while stack and stack[-1][0] >= depth:
            stack.pop()
        sections = tuple(section for _, section in stack)
        stack.append((depth, body))
        for one in _plain(sections, body):
            found.setdefault(one, number)
    return found


def _plain(sections: tuple[str, ...], body: str) -> list[Statement]:
    if not sections and _HEAD.match(body):
        return []
    if sections[:1] == ("bfd",) and body in _UNSAID:
        return []
    if body.startswith("bgp route-map delay-timer"):
        # one for the whole daemon, and printed outside of the section where it was given
        return [Statement((), body)]
    match = re.fullmatch(r"(neighbor \S+) interface (.+)", body)
    if match:
        return [Statement(sections, f"{match[1]} interface"), Statement(sections, f"{match[1]} {match[2]}")]
    return [Statement(sections, body)]


@dataclass(frozen=True, slots=True)
class Difference:
    """A statement that is only rendered (`extra` false) or only running; `line` is one of the rendered file, or 0."""

    statement: Statement
    extra: bool
    line: int = 0


def differences(rendered: str, running: str) -> list[Difference]:
    """Return what is missing on the device, then what it has beyond the rendered file.

    A whole section that is missing or extra is one difference and not one per line. Raises UnreadableError when what is
    said to be running is no configuration.
    """
    if not re.search(r"^(frr version|hostname|router bgp)\b", running, re.MULTILINE):
        message = f"`show running-config` printed no configuration: {running.strip()[:60]!r}"
        raise UnreadableError(message)
    wanted, seen = statements(rendered), statements(running)
    found = [Difference(one, extra=False, line=line) for one, line in wanted.items() if one not in seen]
    found += [Difference(one, extra=True) for one in seen if one not in wanted]
    whole = {(*d.statement.sections, d.statement.text) for d in found}
    return [
        d for d in found if not any(d.statement.sections[:n] in whole for n in range(1, len(d.statement.sections) + 1))
    ]
