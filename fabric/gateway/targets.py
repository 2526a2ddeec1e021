"""The route target of a tenant's default route, which peers of the tenant must not import."""

from __future__ import annotations

_OFFSET = 100_000_000


def default_route_target(rt: str) -> str:
    """Return the route target that gateways put on a tenant's default route: `64512:5001` -> `64512:100005001`.

    Peers import a tenant's own route target. Were the default route marked with that one, a peer would leave by a way
    that was never declared for it. VNIs end at 16,777,215, so the two ranges never meet.
    """
    asn, _, number = rt.partition(":")
    return f"{asn}:{_OFFSET + int(number)}"
