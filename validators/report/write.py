"""Write and read the files of a run folder."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from fabric.files import replace_file
from fabric.problem import InputError, Problem
from fabric.strict_json import loads
from validators.journal import read_journal
from validators.report.html import to_html
from validators.report.junit import to_junit
from validators.report.model import Run, interruption, loss
from validators.report.tables import to_csv, to_json, to_markdown, to_prometheus
from validators.report.topology import is_drawing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

FORMATS: dict[str, tuple[str, Callable[[Run], str]]] = {
    "html": ("report.html", to_html),
    "junit": ("junit.xml", to_junit),
    "json": ("results.json", to_json),
    "csv": ("results.csv", to_csv),
    "markdown": ("report.md", to_markdown),
    "prometheus": ("results.prom", to_prometheus),
}
TOPOLOGY = "topology.json"


def load_run(folder: Path) -> Run:
    """Read a run; one without its end or without some of its cases has one more record, an ERROR that says so.

    Raises InputError when the folder holds none.
    """
    info, records = read_journal(folder)
    if not info.finished:
        records.append(interruption(info, records))
    elif lost := loss(info, records):
        records.append(lost)
    return Run(info, tuple(records), _read_topology(folder / TOPOLOGY))


def _read_topology(path: Path) -> dict[str, Any]:
    try:
        data: dict[str, Any] = loads(path.read_bytes())
        return data if is_drawing(data) else _damaged(path, "the file holds no drawing of a site")
    except OSError:
        return {}
    except ValueError as error:  # also bytes that are no text
        return _damaged(path, f"the file is not JSON: {error}")


def _damaged(path: Path, text: str) -> NoReturn:
    fix = "remove it: the report then has no drawing"
    raise InputError([Problem("report.damaged", path.name, text, fix, str(path), 1)])


def write_reports(run: Run, folder: Path, formats: Iterable[str] = FORMATS) -> dict[str, Path]:
    """Write the run in each format into `folder`, each file complete or not at all; returns the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = {}
    for name in formats:
        file, make = FORMATS[name]
        path = folder / file
        replace_file(path, make(run))
        written[name] = path
    return written
