"""Every format the cables can be written as."""

from __future__ import annotations

import csv
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fabric.interop.comparing import compare
from fabric.interop.formats import formats, write
from fabric.interop.formats.labels import WIDTH
from fabric.interop.output import write_files
from fabric.interop.readers import read_cable_map
from fabric.output_folder import CABLE_FORMATS
from fabric.problem import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.plan import Plan

pytestmark = pytest.mark.unit

_ALL = {"bom", "connectivity-map", "labels", "netbox", "ocp12", "ports", "wiring", "wiring-gateways"}


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(text.splitlines()))


def test_formats_are_found_by_being_there() -> None:
    assert set(formats()) == _ALL
    assert all(module.SUMMARY for module in formats().values())


@pytest.mark.parametrize("name", sorted(_ALL))
def test_the_same_plan_gives_the_same_text(xoc64: Plan, name: str) -> None:
    first, second = write(xoc64, name), write(xoc64, name)
    assert first == second
    assert first
    assert all(text.endswith("\n") and "\r" not in text for text in first.values())


@pytest.mark.parametrize("name", ["connectivity-map", "ocp12", "netbox"])
def test_what_is_written_reads_back_as_the_plan(lab: Plan, tmp_path: Path, name: str) -> None:
    [path] = write_files(write(lab, name), tmp_path)
    outcome = compare(lab, read_cable_map(path))
    assert outcome.same, outcome.text()
    assert outcome.equal == len(lab.links)


def test_wiring_reads_back_as_the_managed_cables_without_gateways(xoc256: Plan, tmp_path: Path) -> None:
    for path in write_files(write(xoc256, "wiring"), tmp_path):
        fabric = path.stem.removeprefix("wiring-")
        outcome = compare(xoc256, read_cable_map(path), (fabric,))
        wanted = [x for x in xoc256.links.values() if x.fabric == fabric and x.kind in {"server", "fabric"}]
        assert outcome.equal == len(wanted)
        assert {f.kind for f in outcome.findings if f.differs} <= {"missing"}


def test_connectivity_map_puts_servers_first_and_each_ones_backend_before_frontend(xoc256: Plan) -> None:
    found = rows(write(xoc256, "connectivity-map")["connectivity-map.csv"])
    assert [r["a_interface"] for r in found[:10]] == [*(f"be{n}-port0" for n in range(8)), "fe-p0", "fe-p1"]
    kinds = [xoc256.kind_of[r["a_device"]] for r in found]
    assert kinds.index("leaf") > max(i for i, kind in enumerate(kinds) if kind == "server")
    # the number on the label and in every other format
    assert [r["cable_id"] for r in found] == [r["label"] for r in rows(write(xoc256, "netbox")["netbox-cables.csv"])]
    assert len({r["cable_id"] for r in found}) == len(found)


def test_twelve_columns_use_the_forms_own_words(xoc256: Plan) -> None:
    found = rows(write(xoc256, "ocp12")["connectivity-map-12.csv"])
    assert {r["network_type"] for r in found} <= {"backend", "frontend", "storage", "inband", "oob"}
    assert {r["node_type"] for r in found} <= {"server", "switch", "gateway", "border"}
    assert found[0]["speed"] == "400G"


def test_fabric_choice_is_kept_and_unknown_ones_are_refused(xoc256: Plan) -> None:
    only = rows(write(xoc256, "connectivity-map", ("backend",))["connectivity-map.csv"])
    assert len(only) == sum(link.fabric == "backend" for link in xoc256.links.values())
    with pytest.raises(InputError, match="no such fabric"):
        write(xoc256, "connectivity-map", ("backbone",))
    with pytest.raises(InputError, match="no such format"):
        write(xoc256, "spreadsheet")


def test_bill_counts_a_transceiver_a_cage_and_a_cable_a_breakout(xoc256: Plan) -> None:
    optical = replace(xoc256, links={i: replace(k, medium="smf") for i, k in xoc256.links.items()})
    bill = rows(write(optical, "bom", ("backend",))["bom.csv"])
    quantity = {(r["section"], r["used_by"], r["breakout"]): int(r["quantity"]) for r in bill}
    # 4 leaves of 32 cages down as 2x400G and 32 cages up
    assert quantity["switch_transceiver", "backend leaf", "2x400G"] == 4 * 32
    assert quantity["switch_transceiver", "backend leaf", "1x800G"] == 4 * 32
    assert quantity["server_transceiver", "compute", "1x400G"] == 32 * 8
    assert quantity["cable", "backend", "2x400G"] == 4 * 32
    assert quantity["cable", "backend", ""] == 4 * 32
    assert quantity["nic", "compute", ""] == 32 * 8


