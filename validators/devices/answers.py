"""A question to a device and what came back: text, or the reason why there is none. Both are JSON-ready.

Checks ask questions by name (`lldp`, `bgp`, `routes`); an engine knows which command that is on each device. An
answer that did not come is data, not an exception: one silent device never stops the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from fabric.strict_json import first_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


_UNASKED = "not asked: "
_UNREACHED = "no answer from "


class Ask(NamedTuple):
    """A named question to one device."""

    device: str
    question: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What a device said. `error` is empty when the command ran and ended well; `seconds` is how long it took.

    `again` marks a stored answer that was given for an earlier sample already: it is no second look.
    """

    text: str = ""
    error: str = ""
    seconds: float = 0.0
    again: bool = False

    @property
    def ok(self) -> bool:
        """Whether there is an answer to judge."""
        return not self.error

    @property
    def asked(self) -> bool:
        """Whether the question could be asked at all."""
        return not self.error.startswith(_UNASKED)

    @property
    def reached(self) -> bool:
        """Whether the device was reached: if not, the reason is the same for every question."""
        return not self.error.startswith(_UNREACHED)

    def to_dict(self) -> dict[str, Any]:
        """Return the answer as it is stored in observations."""
        said: dict[str, Any] = {"text": self.text} if self.ok else {"text": self.text, "error": self.error}
        return said | ({"again": True} if self.again else {})

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Answer:
        """Read what `to_dict` wrote."""
        return Answer(str(data.get("text", "")), str(data.get("error", "")), again=data.get("again") is True)


class Devices(Protocol):
    """An engine: the devices of a site, live, in a lab, or as files.

    `physical` is False where ports are virtual, so that nobody measures the optics of a virtual port. `rounds` is how
    many samples in a row can be had of a question: None when live, which is without limit. `unproven` are the devices
    that are asked in a dialect which was never seen on a device.
    """

    name: str
    physical: bool
    rounds: int | None
    unproven: Sequence[str]

    def gather(self, asks: Iterable[Ask], sample: int = 0) -> dict[Ask, Answer]:
        """Answer all questions, devices in parallel; every ask has an entry in what is returned."""
        ...

    def run(self, device: str, command: str, timeout_s: float = 30.0) -> Answer:
        """Run a shell command on a device."""
        ...

    def close(self) -> None:
        """Let go of sessions."""
        ...


def unasked(dialect: str, question: str) -> Answer:
    """Return the answer to a question that nobody can ask a kind of device: a check that needs it is skipped."""
    return Answer(error=f"{_UNASKED}{dialect} has no command for '{question}'")


def unreached(where: str, why: str) -> Answer:
    """Return the answer of a device that cannot be talked to at `where` (user@address:port)."""
    return Answer(error=f"{_UNREACHED}{where}: {why}")


class UnreadableError(ValueError):
    """An answer is not what its command should print: the check cannot judge."""


def document(text: str, what: str, opening: str = "{[") -> Any:
    """Return the first JSON document in what a device printed; shells print warnings before it and prompts behind.

    `what` names who printed it, `opening` how a document may begin. Raises UnreadableError.
    """
    starts = [index for mark in opening if (index := text.find(mark)) >= 0]
    if not starts:
        message = f"{what} did not print JSON: {text.strip()[:80]!r}"
        raise UnreadableError(message)
    try:
        return first_document(text, min(starts))[0]
    except ValueError as error:
        message = f"{what} printed JSON that is cut off or broken ({error})"
        raise UnreadableError(message) from None
