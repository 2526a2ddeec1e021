"""What a server reaches by the plan: inside, by peering, by a gateway's exposures, and outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fabric.interop.showing import show
from fabric.problem import InputError

if TYPE_CHECKING:
    from fabric.plan import Plan

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("server", "address", "reached", "how"),
    [
        ("compute-001", "10.1.0.129", "yes", "compute-009 be0-port0 of tenant acme"),
        ("compute-001", "10.250.0.1", "yes", "storage-001 (service address) of tenant storage, which is a peer"),
        ("compute-001", "10.250.3.255", "no", "it is free in 10.250.0.0/22 of tenant storage, which is a peer"),
        ("compute-001", "10.2.0.1", "no", "private addresses never cross the edge"),
        ("storage-001", "10.1.0.1", "no", "in backend only, where this server has no port"),
        (
            "compute-001",
            "8.8.8.8",
            "yes",
            "outside: as 203.0.113.0-203.0.113.7 by gw-01, else 203.0.113.8-203.0.113.15 by",
        ),
        ("compute-016", "8.8.8.8", "yes", "outside: 10.1.16.121 as 203.0.113.129 (static); as 203.0.113.0"),
        ("compute-017", "8.8.8.8", "yes", "by gw-02, else"),
        ("storage-001", "8.8.8.8", "no", "no masquerade or static exposure covers it"),
        ("compute-001", "203.0.113.128", "yes", "turned round at the gateway: tcp/443 to 10.1.16.1:8443"),
        ("compute-001", "203.0.113.3", "no", "the tenant's own masquerade pool"),
        ("compute-017", "203.0.113.129", "yes", "back in by static of acme: is 10.1.16.121, both ways"),
        ("compute-001", "224.0.0.5", "no", "it is for multicast"),
        ("compute-017", "203.0.113.3", "no", "in the masquerade pool of tenant acme"),
    ],
)
def test_reach(xoc256: Plan, server: str, address: str, reached: str, how: str) -> None:
    (row,) = show(xoc256, server, address).tables[0].rows
    assert row[1] == reached
    assert how in row[2]


def test_one_address_of_two_tenants_is_the_servers_own(lab: Plan) -> None:
    for server, tenant in (("compute-001", "acme"), ("compute-002", "globex")):
        (row,) = show(lab, server, "10.1.0.3").tables[0].rows
        assert row[1:] == ("yes", f"{server} be0-port0 of tenant {tenant}")


def test_what_is_no_device_has_no_way_to_it(xoc256: Plan) -> None:
    with pytest.raises(InputError) as caught:
        show(xoc256, "compute-001", "internet")
    (problem,) = caught.value.problems
    assert problem.text.startswith("is a gateway group, and a way is between two devices")
