"""Which GID is used, read back from a GID table as sysfs has it: by type and address, and never another namespace's."""

from __future__ import annotations

from pathlib import Path

import pytest

from validators.rdma.host import gids
from validators.rdma.host.backend import BackendMissingError, DeviceError

pytestmark = pytest.mark.unit

MINE, THEIRS = "02:00:00:00:00:01", "02:00:00:00:00:02"
ADDRESS = "10.0.0.1"


def _write(root: Path, device: str, entries: list[tuple[str, str, str]]) -> None:
    """Write a port's table: (GID, type, netdev) by index."""
    for index, entry in enumerate(entries):
        for folder, text in zip(("gids", "gid_attrs/types", "gid_attrs/ndevs"), entry, strict=True):
            path = root / device / "ports" / "1" / folder
            path.mkdir(parents=True, exist_ok=True)
            (path / str(index)).write_text(text + "\n")


def _link_local(mac: str) -> str:
    part = [int(byte, 16) for byte in mac.split(":")]
    tail = bytes([part[0] ^ 2, part[1], part[2], 0xFF, 0xFE, *part[3:]]).hex(":", 2)
    return f"fe80:0000:0000:0000:{tail}"


def _device(root: Path, name: str, mac: str, netdev: str = "be0") -> None:
    link = _link_local(mac)
    _write(
        root,
        name,
        [
            (link, "IB/RoCE v1", netdev),
            (link, "RoCE v2", netdev),
            (gids.gid_of(ADDRESS), "IB/RoCE v1", netdev),
            (gids.gid_of(ADDRESS), "RoCE v2", netdev),
            ("0000:0000:0000:0000:0000:0000:0000:0000", "", ""),
        ],
    )


@pytest.fixture(autouse=True)
def here(monkeypatch) -> None:
    """This namespace has one netdev, be0."""
    monkeypatch.setattr(gids, "mac_of", lambda name: bytes.fromhex(MINE.replace(":", "")) if name == "be0" else b"")


def test_a_gid_is_chosen_by_type_and_address(tmp_path) -> None:
    with pytest.raises(BackendMissingError):
        gids.choose(ADDRESS, root=tmp_path)
    _device(tmp_path, "mlx5_0", MINE)
    found = gids.choose(ADDRESS, root=tmp_path)
    assert (found.device, found.index, found.netdev) == ("mlx5_0", 3, "be0")
    assert gids.gid_of(ADDRESS) == "0000:0000:0000:0000:0000:ffff:0a00:0001"
    with pytest.raises(DeviceError, match=r"no RoCE v2 GID for 10\.0\.0\.2; found mlx5_0"):
        gids.choose("10.0.0.2", root=tmp_path)
    _write(tmp_path, "mlx5_0", [(gids.gid_of(ADDRESS), "IB/RoCE v1", "be0")] * 4)
    with pytest.raises(DeviceError):
        gids.choose(ADDRESS, root=tmp_path)


def test_a_device_of_another_namespace_is_passed_over_and_never_used_by_name(tmp_path) -> None:
    # tenants may overlap in addresses, and servers name their ports alike: only the MAC tells them apart
    _device(tmp_path, "a-theirs", THEIRS)
    _device(tmp_path, "b-mine", MINE)
    assert gids.choose(ADDRESS, root=tmp_path).device == "b-mine"
    with pytest.raises(DeviceError, match=f"a-theirs has the .* has MAC {THEIRS}, .* {MINE}: a device of another"):
        gids.choose(ADDRESS, "a-theirs", root=tmp_path)


def test_a_netdev_that_is_not_here_is_of_another_namespace(tmp_path) -> None:
    _device(tmp_path, "mlx5_0", MINE, "be7")
    with pytest.raises(DeviceError, match="netdev be7 is not in this network namespace"):
        gids.choose(ADDRESS, root=tmp_path)


def test_a_table_without_link_local_gids_goes_by_the_name_of_the_netdev(tmp_path) -> None:
    _write(tmp_path, "mlx5_0", [("fe80:0000:0000:0000:1234:5678:9abc:def0", "RoCE v2", "be0")])
    _write(tmp_path, "mlx5_1", [(gids.gid_of(ADDRESS), "RoCE v2", "be0")])
    assert gids.choose(ADDRESS, root=tmp_path).device == "mlx5_1"


def test_the_kernel_is_asked_for_the_mac(monkeypatch) -> None:
    monkeypatch.undo()
    assert gids.mac_of("lo") == bytes(6)
    assert gids.mac_of("no-such-netdev") == b""
