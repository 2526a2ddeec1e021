"""Puts rendered files on disk, or says how they differ from what is there.

The folder carries a manifest, `.kvfabric-render.json`: it marks the folder as ours, so that nothing else is ever
overwritten, and it remembers which files were written, so that those of a removed device are reported; and which
inventory they are of, so that a copy of it with the same `site:` does not overwrite them.
"""

from __future__ import annotations

import difflib
import json
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fabric.files import replace_file
from fabric.problem import InputError, Problem
from fabric.resources import data_folder

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from fabric.inventory.load import Inventory

    Rendered = Iterable[tuple[str, dict[str, str]]]

MARKER = ".kvfabric-render.json"
_EXECUTABLES = frozenset({"gatewayctl"})


@dataclass(frozen=True, slots=True)
class Written:
    """What `write_tree` did. Each item is a path relative to the folder (`be-leaf-01/frr.conf`).

    `stale` files are still there from an earlier run and belong to no rendered device any more; only known when the
    whole site was written. `gone` are the devices among them that are not rendered at all.
    """

    written: tuple[str, ...]
    unchanged: int
    stale: tuple[str, ...]
    gone: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileDiff:
    """How one file differs: `state` is `added`, `changed` or `removed`, `lines` a unified diff."""

    device: str
    name: str
    state: str
    lines: tuple[str, ...]

    @property
    def path(self) -> str:
        """The file's path relative to the folder."""
        return f"{self.device}/{self.name}"


def write_tree(out: Path, rendered: Rendered, *, whole: bool = True, inventory: Inventory | None = None) -> Written:
    """Write each device's files below `out/<device>/`; files that already have the text are not touched.

    Every file appears at once (temporary file, then rename). `whole` says that `rendered` is the whole site, so that
    what is left over from earlier runs can be told; `inventory` is remembered. Raises as `require_ours` does.
    """
    earlier = _open_folder(out, inventory)
    written: list[str] = []
    unchanged = 0
    now: dict[str, list[str]] = {}
    for device, files in rendered:
        _require_plain(device)
        folder = out / device
        folder.mkdir(exist_ok=True)
        now[device] = sorted(files)
        for name, text in files.items():
            _require_plain(name)
            if _write(folder / name, text):
                written.append(f"{device}/{name}")
            else:
                unchanged += 1
    stale = _left_over(out, earlier, now) if whole else {}
    manifest = {**stale, **now, **_union(stale, now)} if whole else {**earlier, **now}
    _write(out / MARKER, _manifest_text(manifest, out, inventory))
    paths = tuple(f"{d}/{n}" for d, names in stale.items() for n in names)
    return Written(tuple(written), unchanged, paths, tuple(device for device in stale if device not in now))


def require_ours(out: Path, inventory: Inventory | None = None) -> None:
    """Raise InputError when `out` cannot be written: a file, content that is not ours, another inventory's files."""
    if out.is_file():
        raise InputError([Problem("render.not-a-folder", str(out), "is a file", "name a folder for --out")])
    if out.is_dir() and any(out.iterdir()) and not (out / MARKER).is_file():
        text = f"has files that kvfabric did not write (it has no {MARKER})"
        raise InputError([Problem("render.foreign-folder", str(out), text, "name an empty or new folder for --out")])
    if inventory is None:
        return
    _require_site(out, inventory.site.site)
    other = _inventory_of(out)
    if other and _is_inventory(other) and not other.samefile(inventory.folder):
        text = f"{out} holds the files of {other}, an inventory with the same name"
        fix = f"give this one a name of its own, name another --out, or delete {out} when it takes the other's place"
        raise InputError([inventory.problem("render.other-inventory", ("site",), inventory.site.site, text, fix)])


def _require_site(out: Path, site: str) -> None:
    other = _remembered(out, "site")
    if other and other != site:
        text = f"holds the files of site {other}, not of {site}"
        fix = f"name another folder, or delete {out} when {other} is gone"
        raise InputError([Problem("render.other-site", str(out), text, fix)])


def summary_of(differences: Iterable[FileDiff]) -> list[str]:
    """Return a line for each device that differs: its files by state, and how many lines come and go."""
    by_device: dict[str, list[FileDiff]] = {}
    for difference in differences:
        by_device.setdefault(difference.device, []).append(difference)
    lines = []
    for device, found in by_device.items():
        counts = {state: sum(d.state == state for d in found) for state in ("added", "changed", "removed")}
        states = [f"{n} {state}" for state, n in counts.items() if n]
        body = [line for d in found for line in d.lines if not line.startswith(("+++", "---"))]
        plus, minus = (sum(line.startswith(sign) for line in body) for sign in "+-")
        lines.append(f"{device}: {', '.join(states)} (+{plus} -{minus} lines)")
    return lines


