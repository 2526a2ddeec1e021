"""gatewayctl with tools that only remember: what it asks for, what it keeps, and that it can be run again."""

from __future__ import annotations

import json
import os
import types
from typing import TYPE_CHECKING, Any

import pytest

from fabric.render.gateway import control_program

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.unit

ctl = types.ModuleType("gatewayctl")
exec(compile(control_program(), "gatewayctl", "exec"), ctl.__dict__)

FACTS = {
    "name": "gw-01",
    "table": "kvfabric",
    "edge_vrf": "Vrf-edge",
    "fabric_sessions": [{"address": "10.0.0.0", "device": "leaf-01"}],
    "edge_sessions": [{"address": "10.0.1.0", "device": "edge-01"}],
    "route_maps": {"edge": "EDGE-OUT", "fabric": "DEFAULT-ONLY"},
    "loopback_route_map": "FABRIC-OUT",
    "drain_mark": "50001:65535",
    "health": {"interval_s": 1, "failures": 3},
    "drain_deadline_s": 0.2,
    "conntrack_max": 1000,
    "announced": [{"prefix": "203.0.113.0/30", "med": 10}],
    "tenants": [
        {
            "name": "acme", "vrf": "Vrf-acme", "zone": 1, "bridge": "br100", "vxlan": "vx100", "handover_table": 100001,
            "standbys": [{"name": "gw-02", "vtep": "172.30.12.2", "router_mac": "02:00:00:00:00:02"}],
            "exposures": [{"name": "masquerade", "mode": "masquerade", "mark": 257, "label": "acme.masquerade", "addresses": 4}],
        }
    ],
}  # fmt: skip


# what draws traffic is marked so that it moves; the way to the gateway itself, so that other gateways know
_MARK = "set community graceful-shutdown additive"
TOLD = {"route-map FABRIC-OUT permit 10": ["set community 50001:65535 additive"]}
MARKED = TOLD | {"route-map DEFAULT-ONLY permit 10": [_MARK], "route-map EDGE-OUT permit 10": [_MARK]}


