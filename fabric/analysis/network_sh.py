"""Reads the `ip`, `bridge` and `sysctl` commands of a rendered network.sh into a `Node`.

It follows the commands and not the shell: control flow, functions and quoting beyond plain words are skipped, which
is enough since every value in these files is written out.
"""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fabric.analysis.node import Node

_SHELL = re.compile(r"[;&|'\"#\\]")
_LEADERS = {"then", "else", "do", "if", "!", "&&", "||", "exec", "run"}


def commands(text: str) -> list[tuple[int, list[str]]]:
    """Return each `ip` command (but not `ip rule`) as words with its line; `a && b`, `a || b` and `a; b` are apart."""
    found: list[tuple[int, list[str]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if "ip rule" in line or "ip " not in line:
            continue
        if line.startswith("ip ") and not _SHELL.search(line):
            found.append((number, line.split()))
            continue
        stripped = line.strip()
        if not stripped or stripped[0] == "#":
            continue
        found.extend((number, words) for words in _simple(stripped))
    return found


def _simple(line: str) -> list[list[str]]:
    try:
        words = shlex.split(line, comments=True) if any(c in line for c in "'\"#\\") else line.split()
    except ValueError:
        return []
    parts: list[list[str]] = [[]]
    for word in words:
        if word in {"&&", "||", ";", "|", "then", "do", "else"}:
            parts.append([])
        elif word.endswith(";"):
            parts[-1].append(word[:-1])
            parts.append([])
        else:
            parts[-1].append(word)
    return [_without_leaders(part) for part in parts if part]


def _without_leaders(words: list[str]) -> list[str]:
    while words and words[0] in _LEADERS:
        words = words[1:]
    return words


def read_network_sh(text: str, node: Node) -> None:
    """Fill a node from the text of its network.sh."""
    masters: dict[str, str] = {}
    for _, words in commands(text):
        if words[:1] != ["ip"] or len(words) < 4:
            continue
        if words[1:3] == ["link", "add"]:
            _link_add(words[3:], node)
        elif words[1:3] == ["link", "set"]:
            _link_set(words[3:], node, masters)
        elif words[1].startswith("addr") and words[2] in {"add", "replace"} and "dev" in words:
            node.interface(_after(words, "dev")).addresses.append(words[3])
        elif words[1] == "route" and words[2] in {"add", "replace"}:
            node.routes.append({"prefix": words[3], **_pairs(words[4:])})
    for name, interface in node.interfaces.items():
        interface.vrf = _vrf(name, masters, node.vrfs)
    for tunnel in node.tunnels:
        tunnel.vrf = _vrf(tunnel.interface, masters, node.vrfs)
        if tunnel.vrf:
            node.vrfs[tunnel.vrf] = tunnel.vni
    node.vrfs = {name: vni for name, vni in node.vrfs.items() if vni}


def _link_add(words: list[str], node: Node) -> None:
    from fabric.analysis.node import Tunnel

    kind = _after(words, "type")
    if kind == "vrf":
        node.vrfs.setdefault(words[0], 0)
    elif kind == "vxlan":
        vni, port = _after(words, "id"), _after(words, "dstport")
        tunnel = Tunnel(
            int(vni) if vni.isdigit() else 0,
            "",
            0,
            _after(words, "local"),
            words[0],
            _after(words, "tos"),
            int(port) if port.isdigit() else 0,
        )
        node.tunnels.append(tunnel)
    node.interface(words[0])


def _link_set(words: list[str], node: Node, masters: dict[str, str]) -> None:
    if words[0] == "dev":
        words = words[1:]
    interface = node.interface(words[0])
    mtu = _after(words, "mtu")
    if mtu.isdigit():
        interface.mtu = int(mtu)
    if "up" in words[1:]:
        interface.up = True
    master = _after(words, "master")
    if master:
        masters[words[0]] = master


def _after(words: list[str], word: str) -> str:
    return words[words.index(word) + 1] if word in words[:-1] else ""


def _pairs(words: list[str]) -> dict[str, str]:
    return dict(zip(words[::2], words[1::2], strict=False))


def _vrf(name: str, masters: dict[str, str], vrfs: dict[str, int]) -> str:
    for _ in range(4):
        if name in vrfs:
            return name
        name = masters.get(name, "")
    return ""
