"""Everything the engine needs, made once: containerlab itself, Docker for the VM, the node image."""

from __future__ import annotations

from typing import TYPE_CHECKING

from labs.containerlab import binary, disk, host, layer
from labs.uml import kernel, root

if TYPE_CHECKING:
    from pathlib import Path


def build() -> list[Path]:
    """Make what is not cached yet and return all of it; the lab's kernel and root are parts of it.

    Where labs are deployed on this host itself, all it needs is the node image in the host's Docker.
    """
    if host.used():
        host.give_image()
        return [root.build()]
    return [root.build(), kernel.build(), binary.build(), layer.build(), disk.build()]


def lacks() -> list[str]:
    """Say which parts of the embedded engine are not built yet."""
    parts = {
        "kernel": kernel.cached(), "Debian root": root.cached(), "containerlab": binary.cached(),
        "Docker": layer.cached(), "disk with the node image": disk.cached(),
    }  # fmt: skip
    fix = "run `kvfabric lab build --engine containerlab`"
    return [f"the {part} is not built yet: {fix}" for part, found in parts.items() if not found]
