"""How the site's devices are reached, for programs that log in: Nornir's hosts file and Ansible's inventory.

Both name the management address of each device that has one by the plan. User names and passwords are in neither:
kvfabric takes them from KVFABRIC_USERNAME and KVFABRIC_PASSWORD, Ansible from its own variables and vault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from fabric.plan import Gateway, Plan, Server, Switch

HOSTS, ANSIBLE = "hosts.yaml", "ansible.yaml"


def hosts_files(plan: Plan) -> dict[str, str]:
    """Return `hosts.yaml` (what `accept --hosts` and Nornir read) and `ansible.yaml`."""
    return {HOSTS: _hosts(plan), ANSIBLE: _ansible(plan)}


def _devices(plan: Plan) -> list[Switch | Gateway | Server]:
    """What we configure, in plan order."""
    managed = (switch for switch in plan.switches.values() if switch.managed)
    return [*managed, *plan.gateways.values(), *plan.servers.values()]


def _address(device: Switch | Gateway | Server) -> str:
    return device.management.partition("/")[0]


_HEAD = """\
# Management addresses of {site}, written by kvfabric: `kvfabric accept {site} --hosts FILE` reads it as it is. User and
# password come from KVFABRIC_USERNAME (default admin) and KVFABRIC_PASSWORD, or from an SSH agent.
"""
_WITHOUT = """\
# {number} devices have no management address by the plan: {some}. In a copy of this file,
# add a line for each that can be reached, such as `compute-001: {{hostname: 192.0.2.31, username: root}}`.
"""
_ONLY_BMC = """\
# {number} of them have a BMC in the management network ({some}).
# Its address is no host here: a login there would reach the BMC, not the server. plan.json has it (`bmc`).
"""


def _hosts(plan: Plan) -> str:
    devices = _devices(plan)
    text = _HEAD.format(site=plan.site)
    without = [device.name for device in devices if not _address(device)]
    if without:
        text += _WITHOUT.format(number=len(without), some=_some(without))
    controllers = [server.name for server in plan.servers.values() if server.bmc]
    if controllers:
        text += _ONLY_BMC.format(number=len(controllers), some=_some(controllers))
    lines = [f"{d.name}: {{hostname: {_address(d)}, platform: linux}}\n" for d in devices if _address(d)]
    return text + "".join(lines)


def _some(names: list[str]) -> str:
    return ", ".join(names[:3]) + (" and so on" if len(names) > 3 else "")


def _group(*words: str) -> str:
    """A name as Ansible takes it: letters, digits and underscores."""
    return "_".join(words).replace("-", "_")


def _ansible(plan: Plan) -> str:
    """Groups by kind, by fabric and by class; each host with its address and the folder of its rendered files."""
    hosts: dict[str, dict[str, str]] = {}
    groups: dict[str, list[str]] = {}
    for device in _devices(plan):
        hosts[device.name] = {"ansible_host": _address(device)} if _address(device) else {}
        for group in _groups_of(plan, device.name):
            groups.setdefault(group, []).append(device.name)
    tree: dict[str, Any] = {
        "all": {
            "vars": {
                "kvfabric_site": plan.site,
                "kvfabric_files": "{{ inventory_dir }}/configs/{{ inventory_hostname }}",
            },
            "hosts": hosts,
            "children": {name: {"hosts": dict.fromkeys(members)} for name, members in groups.items()},
        }
    }
    head = f"# Ansible inventory of {plan.site}, written by kvfabric: addresses and groups, no users and no secrets\n"
    body: str = yaml.safe_dump(tree, sort_keys=False, width=120)
    return head + body.replace(": null\n", ":\n")


def _groups_of(plan: Plan, name: str) -> tuple[str, ...]:
    if name in plan.switches:
        switch = plan.switches[name]
        return ("switches", _group("kind", switch.kind), _group("fabric", switch.fabric), _group("nos", switch.nos))
    if name in plan.gateways:
        return ("gateways",)
    return ("servers", _group("class", plan.servers[name].server_class))
