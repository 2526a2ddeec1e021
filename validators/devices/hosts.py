"""The hosts file: how each device of the plan is reached, in the form of Nornir's SimpleInventory.

```yaml
be-leaf-01: {hostname: 192.0.2.11, username: admin, platform: linux}
be-leaf-02: {hostname: 192.0.2.12, username: admin, platform: dell_sonic, port: 22}
```

A host that sends and receives for the gateway probes says so, and where (`hosts` are two addresses of `network` that
nobody else has; the agent answers ARP for them). One outside the gateways need not be a device of the plan:

```yaml
compute-001:
  hostname: 192.0.2.31
  username: root
  data:
    key_file: id
    tester: {side: inside, port: fe0, hop: 10.1.0.1, network: 10.1.0.224/28, hosts: [10.1.0.225, 10.1.0.226]}
outside:
  hostname: 192.0.2.99
  username: root
  data:
    key_file: id
    tester: {side: outside, port: eth1, hop: 198.18.0.1, network: 198.18.0.8/29, hosts: [198.18.0.10, 198.18.0.11]}
```

Passwords come from KVFABRIC_PASSWORD (or the variable that `data: {password_env: NAME}` names), or from an SSH agent or
key (`data: {key_file: ...}`). A `password` in the file works too, as it does in Nornir, and never reaches any output.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from fabric.files import read_whole
from fabric.plan import GATEWAY, SERVER
from fabric.problem import InputError, Problem
from validators.devices.dialects import LINUX, SONIC, SONIC_CLI

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from fabric.plan import Plan

_FORM = "lines of the form `compute-001: {hostname: 192.0.2.11, username: admin}`"
_KEYS = frozenset({"hostname", "port", "username", "password", "platform", "groups", "data", "connection_options"})
_DATA = frozenset({"password_env", "key_file", "dialect", "known_hosts", "tester"})
_TEXTS = ("hostname", "username", "password", "platform")
_DATA_TEXTS = ("password_env", "key_file", "known_hosts", "dialect")
_WORDS = frozenset({"hostname", "username"})
_FILES = frozenset({"key_file", "known_hosts"})
_DEPTH = 3
_TESTER = ("side", "port", "hop", "network", "hosts")
INSIDE, OUTSIDE = "inside", "outside"
# dell_sonic is written from documents and was never seen on a device, which every report of such a run says
PLATFORMS = {"linux": "", "dell_sonic": SONIC_CLI, "sonic": "", "frr": LINUX}


@dataclass(frozen=True, slots=True)
class Tester:
    """Where a host sends and receives for the gateway probes: its interface, the next hop, and whom it speaks for."""

    side: str
    port: str
    hop: str
    network: str
    hosts: tuple[str, str]


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
    tester: Tester | None = None


def read_hosts(path: Path, plan: Plan) -> dict[str, Host]:
    """Read a hosts file. Raises InputError with everything that is wrong in it."""
    try:
        text = read_whole(path).decode()
        lines, problems = _lines(path, text)
        data = yaml.safe_load(text)
    except OSError as error:
        said = f"cannot be read: {error.strerror}"
        raise InputError([Problem("hosts.missing", path.name, said, _FORM, str(path))]) from None
    except UnicodeDecodeError:
        raise InputError([Problem("hosts.yaml", path.name, "is not UTF-8 text", _FORM, str(path), 1)]) from None
    except (yaml.YAMLError, RecursionError, ValueError, TypeError, AttributeError, LookupError) as error:
        mark = getattr(error, "problem_mark", None)
        said = getattr(error, "problem", "") if mark else "a value is not what its tag says"
        line = mark.line + 1 if mark else 1
        raise InputError([Problem("hosts.yaml", path.name, said, "correct the YAML", str(path), line)]) from None
    if not isinstance(data, dict) or not data:
        raise InputError([Problem("hosts.shape", path.name, "holds no device", _FORM, str(path), 1)])
    hosts = {}
    for name, body in data.items():
        fields = body if isinstance(body, dict) else {}
        problems += [
            Problem("hosts.field", str(name), said, fix, str(path), lines.get(str(name), 1), str(name))
            for said, fix in _faults(name, body, plan)
        ]
        hosts[str(name)] = _host(str(name), fields, plan)
    if problems:
        raise InputError(problems)
    return hosts


def _lines(path: Path, text: str) -> tuple[dict[str, int], list[Problem]]:
    """Return the line of each device, and a problem for what is given twice: YAML keeps the last in silence."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    lines: dict[str, int] = {}
    problems = []
    for way, key in _keys(root, ()):
        name, line = ".".join(way), int(key.start_mark.line) + 1
        if name in lines:
            said = f"is given already in line {lines[name]}"
            problems.append(Problem("hosts.twice", name, said, "keep one of them", str(path), line, name))
        lines.setdefault(name, line)
    return lines, problems


def _keys(node: yaml.Node | None, way: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], yaml.Node]]:
    """Yield every key of maps in maps with the way to it: a device, its fields, its data."""
    for key, value in node.value if isinstance(node, yaml.MappingNode) and len(way) < _DEPTH else ():
        yield (*way, str(key.value)), key
        yield from _keys(value, (*way, str(key.value)))


