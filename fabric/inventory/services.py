"""What switches need from the site on day 0: clock, names, logs, logins, SNMP. Secrets are named, never written.

The limits are those of SONiC's models: 10 NTP servers, 3 name servers, 8 TACACS+ servers.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address
from typing import Annotated
from zoneinfo import available_timezones

from pydantic import AfterValidator, BeforeValidator, Field, StringConstraints

from fabric.inventory.base import Model, wrong

_VARIABLE = re.compile(r"^[A-Z][A-Z0-9_]*$")
_ZONE = re.compile(r"^[A-Za-z][A-Za-z0-9_+-]*(/[A-Za-z0-9_+-]+)*$")
_MOST_NTP, _MOST_DNS, _MOST_TACACS = 10, 3, 8


def _address(value: object) -> object:
    if isinstance(value, IPv4Address):
        return value
    try:
        return IPv4Address(str(value))
    except ValueError:
        fix = "write the address: on day 0 no name is resolved, and the management network is IPv4"
        raise wrong(f"'{value}' is not an IPv4 address", fix) from None


def _variable(value: object) -> object:
    # what was written may be the secret itself: it is not repeated
    if not isinstance(value, str) or not _VARIABLE.match(value):
        fix = "write capitals, digits and `_`, such as TACACS_KEY; the secret itself has no place in an inventory"
        raise wrong("this is not the name of an environment variable", fix)
    return value


def _timezone(value: object) -> object:
    known = available_timezones()
    if not isinstance(value, str) or not _ZONE.match(value) or (known and value not in known):
        raise wrong(f"'{value}' is not a time zone", "use a name of the IANA database, such as UTC or Europe/Berlin")
    return value


def _each_once(most: int) -> AfterValidator:
    def check(values: list[IPv4Address]) -> list[IPv4Address]:
        twice = [str(value) for i, value in enumerate(values) if value in values[:i]]
        if twice:
            raise wrong(f"{twice[0]} is given twice", "keep one of them")
        if len(values) > most:
            raise wrong(f"these are {len(values)} servers, SONiC takes {most} at most", f"keep {most} of them")
        return values

    return AfterValidator(check)


Address = Annotated[IPv4Address, BeforeValidator(_address)]
Variable = Annotated[str, BeforeValidator(_variable)]
Timezone = Annotated[str, BeforeValidator(_timezone)]
OneLine = Annotated[str, StringConstraints(pattern=r"^[^\r\n]+$", max_length=255)]
_ANY_NUMBER = 64


class Tacacs(Model):
    """Logins by TACACS+; local accounts count when no server answers."""

    servers: Annotated[list[Address], Field(min_length=1), _each_once(_MOST_TACACS)] = Field(
        description="in order of preference"
    )
    key_env: Variable = Field(description="environment variable that holds the shared key when secrets.sh runs")


class Snmp(Model):
    """SNMP on the management address, read only."""

    community_env: Variable = Field(description="environment variable that holds the community when secrets.sh runs")
    contact: OneLine | None = None
    location: OneLine | None = Field(None, description="default: the switch's rack, when racks are said")


class Services(Model):
    """What switches ask for and report to, in their management network."""

    ntp: Annotated[list[Address], _each_once(_MOST_NTP)] = Field(default_factory=list)
    syslog: Annotated[list[Address], _each_once(_ANY_NUMBER)] = Field(default_factory=list)
    dns: Annotated[list[Address], _each_once(_MOST_DNS)] = Field(default_factory=list)
    timezone: Timezone | None = Field(None, description="default UTC")
    tacacs: Tacacs | None = None
    snmp: Snmp | None = None

    def settings(self) -> dict[str, object]:
        """Return the services as the plan keeps them: JSON-ready, single ones only when they are said."""
        return self.model_dump(mode="json", exclude_none=True)
