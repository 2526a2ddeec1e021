"""Several questions to FRR in one vtysh, whose start costs more than its answers; pure.

Answers in JSON end where the next one begins; the one that is text (the running configuration) comes last.
"""

from __future__ import annotations

from fabric.strict_json import first_document
from validators.devices.answers import Answer
from validators.devices.dialects import LAST, TOGETHER


def is_frr(question: str) -> bool:
    """Whether a question can be asked together with others."""
    return question in TOGETHER or question == LAST[0]


def command_of(questions: list[str]) -> str:
    """Return the command for these questions."""
    return "vtysh " + " ".join(f"-c '{TOGETHER.get(question, LAST[1])}'" for question in _in_order(questions))


def split(questions: list[str], answer: Answer) -> dict[str, Answer]:
    """Return the answer to each question; nothing when one of them is not what it should be.

    A daemon that does not run says so in words, in the place of JSON.
    """
    at = 0
    found: dict[str, Answer] = {}
    for question in _in_order(questions):
        start = at + len(answer.text[at:]) - len(answer.text[at:].lstrip())
        end = len(answer.text)
        if question in TOGETHER:
            try:
                _, end = first_document(answer.text, start)
            except ValueError:
                return {}
        if start >= end:
            return {}
        found[question] = Answer(answer.text[start:end], "", answer.seconds)
        at = end
    return {} if answer.text[at:].strip() else found


def _in_order(questions: list[str]) -> list[str]:
    return sorted(dict.fromkeys(questions), key=lambda question: question == LAST[0])
