"""What a BGP session takes: the prefixes its filters let in, and how many of them."""

from __future__ import annotations

from ipaddress import IPv4Network
from typing import TYPE_CHECKING

from fabric.analysis.policy import in_list, permits
from fabric.analysis.rendered import FRR_CONF
from fabric.analysis.rule import Rule
from fabric.analysis.sessions import sessions
from fabric.plan import EXTERNAL_LINK
from fabric.prefix_counts import expected_from, of_fabric

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.analysis.sessions import Session
    from fabric.problem import Problem

_DEFAULT = "0.0.0.0/0"
# what no neighbor has to tell: halves of the Internet, private space, a host that is not ours, a network of any size
_FOREIGN = ("0.0.0.0/1", "128.0.0.0/1", "10.0.0.0/8", "198.51.100.0/24", "198.51.100.7/32", "192.0.2.77/32")


class TakesOnlyItsOwn(Rule):
    """Sessions of the underlay take loopbacks and VTEPs of this site and no other prefix; those to the edge a default.

    Why: one neighbor with a host route too many draws a VTEP's tunnels to itself; a default route in the underlay draws
        them out of the site; a full table from the provider fills a gateway that follows nothing but the default.
    Fix: filter each session: `LOOPBACKS` with the pools of the site inside, `EDGE-IN` with the default at the edge.
    Source: RFC 7454 section 6.
    """

    id = "bgp.takes-only-its-own"
    file = FRR_CONF

    def check(self) -> Iterator[Problem]:
        for session in sessions(self.facts):
            if session.bgp is None or session.neighbor is None or session.bgp.ipv4 is None:
                continue
            edge = session.link.kind == EXTERNAL_LINK
            needed = (_DEFAULT,) if edge else self._loopbacks(session.there)
            refused = (*_FOREIGN, *(() if edge else (_DEFAULT,)))
            wrong = [f"takes {p}" for p in refused if self._takes(session, p)]
            wrong += [f"does not take {p}" for p in needed if not self._takes(session, p)]
            if wrong:
                subject = f"{session.here} {session.neighbor.name}"
                line = session.neighbor.line
                yield self.finding(subject, f"{wrong[0]} from {session.there}", device=session.here, line=line)

    def _loopbacks(self, device: str) -> tuple[str, ...]:
        owner = self.plan.switches.get(device) or self.plan.gateways[device]
        return tuple(f"{address}/32" for address in (owner.router_id, owner.vtep) if address)

    def _takes(self, session: Session, prefix: str) -> bool:
        assert session.bgp
        assert session.neighbor
        family, names = session.bgp.ipv4, session.bgp.names(session.neighbor)
        assert family
        conf = self.facts.routers[session.here]
        wanted = family.prefix_list(names, "in")
        if wanted and not in_list(conf.prefix_lists.get(wanted, []), IPv4Network(prefix)):
            return False
        return permits(conf, family.route_map(names, "in"), prefix)


class MaximumPrefix(Rule):
    """Each session of the underlay has a `maximum-prefix`, above what its neighbor announces by the plan.

    Why: a neighbor that announces loopbacks without end fills tables that are small on an ASIC; a limit at or below
        what is normal ends sessions on a healthy day, when the site grows.
    Fix: render again; a limit is four times what the plan expects, a power of two, at least 64.
    Source: RFC 7454 section 8.
    """

    id = "bgp.maximum-prefix"
    file = FRR_CONF

    def check(self) -> Iterator[Problem]:
        for session in sessions(self.facts):
            bgp, neighbor = session.bgp, session.neighbor
            if bgp is None or neighbor is None or bgp.ipv4 is None or session.link.kind == EXTERNAL_LINK:
                continue
            limits = [bgp.ipv4.max_prefix[name] for name in bgp.names(neighbor) if name in bgp.ipv4.max_prefix]
            expected = self._expected(session)
            subject = f"{session.here} {neighbor.name}"
            if not limits:
                yield self.finding(
                    subject, f"has no limit for {session.there}", device=session.here, line=neighbor.line
                )
            elif limits[0][0] <= expected:
                text = f"takes {limits[0][0]} prefixes at most, {session.there} announces {expected}"
                yield self.finding(subject, text, device=session.here, line=limits[0][1])

    def _expected(self, session: Session) -> int:
        """A leaf tells a spine what is behind it, since the rest came from spines, and a gateway the whole fabric."""
        gateway = self.plan.gateways.get(session.here)
        return of_fabric(self.plan, gateway.fabric) if gateway else expected_from(self.plan, session.there)
