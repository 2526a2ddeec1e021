"""Cable maps from files: forms, lenience, and one line a problem whatever the file holds."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fabric.interop.cable_map import CableMap
from fabric.interop.formats import write
from fabric.interop.readers import read_cable_map
from fabric.interop.readers.csv_maps import speed_gbps
from fabric.problem import InputError

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.plan import Plan

pytestmark = pytest.mark.unit

_ELEVEN = "a_device,a_interface,a_role,b_device,b_interface,b_role\n"


def written(folder: Path, text: str | bytes, name: str = "map.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        _ELEVEN + "s1,p0,server,l1,E1/1,leaf\n",
        "\ufeff" + _ELEVEN + "s1,p0,server,l1,E1/1,leaf\r\n",
        _ELEVEN.replace(",", ";") + "s1;p0;server;l1;E1/1;leaf\n",
        _ELEVEN.replace(",", "\t") + "s1\tp0\tserver\tl1\tE1/1\tleaf\n",
        "# measured today\n\n" + _ELEVEN.upper() + '"s1", p0 ,server,l1,E1/1,leaf\n\n# end\n',
        "b_device,b_interface,x,a_device,a_interface\nl1,E1/1,,s1,p0\n",
        "node_type,node_id,port,peer_type,peer_id,peer_port\nserver,s1,p0,switch,l1,E1/1\n",
        "side_a_device,side_a_name,side_b_device,side_b_name\ns1,p0,l1,E1/1\n",
    ],
)
def test_harmless_differences_of_form_are_accepted(tmp_path: Path, text: str) -> None:
    [cable] = read_cable_map(written(tmp_path, text)).cables
    assert cable.places == {("s1", "p0"), ("l1", "E1/1")}


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (_ELEVEN + "s1,p0,server,l1,E1/1,leaf\ns2,p0,server\n", 3, "b_device"),
        (_ELEVEN + "s1,,server,l1,E1/1,leaf\n", 2, "a_interface"),
        ("a_device,a_interface,b_device\ns1,p0,l1\n", 1, "no b_interface"),
        ("one,two\n1,2\n", 1, "no header of a cable map"),
        (_ELEVEN, 1, "no row"),
        ("apiVersion: wiring.githedgehog.com/v1beta1\nkind: [\n", 3, ""),
    ],
)
def test_a_problem_has_its_line_and_a_fix(tmp_path: Path, text: str, line: int, words: str) -> None:
    with pytest.raises(InputError) as raised:
        read_cable_map(written(tmp_path, text))
    [problem] = raised.value.problems
    assert problem.line == line
    assert words in problem.text
    assert problem.fix


@pytest.mark.parametrize("text", [b"", b"\xff\xfe\x00", b"a\0b", b"   \n"])
def test_files_that_are_no_text_are_refused(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(InputError):
        read_cable_map(written(tmp_path, text))


def test_absent_files_and_folders_are_refused(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing.csv"):
        with pytest.raises(InputError):
            read_cable_map(path)


def test_many_bad_rows_are_not_all_shown(tmp_path: Path) -> None:
    with pytest.raises(InputError) as raised:
        read_cable_map(written(tmp_path, _ELEVEN + "s,,,,,\n" * 500))
    assert len(raised.value.problems) == 21
    assert "480 more rows" in raised.value.problems[-1].text


def test_a_hedgehog_link_without_an_end_names_its_document(tmp_path: Path) -> None:
    text = (
        "apiVersion: wiring.githedgehog.com/v1beta1\nkind: Connection\nmetadata: {name: c1}\n"
        "spec: {unbundled: {link: {server: {port: s1/p0}, switch: {port: l1}}}}\n"
    )
    with pytest.raises(InputError, match=r"switch\.port"):
        read_cable_map(written(tmp_path, text, "w.yaml"))


def test_speeds_are_read_as_people_write_them() -> None:
    assert [speed_gbps(x) for x in ("400", "400G", "800 Gbps", "1.0T", "40000M", "fast", "")] == [
        400,
        400,
        800,
        1000,
        40,
        0,
        0,
    ]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_no_damage_to_a_file_gives_anything_but_a_map_or_a_problem(
    lab: Plan, tmp_path: Path, data: st.DataObject
) -> None:
    form = data.draw(st.sampled_from(["connectivity-map", "netbox", "ocp12", "wiring"]))
    text = next(iter(write(lab, form).values()))[:3000]
    at = data.draw(st.integers(0, len(text)))
    length = data.draw(st.integers(0, 200))
    junk = data.draw(
        st.text(max_size=20) | st.sampled_from(['"', "\0", "\r", "\n\n", "{", "&a *a", ": :", ",,,,", "\t- "])
    )
    path = written(tmp_path, (text[:at] + junk + text[at + length :]).encode("utf-8", "surrogatepass"))
    outcome: object
    try:
        outcome = read_cable_map(path)
    except InputError as error:
        outcome = error
    assert isinstance(outcome, CableMap) or (isinstance(outcome, InputError) and outcome.problems)
