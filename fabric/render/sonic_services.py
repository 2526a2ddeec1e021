"""SONiC tables of what a switch asks for and reports to, and the script for what must not stand in a file.

Secrets are named in the inventory, never written: `secrets.sh` takes them from its environment, on the switch. SONiC's
model refuses logins by TACACS+ without a key, so the script turns these on as well: until then local accounts count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fabric.render.text_templates import template

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fabric.plan import Plan, Switch
    from fabric.render.sonic_json import Table, Tables

SECRETS = "secrets.sh"
_TACACS_PORT, _SNMP_PORT = "49", "161"


def service_tables(plan: Plan, switch: Switch) -> Tables:
    """Return the tables of the services that the site has, in the management VRF where the switch has one."""
    vrf = "mgmt" if switch.management else "default"
    tables: Tables = {}
    ntp, syslog, dns = (plan.settings.get(name, ()) for name in ("ntp", "syslog", "dns"))
    if ntp:
        tables |= _ntp(ntp, vrf)
    if syslog:
        tables["SYSLOG_SERVER"] = {server: {"vrf": vrf} for server in syslog}
    if dns:
        tables["DNS_NAMESERVER"] = {server: {} for server in dns}
    return tables | _tacacs(plan, vrf) | _snmp(plan, switch)


def _ntp(servers: Sequence[str], vrf: str) -> Tables:
    return {
        # one string, though YANG says leaf-list: the templates of ntp.conf and chrony.conf compare it with a name
        "NTP": {"global": {"vrf": vrf, "src_intf": "eth0", "admin_state": "enabled"}},
        # images with ntpd leave out a server without association_type and resolve_as; chrony has defaults for both
        "NTP_SERVER": {s: {"association_type": "server", "iburst": "on", "resolve_as": s} for s in servers},
    }


def _tacacs(plan: Plan, vrf: str) -> Tables:
    servers = plan.settings.get("tacacs", {}).get("servers", ())
    rows: Table = {
        # SONiC asks the server with the highest number first
        server: {"priority": str(len(servers) - i), "tcp_port": _TACACS_PORT, "vrf": vrf}
        for i, server in enumerate(servers)
    }
    return {"TACPLUS_SERVER": rows} if rows else {}


def _snmp(plan: Plan, switch: Switch) -> Tables:
    snmp = plan.settings.get("snmp")
    if not snmp:
        return {}
    location = snmp.get("location") or switch.rack
    rows = {"CONTACT": {"Contact": snmp["contact"]}} if snmp.get("contact") else {}
    rows |= {"LOCATION": {"Location": location}} if location else {}
    tables: Tables = {"SNMP": dict(rows)} if rows else {}
    address = switch.management.partition("/")[0]
    if address:
        # without it the agent listens in every VRF but the management one
        tables["SNMP_AGENT_ADDRESS_CONFIG"] = {f"{address}|{_SNMP_PORT}|mgmt": {}}
    return tables


def secrets_script(plan: Plan, switch: Switch) -> dict[str, str]:
    """Return `secrets.sh`, where the site has services with secrets."""
    tacacs, snmp = plan.settings.get("tacacs"), plan.settings.get("snmp")
    if not tacacs and not snmp:
        return {}
    view = {"name": switch.name, "tacacs": tacacs, "snmp": snmp}
    return {SECRETS: template("sonic/secrets.sh.j2").render(view)}
