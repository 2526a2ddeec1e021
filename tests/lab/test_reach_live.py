"""What `show SERVER ADDRESS` says of the plan is what an echo request finds in the lab."""

from __future__ import annotations

from typing import Any

import pytest

from fabric.build import load_plan
from fabric.interop.showing import show

pytestmark = pytest.mark.lab

PLAN = load_plan("lab")


@pytest.mark.parametrize(
    ("server", "address"),
    [
        ("compute-001", "198.51.100.2"),  # outside
        ("storage-001", "198.51.100.2"),  # of a tenant that shows nothing
        ("compute-001", "10.250.0.1"),  # a peer
        ("compute-001", "10.1.0.19"),  # an address that two tenants have
        ("compute-002", "10.1.0.19"),  # and that is free in this one
        ("compute-001", "203.0.113.30"),  # its own tenant's static address
        ("compute-001", "203.0.113.2"),  # its own tenant's pool
        ("compute-002", "203.0.113.30"),  # another tenant's static address
        ("compute-002", "203.0.113.1"),  # another tenant's pool
    ],
)
def test_the_plan_says_what_an_echo_finds(lab: Any, server: str, address: str) -> None:
    (row,) = show(PLAN, server, address).tables[0].rows
    answered = lab.run(server, ["ping", "-c3", "-i0.3", "-W1", address]).rc == 0
    assert (row[1], row[2]) == ("yes" if answered else "no", row[2])
