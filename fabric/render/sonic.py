"""Target `sonic`: `config_db.json` as data, and `frr.conf` for `docker_routing_config_mode` `split-unified`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.render.frr_view import routing_text
from fabric.render.sonic_base import base_tables
from fabric.render.sonic_json import config_db_text
from fabric.render.sonic_overlay import overlay_tables
from fabric.render.sonic_own import own_tables
from fabric.render.sonic_ports import port_tables
from fabric.render.sonic_qos import qos_tables
from fabric.render.sonic_services import secrets_script, service_tables

if TYPE_CHECKING:
    from fabric.plan import Plan
    from fabric.render.sonic_json import Tables

TARGET = "sonic"


def devices(plan: Plan) -> tuple[str, ...]:
    """Every managed switch that runs SONiC."""
    return tuple(name for name, switch in plan.switches.items() if switch.managed and switch.nos == TARGET)


def render(plan: Plan, device: str) -> dict[str, str]:
    """Return `config_db.json` and `frr.conf`, and `secrets.sh` where the site has services with secrets."""
    switch = plan.switches[device]
    tables: Tables = {}
    for part in (base_tables, service_tables, port_tables, overlay_tables, qos_tables, own_tables):
        for name, rows in part(plan, switch).items():
            tables.setdefault(name, {}).update(rows)
    files = {"config_db.json": config_db_text(tables), "frr.conf": routing_text(plan, switch, fpm=True)}
    return files | secrets_script(plan, switch)
