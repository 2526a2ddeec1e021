"""What a rendered server says, and what its RoCE script does with tools that only remember."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest

from fabric.build import load_plan
from fabric.render import host

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.plan import Plan

pytestmark = pytest.mark.unit


@pytest.fixture(scope="module")
def plan() -> Plan:
    return load_plan("xoc-64")


def test_each_port_has_a_table_for_its_own_address(plan: Plan) -> None:
    text = host.render(plan, "compute-001")["network.sh"]
    ports = [port for port in plan.servers["compute-001"].ports if port.address]
    rules = re.findall(r"ip rule add pref (\d+) from (\S+) lookup (\d+)", text)
    assert [address for _, address, _ in rules] == [port.address.partition("/")[0] for port in ports]
    assert len({table for _, _, table in rules}) == len(ports)
    for port, (_, _, table) in zip(ports, rules, strict=True):
        assert re.search(rf"ip route replace default via {port.gateway} dev {port.name} .*table {table}$", text, re.M)


def test_the_default_route_is_over_all_frontend_ports_from_the_service_address(plan: Plan) -> None:
    text = host.render(plan, "compute-001")["network.sh"]
    service = plan.servers["compute-001"].services[0].address
    line = next(line for line in text.splitlines() if line.startswith("spread default src"))
    assert f"src {service}" in line
    assert len(line.partition(" -- ")[2].split()) == 2
    assert "be0" not in line
    assert f"ip addr replace {service}/32 dev lo" in text


def test_the_backend_subnet_is_reached_over_all_rdma_ports(plan: Plan) -> None:
    text = host.render(plan, "compute-001")["network.sh"]
    backend = next(s.prefix for s in plan.tenants["acme"].subnets if s.fabric == "backend")
    line = next(line for line in text.splitlines() if line.startswith(f"spread {backend} -- "))
    assert len(line.partition(" -- ")[2].split()) == 8


def test_roce_only_where_there_is_rdma(plan: Plan) -> None:
    assert "roce.sh" in host.render(plan, "compute-001")
    assert "roce.sh" not in host.render(plan, "storage-001")
    minimal = load_plan("minimal")
    assert all("roce.sh" not in host.render(minimal, name) for name in host.devices(minimal))


def test_roce_says_what_the_switches_have(plan: Plan) -> None:
    text = host.render(plan, "compute-001")["roce.sh"]
    assert "DSCP=26 " in text
    assert "TOS=106 " in text
    assert "PFC=0,0,0,1,0,0,0,0" in text
    assert "CNP_DSCP=48" in text


TOOLS = {
    "dcb": 'echo "dcb $*" >> "$LOG"\ncase "$*" in\n'
    ' *"pfc show"*) echo "prio-pfc 0:off 1:off 2:off $PFC_STATE" ;;\n *"app show"*) echo "dscp-prio 26:3 48:6" ;;\nesac\n',
    "mlnx_qos": 'echo "mlnx_qos $*" >> "$LOG"\n',
}


def _roce(plan: Plan, tmp_path: Path, tool: str, *argv: str, pfc: str = "3:on") -> subprocess.CompletedProcess[str]:
    script = tmp_path / "roce.sh"
    script.write_text(host.render(plan, "compute-001")["roce.sh"])
    tools = tmp_path / "bin"
    tools.mkdir(exist_ok=True)
    for path in tools.iterdir():
        path.unlink()
    if tool:
        (tools / tool).write_text("#!/bin/sh\n" + TOOLS[tool])
        (tools / tool).chmod(0o755)
    for name in ("cat", "sed", "tr", "echo", "mkdir"):
        (tools / name).symlink_to(f"/bin/{name}")
    environment = {
        "PATH": str(tools),
        "KVFABRIC_SYS": str(tmp_path / "sys"),
        "LOG": str(tmp_path / "log"),
        "PFC_STATE": pfc,
    }
    return subprocess.run(["/bin/sh", str(script), *argv], env=environment, capture_output=True, text=True, check=False)


def _ports(plan: Plan, tmp_path: Path, *, soft: bool = False) -> None:
    for number, port in enumerate(p for p in plan.servers["compute-001"].ports if p.rdma):
        net = tmp_path / "sys/class/net" / port.name
        net.mkdir(parents=True)
        device = tmp_path / "sys/class/infiniband" / (f"rxe{number}" if soft else f"mlx5_{number}")
        device.mkdir(parents=True)
        if soft:
            (device / "parent").write_text(port.name + "\n")
        else:
            (net / "device/infiniband" / device.name).mkdir(parents=True)


@pytest.mark.parametrize("tool", ["dcb", "mlnx_qos"])
def test_roce_sets_every_port_and_says_by_what(plan: Plan, tmp_path: Path, tool: str) -> None:
    _ports(plan, tmp_path)
    done = _roce(plan, tmp_path, tool)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"be0-port0: mlx5_0 by {tool}" in done.stdout
    log = (tmp_path / "log").read_text()
    assert len({re.search(r"be\d-port0", line)[0] for line in log.splitlines()}) == 8  # type: ignore[index]
    assert "26:3" in log or "set,26,3" in log


def test_roce_check_reads_back_and_fails_on_a_difference(plan: Plan, tmp_path: Path) -> None:
    _ports(plan, tmp_path)
    good = _roce(plan, tmp_path, "dcb", "--check")
    assert good.returncode == 0, good.stdout + good.stderr
    bad = _roce(plan, tmp_path, "dcb", "--check", pfc="3:off")
    assert bad.returncode == 1
    assert "PFC priorities is ''" in bad.stdout


def test_soft_roce_is_skipped_with_a_reason(plan: Plan, tmp_path: Path) -> None:
    _ports(plan, tmp_path, soft=True)
    done = _roce(plan, tmp_path, "dcb")
    assert done.returncode == 0
    assert "rxe0 is Soft-RoCE" in done.stdout
    assert not (tmp_path / "log").exists()
    assert _roce(plan, tmp_path, "dcb", "--check").returncode == 3


def test_without_a_tool_nothing_is_called_well(plan: Plan, tmp_path: Path) -> None:
    _ports(plan, tmp_path)
    done = _roce(plan, tmp_path, "")
    assert done.returncode == 1
    assert "neither mlnx_qos nor dcb is installed" in done.stdout
    assert _roce(plan, tmp_path, "", "--wrong").returncode == 2
