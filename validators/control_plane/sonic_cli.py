"""BGP summaries as sonic-cli prints them, as FRR's JSON has them.

Source: show_ip_bgp_summary.j2 and show_evpn_summary.j2 of sonic-mgmt-framework.
"""

from __future__ import annotations

import re
from typing import Any

from validators.devices.answers import UnreadableError

# the command above each answer (validators/devices/ssh.py), and the address family that it is about
_FAMILIES = {"show bgp ipv4 unicast summary": "ipv4Unicast", "show bgp l2vpn evpn summary": "l2VpnEvpn"}
_TITLES = "Neighbor V AS MsgRcvd MsgSent InQ OutQ Up/Down State/PfxRcd"


def is_cli(text: str) -> bool:
    """Whether this is the answer of sonic-cli."""
    return text.lstrip().startswith(tuple(f"# {command}" for command in _FAMILIES))


def cli_peers(text: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Return neighbour -> address family -> peer (`state`, `remoteAs`, `peerUptime`). Raises UnreadableError.

    A device whose BGP does not run prints no table, which is not the same as a table without neighbours.
    """
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for block in re.split(r"^# ", text, flags=re.MULTILINE)[1:]:
        command, _, body = block.partition("\n")
        lines = body.splitlines()
        start = next((number for number, line in enumerate(lines) if line.split() == _TITLES.split()), None)
        if start is None:
            message = f"`{command}` has no table of neighbours: {body.strip()[:80]!r}"
            raise UnreadableError(message)
        for line in lines[start + 1 :]:
            if line.strip() and not line.strip().startswith("Total number"):
                neighbour, peer = _peer(command, line)
                found.setdefault(neighbour, {})[_FAMILIES[command.strip()]] = peer
    return found


def _peer(command: str, line: str) -> tuple[str, dict[str, Any]]:
    cells = line.split()
    if len(cells) != len(_TITLES.split()) or not cells[2].isdigit():
        message = f"`{command}`: {line.strip()!r} is no row of a neighbour"
        raise UnreadableError(message)
    if re.match(r"Eth\d+/", cells[0]):
        message = f"{cells[0]} is a name of `interface-naming standard`, the plan has native ones: change it to native"
        raise UnreadableError(message)
    state = "Established" if cells[8].isdigit() else cells[8].capitalize()
    return cells[0], {"state": state, "remoteAs": int(cells[2]), "peerUptime": cells[7]}
