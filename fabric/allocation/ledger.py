"""The ledger: every number and cable position given, by name, so that growth changes only what must change.

A pool is a set of small integers 0..size-1; turning an integer into an AS number, an address or a VLAN is the caller's
business. Promises (kept by property tests): a key keeps its number whatever is added, removed or reordered; two keys of
a pool never share one; a removed key's number is held for its return, and is not given to another key until it is
forgotten; the same keys into the same ledger give the same numbers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from fabric.files import replace_file
from fabric.hardware.ranges import natural_key
from fabric.problem import InputError, Problem
from fabric.strict_json import loads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    Meaning = Callable[[str, int], str]

_VERSION = 1
# every switch of a site is in one of them
_OF_SWITCHES = ("management", "loopback", "leaf-asn")


class PoolExhaustedError(Exception):
    """A pool has no number left; says who holds it."""

    def __init__(self, pool: str, size: int, wanted: int, holders: Iterable[str], retired: Iterable[str]) -> None:
        self.pool, self.size, self.wanted = pool, size, wanted
        self.holders, self.retired = tuple(holders), tuple(retired)
        super().__init__(self.text)

    @property
    def text(self) -> str:
        """One sentence: the pool, its size, what was wanted and who holds it."""
        held = _some(self.holders)
        gone = f"; {len(self.retired)} held for removed names: {_some(self.retired)}" if self.retired else ""
        return f"pool '{self.pool}' has {self.size} numbers and {self.wanted} are wanted; held by {held}{gone}"


def _some(names: tuple[str, ...], most: int = 6) -> str:
    ordered = sorted(names, key=natural_key)
    more = f" and {len(ordered) - most} more" if len(ordered) > most else ""
    return ", ".join(ordered[:most]) + more if ordered else "nobody"


@dataclass(frozen=True, slots=True)
class Change:
    """One number that a run gave (`old` is None), changed, or gave back (`new` is None): positions in the pool."""

    pool: str
    key: str
    old: int | None
    new: int | None

    def to_dict(self, meaning: Meaning) -> dict[str, str | None]:
        """Return the change as JSON-ready data; `meaning` turns a position into an AS number, an address and so on."""
        old, new = (None if n is None else meaning(self.pool, n) for n in (self.old, self.new))
        return {"pool": self.pool, "key": self.key, "old": old, "new": new}

    def text(self, meaning: Meaning) -> str:
        """Return the change as a line."""
        row = self.to_dict(meaning)
        if row["old"] is None:
            return f"{self.pool}: {self.key} new, {row['new']}"
        if row["new"] is None:
            return f"{self.pool}: {self.key} given back, {row['old']}"
        return f"{self.pool}: {self.key} {row['old']} -> {row['new']}"


@dataclass(frozen=True, slots=True)
class Lost:
    """What a key had in the ledger and cannot keep, and why, in words."""

    key: str
    had: int | str
    text: str

    def line_in(self, lines: list[str]) -> int:
        """Return the line (1-based) of the ledger's file that says it, 0 when none does."""
        said = f"{json.dumps(self.key)}: {json.dumps(self.had)}"
        return next((number for number, line in enumerate(lines, 1) if line.strip().rstrip(",") == said), 0)