def diff_tree(out: Path, rendered: Rendered, *, whole: bool = True, site: str = "") -> list[FileDiff]:
    """Return how `rendered` differs from the files below `out`, without writing; empty when nothing would change.

    Raises InputError when the folder holds another site's files.
    """
    if site and out.is_dir() and (out / MARKER).is_file():
        _require_site(out, site)  # another inventory of the same name may be compared: nothing is written
    earlier = _read_manifest(out)
    found: list[FileDiff] = []
    now: dict[str, list[str]] = {}
    for device, files in rendered:
        now[device] = sorted(files)
        for name, text in files.items():
            old = _read(out / device / name)
            if old != text:
                found.append(_difference(device, name, old, text))
    if whole:
        for device, names in _left_over(out, earlier, now).items():
            found.extend(_difference(device, name, _read(out / device / name), None) for name in names)
    return found


def _difference(device: str, name: str, old: str | None, new: str | None) -> FileDiff:
    path = f"{device}/{name}"
    before = f"a/{path}" if old is not None else "/dev/null"
    after = f"b/{path}" if new is not None else "/dev/null"
    lines = difflib.unified_diff((old or "").splitlines(), (new or "").splitlines(), before, after, lineterm="", n=3)
    state = "added" if old is None else "removed" if new is None else "changed"
    return FileDiff(device, name, state, tuple(lines))


def _open_folder(out: Path, inventory: Inventory | None) -> dict[str, list[str]]:
    """Make the folder, or check that it is empty or ours; return its manifest."""
    require_ours(out, inventory)
    out.mkdir(parents=True, exist_ok=True)
    if not (out / MARKER).is_file():
        # before anything else, so that a run that is cut short leaves a folder that the next one may use
        _write(out / MARKER, _manifest_text({}, out, inventory))
    return _read_manifest(out)


def _read_manifest(out: Path) -> dict[str, list[str]]:
    try:
        data = json.loads((out / MARKER).read_text(encoding="utf-8"))
        return {str(device): [str(name) for name in names] for device, names in data["files"].items()}
    except FileNotFoundError:
        return {}
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        text = f"cannot be read: {error}"
        raise InputError(
            [Problem("render.bad-manifest", str(out / MARKER), text, "delete the folder and render again")]
        ) from error


def _remembered(out: Path, key: str) -> str:
    """What a folder's manifest says of whose files they are, empty for nothing (an older one, a folder without)."""
    try:
        data = json.loads((out / MARKER).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    value = data.get(key, "") if isinstance(data, dict) else ""
    return value if isinstance(value, str) else ""


_SHIPPED = "shipped:"


def _inventory_of(out: Path) -> Path | None:
    """The folder of the inventory whose files these are, wherever it is now; None when nobody wrote that down."""
    name = _remembered(out, "inventory")
    if name.startswith(_SHIPPED):
        return data_folder("inventories") / name.removeprefix(_SHIPPED)
    return (out.resolve() / name).resolve() if name else None


def _is_inventory(folder: Path) -> bool:
    """Whether an inventory is there still: one that was moved or renamed goes on with its files."""
    return folder.is_dir() and any(folder.glob("*.yaml"))


def _inventory_name(out: Path, folder: Path) -> str:
    """How the manifest names an inventory: from `out`, so that both can be moved, or cloned, together."""
    here, shipped = folder.resolve(), data_folder("inventories").resolve()
    if here.is_relative_to(shipped):
        return f"{_SHIPPED}{here.relative_to(shipped)}"
    return os.path.relpath(here, out.resolve())


def _manifest_text(files: dict[str, list[str]], out: Path, inventory: Inventory | None) -> str:
    ordered = {device: sorted(files[device]) for device in sorted(files)}
    site = inventory.site.site if inventory else ""
    folder = _inventory_name(out, inventory.folder) if inventory else ""
    data = {"writer": "kvfabric render", "site": site, "inventory": folder, "files": ordered}
    return json.dumps(data, indent=1) + "\n"


def _left_over(out: Path, earlier: dict[str, list[str]], now: dict[str, list[str]]) -> dict[str, list[str]]:
    """Files of earlier runs that are still on disk and are not written any more, by device."""
    left: dict[str, list[str]] = {}
    for device, names in earlier.items():
        gone = [name for name in names if name not in now.get(device, ()) and (out / device / name).is_file()]
        if gone:
            left[device] = gone
    return left


def _union(a: dict[str, list[str]], b: dict[str, list[str]]) -> dict[str, list[str]]:
    return {device: [*a[device], *b[device]] for device in a if device in b}


def _require_plain(name: str) -> None:
    if not name or name.startswith(".") or "/" in name or "\0" in name:
        raise InputError([Problem("render.file-name", repr(name), "cannot be the name of a folder or file")])


def _read(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8", errors="replace")
    except (FileNotFoundError, NotADirectoryError):
        return None


def _write(path: Path, text: str) -> bool:
    """Write a file at once and say whether it changed."""
    mode = 0o755 if path.suffix == ".sh" or path.name in _EXECUTABLES else 0o644
    data = text.encode("utf-8")
    try:
        if path.read_bytes() == data and path.stat().st_mode & 0o777 == mode:
            return False
    except FileNotFoundError:
        pass
    replace_file(path, data, mode=mode)
    return True
