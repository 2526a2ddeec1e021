"""What every part of the inventory's model shares: unknown keys are errors, and an error of a value brings its fix."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """A part of the inventory: frozen, without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def wrong(text: str, fix: str) -> ValueError:
    """Return an error of a value; the loader shows its second line as the fix."""
    return ValueError(f"{text}\n{fix}")
