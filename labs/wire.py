"""Messages between the tool, the supervisor and the agent: one JSON object a line, bytes as base64.

A line is what survives every carrier used here: a Unix socket, a socket pair, and a VM's serial line.

Requests carry an `id` chosen by the sender. `exec` starts a program (in a node, or in the machine itself when `node` is
empty); `stdin`, `eof`, `resize`, `signal`, and `hold` and `resume` (its output) go to it. `call` runs one of the lab's
own functions. Answers: `out` (fd 1 or 2) and `fed` (bytes of its input that a program was given), then `exit` with
`rc`; or `note`s, then `return` with `value`, or `error` with `text`.

The agent says `taken` with the number of bytes that it has read, and nobody may have sent it more than WINDOW beyond
that: the serial line of User Mode Linux goes deaf for good once its 4 KB of unread input are full.
"""

from __future__ import annotations

import base64
import json
from typing import Any

Message = dict[str, Any]

# bytes on their way to the agent at any time; below the 3968 at which Linux throttles a terminal
WINDOW = 3072
# the agent reports what it has read in steps of this size, so that a report is worth its own bytes
REPORT = 1024


def encode(message: Message) -> bytes:
    """Return a message as one line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


def pack(data: bytes) -> str:
    """Return bytes as text that fits in a message."""
    return base64.b64encode(data).decode()


def unpack(text: str) -> bytes:
    """Return the bytes of `pack`."""
    return base64.b64decode(text)


class Splitter:
    """Turns a stream of bytes into messages; lines that are no message are counted and dropped.

    A kernel may print on the same serial line before the agent owns it; that noise must not end the conversation.
    """

    def __init__(self) -> None:
        self._rest = b""
        self.noise = 0

    def feed(self, data: bytes) -> list[Message]:
        """Take what arrived and return the messages that are complete."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        found: list[Message] = []
        for line in lines:
            try:
                message = json.loads(line)
            except ValueError:
                self.noise += bool(line.strip())
                continue
            if isinstance(message, dict):
                found.append(message)
        return found
