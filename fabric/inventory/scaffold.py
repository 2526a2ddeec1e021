"""A ready inventory of a named size, as text a person goes on from: `kvfabric new`, and the shipped sites."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fabric.problem import InputError, Problem
from fabric.resources import data_folder

if TYPE_CHECKING:
    from pathlib import Path

SIZES = {"xoc-64": 64, "xoc-128": 128, "xoc-256": 256, "xoc-512": 512, "xoc-1024": 1024}
_XPUS_PER_SERVER = 8
_SHARES = (("acme", 8), ("globex", 6), ("initech", 2))  # of sixteen
_NAME = re.compile(r"^[a-z]([a-z0-9-]*[a-z0-9])?$")


@dataclass(frozen=True, slots=True)
class Scaffold:
    """What a new site should be."""

    site: str
    size: str
    profile: str = "distributed"
    placement: str = "single-homed"
    compute_only: bool = False
    management: bool = False


def scaffold(wish: Scaffold) -> dict[str, str]:
    """Return the files of a new site by name. Raises InputError for a name that cannot be a site's."""
    if not _NAME.match(wish.site) or len(wish.site) > 40:
        text = "a site's name is at most 40 lower-case letters, digits and hyphens, and begins with a letter"
        raise InputError([Problem("new.name", f"site '{wish.site}'", text, "for example lab-1")])
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(data_folder("templates")),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701 - YAML, not HTML
    )
    values = _values(wish)
    return {name: environment.get_template(f"new/{name}.j2").render(values) for name in ("site.yaml", "tenants.yaml")}


def _values(wish: Scaffold) -> dict[str, Any]:
    xpus = SIZES[wish.size]
    servers = xpus // _XPUS_PER_SERVER
    gateways = 4 if xpus > 512 else 2
    names = [f"gw-{n:02d}" for n in range(1, gateways + 1)]
    return {
        "site": wish.site,
        "profile": wish.profile,
        "backend": wish.profile == "distributed",
        "placement": wish.placement,
        "compute_only": wish.compute_only,
        "management": wish.management,
        "xpus": xpus,
        "servers": servers,
        "storage": max(2, servers // 8),
        "gateways": gateways,
        "groups": [
            {"name": "internet", "members": names},
            {"name": "partners", "members": list(reversed(names))},
        ],
        "tenants": _tenants(servers),
    }


def _tenants(servers: int) -> list[dict[str, str]]:
    found = []
    start = 1
    for number, (name, share) in enumerate(_SHARES, 1):
        count = servers * share // 16
        last = start + count - 1
        found.append(
            {
                "name": name,
                "servers": f"compute-[{start:03d}-{last:03d}]",
                "first": f"compute-{start:03d}",
                "last": f"compute-{last:03d}",
                "backend": f"10.{number}.0.0/20",
                "frontend": f"10.{number}.16.0/20",
                "pool": f"203.0.113.{16 * (number - 1)}/28",
                "group": "internet" if number % 2 else "partners",
            }
        )
        start = last + 1
    return found


def write_scaffold(files: dict[str, str], folder: Path) -> list[Path]:
    """Write a new site; never over an existing one. Raises InputError when the folder has anything in it."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        text = "the folder exists and is not empty"
        raise InputError([Problem("new.exists", str(folder), text, "choose another --out", str(folder))])
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
        written.append(folder / name)
    return written
