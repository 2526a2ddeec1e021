"""What Hedgehog Open Network Fabric objects look like: kinds, limits, names. Shared by the writers and the reader.

Field names, limits and defaults follow the fabric API (wiring, vpc and gateway groups) of the 26.03 release.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable

WIRING = "wiring.githedgehog.com/v1beta1"
VPC = "vpc.githedgehog.com/v1beta1"
GATEWAY = "gateway.githedgehog.com/v1alpha1"
NAMESPACE = "default"

# a VRF is called VrfV<vpc> and Linux allows 15 characters for it
VPC_NAME_MAX = 11
NAME_MAX = 63
IPV4_NAMESPACE_SUBNETS = 10
VLANS = range(1000, 3000)
# Hedgehog's own management, protocol, VTEP and Kubernetes networks: a tenant there is refused
RESERVED = ("172.28.0.0/16", "172.29.0.0/16", "172.30.0.0/16")

_DUMPER: Any = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_FORBIDDEN = re.compile(r"[^a-z0-9-]+")


def resource(api: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    """One Kubernetes object in the namespace Hedgehog uses."""
    metadata = {"name": name, "namespace": NAMESPACE}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}


def documents(heading: Iterable[str], resources: Iterable[dict[str, Any]]) -> str:
    """Return the objects as one YAML stream under comment lines."""
    comments = "".join(f"# {line}\n" for line in heading)
    body = yaml.dump_all(list(resources), Dumper=_DUMPER, sort_keys=False, default_flow_style=False)
    return f"{comments}---\n{body}"


def dns_name(text: str, limit: int = NAME_MAX) -> str:
    """Return a name Kubernetes accepts; one that is too long keeps its start and gets four digits of its hash."""
    name = _FORBIDDEN.sub("-", text.lower()).strip("-") or "x"
    if len(name) <= limit:
        return name
    digest = hashlib.sha256(text.encode()).hexdigest()[:4]
    return f"{name[: limit - 5].rstrip('-')}-{digest}"


def connection_name(kind: str, *parts: str) -> str:
    """Name a connection as Hedgehog's own tools do: `<left>--<kind>--<right>`.

    Attachments carry it as a label value, for which Kubernetes allows 63 characters.
    """
    left, *right = (dns_name(part, 2 * NAME_MAX) for part in parts)
    return dns_name("--".join([left, kind, *right]))


def unbundled_name(server: str, port: str, switch: str) -> str:
    """Name the connection of one server port: the port is part of it, since a server has several."""
    return connection_name("unbundled", f"{server}-{port}", switch)
