"""What a person writes: the typed inventory of one site. Defaults are the reference design's.

A site is one YAML file, or a folder of them whose top-level keys are put together (tenants, gateways and racks usually
have files of their own). Unknown keys are errors. `kvfabric schema` prints the JSON schema for editors.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Network
from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Discriminator, Field, StringConstraints, Tag

from fabric.hardware.ranges import expand_hosts, parse_ports
from fabric.inventory import written
from fabric.inventory.base import Model as _Model
from fabric.inventory.base import wrong as _wrong
from fabric.inventory.services import Address, Services

Name = Annotated[str, StringConstraints(pattern=r"^[a-z]([a-z0-9-]*[a-z0-9])?$", max_length=40)]
TenantName = Annotated[str, StringConstraints(pattern=r"^[a-z]([a-z0-9-]*[a-z0-9])?$", max_length=11)]
Network = Literal["backend", "frontend", "storage", "inband", "oob"]
Medium = Literal["dac", "acc", "aec", "aoc", "mmf", "smf"]
Mode = Literal["masquerade", "portForward", "static"]

_DURATION = re.compile(r"^(\d+)\s*(ms|s|m|h)?$")
_SCALE_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000}
_SIZE = re.compile(r"^(\d+)\s*(B|KiB|MiB|GiB)?$")
_SIZE_SCALE = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
_METRES = re.compile(r"^(\d+)\s*m?$")
_PORTS_FIX = "write cages as 1-32, 1-63:2 or 1,3,5"
_HOSTS_FIX = "write compute-001 or compute-[001-016]"


def _milliseconds(value: object) -> object:
    match = _DURATION.match(str(value)) if isinstance(value, str | int) and not isinstance(value, bool) else None
    if not match:
        raise _wrong(f"'{value}' is not a time", "write a number and ms, s, m or h, such as 200ms or 2m")
    return int(match[1]) * _SCALE_MS[match[2] or "s"]


def _seconds(value: object) -> object:
    milliseconds = _milliseconds(value)
    assert isinstance(milliseconds, int)
    if milliseconds % 1000:
        raise _wrong(f"'{value}' is not a whole number of seconds", f"use {-(-milliseconds // 1000)}s")
    return milliseconds // 1000


def _bytes(value: object) -> object:
    match = _SIZE.match(str(value)) if isinstance(value, str | int) and not isinstance(value, bool) else None
    if not match:
        raise _wrong(f"'{value}' is not a size", "write a number and B, KiB, MiB or GiB, such as 128KiB")
    return int(match[1]) * _SIZE_SCALE[match[2] or "B"]


def _metres(value: object) -> object:
    match = _METRES.match(str(value)) if isinstance(value, str | int) and not isinstance(value, bool) else None
    if not match:
        raise _wrong(f"'{value}' is not a cable length", "write whole metres from 1m to 2000m, such as 30m")
    return int(match[1])


def _port_list(value: object) -> object:
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise _wrong(f"'{value}' is not a port list", _PORTS_FIX)
    try:
        parse_ports(str(value))
    except ValueError as error:
        raise _wrong(str(error), _PORTS_FIX) from None
    return str(value)


def _hosts(value: object) -> object:
    patterns = [value] if isinstance(value, str) else value
    if not isinstance(patterns, list) or not all(isinstance(p, str) for p in patterns):
        raise _wrong("must be a name, a pattern, or a list of them", _HOSTS_FIX)
    try:
        for pattern in patterns:
            expand_hosts(pattern)
    except ValueError as error:
        raise _wrong(str(error), _HOSTS_FIX) from None
    return patterns


def _prefix(value: object) -> object:
    if isinstance(value, IPv4Network):
        return value
    try:
        return IPv4Network(str(value), strict=True)
    except ValueError:
        pass
    try:
        meant = IPv4Network(str(value), strict=False)
    except ValueError:
        text = f"'{value}' is not an IPv4 prefix"
        more = "; tenants and pools are IPv4 only" if ":" in str(value) else ""
        raise _wrong(f"{text}{more}", "write an address and a length, such as 10.1.0.0/16") from None
    raise _wrong(f"'{value}' has host bits set", f"use {meant}")


def _one_or_more(value: object) -> object:
    return value if isinstance(value, list) else [value]


Prefix = Annotated[IPv4Network, BeforeValidator(_prefix), written.text("10.1.0.0/16")]
Milliseconds = Annotated[int, BeforeValidator(_milliseconds), written.number_or(_DURATION.pattern, "200ms", "2s")]
Seconds = Annotated[int, BeforeValidator(_seconds), written.number_or(_DURATION.pattern, "30s", "10m")]
ByteSize = Annotated[int, BeforeValidator(_bytes), written.number_or(_SIZE.pattern, "128KiB")]
Metres = Annotated[int, BeforeValidator(_metres), Field(ge=1, le=2000), written.number_or(_METRES.pattern, "30m")]
PortList = Annotated[str, BeforeValidator(_port_list), written.number_or(r"^[0-9]", "1-32", "1-63:2", "1,3,5")]
Hosts = Annotated[list[str], BeforeValidator(_hosts), written.text_or_list("compute-001", "compute-[001-016]")]


class Zone(_Model):
    """Cages that serve one purpose, and how each is split."""

    ports: PortList = Field(description="cages: 1-32, 1-63:2 or 26,28,30-34")
    breakout: Annotated[str, StringConstraints(pattern=r"^\d+x\d+G$")] = Field(description="for example 2x400G")


Zones = Annotated[list[Zone], BeforeValidator(_one_or_more), Field(min_length=1), written.OrOne()]


class SwitchClass(_Model):
    """Switches of one role in one fabric."""

    model: str = Field(description="hardware profile, for example celestica-ds5000")
    name: Name | None = Field(None, description="prefix of the switch names; default <fabric>-<role>")
    was: Name | None = Field(None, description="previous prefix: keeps every number on a rename")
    count: Annotated[int, Field(ge=1, le=2048)] | None = Field(
        None, description="default: as few as will do; over spines the uplinks of a leaf must divide evenly"
    )
    nos: Literal["sonic", "frr", "none"] | None = Field(None, description="default: the profile's")
    down: Zones | None = Field(None, description="ports towards servers (leaf) or leaves (spine): a zone, or a list")
    up: Zone | None = Field(None, description="ports towards spines")
    asn: Annotated[int, Field(ge=1, le=4294967294)] | None = Field(
        None, description="first AS number, instead of the pool"
    )


class Fabric(_Model):
    """One physical network."""

    carries: Annotated[list[Network], Field(min_length=1)] = Field(description="the networks that share it")
    managed: bool = Field(True, description="false: cabled and counted, not configured")
    links: Literal["unnumbered", "numbered"] = Field("unnumbered", description="of leaf and spine")
    placement: Literal["single-homed", "rail-optimised", "alternating"] = Field(
        "alternating", description="which leaf each NIC of a server goes to: one for all, one a rail, or in turn"
    )
    prefix: Name | None = Field(None, description="prefix of default switch names; default: the fabric's name")
    leaf: SwitchClass
    spine: SwitchClass | None = None
    border_leaf: SwitchClass | None = Field(None, alias="border-leaf")
    super_spine: SwitchClass | None = Field(
        None, alias="super-spine", description="a third tier that joins pods; `spine.count` is then per pod"
    )
    pod_leaves: Annotated[int, Field(ge=1, le=512)] | None = Field(
        None, description="leaves of a pod, with super-spine"
    )
    mtu: Annotated[int, Field(ge=1280, le=9216)] = Field(9100, description="bytes, between switches")
    server_mtu: Annotated[int, Field(ge=1280, le=9216)] = Field(9036, description="bytes, towards servers")
    max_paths: Annotated[int, Field(ge=1, le=256)] = Field(64, description="ECMP width of BGP")

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class NicGroup(_Model):
    """NICs of one model in a server, all in one fabric: ports `<group><n>-<port>`, `<group>-<port>` for one."""

    nic: Annotated[str, StringConstraints(pattern=r"^([1-9]\d?x )?[a-z0-9-]+$")] = Field(
        description="how many of which model, such as 8x cx7-1x400g"
    )
    fabric: Name
    placement: Literal["single-homed", "rail-optimised", "alternating"] | None = Field(
        None, description="default: the fabric's"
    )
    attach: Literal["leaf", "border-leaf"] = Field("leaf", description="what kind of switch they are cabled to")
    rdma: bool | None = Field(None, description="default: the NIC can and the fabric carries backend")


class ServerClass(_Model):
    """Servers that are alike. They are named `<class>-001` and on."""

    count: Annotated[int, Field(ge=0, le=65536)]
    kind: Literal["compute", "storage", "metadata", "controller", "other"] | None = Field(
        None, description="default: compute, storage or metadata where the class is called so, else other"
    )
    xpus: Annotated[int, Field(ge=0, le=64)] | None = Field(
        None, description="accelerators of a server; default 8 for compute, else none"
    )
    nics: Annotated[dict[Name, NicGroup], Field(min_length=1)]
    was: Name | None = Field(None, description="previous name of the class: keeps every number on a rename")
    digits: Annotated[int, Field(ge=1, le=5)] = Field(3, description="of the number in a server's name")


class GatewayClass(_Model):
    """x86 gateways that are alike, named `<class>-01` and on."""

    count: Annotated[int, Field(ge=1, le=64)]
    fabric: Name | None = Field(None, description="default: the fabric that carries frontend")
    attach: Literal["border-leaf", "leaf", "spine"] = Field(
        "border-leaf", description="what kind of switch they are cabled to"
    )
    nic: Annotated[str, StringConstraints(pattern=r"^([1-9]\d?x )?[a-z0-9-]+$")] = "1x cx7-2x200g"
    external: Annotated[int, Field(ge=1, le=8)] = Field(1, description="links to each edge router")
    external_speed: Annotated[int, Field(ge=1, le=800)] = Field(200, description="Gb/s")
    idle_timeout: Seconds = Field(120, description="default of exposures that say none")
    drain_deadline: Annotated[Seconds, Field(ge=1)] = Field(600, description="most that a drain waits")
    health_interval: Annotated[Seconds, Field(ge=1)] = Field(2, description="between looks at its own health")
    health_failures: Annotated[int, Field(ge=1, le=100)] = Field(3, description="bad looks in a row that withdraw it")
    conntrack_max: Annotated[int, Field(ge=1024, le=100_000_000)] = Field(
        10_000_000, description="connections that its table holds"
    )
    was: Name | None = Field(None, description="previous name of the class: keeps every number on a rename")


class Edge(_Model):
    """The routers outside the gateways, not ours."""

    asn: Annotated[int, Field(ge=1, le=4294967294)]
    count: Annotated[int, Field(ge=1, le=16)] = 1
    links: Prefix = Field(IPv4Network("172.30.16.0/22"), description="/31s towards the gateways")


class Expose(_Model):
    """What the outside sees of a tenant."""

    mode: Mode
    public: Prefix = Field(description="addresses that the provider routes to the gateways")
    private: IPv4Network | str | None = Field(None, description="prefix or server; default: the tenant's subnets")
    tcp: dict[Annotated[int, Field(ge=1, le=65535)], str] = Field(
        default_factory=dict, description="public port: `server:port` or `address:port`, of portForward"
    )
    udp: dict[Annotated[int, Field(ge=1, le=65535)], str] = Field(default_factory=dict, description="as tcp")
    idle_timeout: Seconds | None = Field(None, description="default: the gateways'")
    group: Name | None = Field(None, description="gateway group that shows it; needed where there are several")
    name: Name | None = Field(None, description="default: from the mode")


class SubnetSpec(_Model):
    """A subnet with its fabric said."""

    prefix: Prefix
    fabric: Name


TenantSubnet = Annotated[
    Annotated[Prefix, Tag("prefix")] | Annotated[SubnetSpec, Tag("spec")],
    Discriminator(lambda value: "spec" if isinstance(value, dict | SubnetSpec) else "prefix"),
]


class Tenant(_Model):
    """A tenant: who is in it, its addresses, its peers, and what it shows to the outside."""

    servers: Hosts = Field(default_factory=list, description="compute-[001-016], or compute-001:be for one NIC group")
    subnets: dict[Name, TenantSubnet] = Field(
        default_factory=dict, description="by fabric name, or `default` for the only fabric the tenant has ports in"
    )
    peers: list[TenantName] = Field(default_factory=list, description="tenants to exchange routes with")
    service: bool = Field(False, description="accepts every tenant that lists it as a peer, and is no way between them")
    expose: list[Expose] = Field(default_factory=list, description="what the outside sees; nothing by default")
    was: TenantName | None = Field(None, description="previous name: keeps every number on a rename")


class Range(_Model):
    """Numbers from `first` to `last`, both included."""

    first: Annotated[int, Field(ge=1)]
    last: Annotated[int, Field(ge=1)]


def _range(value: object) -> object:
    if isinstance(value, str):
        first, dash, last = value.partition("-")
        if dash and first.strip().isdigit() and last.strip().isdigit() and int(first) <= int(last):
            return {"first": int(first), "last": int(last)}
    if isinstance(value, int) and not isinstance(value, bool):
        return {"first": value, "last": value}
    if isinstance(value, dict | Range):
        return value
    raise _wrong(f"'{value}' is not a range", "write the first and the last number, such as 65101-65533")


NumberRange = Annotated[Range, BeforeValidator(_range), written.OrText(r"^\s*\d+\s*-\s*\d+\s*$", "65101-65533")]


class Pools(_Model):
    """Where numbers and addresses come from."""

    management: Prefix = IPv4Network("172.30.0.0/21")
    management_gateway: Address | None = Field(
        None, description="the router of the management network, in `management`; default: its last address"
    )
    loopbacks: Prefix = IPv4Network("172.30.8.0/22")
    vteps: Prefix = IPv4Network("172.30.12.0/22")
    links: Prefix = IPv4Network("172.30.128.0/17")
    gateway_links: Prefix = IPv4Network("172.30.20.0/22")
    spine_asn: NumberRange = Range(first=65001, last=65099)
    leaf_asn: NumberRange = Range(first=65101, last=65533)
    gateway_asn: Annotated[int, Field(ge=1, le=4294967294)] = 65534
    rt_asn: Annotated[int, Field(ge=1, le=65535)] = Field(64512, description="2-byte AS of every route target")
    vlans: NumberRange = Range(first=3000, last=3899)
    gateway_vlans: NumberRange = Range(first=3900, last=3999)
    vni_step: Annotated[int, Field(ge=1, le=1000)] = Field(100, description="VNI = step x tenant number")


class Ecn(_Model):
    """WRED marking of the lossless queue: bytes and per cent."""

    min: ByteSize = 131072
    max: ByteSize = 262144
    speed: Annotated[int, Field(ge=1, le=800)] = Field(
        400, description="Gb/s of the ports that min and max are for; a faster port gets as much more"
    )
    probability: Annotated[int, Field(ge=1, le=100)] = 5


class Roce(_Model):
    """The lossless class and what goes with it."""

    name: Name = Field("kv", alias="class")
    dscp: Annotated[int, Field(ge=0, le=63)] = 26
    priority: Annotated[int, Field(ge=0, le=7)] = 3
    queue: Annotated[int, Field(ge=0, le=7)] | None = Field(None, description="default: the priority")
    cnp_dscp: Annotated[int, Field(ge=0, le=63)] = 48
    cnp_queue: Annotated[int, Field(ge=0, le=7)] = 6
    ecn: Ecn = Ecn()
    watchdog: Milliseconds = Field(200, description="detection time of the PFC watchdog, 100 to 5000 ms")
    restoration: Milliseconds = Field(400, description="100 to 60000 ms")
    watchdog_action: Literal["drop", "forward", "alert"] = "drop"
    weight: Annotated[int, Field(ge=1, le=99)] = Field(60, description="DWRR share of the lossless queue, per cent")
    qpn_hash: bool = True
    headroom_ratio: Annotated[float, Field(ge=1, le=64)] = Field(
        2, description="most that the headroom of a switch's lossless ports may exceed what they share by"
    )

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


_MEDIA: dict[Medium, int] = {"dac": 2, "aec": 5, "smf": 2000}


class Cables(_Model):
    """Lengths where racks do not say better."""

    server_leaf: Metres = Field(5, alias="server-leaf")
    leaf_spine: Metres = Field(30, alias="leaf-spine")
    gateway: Metres = 10
    external: Metres = 50
    management: Metres = 10
    media: Annotated[dict[Medium, Metres], Field(min_length=1)] = Field(
        default_factory=_MEDIA.copy,
        description="longest cable of each medium; the shortest that reaches is taken",
    )

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    @property
    def reach(self) -> dict[str, int]:
        """The longest cable of each medium, metres."""
        return {str(name): most for name, most in self.media.items()}


class Rack(_Model):
    """A rack: what stands in it, and where it is on the floor."""

    devices: Hosts
    row: Annotated[int, Field(ge=0)] = 0
    position: Annotated[int, Field(ge=0)] = 0


class Site(_Model):
    """The whole inventory."""

    site: Name
    profile: Literal["minimal", "distributed"]
    fabrics: Annotated[dict[Name, Fabric], Field(min_length=1)]
    servers: dict[Name, ServerClass] = Field(default_factory=dict)
    gateways: dict[Name, GatewayClass] = Field(default_factory=dict)
    groups: dict[Name, Annotated[Hosts, Field(min_length=1)]] = Field(
        default_factory=dict, description="gateway groups: gateways in order of preference"
    )
    edge: Edge | None = None
    tenants: dict[TenantName, Tenant] = Field(default_factory=dict)
    pools: Pools = Pools()
    roce: Roce = Roce()
    cables: Cables = Cables()
    racks: dict[Name, Rack] = Field(default_factory=dict)
    services: Services = Services()
