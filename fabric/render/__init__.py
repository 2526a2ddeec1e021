"""From the plan to configuration files: one module a target, found by being there.

A target module exposes

- `TARGET: str`: its name, which for a switch target is the `nos` it serves;
- `devices(plan) -> tuple[str, ...]`: the devices that it can render, in plan order;
- `render(plan, device) -> dict[str, str]`: file name -> text, the same bytes for the same plan.

`registry` finds and runs them, `writer` puts the result on disk or says what would change there.
"""
