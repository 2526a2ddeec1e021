"""The check of flaps: links that go up and down while nobody touches them."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from validators.cabling.checks import ends_of, whole
from validators.check import Check, CheckInputs, Context, Observations, Stage
from validators.devices.answers import Answer
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fabric.plan import Link, Plan


class FlapInputs(CheckInputs):
    """How long links are watched, in s, and how many carrier changes one may have in that time, and since it booted."""

    fabric: str
    window_s: Annotated[float, Field(ge=0, le=3600)] = 3.0
    most: Annotated[int, Field(ge=0)] = 0
    most_since_boot: Annotated[int, Field(ge=0)] | None = None


class LinkFlaps(Check):
    """No link of a fabric goes down and up while it is watched.

    The kernel counts carrier changes of each port, on SONiC as on any Linux; both ends of a cable are looked at.

    Pass: no port changed more often than allowed.
    Fail: a port did; both ends of the cable are named.
    Error: neither end of a cable has a counter.
    Skipped: where answers are a snapshot, which is one look and not two.
    Example:
        link-flaps:
          - {fabric: backend, window_s: 60, most: 0}
    """

    stage = Stage.OPTICS
    Inputs = FlapInputs
    questions = ("carrier",)

    @classmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """One case per managed fabric."""
        yield from (FlapInputs(fabric=fabric.name) for fabric in plan.fabrics.values() if fabric.managed)

    @classmethod
    def subject(cls, inputs: FlapInputs) -> str:
        """The fabric."""
        return inputs.fabric

    @classmethod
    def touches(cls, plan: Plan, inputs: FlapInputs) -> tuple[str, ...]:
        """Every device with a cable in the fabric that is ours to ask."""
        links = [link for link in plan.links.values() if link.fabric == inputs.fabric]
        ends = dict.fromkeys(end.device for link in links for end in (link.a, link.b))
        return tuple(device for device in ends if device not in plan.edges)

    def collect(self, context: Context, inputs: FlapInputs) -> Observations:
        """Read all counters at both ends of the window."""
        asks = self.asks(context.plan, inputs)
        live = context.devices.rounds is None
        found = []
        for number in range(2):
            if number and live:
                time.sleep(inputs.window_s)
            answers = context.gather(asks, fresh=True, sample=number)
            found.append({ask.device: answer.to_dict() for ask, answer in answers.items()})
        return {"before": found[0], "after": found[1], "live": live}

    def judge(self, plan: Plan, inputs: FlapInputs, observations: Observations) -> Result:
        """Compare cable by cable; the end that changed more often decides."""
        before, after = (
            {device: carrier_changes(Answer.from_dict(answer)) for device, answer in observations[when].items()}
            for when in ("before", "after")
        )
        once = {device for device, answer in observations["after"].items() if Answer.from_dict(answer).again}
        links = [link for link in plan.links.values() if link.fabric == inputs.fabric]
        parts = [self._link(plan, link, (before, after), once, inputs) for link in links]
        period = f"for {inputs.window_s:g} s" if observations["live"] else "between two looks"
        return whole(self.name, inputs.fabric, parts, f"links were steady {period}")

    def _link(
        self,
        plan: Plan,
        link: Link,
        looks: tuple[dict[str, dict[str, int]], dict[str, dict[str, int]]],
        once: set[str],
        inputs: FlapInputs,
    ) -> Result:
        before, after = looks
        a, b = ends_of(link)
        subject = f"{a} - {b}"
        labels = {"link": link.id, "device": link.b.device, "port": link.b.port}
        labels |= {"tenant": link.tenant, "vrf": plan.tenants[link.tenant].vrf} if link.tenant else {}
        counted = [
            (after[end.device][end.interface] - before[end.device][end.interface], after[end.device][end.interface])
            for end in (link.a, link.b)
            if end.interface in before.get(end.device, {}) and end.interface in after.get(end.device, {})
        ]
        if not counted:
            return Result(self.name, subject, State.ERROR, "no carrier counter on either end", subject, labels=labels)
        grown, total = max(one for one, _ in counted), max(one for _, one in counted)
        if min(one for one, _ in counted) < 0:
            return Result(self.name, subject, State.ERROR, "a counter ran backwards", subject, labels=labels)
        if grown > inputs.most:
            text = f"changed {grown} times in {inputs.window_s:g} s, at most {inputs.most} are allowed"
        elif inputs.most_since_boot is not None and total > inputs.most_since_boot:
            text = f"changed {total} times since boot, at most {inputs.most_since_boot} are allowed"
        elif not any(end.device in after.keys() - once for end in (link.a, link.b)):
            text = "the stored answers are one look, and a flap shows between two: it must run live"
            return Result(self.name, subject, State.SKIPPED, text, labels=labels)
        else:
            return Result(self.name, subject, State.PASS, f"steady; {total} changes since boot", labels=labels)
        return Result(self.name, subject, State.FAIL, text, f"cable {link.cable}: {subject}", labels=labels)


def carrier_changes(answer: Answer) -> dict[str, int]:
    """Return interface -> carrier changes since boot, from lines `name count`; nothing where there is no answer."""
    pairs = (re.match(r"(\S+) (\d+)$", line.strip()) for line in answer.text.splitlines() if answer.ok)
    return {pair[1]: int(pair[2]) for pair in pairs if pair}
