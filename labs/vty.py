"""Ask FRR's daemons over their own sockets, as vtysh does: vtysh itself takes a third of a second to start in a VM.

Source: FRR, `vtysh_client_run` in vtysh/vtysh.c and `vtysh_write` in lib/vty.c: a command goes out with a zero byte
behind it, and the answer ends with three zero bytes and the command's result.
"""

from __future__ import annotations

import contextlib
import json
import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# a daemon that is stopped takes the connection and never answers
ANSWER_S = 10.0
_END = b"\0\0\0"


def ask(root: Path, commands: Mapping[str, tuple[str, str]], timeout_s: float = ANSWER_S) -> dict[str, Any]:
    """Return the JSON documents that FRR below `root` (a node's file system) prints, by subject.

    `commands` gives each subject's daemon and command. What a daemon did not answer within `timeout_s` seconds, or not
    with JSON, is left out.
    """
    found: dict[str, Any] = {}
    for daemon in dict.fromkeys(daemon for daemon, _ in commands.values()):
        mine = {subject: command for subject, (of, command) in commands.items() if of == daemon}
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as client:
            client.settimeout(timeout_s)
            client.connect(str(root / "run" / "frr" / f"{daemon}.vty"))
            _answer(client, "enable")  # bfdd shows nothing before
            for subject, command in mine.items():
                with contextlib.suppress(ValueError):
                    found[subject] = json.loads(_answer(client, command))
    return found


def _answer(client: socket.socket, command: str) -> str:
    """Send a command and return what came until its end. Raises OSError when the daemon ends or is too slow."""
    client.sendall(command.encode() + b"\0")
    said = bytearray()
    while len(said) < len(_END) + 1 or said[-4:-1] != _END:
        if not (part := client.recv(65536)):
            raise ConnectionResetError(f"the daemon ended while it answered `{command}`")
        said += part
    return said[:-4].decode(errors="replace")
