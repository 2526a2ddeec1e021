"""Cable maps in CSV: the 11-column and the 12-column OCP forms and NetBox's cable export.

The form is told by the header. Column order, extra columns, letter case, `;` or tab instead of the comma, comment lines
and quoted cells are all accepted; a row that cannot be used is a problem with its line.
"""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.interop.cable_map import Cable, CableEnd, CableMap
from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_SPEED = re.compile(r"^(\d{1,6})(?:\.0*)?\s*([GMT]?)(?:b(?:it)?(?:/s|ps)?|be)?$", re.IGNORECASE)
_SCALE = {"": 1, "G": 1, "T": 1000}
_PROBLEMS_SHOWN = 20
Row = dict[str, str]


@dataclass(frozen=True, slots=True)
class _Form:
    """A CSV form: the columns each end needs, and how a row becomes a cable."""

    name: str
    needs: tuple[str, ...]
    cable: Callable[[Row, int], Cable]


def read_csv_map(path: Path, text: str) -> CableMap:
    """Return the cables of a CSV file; InputError with the first problems, each with its line."""
    rows = _rows(path, text)
    first, header = next(rows, (1, []))
    form = _form(path, header, first)
    columns = [_column(cell) for cell in header]
    cables, problems = [], []
    for line, cells in rows:
        row = {name: cell.strip() for name, cell in zip(columns, cells, strict=False)}
        missing = [name for name in form.needs if not row.get(name)]
        if missing:
            problems.append(_row_problem(path, line, cells, missing, len(cells) < len(columns)))
        else:
            cables.append(form.cable(row, line))
    if problems:
        raise InputError(_shown(problems, path))
    if not cables:
        fix = "give a map with at least one cable"
        raise InputError([Problem("cables.empty", path.name, "there is a header but no row", fix, str(path), first)])
    return CableMap(str(path), form.name, tuple(cables))


def _rows(path: Path, text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line where each row starts, and its cells; comment lines and blank rows are left out."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text))
    line = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            problem = Problem("cables.csv", path.name, f"not CSV: {error}", "check the quotes", str(path), line)
            raise InputError([problem]) from error
        if any(cell.strip() for cell in cells) and not cells[0].lstrip().startswith("#"):
            yield line, cells
        line = reader.line_num + 1


def _delimiter(text: str) -> str:
    head = next((x for x in text.splitlines() if x.strip() and not x.lstrip().startswith("#")), "")
    return max(",;\t", key=head.count)


def _column(cell: str) -> str:
    return cell.strip().lower().replace(" ", "_")


def _form(path: Path, header: list[str], line: int) -> _Form:
    columns = {_column(cell) for cell in header}
    for form in _FORMS:
        if columns.issuperset(form.needs):
            return form
    closest = max(_FORMS, key=lambda form: len(columns & set(form.needs)))
    missing = [name for name in closest.needs if name not in columns]
    if len(missing) == len(closest.needs):
        text = "no header of a cable map"
        fix = "the first row must name the columns, for example a_device,a_interface,b_device,b_interface"
    else:
        text = f"the header looks like the {closest.name} form, but has no {' and no '.join(missing)}"
        fix = f"add the column{'s' if len(missing) > 1 else ''}"
    raise InputError([Problem("cables.header", path.name, text, fix, str(path), line)])


def _row_problem(path: Path, line: int, cells: list[str], missing: list[str], short: bool) -> Problem:
    why = f"the row ends after {len(cells)} cells" if short else "an end needs a device and a port"
    fix = f"fill in {', '.join(missing)}, or delete the row"
    return Problem("cables.row", ",".join(cells)[:60], f"no {' and no '.join(missing)}: {why}", fix, str(path), line)


def _shown(problems: list[Problem], path: Path) -> list[Problem]:
    """The first problems, and how many more there are: a wrong export would otherwise fill the screen."""
    more = len(problems) - _PROBLEMS_SHOWN
    if more <= 0:
        return problems
    last = Problem("cables.row", path.name, f"{more} more rows cannot be used", "correct the first ones", str(path))
    return [*problems[:_PROBLEMS_SHOWN], last]


def speed_gbps(text: str) -> int:
    """Return Gb/s from `400`, `400G`, `800 Gbps` or `0.8T`-like text; 0 when it says nothing usable."""
    match = _SPEED.match(text.strip())
    if not match:
        return 0
    unit = match[2].upper()
    return int(match[1]) // 1000 if unit == "M" else int(match[1]) * _SCALE[unit]


def _eleven(row: Row, line: int) -> Cable:
    return Cable(
        a=CableEnd(row["a_device"], row["a_interface"], row.get("a_role", "")),
        b=CableEnd(row["b_device"], row["b_interface"], row.get("b_role", "")),
        id=row.get("cable_id", ""),
        status=row.get("status", ""),
        network=row.get("zone", ""),
        line=line,
    )


def _twelve(row: Row, line: int) -> Cable:
    return Cable(
        a=CableEnd(row["node_id"], row["port"], row.get("node_type", "")),
        b=CableEnd(row["peer_id"], row["peer_port"], row.get("peer_type", "")),
        network=row.get("network_type", ""),
        speed=speed_gbps(row.get("speed", "")),
        medium=row.get("media_type", ""),
        lag=row.get("lag_id", ""),
        line=line,
    )


def _netbox(row: Row, line: int) -> Cable:
    length = row.get("length", "")
    metres = float(length) if re.fullmatch(r"\d{1,6}(\.\d+)?", length) else 0.0
    return Cable(
        a=CableEnd(row["side_a_device"], row["side_a_name"]),
        b=CableEnd(row["side_b_device"], row["side_b_name"]),
        id=row.get("label", ""),
        status=row.get("status", ""),
        medium=row.get("type", ""),
        length_m=round(metres) if row.get("length_unit", "m") == "m" else 0,
        line=line,
    )


_FORMS = (
    _Form("11-column", ("a_device", "a_interface", "b_device", "b_interface"), _eleven),
    _Form("12-column", ("node_id", "port", "peer_id", "peer_port"), _twelve),
    _Form("NetBox", ("side_a_device", "side_a_name", "side_b_device", "side_b_name"), _netbox),
)
