"""Which test hosts of a hosts file measure an exposure, and what is said when there are none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from fabric.build import load_plan
from fabric.problem import InputError
from validators.check import Context, NotJudgedError
from validators.connections import on_site
from validators.connections.checks import ExposureInputs, NatBehaviour
from validators.connections.command import Place
from validators.connections.from_plan import targets
from validators.connections.programs import CommandHost
from validators.devices.hosts import Host, read_hosts
from validators.devices.ssh import SshDevices
from validators.journal_undo import UndoLog
from validators.results import State

pytestmark = pytest.mark.unit
PLAN = load_plan("lab")
INSIDE = {"side": "inside", "port": "fe0", "hop": "10.1.0.1", "network": "10.1.0.224/28"}
INSIDE["hosts"] = ["10.1.0.225", "10.1.0.226"]  # type: ignore[assignment]
OUTSIDE = {"side": "outside", "port": "eth1", "hop": "198.18.0.1", "network": "198.18.0.8/29"}
OUTSIDE["hosts"] = ["198.18.0.10", "198.18.0.11"]  # type: ignore[assignment]


def hosts(folder: Path, **testers: Any) -> dict[str, Host]:
    (folder / "id").touch()
    key = {"key_file": str(folder / "id")}
    data = {
        name.replace("_", "-"): {"hostname": "192.0.2.1", "username": "root", "data": {**key, **extra}}
        for name, extra in testers.items()
    }
    file = folder / "hosts.yaml"
    file.write_text(yaml.safe_dump(data))
    return read_hosts(file, PLAN)


def skipped(folder: Path, exposure: str = "masquerade", tenant: str = "acme", **testers: Any) -> str:
    devices = SshDevices(hosts(folder, **testers))
    undo = UndoLog(folder / "undo.jsonl", devices)
    with pytest.raises(NotJudgedError) as raised:
        NatBehaviour().collect(Context(PLAN, devices, undo), ExposureInputs(tenant=tenant, exposure=exposure))
    undo.close()
    assert raised.value.state is State.SKIPPED
    return str(raised.value)


def test_the_reason_for_skipping_says_what_to_add_to_the_hosts_file(tmp_path: Path) -> None:
    assert "add a host with `data: {tester: {side: outside," in skipped(tmp_path, compute_001={"tester": INSIDE})
    # the tester of acme has an address that globex uses too: it stands in the wrong VRF
    for exposure, tenant in (("forward", "acme"), ("static", "acme"), ("masquerade", "globex")):
        text = skipped(tmp_path, exposure, tenant, compute_001={"tester": INSIDE}, away={"tester": OUTSIDE})
        assert f"speaks for tenant {tenant} {exposure}" in text
        assert "side: inside" in text


def test_testers_are_taken_from_the_hosts_file_and_the_gateway_when_a_key_leads_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[Place, Place, CommandHost | None]] = []
    monkeypatch.setattr(on_site, "Testers", lambda *given: seen.append(given))
    known = hosts(tmp_path, compute_001={"tester": INSIDE}, away={"tester": OUTSIDE}, gw_02={}, gw_01={})
    (target,) = targets(PLAN, tenant="acme", exposure="masquerade")
    on_site.testers_of(PLAN, known, target)
    ((inside, outside, gateway),) = seen
    assert (inside.interface, inside.addresses) == ("fe0", ("10.1.0.225", "10.1.0.226"))
    assert outside.network == "198.18.0.8/29"
    assert isinstance(inside.host, CommandHost)
    assert inside.host.prefix[:3] == ["ssh", "-o", "BatchMode=yes"]
    assert gateway is not None


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"side": "between"}, "side 'between' is not known"),
        ({"hosts": ["10.1.0.225"]}, "must be two addresses of 10.1.0.224/28"),
        ({"hosts": ["10.1.0.225", "10.1.9.9"]}, "must be two addresses of 10.1.0.224/28"),
        ({"hosts": 7}, "data.tester.hosts: "),
        ({"network": "10.1.0.225/28"}, "has host bits set"),
        ({"hop": "10.1.0.225"}, "is one of its hosts"),
        ({"port": ""}, "port names no interface"),
        ({"speed": 1}, "must have exactly side, port, hop, network, hosts"),
    ],
)
def test_a_tester_that_makes_no_sense_is_refused_with_its_field(
    tmp_path: Path, change: dict[str, Any], text: str
) -> None:
    with pytest.raises(InputError) as raised:
        hosts(tmp_path, compute_001={"tester": INSIDE | change})
    assert text in str(raised.value)


def test_only_a_tester_outside_may_be_no_device_of_the_plan(tmp_path: Path) -> None:
    assert "away" in hosts(tmp_path, away={"tester": OUTSIDE})
    with pytest.raises(InputError, match="is not a device of the plan"):
        hosts(tmp_path, away={"tester": INSIDE})
