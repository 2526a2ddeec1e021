"""A published or measured cable map against the plan, said in words.

Row order, which end is called a, and the way a port is written (`E1/33`, `E1/33/1`, `Ethernet256`) make no difference.
Devices and server ports that are only called something else are recognised and named once, not counted cable by cable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.interop.cable_map import of_plan
from fabric.interop.comparing import differences, patterns, quality, scope
from fabric.interop.comparing.finding import Comparison
from fabric.interop.comparing.renames import Renames, find_renames
from fabric.problem import InputError, Problem

if TYPE_CHECKING:
    from fabric.interop.cable_map import CableMap
    from fabric.plan import Plan


def compare(plan: Plan, given: CableMap, fabrics: tuple[str, ...] = ()) -> Comparison:
    """Compare a cable map with the plan, of `fabrics` only if some are named.

    A fabric of which the map has no cable at all is only mentioned, unless it was asked for by name: published maps
    leave out whole networks. Raises InputError for a fabric that the site does not have.
    """
    unknown = [fabric for fabric in fabrics if fabric not in plan.fabrics]
    if unknown:
        fix = f"use one of {', '.join(plan.fabrics)}"
        raise InputError([Problem("compare.fabric", f, f"site {plan.site} has no such fabric", fix) for f in unknown])
    renames: Renames = find_renames(plan, given.cables)
    cables = [renames.apply(cable) for cable in given.cables]
    sorted_out = scope.sort_out(plan, cables, fabrics)
    planned = of_plan(plan, sorted_out.covered).cables
    found = differences.find(plan, planned, sorted_out.cables)
    findings = [
        *patterns.find(plan, planned, sorted_out.cables),
        *quality.find(sorted_out.cables),
        *renames.findings(),
        *found.findings(),
        *sorted_out.findings(),
    ]
    return Comparison(
        site=plan.site,
        source=given.source,
        form=given.form,
        fabrics=sorted_out.covered,
        planned=len(planned),
        given=len(sorted_out.cables),
        equal=found.equal,
        findings=tuple(findings),
    )
