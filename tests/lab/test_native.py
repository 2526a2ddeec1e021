"""Engine `native` on a host whose kernel has it all, as on a laptop: that host is a VM here.

Inside the VM everything is done as a user does: preflight, `up` (the launch behind it: planning needs packages that the
VM does not have), the verbs from the command line, and a look at what is left.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import click
import pytest

from fabric.build import load_plan
from fabric.problem import CouldNotRunError
from labs import site
from labs import slice as slicing
from labs.launch import launch
from labs.model import Lab
from labs.uml import cache

pytestmark = pytest.mark.lab

UP = """
import json, sys
from pathlib import Path
from labs.launch import launch
from labs.model import Lab
from labs.native import preflight
lab = Lab.from_json(Path("/lab/host/lab.json").read_text())
started = launch(lab, Path("/lab/host/files"), say=lambda text: print(text, file=sys.stderr, flush=True))
started.running.commit()
print(json.dumps({"missing": started.missing + started.complaints, "seconds": started.seconds,
                  "engine": json.loads((started.running.folder / "facts.json").read_text())["engine"],
                  "lacks": preflight.missing() + preflight.limits()}))
"""
# what a lab could leave: processes, namespaces, mounts, files
LOOK = """
ps -e -o comm= | grep -v -e '^kworker' -e '^ps$' -e '^sh$' -e '^grep$' -e '^sort$' | sort
lsns -n -o TYPE,NS,COMMAND | grep -v -e lsns | sort
cat /proc/mounts
find /run/kvfabric /run/netns /tmp -mindepth 1 2>/dev/null
grep kvfabric /proc/net/unix
ip -br link | cut -d' ' -f1
nft list ruleset
true
"""


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """A VM without nodes that has our code, the Debian root, rendered files of a small slice and click."""
    try:
        started = launch(Lab("native-host", (), ()), tmp_path_factory.mktemp("files"), engine="uml")
    except CouldNotRunError as error:
        pytest.skip(f"no lab here: {error}")
    vm = started.running
    given = vm.share / "host"
    plan = load_plan("lab")
    lab = slicing.make(plan, "laptop", slicing.parse_counts("leaves=2,spines=1,gateways=1,servers=3"))
    site.write_files(plan, lab, given / "files")
    (given / "lab.json").write_text(lab.to_json())
    (given / "up.py").write_text(UP)
    shutil.copytree(Path(click.__file__).parent, given / "py" / "click", ignore=shutil.ignore_patterns("__pycache__"))
    hostfs = f"mkdir -p /cache/kvfabric && mount -t hostfs -o hostfs={cache.cache_dir()} none /cache/kvfabric"
    vm.run("", ["sh", "-c", hostfs]).check()
    yield vm
    vm.stop()


def _python(vm, *argv, timeout_s=90):
    environment = ["env", "XDG_CACHE_HOME=/cache", "PYTHONPATH=/opt/kvfabric:/lab/host/py"]
    return vm.run("", [*environment, "python3", *argv], timeout_s=timeout_s)


def _lab(vm, *argv, timeout_s=60):
    return _python(vm, "-c", "from fabric.cli.main import main; main()", "lab", *argv, timeout_s=timeout_s)


@pytest.fixture(autouse=True)
def nothing_left(host):
    """A lab that a failed test left is not the next one's."""
    yield
    _lab(host, "down", "--name", "laptop")


def _look(vm):
    return vm.run("", ["sh", "-c", LOOK]).check().out.splitlines()


def _new(before, after):
    """Lines that are there more often than before."""
    left = list(after)
    for line in before:
        if line in left:
            left.remove(line)
    return left


def test_up_use_and_down_on_the_kernel_of_the_host(host):
    before = _look(host)
    done = _python(host, "/lab/host/up.py").check()
    said = json.loads(done.out)
    assert said["engine"] == "native"
    assert said["lacks"] == []
    assert said["missing"] == []
    during = _look(host)
    assert any("bgpd" in line for line in _new(before, during))

    status = json.loads(_lab(host, "status", "--format", "json").check().out)
    assert {row["node"] for row in status["routers"]} >= {"leaf-01", "leaf-02", "spine-01", "gw-01"}
    far = _lab(host, "exec", "compute-001", "--", "ping", "-c2", "-i0.2", "-W2", "-M", "do", "-s", "9008", "10.1.0.17")
    assert far.rc == 0, far.out + far.err
    assert _lab(host, "exec", "gw-01", "--", "gatewayctl", "status").rc == 0
    devices = json.loads(host.run("", ["rdma", "-j", "link"]).out or "[]")
    assert any(device["ifname"].startswith("compute-001.") for device in devices)

    assert _lab(host, "down").rc == 0
    assert _new(before, _look(host)) == []


def test_a_killed_supervisor_leaves_nothing_on_the_host(host):
    before = _look(host)
    _python(host, "/lab/host/up.py").check()
    host.run("", ["pkill", "-9", "-f", "labs.supervisor"]).check()
    told = _lab(host, "status")
    assert told.rc == 3
    assert "laptop is dead: its supervisor was killed" in told.err
    assert _new(before, _look(host)) == []


def test_a_killed_tool_leaves_nothing_on_the_host(host):
    before = _look(host)
    script = (
        "XDG_CACHE_HOME=/cache PYTHONPATH=/opt/kvfabric python3 /lab/host/up.py 2>/tmp/said & "
        "until grep -q building /tmp/said; do sleep 0.1; done; kill -9 $!; wait; rm /tmp/said; "
        "for n in $(seq 100); do pgrep -f 'labs[.]supervisor' >/dev/null || exit 0; sleep 0.1; done; exit 1"
    )
    assert host.run("", ["sh", "-c", script]).rc == 0
    assert _new(before, _look(host)) == []


def test_a_kernel_without_a_feature_is_refused_with_words(host):
    script = (
        "from labs.native import preflight; from labs import engines; "
        "preflight.FEATURES += (preflight.Feature('warp', 'false', 'no drive'),); engines.choose('native')"
    )
    done = _python(host, "-c", script)
    assert done.rc != 0
    assert "this kernel lacks warp: no drive" in done.err
