"""Find the knee: climb while steps pass, then halve the gap between the last pass and the first failure; pure.

A step that the tester could not offer bounds the search from above, but says nothing about the gateway. Slower steps
take longer, so where not even a quarter of the first one passes the search gives up.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

_LEAST = 0.25


class Outcome(Enum):
    """What a step says about the gateway."""

    PASSED = "passed"
    FAILED = "failed"
    TESTER_LIMITED = "tester-limited"


@dataclass
class Search:
    """Asks for rates (or numbers of connections) until the knee is known to `precision` (a share of it).

    `passed` is the highest level that was really reached with every connection validated, `failed` the lowest
    that was not, `limit` who ended the climb: `device`, `tester`, or `ladder` when even `highest` passed. `given_up`
    ends it: a gateway that lets nothing through does so at any rate.
    """

    start: float
    highest: float
    precision: float = 0.05
    growth: float = 2.0
    most_steps: int = 20
    passed: float = 0.0
    failed: float | None = None
    limit: str = ""
    steps: int = 0
    given_up: bool = False
    _asked_pass: float = field(default=0.0, repr=False)

    def ask(self) -> float | None:
        """Return the next level to try, or None when the knee is known or the steps are used up."""
        if self.steps >= self.most_steps:
            return None
        if self.failed is None:
            if self._asked_pass >= self.highest:
                self.limit = "ladder"
                return None
            return min(self.highest, self._asked_pass * self.growth) if self._asked_pass else self.start
        if self.given_up or (not self.passed and self.failed <= self.start * _LEAST):
            return None
        if self.failed - self._asked_pass <= self.precision * self.failed:
            return None
        return (self._asked_pass + self.failed) / 2

    def tell(self, asked: float, real: float, outcome: Outcome) -> None:
        """Take in what a step at level `asked`, really `real`, came to."""
        self.steps += 1
        if outcome is Outcome.FAILED:
            self._bound(asked, "device")
            return
        self.passed = max(self.passed, real)
        if outcome is Outcome.TESTER_LIMITED:
            self._bound(asked, "tester")
        else:
            self._asked_pass = max(self._asked_pass, asked)

    def _bound(self, asked: float, limit: str) -> None:
        if self.failed is None or asked <= self.failed:
            self.failed, self.limit = asked, limit
