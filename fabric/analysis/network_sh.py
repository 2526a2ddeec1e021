"""Reads the `ip`, `bridge` and `sysctl` commands of a rendered network.sh into a `Node`.

It follows the commands and not the shell: control flow, functions and quoting beyond plain words are skipped, which
is enough since every value in these files is written out.
"""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fabric.analysis.node import Node

_LEADERS = {"then", "else", "do", "if", "!", "&&", "||", "exec", "run"}


def commands(text: str) -> list[tuple[int, list[str]]]:
    """Return each simple command as words with its line number; `a && b`, `a || b` and `a; b` are separate commands."""
    found: list[tuple[int, list[str]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if not stripped or stripped[0] == "#":
            continue
        for words in _simple(stripped):
            found.append((number, words))
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
    node.commands = commands(text)
