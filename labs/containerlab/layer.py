"""Docker and containerlab for the VM: programs laid over the lab's Debian root, which stays as it is."""

from __future__ import annotations

import os
import shutil
import time
from typing import TYPE_CHECKING

from fabric.problem import CouldNotRunError
from labs.containerlab import binary
from labs.uml import debian, root
from labs.uml.cache import digest, newest, publish, say, scratch

if TYPE_CHECKING:
    from pathlib import Path

_PACKAGES = ("docker.io", "docker-cli", "containerd", "runc", "iptables")

# what Debian's alternatives system would make: Docker's rules go into the same nftables as everybody's
_LINKS = {
    f"usr/sbin/{family}{verb}": f"{family}-nft{verb}"
    for family in ("iptables", "ip6tables")
    for verb in ("", "-save", "-restore")
}


def _name(tree: Path, program: Path) -> str:
    return f"docker-{debian.RELEASE}-{digest(chr(10).join([tree.name, program.parent.name, *_PACKAGES, *_LINKS]))}"


def cached() -> Path | None:
    """Return the cached layer for the cached root and containerlab, or nothing."""
    tree, program = root.cached(), binary.cached()
    return newest(_name(tree, program)) if tree and program else None


def build() -> Path:
    """Make and cache the layer, or return the cached one. Needs root, apt, the lab's Debian root and containerlab."""
    if done := cached():
        return done
    debian.need_root_and_apt()
    tree, program = root.cached(), binary.cached()
    if tree is None or program is None:
        raise CouldNotRunError("the Debian root or containerlab is not built yet: run `kvfabric lab build`")
    started = time.monotonic()
    with scratch("docker") as work:
        folder = cached() or _build_in(work, tree, program)
    say(f"docker: done in {time.monotonic() - started:.0f} s, cached in {folder}")
    return folder


def _build_in(work: Path, tree: Path, program: Path) -> Path:
    say(f"docker: fetching {', '.join(_PACKAGES)} of Debian {debian.RELEASE}")
    apt = debian.PrivateApt(work / "apt", debian.RELEASE)
    layer = work / "layer"
    names = apt.unpack_missing(_PACKAGES, tree, layer)
    layer.chmod(0o755)
    for link, target in _LINKS.items():
        path = layer / link
        path.unlink(missing_ok=True)
        path.symlink_to(target)
    _link(program, layer / "usr/bin/containerlab")
    for folder in ("var/lib/docker", "etc/docker"):
        (layer / folder).mkdir(parents=True, exist_ok=True)
    (layer / "usr/share/kvfabric-docker").mkdir(parents=True)
    (layer / "usr/share/kvfabric-docker/PACKAGES").write_text("\n".join(names) + "\n")
    return publish(layer, _name(tree, program))


def _link(source: Path, target: Path) -> None:
    """Show a file of the cache in the layer too, without a second copy where the file system can."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)
