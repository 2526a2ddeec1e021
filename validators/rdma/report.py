"""Results of the probe as text and as JSON-ready data."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from validators.results import Result

_SHOWN = ("rate", "share of MTU ceiling", "completion p50", "completion p99", "sum of flows", "Jain fairness")


def as_text(results: Sequence[Result]) -> str:
    """Return a line per result with its transport, its measurements below it, and its parts when it did not pass."""
    lines: list[str] = []
    for result in results:
        transport = result.labels.get("transport", "")
        where = f" [{transport}]" if transport else ""
        draft = f" ({result.test_id})" if result.test_id else ""
        lines.append(f"{result.state.value.upper():5} {result.check} {result.subject}{where}{draft}")
        lines.append(f"      {result.text}")
        shown = [
            f"{m.name} {m.value:.4g} {m.unit}" + (f" (n={m.trials})" if m.trials > 1 else "")
            for m in result.measurements
            if m.name in _SHOWN
        ]
        if shown:
            lines.append(f"      {'; '.join(shown)}")
        if result.state.value != "pass":
            lines += [f"      - {part.state.value}: {part.text}" for part in result.parts]
    return "\n".join(lines)


def to_dict(result: Result) -> dict[str, Any]:
    """Return a result with its parts and evidence as JSON-ready data."""
    return asdict(result)
