"""Choose the NIC model that has given ports: by its own name first, else by number of ports and speed."""

from __future__ import annotations

from dataclasses import dataclass

from fabric.hardware.profiles import nic_models


@dataclass(frozen=True, slots=True)
class Choice:
    """`count` NICs of `model`; `exact` is false when only the number of ports and the speed fit."""

    count: int
    model: str
    exact: bool

    def __str__(self) -> str:
        return f"{self.count}x {self.model}" if self.count > 1 else self.model


def choose(description: str, cards: int, ports: int, speed: int) -> Choice | None:
    """The model for `cards` NICs of `ports` ports at `speed` Gb/s; None when no known model has that speed."""
    known = nic_models()
    wanted = description.strip().lower()
    for name, model in known.items():
        if (
            wanted
            and wanted in {name, model.description.lower()}
            and model.speed == speed
            and len(model.ports) == ports
        ):
            return Choice(cards, name, exact=True)
    same = [model for model in known.values() if model.speed == speed]
    for model in same:
        if len(model.ports) == ports:
            return Choice(cards, model.model, exact=False)
    for model in same:
        if ports % len(model.ports) == 0:
            return Choice(cards * (ports // len(model.ports)), model.model, exact=False)
    # two-port cards that nobody filled, better than no port at all
    return Choice(cards, same[0].model, exact=False) if same else None
