"""Watching a port of a lab with tcpdump: the command, bounded by a number of packets or by time."""

from __future__ import annotations


def command(interface: str, count: int, seconds: float, raw: bool, expression: tuple[str, ...] = ()) -> list[str]:
    """Return the argv that captures on `interface`: pcap on standard output when `raw`, else one line a packet.

    It ends after `count` packets or `seconds`, whichever is first; 0 means no such bound. Packets are passed on as
    they come. The expression is tcpdump's (pcap-filter(7)).
    """
    # -Z root: the lab's nodes have no other user to become; timeout's own exit code would hide tcpdump's
    limit = ["timeout", "--preserve-status", "-s", "INT", f"{seconds:g}"] if seconds else []
    look = ["-U", "-w", "-"] if raw else ["-l", "-nn", "-e"]
    until = ["-c", str(count)] if count else []
    return [*limit, "tcpdump", "-Z", "root", "-i", interface, *look, *until, *expression]
