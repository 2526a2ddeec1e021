"""install.sh and the units of Linux machines: installed into an image, read by the real systemd, run with a port missing."""

from __future__ import annotations

import os
import subprocess
from shutil import which
from typing import TYPE_CHECKING

import pytest

from fabric.build import load_plan
from fabric.render.linux_machine import PLACES, escaped

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.external

MACHINES = ("gw-01", "compute-001", "leaf-01")


@pytest.fixture
def install(rendered: Callable[..., Path], tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Run install.sh of a machine of the lab site for an image in `tmp_path`."""
    if not which("systemctl"):
        pytest.skip("systemctl is not here")
    folder = rendered("lab", "frr")

    def run(device: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        command = ["sh", str(folder / device / "install.sh"), *arguments]
        environment = {**os.environ, "DESTDIR": str(tmp_path)}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)

    return run


@pytest.mark.parametrize("device", MACHINES)
def test_what_is_installed_is_what_is_compared(
    device: str, install: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    before = install(device, "--check")
    assert before.returncode == 1
    assert "is missing" in before.stdout
    first = install(device)
    assert first.returncode == 0, first.stderr
    assert install(device, "--check").returncode == 0
    assert install(device).stdout == ""  # twice changes nothing
    (tmp_path / "etc/kvfabric/network.sh").write_text("# somebody's own\n")
    changed = install(device, "--check")
    assert (changed.returncode, changed.stdout.strip()) == (1, f"{tmp_path}/etc/kvfabric/network.sh differs")


def test_frr_does_not_start_without_the_rules_and_what_was_there_is_kept(
    install: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    theirs = tmp_path / "etc/frr/frr.conf"
    theirs.parent.mkdir(parents=True)
    theirs.write_text("hostname mine\n")
    assert install("gw-01").returncode == 0
    units = tmp_path / "etc/systemd/system"
    assert (units / "frr.service.requires/kvfabric-rules.service").is_symlink()
    assert (tmp_path / "etc/frr/frr.conf.before-kvfabric").read_text() == "hostname mine\n"
    assert theirs.stat().st_mode & 0o777 == 0o640
    assert install("gw-01", "--now").returncode == 2
    assert install("gw-01", "--nonsense").returncode == 2


@pytest.mark.parametrize("device", MACHINES)
def test_systemd_understands_the_units(
    device: str, install: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    if not which("systemd-analyze"):
        pytest.skip("systemd-analyze is not here")
    assert install(device).returncode == 0
    units = sorted((tmp_path / "etc/systemd/system").glob("kvfabric-*.service"))
    assert units
    command = ["systemd-analyze", "verify", "--man=no", *map(str, units)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    # that programs are there is another machine's matter
    said = [line for line in done.stderr.splitlines() if "is not executable" not in line]
    assert said == []


def test_ports_are_escaped_as_systemd_does() -> None:
    if not which("systemd-escape"):
        pytest.skip("systemd-escape is not here")
    for name in ("in0", "be0-port0", "enp1s0f0np0", "a.b:c_d"):
        theirs = subprocess.run(["systemd-escape", name], capture_output=True, text=True, check=True).stdout.strip()
        assert escaped(name) == theirs


def test_every_rendered_file_has_a_place(rendered: Callable[..., Path]) -> None:
    folder = rendered("lab", "frr")
    for device in MACHINES:
        files = {path.name for path in (folder / device).iterdir()}
        assert {name for name in files if not name.startswith("kvfabric-")} - {"install.sh"} <= set(PLACES)


_MISSING = """
for port in $2; do ip link add "$port" type veth peer name "p$port"; ip link set "p$port" up; done
sh "$1"; echo "exit $?"; ip -o addr; ip route
"""


_MANAGED = """
for port in $2 eth0; do ip link add "$port" type veth peer name "p$port"; ip link set "p$port" up; ip link set "$port" up; done
ip addr add 192.0.2.9/24 dev eth0; ip route add default via 192.0.2.1 dev eth0 $3
sh "$1"; echo "exit $?"; ip route show default
export KVFABRIC_DEFAULT=replace; sh "$1"; echo "exit $?"; ip route show default
"""


@pytest.mark.parametrize("metric", ["", "metric 100"])
def test_the_default_route_of_a_management_port_is_kept_until_told(metric: str, rendered: Callable[..., Path]) -> None:
    if os.geteuid() != 0:
        pytest.skip("a network namespace needs root")
    ports = " ".join(port.name for port in load_plan("lab").servers["compute-001"].ports if port.address)
    script = rendered("lab", "frr") / "compute-001" / "network.sh"
    command = ["unshare", "-n", "sh", "-c", _MANAGED, "managed", str(script), ports, metric]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    first, second = done.stdout.split("exit ")[1:]
    if metric:
        assert first.startswith("0")
        assert "nexthop" in first
    else:
        assert first.startswith("1")
        assert "default via 192.0.2.1 dev eth0" in first
        assert "the default route by eth0 is kept" in done.stderr
    assert second.startswith("0")
    assert "dev fe-p0" in second


def test_a_server_without_one_of_its_ports_has_all_others(rendered: Callable[..., Path]) -> None:
    if os.geteuid() != 0:
        pytest.skip("a network namespace needs root")
    server = load_plan("lab").servers["compute-001"]
    ports = [port for port in server.ports if port.address]
    script = rendered("lab", "frr") / "compute-001" / "network.sh"
    there = " ".join(port.name for port in ports[:-1])
    command = ["unshare", "-n", "sh", "-c", _MISSING, "missing", str(script), there]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert "exit 1" in done.stdout
    assert f'Cannot find device "{ports[-1].name}"' in done.stderr
    assert all(port.address in done.stdout for port in ports[:-1])
    (default,) = [line for line in done.stdout.splitlines() if line.startswith("default")]
    assert ports[-1].name not in default