@dataclass
class Ledger:
    """Numbers by pool and key, and pinned positions (`pins`) such as which port a cable goes to.

    `lost` says what the file held and this run could not keep: it is told, never silently done anew.
    """

    pools: dict[str, dict[str, int]] = field(default_factory=dict)
    pins: dict[str, dict[str, str]] = field(default_factory=dict)
    asked: dict[str, set[str]] = field(default_factory=dict, repr=False)
    lost: list[Lost] = field(default_factory=list, repr=False)

    @classmethod
    def load(cls, path: Path) -> Ledger:
        """Read a ledger file; an absent file is an empty ledger. Raises InputError when it is damaged."""
        try:
            data = loads(path.read_bytes(), unique=True)
        except FileNotFoundError:
            return cls()
        except OSError as error:
            raise _damaged(path, f"cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise _damaged(path, f"cannot be read: {error}") from None
        if not isinstance(data, dict) or data.get("version") != _VERSION:
            raise _damaged(path, f"is not a version {_VERSION} ledger")
        return cls(_typed(path, data, "pools", int), _typed(path, data, "pins", str))

    def allocate(
        self,
        pool: str,
        keys: Iterable[str],
        size: int,
        renamed: Mapping[str, str] | None = None,
        reserved: int | None = None,
    ) -> dict[str, int]:
        """Return a number in 0..size-1 for each key; known keys keep theirs, new ones get the lowest free.

        `renamed` maps a new name to the name it had; `reserved` is a number that nobody gets or keeps. Raises
        PoolExhaustedError.
        """
        book = self.pools.setdefault(pool, {})
        wanted = sorted(set(keys), key=natural_key)
        for key in wanted:
            old = (renamed or {}).get(key)
            if key not in book and old is not None and old in book:
                book[key] = book.pop(old)
        self.asked.setdefault(pool, set()).update(wanted)
        new = [key for key in wanted if book.get(key, size) >= size or book[key] == reserved]
        if new:
            for key in new:
                had = book.pop(key, None)
                if had is not None:
                    why = "which is reserved now" if had == reserved else f"and the pool ends at {size - 1}"
                    text = f"{pool}: {key} had number {had}, {why}"
                    self.lost.append(Lost(key, had, text))
            taken = {*book.values(), reserved}
            free = (n for n in range(size) if n not in taken)
            for key in new:
                number = next(free, None)
                if number is None:
                    retired = sorted(set(book) - self.asked[pool])
                    most = size - (reserved in range(size))
                    raise PoolExhaustedError(pool, most, len(self.asked[pool]), set(book) - set(retired), retired)
                book[key] = number
        return {key: book[key] for key in wanted}

    def knows(self, switch: str) -> bool:
        """Whether a switch has been given a number here; a ledger that has given none yet (a test's) knows all."""
        books = [self.pools[pool] for pool in _OF_SWITCHES if self.pools.get(pool)]
        return not books or any(switch in book for book in books)

    def constant(self, pool: str, key: str, value: int) -> int:
        """Return the value remembered for a key, remembering `value` the first time."""
        self.asked.setdefault(pool, set()).add(key)
        return self.pools.setdefault(pool, {}).setdefault(key, value)

    def retired(self) -> dict[str, tuple[str, ...]]:
        """The keys that hold a number but were not asked for since the ledger was loaded, by pool."""
        found = {
            pool: tuple(sorted(set(book) - self.asked.get(pool, set()), key=natural_key))
            for pool, book in self.pools.items()
        }
        return {pool: keys for pool, keys in found.items() if keys}

    def forget_retired(self) -> int:
        """Give back the numbers of removed names; returns how many."""
        retired = self.retired()
        for pool, keys in retired.items():
            for key in keys:
                del self.pools[pool][key]
        return sum(map(len, retired.values()))

    def changes_since(self, older: Ledger) -> list[Change]:
        """Return what this run gave, changed or gave back."""
        found = []
        for pool, book in sorted(self.pools.items()):
            before = older.pools.get(pool, {})
            for key in sorted(set(book) | set(before), key=natural_key):
                old, new = before.get(key), book.get(key)
                if old != new:
                    found.append(Change(pool, key, old, new))
        return found

    def copy(self) -> Ledger:
        """Return an independent copy, with nothing asked for yet."""
        return Ledger({p: dict(b) for p, b in self.pools.items()}, {p: dict(b) for p, b in self.pins.items()})

    def to_text(self) -> str:
        """Return the file's text: one line a number, in natural order, so that a diff shows what changed."""
        data = {
            "version": _VERSION,
            "pools": {p: _ordered(b) for p, b in sorted(self.pools.items()) if b},
            "pins": {p: _ordered(b) for p, b in sorted(self.pins.items()) if b},
        }
        return json.dumps(data, indent=1) + "\n"

    def save(self, path: Path) -> bool:
        """Write the ledger atomically; returns False when the file already says the same."""
        text = self.to_text()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            return False
        replace_file(path, text, sync=True)
        return True


def _ordered(book: dict[str, Any]) -> dict[str, Any]:
    return dict(sorted(book.items(), key=lambda item: natural_key(item[0])))


def _damaged(path: Path, text: str) -> InputError:
    fix = "restore it from version control; without it every number would be given anew"
    return InputError([Problem("ledger.damaged", path.name, text, fix, str(path), 1)])


def _typed(path: Path, data: dict[str, Any], name: str, kind: type) -> dict[str, dict[str, Any]]:
    books = data.get(name, {})
    good = isinstance(books, dict) and all(
        isinstance(book, dict) and all(type(value) is kind for value in book.values()) for book in books.values()
    )
    if not good:
        raise _damaged(path, f"'{name}' does not hold {kind.__name__} values by pool and key")
    if kind is int:
        for pool, book in books.items():
            if not pool.startswith("constant/") and len(set(book.values())) != len(book):
                raise _damaged(path, f"pool '{pool}' gives one number to two names")
            if any(value < 0 for value in book.values()):
                raise _damaged(path, f"pool '{pool}' holds a negative number")
    return {pool: dict(book) for pool, book in books.items()}
