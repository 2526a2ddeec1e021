"""Node kinds of containerlab that a lab's devices can be, and the images they run; images are settings."""

from __future__ import annotations

from dataclasses import dataclass, field

from fabric.problem import InputError, Problem
from labs import model

LINUX, SONIC_VS, SONIC_VM = "linux", "sonic-vs", "sonic-vm"
# what a user says: how a switch is played
CHOICES = {"frr": LINUX, "sonic-vs": SONIC_VS, "sonic-vm": SONIC_VM}
SWITCHES = (model.SPINE, model.LEAF, model.BORDER_LEAF)
NODE_IMAGE = "kvfabric/node:latest"
_IMAGES = {LINUX: NODE_IMAGE, SONIC_VS: "docker-sonic-vs:latest", SONIC_VM: "vrnetlab/sonic_sonic-vs:latest"}

MANAGEMENT = ("plan", "containerlab")


@dataclass(frozen=True, slots=True)
class Settings:
    """How a lab is exported.

    `kinds` gives the containerlab kind by role of a switch (`leaf`), `images` the image by containerlab kind. `prefix`
    stands before container names; empty keeps the plan's. `management` says whose addresses `eth0` gets. `binds` are
    further bind mounts of every Linux node.
    """

    kinds: dict[str, str] = field(default_factory=dict)
    images: dict[str, str] = field(default_factory=dict)
    prefix: str = ""
    management: str = "plan"
    binds: tuple[str, ...] = ()

    def kind_of(self, node: model.Node) -> str:
        """Return the containerlab kind of a node."""
        return self.kinds.get(node.kind, LINUX)

    def image_of(self, kind: str) -> str:
        """Return the image of a containerlab kind."""
        return self.images.get(kind, _IMAGES[kind])


def parse_kinds(texts: tuple[str, ...]) -> dict[str, str]:
    """Read `sonic-vs` (all switches) and `leaf=sonic-vs`; what is said of a role holds over what is said of all.

    Raises InputError, also for a role that is said twice.
    """
    found: dict[str, str] = {}
    said: set[str] = set()
    problems = []
    for text in texts:
        role, _, choice = text.rpartition("=")
        if choice not in CHOICES or ("=" in text and role not in SWITCHES):
            words = f"expected KIND or ROLE=KIND, ROLE one of {', '.join(SWITCHES)}, KIND one of {', '.join(CHOICES)}"
            problems.append(Problem("lab.kind", f"--kind {text}", words, fix="--kind leaf=sonic-vs"))
        elif role in said:
            words = f"the kind of {role or 'all switches'} is said twice"
            problems.append(Problem("lab.kind", f"--kind {text}", words, fix="say it once"))
        else:
            said.add(role)
            found = {**found, role: CHOICES[choice]} if role else {**dict.fromkeys(SWITCHES, CHOICES[choice]), **found}
    if problems:
        raise InputError(problems)
    return found


def parse_images(texts: tuple[str, ...]) -> dict[str, str]:
    """Read `frr=my/image:tag` (also `sonic-vs=`, `sonic-vm=`). Raises InputError."""
    found, problems = {}, []
    for text in texts:
        choice, equals, image = text.partition("=")
        if choice not in CHOICES or not equals or not image or len(image.split()) != 1:
            words = f"expected KIND=IMAGE with KIND one of {', '.join(CHOICES)}"
            problems.append(Problem("lab.image", f"--image {text}", words, fix=f"--image frr={NODE_IMAGE}"))
        elif CHOICES[choice] in found:
            words = f"the image of {choice} is said twice"
            problems.append(Problem("lab.image", f"--image {text}", words, fix="say it once"))
        else:
            found[CHOICES[choice]] = image
    if problems:
        raise InputError(problems)
    return found
