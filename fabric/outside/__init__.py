"""Validators that nobody here wrote, asked about the rendered files: YANG models, vtysh, FRR's daemons, nft, sh.

Each validator module exposes

- `NAME: str`;
- `available() -> str | None`: why it cannot be asked here, or None when it can;
- `validate(folder: Path, device: str) -> list[Problem]`: what it says about one device's files in `folder`.

`run_all` asks every one about every device. A validator that is not there is reported as skipped, with the reason:
its silence is never a pass.
"""

from __future__ import annotations

from fabric.outside.run import Report, Validator, ask, run_all

__all__ = ["Report", "Validator", "ask", "run_all"]
