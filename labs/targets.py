"""What a person means by a link, a port or a node of a lab, and what is close to a name that is none of them."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labs.model import End, Lab


class UnknownTargetError(LookupError):
    """No such link, port or node; the message says what is close to it."""


@dataclass(frozen=True, slots=True)
class Target:
    """A link (both its ends), or a node (all its own ends). `name` is the link's id or the node's name."""

    name: str
    ends: tuple[End, ...]
    is_node: bool


def find(lab: Lab, text: str) -> Target:
    """Return what `text` names: a node, a link's id, or `NODE:INTERFACE` at either end. Raises UnknownTargetError."""
    if lab.has(text):
        ends = [end for link in lab.links_of(text) for end in link.ends() if end.node == text]
        return Target(text, tuple(ends), is_node=True)
    for link in lab.links:
        if text == link.id or text in {f"{end.node}:{end.interface}" for end in link.ends()}:
            return Target(link.id, link.ends(), is_node=False)
    raise UnknownTargetError(_unknown(lab, text))


def port(lab: Lab, text: str) -> End:
    """Return the one end that `NODE:INTERFACE` names; of a link's id the first. Raises UnknownTargetError."""
    target = find(lab, text)
    if target.is_node:
        ports = ", ".join(f"{end.node}:{end.interface}" for end in target.ends)
        raise UnknownTargetError(f"{text} is a node; say which of its ports: {ports}")
    return next((end for end in target.ends if text == f"{end.node}:{end.interface}"), target.ends[0])


def _unknown(lab: Lab, text: str) -> str:
    ports = [f"{end.node}:{end.interface}" for link in lab.links for end in link.ends()]
    names = [*(node.name for node in lab.nodes), *ports, *(link.id for link in lab.links)]
    dark = [f"{node.name}:{name}" for node in lab.nodes for name in node.dark]
    if text in dark:
        return f"{text} is a port whose far end is not in this lab"
    return f"has no node, link or port {text}{_close(text, names) or '; `kvfabric lab status` lists them'}"


def unknown_node(lab: Lab, text: str) -> str:
    """Say that `text` is no node of the lab, and what is close to it, else which nodes there are."""
    names = [node.name for node in lab.nodes]
    return f"has no node {text}{_close(text, names) or '; its nodes are ' + ', '.join(names)}"


def _close(text: str, names: list[str]) -> str:
    close = difflib.get_close_matches(text, names, 3)
    return f"; close to it: {', '.join(close)}" if close else ""
