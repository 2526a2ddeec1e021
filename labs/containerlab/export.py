"""A folder that containerlab deploys as it is: topology, one folder of rendered files a node, image recipe, README."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fabric.files import replace_file
from fabric.problem import InputError
from fabric.render.stale import prune
from fabric.render.text_templates import template
from labs import site
from labs.containerlab import checks, virtual_sonic
from labs.containerlab.kinds import LINUX, SONIC_VM, SONIC_VS, Settings
from labs.containerlab.topology import topology

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from fabric.plan import Plan
    from labs import model

# in the first line of every topology of ours
_MARK = "written by `kvfabric lab export`"
# vrnetlab's SONiC launcher, before it asked for as many as a node has links
_OLD_CARDS = 10
# the script of each kind that brings a node up
_SCRIPTS = {LINUX: "../node.sh", SONIC_VS: "sonic-vs.sh", SONIC_VM: "sonic-vm.sh"}


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written: the folder, the topology file in it, how many nodes and links it has, what to know."""

    folder: Path
    topology: Path
    nodes: int
    links: int
    kinds: dict[str, int]
    notes: tuple[str, ...] = ()


def write(plan: Plan, lab: model.Lab, out: Path, settings: Settings | None = None) -> Exported:
    """Write the lab of a plan into the folder `out`; an earlier export there is replaced.

    Raises InputError for a lab that cannot be built and for a folder with other people's files.
    """
    chosen = settings or Settings()
    sonic = {node.name: kind for node in lab.nodes if (kind := chosen.kind_of(node)) != LINUX}
    if found := [*checks.problems(plan, lab, chosen), *virtual_sonic.too_many(lab, sonic)]:
        raise InputError(found)
    written = site.write_files(plan, lab, out, virtual_sonic.files(plan, lab, sonic))
    data = topology(plan, lab, chosen)
    target = out / f"{lab.name}.clab.yml"
    _clear(out, written.stale, target)
    replace_file(target, as_yaml(data, plan))
    _write_scripts(out, {chosen.kind_of(node) for node in lab.nodes})
    image = chosen.image_of(LINUX)
    replace_file(out / "Dockerfile", dockerfile())
    facts = {"name": lab.name, "file": target.name, "image": image, "first": lab.nodes[0].name, "prefix": chosen.prefix}
    replace_file(out / "README.md", template("containerlab/README.md.j2").render(facts))
    kinds = [chosen.kind_of(node) for node in lab.nodes]
    counted = {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)}
    return Exported(out, target, len(lab.nodes), len(lab.links), counted, tuple(_notes(lab, sonic)))


def _clear(out: Path, stale: Iterable[str], target: Path) -> None:
    """Remove what an earlier export left: files of nodes that are gone, a topology under another name."""
    prune(out, stale)
    for other in out.glob("*.clab.yml"):
        if other != target and _MARK in other.read_text().partition("\n")[0]:
            other.unlink()


def _notes(lab: model.Lab, sonic: dict[str, str]) -> Iterator[str]:
    for name, kind in sonic.items():
        count = len(virtual_sonic.wires(lab, name))
        if kind == SONIC_VM and count > _OLD_CARDS:
            yield f"{name} has {count} cables, SONiC VM images built before 2025 have {_OLD_CARDS} network cards"


def _write_scripts(out: Path, kinds: set[str]) -> None:
    for kind, name in _SCRIPTS.items():
        source = Path(__file__).resolve().parent / name
        if kind in kinds:
            replace_file(out / source.name, source.read_bytes(), mode=0o755)
        else:
            (out / source.name).unlink(missing_ok=True)


def as_yaml(data: dict[str, Any], plan: Plan) -> str:
    """Return the topology as YAML, innermost lists and mappings on one line each."""
    import yaml

    text = yaml.safe_dump(data, sort_keys=False, default_flow_style=None, width=10000, allow_unicode=True)
    return f"# {plan.site}: {_MARK}; plan {plan.digest[:12]}\n{text}"


def dockerfile() -> str:
    """Return the recipe of the Linux node's image: the packages of the embedded lab's root."""
    from labs.uml import debian, root

    return template("containerlab/Dockerfile.j2").render(release=debian.RELEASE, packages=root.packages())
