"""Finds the render targets and runs the right one for each device."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING, Protocol, cast

import fabric.render
from fabric.problem import InputError, Problem
from fabric.tiers import require_two_tiers

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from fabric.plan import Plan

_NOT_TARGETS = frozenset({"registry", "writer"})


class Target(Protocol):
    """What a target module looks like."""

    TARGET: str

    def devices(self, plan: Plan) -> tuple[str, ...]:
        """Return the devices that this target can render, in plan order."""

    def render(self, plan: Plan, device: str) -> dict[str, str]:
        """Return the files of a device: name -> text."""


@cache
def targets() -> dict[str, Target]:
    """Every target by name: the modules of this package that have a `TARGET`. Imported on first use."""
    found: dict[str, Target] = {}
    for info in pkgutil.iter_modules(fabric.render.__path__):
        if info.name in _NOT_TARGETS or "_" in info.name:
            continue
        module = importlib.import_module(f"fabric.render.{info.name}")
        if hasattr(module, "TARGET"):
            found[module.TARGET] = cast("Target", module)
    return found


def native_target(plan: Plan, device: str) -> str:
    """Return the name of the target that a device has by its own nature; empty for devices that are not ours."""
    if device in plan.switches:
        switch = plan.switches[device]
        return switch.nos if switch.managed else ""
    if device in plan.gateways:
        return "gateway"
    return "host" if device in plan.servers else ""


def targets_for(plan: Plan, device: str, override: str | None = None) -> tuple[Target, ...]:
    """Return the targets that write a device's files: one, or none for a device that gets no configuration.

    `override` replaces the device's own target where it can render the device; other devices keep theirs, so that
    `frr` turns switches into Linux routers and leaves gateways and servers as they are. Raises InputError for an
    unknown target.
    """
    known = targets()
    for name in (override, native_target(plan, device)):
        if name and name in known and device in known[name].devices(plan):
            return (known[name],)
    if override:
        _require_known(override)
    return ()


def render_site(
    plan: Plan, limit: Iterable[str] | None = None, target: str | None = None
) -> Iterator[tuple[str, dict[str, str]]]:
    """Render device by device, in plan order: pairs of device and its files (name -> text).

    `limit` restricts to the named devices; `target` is an override as in `targets_for`. Raises InputError for an
    unknown target, or a device that is not in the plan or gets no configuration; CouldNotRunError for three tiers.
    """
    require_two_tiers(plan, "rendering")
    known = targets()
    if target:
        _require_known(target)
    can = {name: frozenset(module.devices(plan)) for name, module in known.items()}
    wanted = None if limit is None else _require_devices(plan, limit, can)
    for device in (*plan.switches, *plan.gateways, *plan.servers):
        if wanted is not None and device not in wanted:
            continue
        for name in (target, native_target(plan, device)):
            if name and device in can.get(name, ()):
                yield device, known[name].render(plan, device)
                break


def _require_known(target: str) -> None:
    if target not in targets():
        names = ", ".join(sorted(targets()))
        raise InputError(
            [Problem("render.unknown-target", f"target {target}", "there is no such target", f"use one of {names}")]
        )


def _require_devices(plan: Plan, limit: Iterable[str], can: dict[str, frozenset[str]]) -> frozenset[str]:
    wanted = frozenset(limit)
    problems = []
    for device in sorted(wanted):
        if device not in plan.kind_of:
            fix = "see `kvfabric plan SITE` for the devices"
            problems.append(Problem("render.unknown-device", f"device {device}", "is not in the plan", fix))
        elif not any(device in names for names in can.values()):
            text = "gets no configuration: it is not managed by this plan"
            problems.append(Problem("render.unmanaged-device", f"device {device}", text))
    if problems:
        raise InputError(problems)
    return wanted