def _faults(name: Any, body: Any, plan: Plan) -> list[tuple[str, str]]:
    if not isinstance(body, dict):
        return [("must be `{hostname: ..., username: ...}`", _FORM)]
    found = [(f"unknown key '{key}'", f"known: {', '.join(sorted(_KEYS))}") for key in body.keys() - _KEYS]
    inner = body.get("data") or {}
    if not isinstance(inner, dict):
        return [*found, ("data must be `{key_file: ..., known_hosts: ...}`", f"known: {', '.join(sorted(_DATA))}")]
    found += _text_faults(body, _TEXTS) + [(f"data.{said}", fix) for said, fix in _text_faults(inner, _DATA_TEXTS)]
    found += [(f"unknown key 'data.{key}'", f"known: {', '.join(sorted(_DATA))}") for key in inner.keys() - _DATA]
    tester = inner.get("tester")
    found += _tester_faults(tester) if "tester" in inner else []
    outside = isinstance(tester, dict) and tester.get("side") == OUTSIDE
    if name not in plan.kind_of and not outside:
        found.append(("is not a device of the plan", "use the plan's names: `kvfabric plan SITE`"))
    for what, value, known in (
        ("platform", body.get("platform", "linux"), tuple(PLATFORMS)),
        ("data.dialect", inner.get("dialect", LINUX), (SONIC, SONIC_CLI, LINUX)),
    ):
        if isinstance(value, str) and value not in known:
            found.append((f"{what} '{value}' is not known", f"one of {', '.join(known)}"))
    port = body.get("port", 22)
    if isinstance(port, bool) or not isinstance(port, int) or not 0 < port < 65536:
        found.append(("port must be a number from 1 to 65535", "write it without quotes, or leave it out for 22"))
    return found


def _text_faults(fields: dict[Any, Any], names: Iterable[str]) -> list[tuple[str, str]]:
    """Return what is wrong with fields of text; what they hold may be a secret and is not repeated."""
    found = []
    for name in names:
        if name not in fields:
            continue
        value = fields[name]
        if not isinstance(value, str):
            found.append((f"{name} must be text", "put it in quotes, or leave it out"))
        elif not value.strip():
            found.append((f"{name} is empty", "leave it out to use what is usual"))
        elif name in _WORDS and (value.startswith("-") or not value.isprintable() or " " in value):
            found.append((f"{name} must be one word that does not begin with `-`", "correct it"))
        elif name in _FILES and not Path(value).expanduser().is_file():
            found.append((f"{name}: there is no file {value}", "correct the path"))
    return found


def _tester_faults(data: Any) -> list[tuple[str, str]]:
    if not isinstance(data, dict) or set(data) != set(_TESTER):
        return [
            (
                "data.tester must have exactly " + ", ".join(_TESTER),
                "the head of validators/devices/hosts.py has examples",
            )
        ]
    found = []
    if data["side"] not in [INSIDE, OUTSIDE]:
        found.append((f"data.tester.side '{data['side']}' is not known", f"{INSIDE} or {OUTSIDE} of the gateways"))
    if not isinstance(data["port"], str) or not data["port"].strip():
        found.append(("data.tester.port names no interface", "name the interface on the test host"))
    hosts = data["hosts"] if isinstance(data["hosts"], list) else [data["hosts"]]
    faults = address_faults(str(data["hop"]), str(data["network"]), [str(host) for host in hosts])
    return [*found, *((f"data.tester.{name}: {text}", fix) for name, text, fix in faults)]


def address_faults(hop: str, network: str, hosts: list[str]) -> list[tuple[str, str, str]]:
    """Return (which of `hop`, `network` and `hosts`, what is wrong with it, what to write) for a tester's addresses."""
    found = []
    given = {"hop": [hop], "network": [network], "hosts": hosts}
    form = {"hop": "an address such as 10.1.0.1", "network": "a prefix such as 10.1.0.0/28",
            "hosts": "two addresses such as 10.1.0.10 and 10.1.0.11"}  # fmt: skip
    for name, texts in given.items():
        read: Callable[[str], object] = IPv4Network if name == "network" else IPv4Address
        for text in texts:
            try:
                read(text)
            except ValueError as error:
                found.append((name, str(error), form[name]))
    if found:
        return found
    prefix, router, own = IPv4Network(network), IPv4Address(hop), [IPv4Address(host) for host in hosts]
    if len(set(own)) != 2 or len(own) != 2 or not all(host in prefix for host in own):
        found.append(("hosts", f"must be two addresses of {prefix}", form["hosts"]))
    if router in own:
        found.append(("hop", f"{router} is one of its hosts", "hop is the router on that interface"))
    return found


def _tester(data: Any) -> Tester | None:
    if not data or _tester_faults(data):
        return None
    first, second = (str(host) for host in data["hosts"])
    return Tester(data["side"], str(data["port"]), str(data["hop"]), str(data["network"]), (first, second))


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
        str(data.get("known_hosts", "")), _tester(data.get("tester")),
    )  # fmt: skip
