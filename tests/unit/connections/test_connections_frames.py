from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.l2 import Ether

from validators.connections import layout
from validators.connections.frames import Template, build, checksums_ok, layout_of, plain_template
from validators.connections.templates import dissect, scapy_template

pytestmark = pytest.mark.unit

A, B = "02:00:00:00:00:01", "02:00:00:00:00:02"
u16 = st.integers(0, 65535)
u32 = st.integers(0, 2**32 - 1)


def _scapy_rebuilds(frame: bytes) -> bytes:
    """Let scapy compute the checksums again from the dissected fields."""
    packet = Ether(frame)
    del packet["IP"].chksum
    del packet["IP"].payload.chksum
    return bytes(packet)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(["udp", "icmp", "tcp", "tcp-data"]), st.tuples(u32, u32), st.tuples(u16, u16), u32, u32)
def test_checksums_are_those_that_scapy_computes(
    kind: str, ends: tuple[int, int], ports: tuple[int, int], flow: int, number: int
) -> None:
    (src, dst), (sport, dport) = ends, ports
    template = Template.from_bytes(scapy_template(kind.split("-", maxsplit=1)[0], A, B, data=kind == "tcp-data"))
    fields: dict[str, int] = {"src": src, "dst": dst, "sport": sport, "ident": number & 0xFFFF}
    if kind == "icmp":
        fields |= {"kind": 8, "echo_seq": dport, "flow": flow, "number": number}
    elif kind == "udp":
        fields |= {"dport": dport, "flow": flow, "number": number}
    else:
        fields |= {"dport": dport, "seq": flow, "ack": number, "flags": layout.PSH | layout.ACK, "urgent": number >> 16}
    frame = build(template, 3, **fields)
    assert checksums_ok(frame).all()
    assert frame[0].tobytes() == _scapy_rebuilds(frame[0].tobytes())


def test_each_frame_of_a_batch_has_its_own_fields() -> None:
    ports = np.arange(1024, 1024 + 500)
    frames = build(
        plain_template(layout.UDP, b"\2" * 6, b"\4" * 6), 500, src=1, dst=2, sport=ports, dport=7, flow=np.arange(500)
    )
    assert (frames["sport"] == ports).all()
    assert checksums_ok(frames).all()
    assert len(np.unique(frames["sum"])) > 100


def test_a_broken_bit_is_seen() -> None:
    frames = build(plain_template(layout.UDP, b"\2" * 6, b"\4" * 6), 3, src=1, dst=2, sport=5, dport=7)
    frames["number"][1] ^= 4
    frames["ttl"][2] -= 1
    assert checksums_ok(frames).tolist() == [True, False, False]


def test_udp_checksum_is_never_zero() -> None:
    frames = build(
        plain_template(layout.UDP, b"\2" * 6, b"\4" * 6), 65536, src=1, dst=2, sport=np.arange(65536), dport=7
    )
    assert (frames["sum"] != 0).all()
    assert checksums_ok(frames).all()


@pytest.mark.parametrize("raw", [b"", b"\0" * 60, scapy_template("udp", A, B)[:-1]])
def test_a_frame_without_layout_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r"template is|no layout"):
        layout_of(raw)


def test_templates_without_scapy_are_the_same_but_for_what_scapy_leaves_open() -> None:
    for kind, number in layout.PROTOCOLS.items():
        ours = plain_template(number, layout.mac_bytes(A), layout.mac_bytes(B))
        theirs = Template.from_bytes(scapy_template(kind, A, B))
        assert ours.frame == theirs.frame


def test_a_field_that_no_checksum_follows_is_refused() -> None:
    with pytest.raises(ValueError, match="cannot vary"):
        build(plain_template(layout.UDP, b"\2" * 6, b"\4" * 6), 1, ttl=3)


def test_dissection_names_the_fields() -> None:
    assert "dport" in dissect(scapy_template("udp", A, B))


def test_addresses_and_macs_survive_the_round_trip() -> None:
    assert layout.address_text(layout.address("203.0.113.7")) == "203.0.113.7"
    assert layout.mac_text(layout.mac_bytes(A)) == A
    with pytest.raises(ValueError, match="not a MAC"):
        layout.mac_bytes("02:00")
