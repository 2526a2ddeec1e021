"""A lab of a site, from its name: plan, render for Linux, slice, start."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from labs import launch, model, outside
from labs import slice as slicing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from fabric.plan import Plan
    from fabric.render.writer import Written
    from labs.machine import Options
    from labs.model import Lab


def start(
    site: str,
    name: str = "",
    counts: str = "",
    engine: str = "",
    options: Options | None = None,
    say: Callable[[str], None] = lambda _text: None,
) -> launch.Started:
    """Start the lab of a site (or a slice of it); it ends with this process unless it is committed.

    Raises InputError for a bad site, slice or name, CouldNotRunError when it cannot be started here.
    """
    from fabric.build import plan_site

    planned = plan_site(site, two_tiers_for="a lab")
    plan = planned.plan
    lab = slicing.make(plan, name or plan.site, slicing.parse_counts(counts), planned.inventory)
    if engine == "containerlab":
        from labs.containerlab import export, machine
        from labs.containerlab.kinds import Settings

        settings = Settings(binds=machine.binds())
        return launch.launch(lab, lambda out: export.write(plan, lab, out, settings), engine, options, say=say)
    return launch.launch(lab, lambda folder: write_files(plan, lab, folder), engine, options, say=say)


def write_files(plan: Plan, lab: Lab, folder: Path, instead: Mapping[str, dict[str, str]] | None = None) -> Written:
    """Write the files of every node of a lab below `folder`, one folder a node; `instead` replaces those of some.

    Raises InputError when the folder holds other people's files.
    """
    from fabric.render.registry import render_site
    from fabric.render.writer import write_tree

    other = instead or {}
    devices = [n.name for n in lab.nodes if n.kind not in model.OUTSIDE and n.name not in other]
    written = write_tree(folder, chain(render_site(plan, devices, "frr"), other.items()))
    outside.write(plan, folder, lab)
    return written
