"""`sonic-vs.sh` and `sonic-vm.sh` against programs that only note how they were called."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from labs.containerlab import virtual_sonic

pytestmark = pytest.mark.unit

SCRIPTS = Path(virtual_sonic.__file__).parent
AVAILABLE = "fpmsyncd  avail\nzebra avail\nbgpd avail\nstaticd avail\n"


class Image:
    """A container's root in which the image's own start has ended, or has not."""

    def __init__(self, folder: Path, start: str = "EXITED") -> None:
        self.folder = folder
        for path in ("etc/kvfabric", "usr/lib/frr", "bin", *(f"sys/class/net/eth{n}" for n in (0, 1, 2, 11))):
            (folder / path).mkdir(parents=True)
        for name in ("Ethernet0", "Ethernet4", "Ethernet40"):
            (folder / "sys/class/net" / name).mkdir()
        (folder / "etc/kvfabric/config_db.json").write_text("{}")
        (folder / "etc/kvfabric/frr.conf").write_text("hostname x\n")
        for name in ("ip", "sysctl", "sonic-cfggen", "vtysh", "sleep"):
            self.program(f"bin/{name}")
        answers = f'case $1 in avail) printf "{AVAILABLE}" ;; status) echo "start.sh {start}" ;; esac'
        self.program("bin/supervisorctl", answers)

    def program(self, path: str, text: str = "", code: int = 0) -> None:
        target = self.folder / path
        target.write_text(f'#!/bin/sh\necho "{target.name} $*" >> {self.folder}/calls\n{text}\nexit {code}\n')
        target.chmod(0o755)

    def run(self, script: str = "sonic-vs.sh", **settings: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.folder}/bin:{os.environ['PATH']}"
        environment = {**os.environ, "KV_ROOT": str(self.folder), "PATH": path, **settings}
        command = ["sh", str(SCRIPTS / script)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=30)

    def calls(self) -> list[str]:
        return (self.folder / "calls").read_text().splitlines()


def test_wires_are_silenced_before_the_tables_are_loaded_and_routing_starts(tmp_path):
    image = Image(tmp_path)
    image.program("usr/lib/frr/bfdd")
    done = image.run()
    assert (done.returncode, done.stdout) == (0, "")
    calls = image.calls()
    silenced = [f"ip link set {wire} arp off" for wire in ("eth1", "eth11", "eth2")]
    assert [call for call in calls if call.startswith("ip ")] == silenced
    assert "sysctl -qw net.ipv6.conf.eth11.disable_ipv6=1" in calls
    loaded = calls.index(f"sonic-cfggen -j {tmp_path}/etc/kvfabric/config_db.json --write-to-db")
    assert calls.index(silenced[-1]) < loaded < calls.index("supervisorctl start zebra") < calls.index("vtysh -b")
    # this image's supervisor knows no bfdd, so it is started by itself, before bgpd wants it
    assert calls.index("bfdd -d -A 127.0.0.1") < calls.index("supervisorctl start bgpd")
    assert (tmp_path / "etc/frr/frr.conf").read_text() == "hostname x\n"


def test_a_wire_without_a_port_is_a_complaint(tmp_path):
    image = Image(tmp_path)
    (tmp_path / "sys/class/net/Ethernet40").rmdir()
    assert image.run().stdout == "! eth11 has no port: the image did not make Ethernet40\n"


def test_an_image_that_does_not_start_is_an_error(tmp_path):
    done = Image(tmp_path, "FATAL").run(KV_START_SECONDS="3")
    assert done.returncode == 1
    assert "has not finished: start.sh FATAL" in done.stderr


def test_tables_that_are_refused_are_an_error_and_routing_that_is_refused_a_complaint(tmp_path):
    image = Image(tmp_path)
    image.program("bin/vtysh", "echo '% Unknown command'", 2)
    assert image.run().stdout == "! frr.conf: % Unknown command\n"
    image.program("bin/sonic-cfggen", "", 1)
    done = image.run()
    assert (done.returncode, done.stderr) == (1, "config_db.json was refused\n")


def test_a_vm_gets_its_routing_over_the_port_that_answers(tmp_path):
    image = Image(tmp_path)
    (tmp_path / "health").write_text("0 running\n")
    image.program("bin/sshpass", 'case "$*" in *2022*) exit 255 ;; esac')
    done = image.run("sonic-vm.sh", USERNAME="admin", PASSWORD="secret")
    assert done.returncode == 0, done.stderr
    used = [call for call in image.calls() if call.startswith("sshpass")]
    assert [("-P 2022" in call, "-P 22 " in call, "systemctl restart bgp" in call) for call in used] == [
        (True, False, False), (False, True, False), (False, False, True),
    ]  # fmt: skip


def test_a_vm_that_does_not_boot_is_an_error(tmp_path):
    image = Image(tmp_path)
    (tmp_path / "health").write_text("1 starting\n")
    done = image.run("sonic-vm.sh", USERNAME="admin", PASSWORD="x", KV_BOOT_SECONDS="10")
    assert done.returncode == 1
    assert "the VM has not booted: 1 starting" in done.stderr
