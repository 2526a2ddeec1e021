"""Write and read the files of a run folder."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fabric.files import replace_file
from fabric.problem import InputError, Problem
from validators.journal import read_journal
from validators.report.html import to_html
from validators.report.junit import to_junit
from validators.report.model import Run
from validators.report.tables import to_csv, to_json, to_markdown, to_prometheus

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
    """Read a run, finished or not. Raises InputError when the folder holds none."""
    info, records = read_journal(folder)
    return Run(info, tuple(records), _read_json(folder / TOPOLOGY))


def _read_json(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text())
    except OSError:
        return {}
    except ValueError:  # also bytes that are no text
        raise InputError(
            [Problem("report.damaged", path.name, "the file is not JSON", "remove it", str(path))]
        ) from None
    return data if isinstance(data, dict) and isinstance(data.get("panels"), list) else {}


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
