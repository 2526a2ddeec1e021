"""Cases of one check that are collected at the same time: each still has its own observations, result and seconds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from validators.catalog import Case
    from validators.check import Check, Context, Observations


class Passes:
    """The passes of a run: the first case of a check that is observed is observed with all that are expected."""

    def __init__(self) -> None:
        self._expected: list[Case] = []
        self._found: dict[str, Observations | Exception] = {}
        self._owed: dict[str, float] = {}

    def expect(self, cases: Sequence[Case]) -> None:
        """Say which cases of a stage are going to be observed."""
        self._expected = list(cases)

    def observe(self, context: Context, case: Case) -> Observations:
        """Return what was seen of a case, now or in the pass of an earlier one; a second time it is observed alone.

        Raises what kept it from being observed.
        """
        if case.id not in self._found:
            self._pass(context, case)
        found = self._found.pop(case.id)
        if isinstance(found, Exception):
            raise found
        return found

    def _pass(self, context: Context, case: Case) -> None:
        mates = [one for one in self._expected if one.check is case.check]
        self._expected = [one for one in self._expected if one.check is not case.check]
        cases = mates if case in mates else [case]
        check: Check = case.check()
        started = time.monotonic()
        try:
            found = check.collect_all(context, [one.inputs for one in cases])
        except Exception as error:  # noqa: BLE001  what broke the pass broke it for each of its cases
            found = [error for _ in cases]
        self._found |= {one.id: seen for one, seen in zip(cases, found, strict=True)}
        # the seconds of a pass are those of its cases, in equal parts
        seconds = time.monotonic() - started
        for one in cases:
            waited = seconds if one is case else 0.0
            self._owed[one.id] = self._owed.get(one.id, 0.0) + seconds / len(cases) - waited

    def owed(self, case: Case) -> float:
        """Return the seconds that a case has beside its own: of a pass that another one waited for, or less."""
        return self._owed.pop(case.id, 0.0)
