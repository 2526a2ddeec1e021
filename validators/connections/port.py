"""A tester's port: an interface, the addresses the probe speaks for on it, and the way to the next hop.

The addresses need not (and for TCP must not) belong to the kernel: the port answers ARP for them itself, so no kernel
socket and no RST gets between the probe and the gateway.
"""

from __future__ import annotations

import fcntl
import ipaddress
import select
import socket
import struct
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from validators.connections import layout
from validators.connections.frames import plain_template
from validators.connections.namespace import namespace
from validators.connections.packet_socket import Catch, Ring, Sender, attach_filter, ignore_outgoing

if TYPE_CHECKING:
    from validators.connections.frames import Template

_ETH_P_ARP = 0x0806
_ETH_P_IP = 0x0800
_SIOCGIFHWADDR = 0x8927
_ARP = struct.Struct("!6s6sHHHBBH6s4s6s4s")


class PortError(Exception):
    """A port could not be opened or its next hop does not answer."""


@dataclass(frozen=True)
class PortSpec:
    """What a port needs: `addresses` is the prefix it speaks for, `next_hop` the gateway's address on the link.

    `netns` is a name of `ip netns` or empty for the namespace the process is in. `next_hop_mac` skips ARP.
    """

    interface: str
    addresses: str
    next_hop: str
    netns: str = ""
    next_hop_mac: str = ""
    ring_megabytes: int = 32


class Port:
    """An open port; every socket of it lives in the port's namespace."""

    def __init__(self, spec: PortSpec) -> None:
        """Open sockets, answer ARP from now on, find the next hop; raises PortError."""
        self.spec = spec
        self.network = ipaddress.IPv4Network(spec.addresses)
        self._next_hop = socket.inet_aton(spec.next_hop)
        self._found = threading.Event()
        self.dmac = b""
        self._rings: dict[int, Ring] = {}
        try:
            with namespace(spec.netns):
                self.smac = _interface_mac(spec.interface)
                self.sender = Sender(spec.interface)
                self._arp = _raw_socket(spec.interface, _ETH_P_ARP)
        except OSError as error:
            msg = f"port {spec.netns or 'here'}:{spec.interface}: {error.strerror or error}"
            raise PortError(msg) from error
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._answer_arp, name=f"arp-{spec.interface}", daemon=True)
        self._thread.start()
        self._find_next_hop()

    def ring(self, protocol: int) -> Ring:
        """Return the receive ring for one IP protocol, opened on first use."""
        if protocol not in self._rings:
            catch = self._catch(protocol, layout.CAPTURED[protocol].itemsize)
            with namespace(self.spec.netns):
                dtype = layout.CAPTURED[protocol]
                self._rings[protocol] = Ring(self.spec.interface, catch, dtype, megabytes=self.spec.ring_megabytes)
        return self._rings[protocol]

    def listener(self) -> socket.socket:
        """Return a new plain packet socket that hears all IPv4 to this port's addresses, whole frames."""
        catch = self._catch(0, 0).program()
        with namespace(self.spec.netns):
            sock = _raw_socket(self.spec.interface, 0)
            program = [
                catch[0],
                (0x15, 0, 4, _ETH_P_IP),
                *catch[4:6],
                (0x15, 0, 1, catch[6][3]),
                (6, 0, 0, 0xFFFF),
                (6, 0, 0, 0),
            ]
            attach_filter(sock, program)
            ignore_outgoing(sock)
            sock.bind((self.spec.interface, _ETH_P_IP))
        return sock

    def template(self, protocol: int, *, data: bool = False) -> Template:
        """Return a template from this port towards its next hop."""
        return plain_template(protocol, self.smac, self.dmac, data=data)

    def drops(self) -> dict[str, Any]:
        """Return what the rings lost and what the sender could not send."""
        rings = {layout.PROTOCOL_NAMES[protocol]: ring.statistics() for protocol, ring in self._rings.items()}
        lost = sum(ring["drops"] for ring in rings.values())
        return {"ring_drops": lost, "rings": rings, "sent": self.sender.sent, "refused": self.sender.refused}

    def close(self) -> None:
        """Close everything."""
        self._stop.set()
        self._thread.join(timeout=1)
        self.sender.close()
        self._arp.close()
        for ring in self._rings.values():
            ring.close()

    def _catch(self, protocol: int, size: int) -> Catch:
        return Catch(protocol, int(self.network.network_address), int(self.network.netmask), size)

    def _find_next_hop(self) -> None:
        if self.spec.next_hop_mac:
            self.dmac = layout.mac_bytes(self.spec.next_hop_mac)
            return
        ask = self._arp_frame(1, b"\xff" * 6, self._own_address(), b"\0" * 6, self._next_hop)
        for _ in range(20):
            self._arp.send(ask)
            if self._found.wait(0.15):
                return
        self.close()
        msg = f"port {self.spec.netns or 'here'}:{self.spec.interface}: {self.spec.next_hop} does not answer ARP"
        raise PortError(msg)

    def _own_address(self) -> bytes:
        first = int(self.network.network_address) + (1 if self.network.num_addresses > 2 else 0)
        own = first.to_bytes(4, "big")
        return own if own != self._next_hop else (first + 1).to_bytes(4, "big")

    def _arp_frame(self, operation: int, to: bytes, sender: bytes, target_mac: bytes, target: bytes) -> bytes:
        return _ARP.pack(
            to, self.smac, _ETH_P_ARP, 1, _ETH_P_IP, 6, 4, operation, self.smac, sender, target_mac, target
        )

    def _answer_arp(self) -> None:
        while not self._stop.is_set():
            if not select.select([self._arp], [], [], 0.2)[0]:
                continue
            raw = self._arp.recv(2048)
            if len(raw) < _ARP.size:
                continue
            fields = _ARP.unpack_from(raw)
            operation, mac, sender, target = fields[7], fields[8], fields[9], fields[11]
            if operation == 2 and sender == self._next_hop:
                self.dmac = mac
                self._found.set()
            if operation == 1 and mac != self.smac and self._ours(target):
                self._arp.send(self._arp_frame(2, mac, target, mac, sender))

    def _ours(self, target: bytes) -> bool:
        return target != self._next_hop and ipaddress.IPv4Address(target) in self.network


def wait_quiet(rings: list[Ring], seconds: float) -> None:
    """Wait a little while rings fill their last blocks."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and not any(ring.wait(0.0) for ring in rings):
        time.sleep(0.001)


def _raw_socket(interface: str, protocol: int) -> socket.socket:
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    if protocol:
        sock.bind((interface, protocol))
    return sock


def _interface_mac(interface: str) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        answer = fcntl.ioctl(sock.fileno(), _SIOCGIFHWADDR, struct.pack("256s", interface.encode()[:15]))
    return answer[18:24]