class Tools:
    """Stands for vtysh, nft, ip, bridge and conntrack."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.entries = [
            "route-map DEFAULT-ONLY permit 10",
            "route-map EDGE-OUT permit 10",
            "route-map FABRIC-OUT permit 10",
        ]
        self.running: dict[str, list[str]] = {}
        self.drained = False
        self.standby_drains = False
        self.up = True
        self.route = True
        self.conntrack: list[str] = []

    def run(self, argv: list[str], text: str | None = None) -> str:
        line = " ".join(argv)
        self.asked.append(line if text is None else f"{line}: {text}")
        if argv[0] == "vtysh":
            return self._vtysh(argv)
        if argv[:2] == ["nft", "-f"]:
            self.drained = "add element ip kvfabric drained" in (text or "")
            return ""
        if argv[0] == "nft":
            return self._nft(argv)
        return "172.30.12.2 via x" if argv[:3] == ["ip", "route", "show"] and self.route else ""

    def _vtysh(self, argv: list[str]) -> str:
        command = argv[-1]
        if command == "show running-config":
            blocks = [line for entry in self.entries for line in (entry, *self.running.get(entry, []), "exit")]
            return "\n".join(self.running.get("", []) + blocks)
        if command.startswith("show bgp ipv4 unicast"):
            path = {"community": {"list": ["50001:65535"]}} if self.standby_drains else {}
            return json.dumps({"paths": [path]})
        if "summary" in command:
            peers = {a: {"state": "Established" if self.up else "Active"} for a in ("10.0.0.0", "10.0.1.0")}
            return json.dumps({"ipv4Unicast": {"peers": peers}})
        context = ""
        for line in argv[4::2]:
            if line in self.entries or line == "exit":
                context = "" if line == "exit" else line
                continue
            kept = [old for old in self.running.get(context, []) if old != line.removeprefix("no ")]
            self.running[context] = kept if line.startswith("no ") else [*kept, line]
        self.running = {entry: lines for entry, lines in self.running.items() if lines}
        return ""

    def _nft(self, argv: list[str]) -> str:
        if "counters" in argv:
            counters = [{"counter": {"name": "new.acme.masquerade", "packets": 5, "bytes": 300}}]
            for name, packets in (("drop.edge", 2), ("drop.no-state.acme", 3), ("new.acme.static", 0)):
                counters.append({"counter": {"name": name, "packets": packets, "bytes": 1}})
            return json.dumps({"nftables": counters})
        return json.dumps({"nftables": [{"set": {"name": "drained", **({"elem": [1]} if self.drained else {})}}]})


@pytest.fixture
def tools(monkeypatch: pytest.MonkeyPatch) -> Tools:
    found = Tools()
    monkeypatch.setattr(ctl, "run", found.run)
    monkeypatch.setattr(ctl, "_conntrack", lambda: iter(found.conntrack))
    monkeypatch.setattr(ctl.Gateway, "table_use", lambda _self: (len(found.conntrack), 1000))
    monkeypatch.setattr(ctl, "POLL_S", 0.01)
    return found


@pytest.fixture
def call(tmp_path: Path) -> Any:
    (tmp_path / "gateway.json").write_text(json.dumps(FACTS))

    def ask(*argv: str) -> int:
        return int(ctl.main(["--config", str(tmp_path / "gateway.json"), "--state", str(tmp_path / "state"), *argv]))

    return ask


def _state(tmp_path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((tmp_path / "state" / "gw-01" / "state.json").read_text())
    return found


FLOW = "tcp 6 100 ESTABLISHED src=10.1.0.1 dst=1.1.1.1 mark=257 zone=1 use=1"


def test_drain_hands_over_first_and_moves_routes_when_flows_are_gone(tools: Tools, call: Any, tmp_path: Path) -> None:
    assert call("drain", "--settle", "0") == 0
    nft = next(i for i, line in enumerate(tools.asked) if "add element ip kvfabric handed_over { 1 }" in line)
    bgp = next(i for i, line in enumerate(tools.asked) if "set community graceful-shutdown" in line)
    assert nft < bgp
    assert any("default via 172.30.12.2 dev br100 onlink table 100001" in line for line in tools.asked)
    assert _state(tmp_path)["phase"] == "drained"
    assert tools.running == MARKED


def test_drain_says_what_the_deadline_cuts(
    tools: Tools, call: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tools.conntrack = [FLOW, FLOW.replace("ESTABLISHED", "TIME_WAIT"), FLOW.replace("mark=257", "mark=0")]
    assert call("drain", "--settle", "0", "--deadline", "0.05") == 1
    assert "1 flows are cut: acme.masquerade 1" in capsys.readouterr().out
    assert _state(tmp_path)["cut"] == {"acme.masquerade": 1}


@pytest.mark.parametrize("why", ["route", "standby_drains"])
def test_drain_without_a_standby_is_refused_and_forced_it_refuses_new_flows(
    why: str, tools: Tools, call: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    setattr(tools, why, why == "standby_drains")
    assert call("drain", "--settle", "0") == 3
    assert "acme: no other gateway takes new flows" in capsys.readouterr().err
    assert not (tmp_path / "state/gw-01/state.json").exists()
    assert not tools.running
    assert call("drain", "--settle", "0", "--force") == 0
    assert "acme: new flows are refused" in capsys.readouterr().out
    nft = next(line for line in tools.asked if line.startswith("nft -f"))
    assert "add element ip kvfabric drained { 1 }" in nft
    assert "add element ip kvfabric handed_over" not in nft


def test_a_killed_drain_goes_on_and_health_puts_it_back(
    tools: Tools, call: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_args: object) -> dict[str, int]:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ctl, "_wait_for_flows", killed)
        assert call("drain", "--deadline", "5") == 130
    before = _state(tmp_path)
    assert before["phase"] == "draining"
    tools.drained = False  # nftables was loaded anew
    assert call("health", "--once") == 0
    assert tools.drained
    assert call("drain", "--settle", "0") == 0
    assert _state(tmp_path)["deadline"] == before["deadline"]
    tools.running.clear()  # FRR was started anew
    assert call("health", "--once") == 0
    assert tools.running == MARKED


def test_undrain_undoes_and_twice_is_once(tools: Tools, call: Any, tmp_path: Path) -> None:
    call("drain", "--settle", "0")
    assert call("undrain", "--settle", "0") == 0
    assert call("undrain", "--settle", "0") == 0
    assert not tools.drained
    assert not tools.running
    assert _state(tmp_path)["phase"] == "active"


def test_undrain_moves_the_routes_before_it_takes_flows(tools: Tools, call: Any, tmp_path: Path) -> None:
    call("drain", "--settle", "0")
    tools.asked.clear()

    def settled(_seconds: float) -> None:
        assert tools.running == TOLD
        assert tools.drained
        assert _state(tmp_path)["phase"] == "returning"

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ctl.time, "sleep", settled)
        assert call("undrain", "--settle", "2") == 0
    assert not tools.drained


def test_routes_that_frr_does_not_have_cannot_be_marked(
    tools: Tools, call: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    tools.entries = []
    assert call("drain", "--settle", "0") == 3
    assert "FRR has none of the route-maps FABRIC-OUT" in capsys.readouterr().err


def test_two_drains_at_once_are_refused(tools: Tools, call: Any, tmp_path: Path) -> None:
    import fcntl

    folder = tmp_path / "state" / "gw-01"
    folder.mkdir(parents=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert call("drain") == 3


def test_health_withdraws_after_n_failures_and_returns_after_n_successes(
    tools: Tools, call: Any, tmp_path: Path
) -> None:
    tools.up = False
    denied = {"route-map EDGE-OUT deny 1", "route-map DEFAULT-ONLY deny 1"}
    for failed in (1, 2):
        assert call("health", "--once") == 1
        assert _state(tmp_path)["failures"] == failed
        assert not tools.running
    assert call("health", "--once") == 1
    assert set(tools.running[""]) == denied
    tools.up = True
    for _ in (1, 2):
        assert call("health", "--once") == 0
        assert set(tools.running[""]) == denied
    assert call("health", "--once") == 0
    assert not tools.running
    assert not _state(tmp_path)["withdrawn"]


def test_a_full_flow_table_is_not_well(tools: Tools, call: Any, capsys: pytest.CaptureFixture[str]) -> None:
    tools.conntrack = [FLOW] * 990
    assert call("status") == 1
    assert "990 of 1000 flows" in capsys.readouterr().out


def test_a_torn_state_file_means_active(tools: Tools, call: Any, tmp_path: Path) -> None:
    folder = tmp_path / "state" / "gw-01"
    folder.mkdir(parents=True)
    (folder / "state.json").write_text('{"phase": "dra')
    assert call("status", "--json") == 0


def test_metrics_are_prometheus_text(tools: Tools, call: Any, capsys: pytest.CaptureFixture[str]) -> None:
    tools.conntrack = [FLOW]
    assert call("metrics") == 0
    text = capsys.readouterr().out
    assert "# TYPE kvfabric_gateway_new_connections_total counter" in text
    assert 'tenant="acme",vrf="Vrf-acme",exposure="masquerade",mode="masquerade"} 5' in text
    assert 'kvfabric_gateway_dropped_packets_total{gateway="gw-01",reason="edge"} 2' in text
    lost = 'kvfabric_gateway_dropped_packets_total{gateway="gw-01",tenant="acme",vrf="Vrf-acme",reason="no-state"} 3'
    assert lost in text
    # static keeps no state: that is no connection, and not none
    assert "kvfabric_gateway_new_connections_total" in text
    assert not [line for line in text.splitlines() if "new_connections" in line and 'mode="static"' in line]
    samples = [line.rpartition(" ") for line in text.splitlines() if not line.startswith("#")]
    assert all(value.isdigit() for _, _, value in samples)
    assert len({name for name, _, _ in samples}) == len(samples)


def test_metrics_are_read_by_a_parser_that_nobody_here_wrote(
    tools: Tools, call: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    parser = pytest.importorskip("prometheus_client.parser", reason="prometheus-client is not installed")
    tools.conntrack = [FLOW]
    assert call("metrics") == 0
    families = {family.name: family for family in parser.text_string_to_metric_families(capsys.readouterr().out)}
    for name in ("new_connections", "flows", "bytes", "nat_pool_ports", "denied_packets"):
        family = families[f"kvfabric_gateway_{name}"]
        assert family.samples
        assert all((s.labels["tenant"], s.labels["vrf"]) == ("acme", "Vrf-acme") for s in family.samples), name
    assert families["kvfabric_gateway_new_connections"].type == "counter"
    assert families["kvfabric_gateway_flows"].samples[0].value == 1


def test_missing_facts_are_told_and_not_a_traceback(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ctl.main(["--config", str(tmp_path / "none.json"), "status"]) == 3
    assert "none.json" in capsys.readouterr().err
    assert os.environ.get("KVFABRIC_GATEWAY") is None
