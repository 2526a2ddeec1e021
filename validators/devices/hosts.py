"""The hosts file: how each device of the plan is reached, in the form of Nornir's SimpleInventory.

```yaml
be-leaf-01: {hostname: 192.0.2.11, username: admin, platform: linux}
be-leaf-02: {hostname: 192.0.2.12, username: admin, platform: dell_sonic, port: 22}
```

Passwords come from KVFABRIC_PASSWORD (or the variable that `data: {password_env: NAME}` names), or from an SSH agent or
key (`data: {key_file: ...}`). A `password` in the file works too, as it does in Nornir, and never reaches any output.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from fabric.plan import GATEWAY, SERVER
from fabric.problem import InputError, Problem
from validators.devices.dialects import LINUX, SONIC, SONIC_CLI

if TYPE_CHECKING:
    from pathlib import Path

    from fabric.plan import Plan

_KEYS = frozenset({"hostname", "port", "username", "password", "platform", "groups", "data", "connection_options"})
_DATA = frozenset({"password_env", "key_file", "dialect", "known_hosts"})
PLATFORMS = {"linux": "", "dell_sonic": SONIC_CLI, "sonic": "", "frr": LINUX}


@dataclass(frozen=True, slots=True)
class Host:
    """How to reach one device. `platform` is netmiko's device type."""

    name: str
    hostname: str
    port: int
    username: str
    password: str
    platform: str
    dialect: str
    key_file: str = ""
    known_hosts: str = ""


def read_hosts(path: Path, plan: Plan) -> dict[str, Host]:
    """Read a hosts file. Raises InputError with everything that is wrong in it."""
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError([Problem("hosts.missing", path.name, f"cannot be read: {error}", "", str(path))]) from None
    except yaml.YAMLError as error:
        raise InputError(
            [Problem("hosts.yaml", path.name, str(error).splitlines()[0], "correct the YAML", str(path))]
        ) from None
    if not isinstance(data, dict) or not data:
        raise InputError(
            [Problem("hosts.shape", path.name, "must hold `device: {hostname: ...}` lines", "", str(path))]
        )
    problems: list[Problem] = []
    hosts = {}
    for name, body in data.items():
        fields = body if isinstance(body, dict) else {}
        problems += [
            Problem("hosts.field", str(name), text, fix, str(path), field=str(name))
            for text, fix in _faults(name, body, plan)
        ]
        hosts[str(name)] = _host(str(name), fields, plan)
    if problems:
        raise InputError(problems)
    return hosts


def _faults(name: Any, body: Any, plan: Plan) -> list[tuple[str, str]]:
    if not isinstance(body, dict):
        return [("must be `{hostname: ..., username: ...}`", "")]
    found = [(f"unknown key '{key}'", f"known: {', '.join(sorted(_KEYS))}") for key in body.keys() - _KEYS]
    inner = body.get("data") or {}
    if not isinstance(inner, dict):
        return [*found, ("data must be `{key_file: ..., known_hosts: ...}`", f"known: {', '.join(sorted(_DATA))}")]
    if not str(body.get("hostname", name)).strip():
        found.append(("hostname is empty", "leave it out to use the device's name"))
    found += [(f"unknown key 'data.{key}'", f"known: {', '.join(sorted(_DATA))}") for key in inner.keys() - _DATA]
    if name not in plan.kind_of:
        found.append(("is not a device of the plan", "use the plan's names: `kvfabric plan SITE`"))
    if body.get("platform", "linux") not in PLATFORMS:
        found.append((f"platform '{body['platform']}' is not known", f"one of {', '.join(PLATFORMS)}"))
    port = body.get("port", 22)
    if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65536:
        found.append(("port must be a number from 1 to 65535", ""))
    return found


def _host(name: str, body: dict[str, Any], plan: Plan) -> Host:
    data = body["data"] if isinstance(body.get("data"), dict) else {}
    variable = str(data.get("password_env", "KVFABRIC_PASSWORD"))
    platform = str(body.get("platform", "linux"))
    sonic = (
        name in plan.switches and plan.switches[name].nos == "sonic" and plan.kind_of.get(name) not in {SERVER, GATEWAY}
    )
    dialect = str(data.get("dialect") or PLATFORMS.get(platform) or (SONIC if sonic else LINUX))
    return Host(
        name, str(body.get("hostname", name)), body.get("port", 22) if isinstance(body.get("port", 22), int) else 22,
        str(body.get("username", os.environ.get("KVFABRIC_USERNAME", "admin"))),
        str(body.get("password") or os.environ.get(variable, "")),
        "linux" if platform in {"sonic", "frr"} else platform, dialect, str(data.get("key_file", "")),
        str(data.get("known_hosts", "")),
    )  # fmt: skip
