"""The contract of a live check: one class is one check, and its docstring is its page in the manual.

A check collects (talks to devices, returns JSON-ready observations that are stored) and judges (pure: plan, inputs and
observations in, `Result` out). Because the two are apart, every check runs on stored observations too.

The docstring's first line says what must hold; paragraphs `Pass:`, `Fail:`, `Error:`, `Skipped:` and `Example:`
(catalog YAML) follow. A class without them, or without a stage or typed inputs, is refused when Python reads it.
"""

from __future__ import annotations

import inspect
import re
import traceback
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from pydantic import BaseModel, ConfigDict

from validators.devices.answers import Answer, Ask, UnreadableError
from validators.results import Result, State

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from fabric.plan import Plan
    from validators.devices.answers import Devices
    from validators.journal_undo import UndoLog

Observations = dict[str, Any]


class Stage(StrEnum):
    """The order of an acceptance: each stage is only worth running when what it stands on holds."""

    PREFLIGHT = "preflight"
    CABLING = "cabling"
    OPTICS = "optics"
    CONTROL_PLANE = "control-plane"
    TENANTS = "tenants"
    ROCE = "roce"
    GATEWAYS = "gateways"
    STABILITY = "stability"
    FAILOVER = "failover"


# what a stage stands on: it is skipped, with the reason, when one of these failed or could not be judged
STANDS_ON: dict[Stage, tuple[Stage, ...]] = {
    Stage.PREFLIGHT: (),
    Stage.CABLING: (Stage.PREFLIGHT,),
    Stage.OPTICS: (Stage.PREFLIGHT,),
    Stage.CONTROL_PLANE: (Stage.CABLING,),
    Stage.TENANTS: (Stage.CONTROL_PLANE,),
    Stage.ROCE: (Stage.OPTICS, Stage.TENANTS),
    Stage.GATEWAYS: (Stage.TENANTS,),
    Stage.STABILITY: (Stage.PREFLIGHT,),
    Stage.FAILOVER: (Stage.GATEWAYS,),
}

_SECTIONS = ("Pass", "Fail", "Error", "Skipped", "Example")
_CHECKS: dict[str, type[Check]] = {}


class CheckInputs(BaseModel):
    """Base of a check's inputs: what the catalog may say, nothing else."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class DeviceInputs(CheckInputs):
    """The inputs of a check on one device."""

    device: str


@dataclass(frozen=True, slots=True)
class Page:
    """A check's page, cut from its docstring; `about` is what stands between its first line and its sections."""

    title: str
    about: str
    sections: dict[str, str]


@dataclass
class Context:
    """What a check may use while it collects.

    `asked` holds the answers that the runner gathered for the whole stage, so that checks which share a question do
    not ask twice. `options` are the run's (`seed`, `duration_s`, `trials`, ...). `begun` holds what was asked before
    the first stage, at `begun_at`, and `ran` which case ran from when to when (both by `time.monotonic`).
    """

    plan: Plan
    devices: Devices
    undo: UndoLog
    asked: dict[Ask, Answer] = field(default_factory=dict)
    options: dict[str, Any] = field(default_factory=dict)
    begun: dict[Ask, Answer] = field(default_factory=dict)
    begun_at: float = 0.0
    ran: list[tuple[str, float, float]] = field(default_factory=list)

    def gather(self, asks: Iterable[Ask], *, fresh: bool = False, sample: int = 0) -> dict[Ask, Answer]:
        """Return answers, from this stage's when they are there and `fresh` is not wanted."""
        wanted = list(asks)
        missing = wanted if fresh else [ask for ask in wanted if ask not in self.asked]
        found = self.devices.gather(missing, sample) if missing else {}
        if not fresh:
            self.asked.update(found)
            return {ask: self.asked[ask] for ask in wanted}
        return found


