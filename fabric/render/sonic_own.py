"""A site's own CONFIG_DB tables, as the plan keeps them: for all switches, for those of a kind, for one."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fabric.plan import Plan, Switch
    from fabric.render.sonic_json import Tables


def own_tables(plan: Plan, switch: Switch) -> Tables:
    """Return the tables that the site gives to a switch; the plan has seen to it that no two files say one field."""
    by_scope = plan.settings.get("config_db", {})
    found: dict[str, dict[str, dict[str, str | list[str]]]] = {}
    for scope in ("all", switch.kind, switch.name):
        for table, rows in by_scope.get(scope, {}).items():
            into = found.setdefault(table, {})
            for key, row in rows.items():
                into[key] = {**into.get(key, {}), **row}
    return {table: dict(rows) for table, rows in found.items()}
