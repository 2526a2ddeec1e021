"""The rendered files of a site, parsed once and shared by every rule.

Rules read these and not the renderer's own data, so a fault in a template or a file edited by hand is found too.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from fabric.analysis import frr_conf
from fabric.files import read_whole
from fabric.problem import CouldNotRunError, Problem
from fabric.strict_json import loads

if TYPE_CHECKING:
    from collections.abc import Mapping

Row = dict[str, Any]
Table = dict[str, Row]
ConfigDb = dict[str, Table]

CONFIG_DB, FRR_CONF, NETWORK_SH, ROCE_SH, NFTABLES = (
    "config_db.json",
    "frr.conf",
    "network.sh",
    "roce.sh",
    "nftables.conf",
)


class Rendered:
    """Device -> file -> text, with the parsed form of each file kept after the first look."""

    def __init__(self, files: Mapping[str, Mapping[str, str]], origin: str = "") -> None:
        self.files = files
        self.origin = origin
        self.problems: list[Problem] = []
        self._config_db: dict[str, ConfigDb] = {}
        self._tables: dict[str, Any] = {}
        self._plain: dict[int, Table] = {}
        self._frr: dict[str, frr_conf.FrrConf] = {}
        self._frr_by_text: dict[str, frr_conf.FrrConf] = {}

    @classmethod
    def from_folder(cls, folder: Path) -> Rendered:
        """Read `folder/<device>/<file>`; CouldNotRunError when there is no device folder in it."""
        files: dict[str, dict[str, str]] = {}
        for device in sorted(path for path in folder.iterdir() if path.is_dir()):
            files[device.name] = {
                path.name: read_whole(path).decode(errors="replace")
                for path in sorted(device.iterdir())
                if path.is_file()
            }
        if not files:
            message = f"{folder} holds no device folder"
            raise CouldNotRunError(message)
        return cls(files, str(folder))

    def path(self, device: str, name: str) -> str:
        """Return the path of a file as a person would open it."""
        return str(Path(self.origin) / device / name) if self.origin else f"{device}/{name}"

    def text(self, device: str, name: str) -> str:
        """Return a file's text, empty when it does not exist."""
        return self.files.get(device, {}).get(name, "")

    def config_db(self, device: str) -> ConfigDb:
        """Return the parsed config_db.json, empty (and a problem noted, once) when it cannot be read."""
        known = self._config_db.get(device)
        if known is None:
            known = self._config_db[device] = self._load_config_db(device)
        return known

    def _load_config_db(self, device: str) -> ConfigDb:
        text = self.text(device, CONFIG_DB)
        if not text:
            return {}
        try:
            data = self._load_tables(text)
        except ValueError as error:
            line = getattr(error, "lineno", 0)
            self._unreadable(device, f"is not JSON: {error}", line)
            return {}
        return self._well_formed(device, data)

    def _load_tables(self, text: str) -> object:
        """Parse a config_db table by table: most tables are the same on many switches and are parsed once for all.

        Equal tables are then one object, which lets rules run once for all switches that share it. Text that is not
        laid out as indented JSON is parsed as a whole.
        """
        if not text.startswith("{\n") or not text.rstrip().endswith("\n}"):
            return loads(text)
        indent = len(text[2:200]) - len(text[2:200].lstrip(" "))
        separator = "\n" + " " * indent + '"'
        db: dict[str, Any] = {}
        pieces = text.rstrip()[1:-2].split(separator)
        if pieces[0].strip() or indent < 1:
            return loads(text)
        for piece in pieces[1:]:
            name, _, body = piece.partition('": ')
            body = body.rstrip().removesuffix(",")
            table = self._tables.get(body)
            if table is None:
                try:
                    table = self._tables[body] = loads(body)
                except ValueError:
                    return loads(text)  # says where the text as a whole is wrong
            db[name] = table
        return db

    def _well_formed(self, device: str, data: object) -> ConfigDb:
        if not isinstance(data, dict):
            self._unreadable(device, "must be an object of tables")
            return {}
        for table, rows in data.items():
            if not isinstance(rows, dict) or not all(isinstance(row, dict) for row in rows.values()):
                self._unreadable(device, f"table {table} must be an object of rows, each an object of fields")
                return {}
            if id(rows) not in self._plain:
                self._plain[id(rows)] = rows
                self._make_plain(device, table, rows)
        return data

    def _make_plain(self, device: str, table: str, rows: Table) -> None:
        """Make every field text, as SONiC has it: lists are joined by commas, anything else is a problem."""
        for key, row in rows.items():
            for name, value in row.items():
                if isinstance(value, str):
                    continue
                if isinstance(value, list):
                    row[name] = ",".join(map(str, value))
                else:
                    row[name] = "" if value is None else str(value)
                    self._unreadable(device, f"{table}|{key}: {name} is {value!r}, every field must be text")

    def _unreadable(self, device: str, text: str, line: int = 0) -> None:
        self.problems.append(
            Problem(
                "files.readable",
                f"{device} {CONFIG_DB}",
                text,
                "render the device again",
                self.path(device, CONFIG_DB),
                line,
            )
        )

    def frr(self, device: str) -> frr_conf.FrrConf | None:
        """Return the parsed frr.conf, or None when the device has none. Identical files are parsed once."""
        known = self._frr.get(device)
        if known is None:
            text = self.text(device, FRR_CONF)
            if not text:
                return None
            known = self._frr_by_text.get(text)
            if known is None:
                known = self._frr_by_text[text] = frr_conf.parse(text)
            self._frr[device] = known
        return known

    def line_of(self, device: str, name: str, *keys: str) -> int:
        """Return the line where the last of nested JSON keys is written, or 0. Only called for a finding."""
        lines = self.text(device, name).splitlines()
        at = 0
        for key in keys:
            wanted = f'"{key}"'
            at = next((i for i in range(at, len(lines)) if lines[i].lstrip().startswith(wanted)), -1)
            if at < 0:
                return 0
        return at + 1
