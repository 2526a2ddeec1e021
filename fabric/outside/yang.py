"""SONiC's own YANG models, by libyang: types, ranges, enumerations, references and conditions of config_db.json."""

from __future__ import annotations

import importlib.util
import json
from functools import cache
from typing import TYPE_CHECKING, Any

from fabric.outside.places import external_data, missing
from fabric.outside.yang_tables import TranslationError, to_yang
from fabric.problem import Problem

if TYPE_CHECKING:
    from pathlib import Path

NAME = "yang"
FILES = ("config_db.json",)


def available() -> str | None:
    """Why the models cannot be asked, or None."""
    if importlib.util.find_spec("oopt_gnpy_libyang") is None:
        return "the Python package oopt-gnpy-libyang is not installed (pip install kvfabric[external])"
    return missing("sonic-yang")


@cache
def _context() -> Any:
    import oopt_gnpy_libyang as libyang

    libyang.set_log_options(libyang.LogOptions.Store)
    folder = external_data("sonic-yang")
    context = libyang.Context(str(folder), libyang.ContextOptions.NoYangLibrary)
    for path in sorted(folder.glob("*.yang")):
        context.load_module(path.stem)
    context.clean_all_errors()
    return context


def complaints(text: str) -> list[str]:
    """Return what the models say about the text of a config_db.json; nothing when it is valid."""
    import oopt_gnpy_libyang as libyang

    try:
        tree = to_yang(json.loads(text))
    except (TranslationError, ValueError) as error:
        return [str(error)]
    context = _context()
    # SONiC keeps every value as a string, and its own validation reads them so
    parse = libyang.ParseOptions.Strict | libyang.ParseOptions.JsonStringDataTypes | libyang.ParseOptions.NoState
    check = libyang.ValidationOptions.NoState | libyang.ValidationOptions.MultiError
    try:
        context.parse_data(json.dumps(tree), libyang.DataFormat.JSON, parse, check)
    except libyang.Error as error:
        found = [f"{e.message} ({e.data_path or e.schema_path or ''})" for e in context.errors()]
        return found or [str(error)]
    finally:
        context.clean_all_errors()
    return []


def validate(folder: Path, device: str) -> list[Problem]:
    """Return the models' complaints about a device's config_db.json."""
    path = folder / FILES[0]
    if not path.is_file():
        return []
    return [
        Problem("outside.yang", device, text, "correct the renderer or the plan", file=str(path))
        for text in complaints(path.read_text())
    ]