class NotJudgedError(Exception):
    """A check cannot judge: `state` (error, skipped or unknown) and why; `device` is the one that gave no answer."""

    def __init__(self, reason: str, state: State = State.ERROR, device: str = "") -> None:
        super().__init__(reason)
        self.state, self.device = state, device

    def result(self, check: str, subject: str) -> Result:
        """Return the result of the case: a text that begins with its subject says it once."""
        return Result(check, subject, self.state, str(self).removeprefix(f"{subject}: "), self.device)


class Check(ABC):
    """Base of every check. Sub-classes that are only bases themselves pass `abstract=True`."""

    stage: ClassVar[Stage]
    Inputs: ClassVar[type[CheckInputs]]
    name: ClassVar[str] = ""
    page: ClassVar[Page]
    disruptive: ClassVar[bool] = False
    # passive checks only ask questions, so a snapshot of the answers is all they need
    passive: ClassVar[bool] = True
    # physical checks need real ports: they are skipped, with the reason, where ports are virtual
    physical: ClassVar[bool] = False
    # whether a network that settles may answer better a little later; what only counts up cannot
    settles: ClassVar[bool] = True
    # whether all its cases are collected at once, by a `collect_all` of its own: where most of a case is waiting
    together: ClassVar[bool] = False
    test_id: ClassVar[str] = ""
    # what each device that a case touches is asked, for the whole stage at once (`asks`, where that is not all)
    questions: ClassVar[tuple[str, ...]] = ()
    # checks by name whose failure would only be seen again here: then this one is skipped, with that reason
    stands_on: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, *, abstract: bool = False, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        if abstract:
            return
        cls.name = cls.__dict__.get("name") or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", cls.__name__).lower()
        cls.page = _page(inspect.cleandoc(cls.__dict__.get("__doc__") or ""))
        missing = [f"{name}:" for name in _SECTIONS if not cls.page.sections.get(name)]
        missing += [] if cls.page.title else ["a docstring"]
        missing += [] if isinstance(getattr(cls, "stage", None), Stage) else ["a stage"]
        inputs = getattr(cls, "Inputs", None)
        missing += [] if isinstance(inputs, type) and issubclass(inputs, CheckInputs) else ["Inputs"]
        missing += ["collect_all"] if cls.together and cls.collect_all is Check.collect_all else []
        if missing:
            message = f"check {cls.__name__} is refused: it lacks {', '.join(missing)}"
            raise TypeError(message)
        other = _CHECKS.get(cls.name)
        if other and (other.__module__, other.__qualname__) != (cls.__module__, cls.__qualname__):
            message = f"check name {cls.name} is taken by {other.__module__}.{other.__qualname__}"
            raise TypeError(message)
        _CHECKS[cls.name] = cls

    @classmethod
    @abstractmethod
    def cases(cls, plan: Plan) -> Iterator[CheckInputs]:
        """Yield the inputs of every case that the plan asks for, in the plan's order."""

    @classmethod
    def subject(cls, inputs: Any) -> str:
        """Return what a case is about in the plan's words."""
        return str(getattr(inputs, "device", ""))

    @classmethod
    def touches(cls, plan: Plan, inputs: Any) -> tuple[str, ...]:
        """Return the devices that a case talks to or about, for `--limit`."""
        del plan
        device = getattr(inputs, "device", "")
        return (device,) if device else ()

    @classmethod
    def tenants(cls, plan: Plan, inputs: Any) -> tuple[str, ...]:
        """Return the tenants that a case is about, for `--tenant`."""
        del plan
        tenant = getattr(inputs, "tenant", "")
        return (tenant,) if tenant else ()

    def asks(self, plan: Plan, inputs: Any) -> Iterable[Ask]:
        """Return what the runner should ask for the whole stage at once: `questions`, of every device of the case."""
        return [Ask(device, question) for device in self.touches(plan, inputs) for question in self.questions]

    def asks_at_start(self, plan: Plan, inputs: Any) -> Iterable[Ask]:
        """Return the questions that the runner asks before the first stage, for what is compared with the end."""
        del plan, inputs
        return ()

    def collect(self, context: Context, inputs: Any) -> Observations:
        """Return JSON-ready observations; by default the answers to `asks`, or what `collect_all` has of this case."""
        if self.together:
            (found,) = self.collect_all(context, [inputs])
            if isinstance(found, Exception):
                raise found
            return found
        return by_device(context.gather(self.asks(context.plan, inputs)))

    def collect_all(self, context: Context, cases: Sequence[Any]) -> list[Observations | Exception]:
        """Return the observations of each case, or why there are none; asked of checks that are `together` only."""
        raise NotImplementedError

    @abstractmethod
    def judge(self, plan: Plan, inputs: Any, observations: Observations) -> Result:
        """Compare observations with the plan. Pure: no clock, no network, no file."""