def test_copper_needs_no_transceiver_at_either_end(xoc256: Plan) -> None:
    bill = rows(write(xoc256, "bom", ("backend",))["bom.csv"])
    assert {r["medium"] for r in bill if r["section"] == "cable"} == {"aec", "smf"}
    assert not [r for r in bill if r["section"] == "server_transceiver"], "5 m to the servers is copper"
    assert {r["breakout"] for r in bill if r["section"] == "switch_transceiver"} == {"1x800G"}


def test_bill_has_gateway_nics_no_placeholder_and_says_what_it_assumed(xoc256: Plan) -> None:
    bill = rows(write(xoc256, "bom")["bom.csv"])
    assert not [r for r in bill if "cage" in " ".join(r.values())]
    nics = {(r["item"], r["used_by"]): (int(r["quantity"]), r["connector"]) for r in bill if r["section"] == "nic"}
    assert nics["cx7-2x200g", "gw"] == (2, "QSFP112")
    outside = next(r for r in bill if r["section"] == "nic_port")
    assert (outside["quantity"], outside["remark"]) == ("4", "the inventory does not say the model of this NIC")
    optics = {r["connector"]: r for r in bill if r["section"] == "gateway_transceiver"}
    assert (optics["QSFP112"]["item"], optics["QSFP112"]["quantity"]) == ("QSFP112-200G-smf", "4")
    assert optics[""]["item"] == "200G-smf"
    assert "does not say the connector" in optics[""]["remark"]
    assumed = [r for r in bill if r["medium"]]
    assert assumed
    assert all(r["remark"].startswith("medium by length, the inventory says none") for r in assumed)


def test_build_writes_every_format_but_the_second_spelling_of_the_map() -> None:
    assert set(CABLE_FORMATS) == set(formats()) - {"ocp12"}


def test_ports_list_every_port_of_every_switch(lab: Plan) -> None:
    found = rows(write(lab, "ports")["ports.csv"])
    assert len(found) == sum(len(switch.ports) for switch in lab.switches.values())
    assert all(r["alias"].startswith("Eth") for r in found)
    assert next(r["alias"] for r in found if (r["device"], r["port"]) == ("leaf-01", "E1/1/2")) == "Eth1/5"
    used = [r for r in found if r["use"] != "spare"]
    assert all(r["peer"] and r["peer_port"] for r in used)
    assert len(used) == sum(1 for s in lab.switches.values() for p in s.ports if p.link)


def test_labels_name_both_ends_and_fit_the_printer(lab: Plan) -> None:
    files = write(lab, "labels")
    found = rows(files["labels.csv"])
    assert len(found) == 2 * len(lab.links)
    assert all(len(r[f"line{n}"]) <= WIDTH for r in found for n in range(1, 6))
    first, second = found[0], found[1]
    assert (first["end"], second["end"]) == ("A", "B")
    assert first["line1"] == second["line2"].removeprefix("> ")
    assert files["labels.html"].count('class="label"') == len(found)
    assert "http" not in files["labels.html"]


def test_labels_have_the_switch_s_own_name_of_a_port_where_it_fits(lab: Plan) -> None:
    found = rows(write(lab, "labels")["labels.csv"])
    link = lab.link_at["leaf-01", "E1/1/2"]
    a, b = (r for r in found if r["cable"] == str(link.cable))
    assert b["line1"] == "leaf-01 E1/1/2 Eth1/5"
    assert a["line2"] == "> leaf-01 E1/1/2 Eth1/5"
    long = "leaf-with-a-name-that-fills-two-lines-01"
    renamed = replace(
        lab,
        switches={
            long if n == "leaf-01" else n: replace(s, name=long if n == "leaf-01" else n)
            for n, s in lab.switches.items()
        },
        links={
            i: replace(k, b=replace(k.b, device=long)) if k.b.device == "leaf-01" else k
            for i, k in lab.links.items()
            if "leaf-01" not in (k.a.device,)
        },
    )
    label = next(
        r for r in rows(write(renamed, "labels")["labels.csv"]) if r["cable"] == str(link.cable) and r["end"] == "B"
    )
    assert "Eth1/5" not in " ".join(label.values()), "our own name goes first"
