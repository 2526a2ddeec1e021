"""What a lab leaves on purpose: files that its nodes wrote below /lab/results, their logs, and how it stood."""

from __future__ import annotations

import contextlib
import json
import shlex
import shutil
from typing import TYPE_CHECKING

from fabric.problem import CouldNotRunError

if TYPE_CHECKING:
    from pathlib import Path

    from labs.client import Running


def take(lab: Running, target: Path) -> None:
    """Copy out results, logs by node, the lab's model, its status and its console; a dead lab gives what is on disk.

    Raises OSError when `target` cannot be written.
    """
    target.mkdir(parents=True, exist_ok=True)
    with contextlib.suppress(CouldNotRunError, TimeoutError):
        (target / "status.json").write_text(json.dumps(lab.call("status"), indent=1))
        for node in lab.lab.nodes:
            folder = shlex.quote(f"/lab/results/logs/{node.name}")
            lab.run(node.name, ["sh", "-c", f"mkdir -p {folder} && cp -r /var/log/. {folder}"], timeout_s=30)
    for path in (lab.share / "lab.json", lab.folder / "console.log", lab.folder / "facts.json"):
        if path.is_file():
            shutil.copy(path, target)
    if (lab.share / "results").is_dir():
        shutil.copytree(lab.share / "results", target, dirs_exist_ok=True)