def by_device(answers: Mapping[Ask, Answer]) -> Observations:
    """Return answers as they are stored: device -> question -> answer."""
    found: Observations = {}
    for ask, answer in answers.items():
        found.setdefault(ask.device, {})[ask.question] = answer.to_dict()
    return found


def answer_of(observations: Observations, device: str, question: str) -> str:
    """Return the text a device gave. Raises NotJudgedError naming the device and why when there is none."""
    data = observations.get(device, {}).get(question)
    if data is None:
        message = f"{device}: '{question}' was never asked"
        raise NotJudgedError(message, device=device)
    answer = Answer.from_dict(data)
    if not answer.ok:
        why = f"no answer to '{question}': {answer.error}" if answer.reached else answer.error
        raise NotJudgedError(f"{device}: {why}", State.ERROR if answer.asked else State.SKIPPED, device)
    return answer.text


def judged(check: Check, plan: Plan, inputs: Any, observations: Observations) -> Result:
    """Judge, and turn what cannot be judged into a result that says why."""
    subject = check.subject(inputs)
    try:
        return check.judge(plan, inputs, observations)
    except NotJudgedError as error:
        return error.result(check.name, subject)
    except UnreadableError as error:
        return Result(check.name, subject, State.ERROR, f"an answer cannot be read: {error}")
    except _OTHER_FORM as error:
        last = traceback.extract_tb(error.__traceback__)[-1]
        raised = f"{type(error).__name__}: {error}, at {Path(last.filename).name}:{last.lineno}"
        text = f"an answer cannot be read: {_answers_in(observations)} has another form than this check knows"
        return Result(check.name, subject, State.ERROR, f"{text} ({raised})")


# what reading data of another form than expected raises; judging is nothing else
_OTHER_FORM = (AttributeError, LookupError, OverflowError, RecursionError, TypeError, ValueError)
_FEW = 3


def _answers_in(observations: object) -> str:
    """Name the answers in observations, such as `leaf-01 links`."""
    found: list[str] = []

    def look(data: object, way: tuple[str, ...]) -> None:
        inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
        for name, value in inner if len(way) < _FEW else ():
            if isinstance(value, dict) and value.keys() & {"text", "error"}:
                found.append(" ".join((*way, str(name))))
            else:
                look(value, (*way, str(name)))

    look(observations, ())
    more = f" and {len(found) - _FEW} more: one of them" if len(found) > _FEW else ""
    return ", ".join(found[:_FEW]) + more if found else "what was observed"


def depth(name: str) -> int:
    """Return how many checks a check stands on, one upon another: what is to run first has the least."""
    check = _CHECKS.get(name)
    return 1 + max((depth(ground) for ground in check.stands_on), default=0) if check else 0


def known_checks() -> dict[str, type[Check]]:
    """Return the checks that Python has read so far, by name."""
    return dict(_CHECKS)


def _page(doc: str) -> Page:
    title, _, body = doc.partition("\n")
    sections: dict[str, list[str]] = {}
    about: list[str] = []
    current = about
    for line in body.splitlines():
        match = re.match(rf"({'|'.join(_SECTIONS)}):\s*(.*)", line)
        if match:
            current = sections.setdefault(match[1], [])
        current.append(match[2] if match else line)
    clean = {name: inspect.cleandoc("\n".join(lines)).strip() for name, lines in sections.items()}
    return Page(title.strip(), inspect.cleandoc("\n".join(about)).strip(), clean)
