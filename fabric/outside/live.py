"""FRR's daemons themselves, in a private namespace: zebra, staticd, bfdd and bgpd load frr.conf as a router would.

This finds what a parser lets through: route targets and RDs that do not fit, a VNI given twice, a filter that is not
there. Needs root, for the namespace. Exit codes cannot be trusted, so every word that the daemons say counts.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from functools import cache
from pathlib import Path

from fabric.problem import Problem

NAME = "live"
FILES = ("frr.conf",)

_DAEMONS = Path("/usr/lib/frr")
_TIMEOUT_S = 60
_MARK = "=== running ==="

# zebra's forwarding-plane module knows SONiC's two `fpm` lines; FRR 10 has mgmtd, which must be there before zebra
_SCRIPT = f"""
set -e
mount -t tmpfs -o mode=755 none /var/run/frr
chown frr:frr /var/run/frr
mkdir -p /run/netns
mount -t tmpfs none /run/netns
ip link set lo up
for daemon in mgmtd 'zebra -M dplane_fpm_nl' staticd bfdd bgpd; do
    [ -x {_DAEMONS}/${{daemon%% *}} ] || continue
    {_DAEMONS}/$daemon -d -f /dev/null -A 127.0.0.1 --log file:/var/run/frr/log >/dev/null 2>&1 </dev/null
done
vtysh -f "$1" 2>&1 || echo "vtysh ended with $?"
echo '{_MARK}'
vtysh -c 'show running-config'
"""

_HARMLESS = re.compile(
    r"Graceful restart configuration changed|not installed currently because dependent config|"
    r"^Waiting for children|^\[\d+\|\w+\] (sending|done)|^% Can't open configuration file .*vtysh.conf"
)
# statements that decide who may talk to whom: the daemons must still have them after loading
_KEPT = re.compile(
    r"^(vni \d|route-target |import vrf |advertise |network "
    r"|neighbor \S+ (route-map|prefix-list|activate|maximum-prefix))"
)


@cache
def available() -> str | None:
    """Why the daemons cannot be started, or None."""
    if not (_DAEMONS / "bgpd").exists() or not shutil.which("vtysh"):
        return "FRR is not installed (apt-get install frr)"
    if os.geteuid() != 0:
        return "a private namespace for the daemons needs root"
    done = subprocess.run(["unshare", "-n", "-m", "-p", "-f", "true"], capture_output=True, text=True, check=False)
    return None if done.returncode == 0 else f"no private namespace: {done.stderr.strip()}"


def load(path: Path) -> tuple[list[str], list[str]]:
    """Load an frr.conf; return (what the daemons said, their running configuration), both as lines."""
    command = ["unshare", "-n", "-m", "-p", "-f", "--kill-child", "sh", "-c", _SCRIPT, "live", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S)
    said, mark, running = done.stdout.partition(_MARK)
    if not mark:
        return [f"the daemons did not start: {(done.stdout + done.stderr).strip()[-300:]}"], []
    words = [line.strip() for line in said.splitlines() + done.stderr.splitlines()]
    return [line for line in words if line and not _HARMLESS.search(line)], running.splitlines()


def validate(folder: Path, device: str) -> list[Problem]:
    """Return what FRR's daemons say about a device's frr.conf, and what they did not keep of it."""
    path = folder / FILES[0]
    if not path.is_file():
        return []
    try:
        said, running = load(path)
    except subprocess.TimeoutExpired:
        return [Problem("outside.live", device, f"no answer within {_TIMEOUT_S} s", file=str(path))]
    found = [Problem("outside.live", device, line, file=str(path)) for line in said]
    if not said:
        kept = {line.strip() for line in running}
        for number, line in enumerate(path.read_text().splitlines(), 1):
            text = line.strip()
            if _KEPT.match(text) and text not in kept:
                problem = Problem(
                    "outside.live", device, f"'{text}' was accepted and not kept", file=str(path), line=number
                )
                found.append(problem)
    return found
