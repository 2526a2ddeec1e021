"""Secrets never leave: what is known to be secret, and what looks like one, is replaced before anything is written."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

HIDDEN = "<hidden>"
# a word that announces a secret, then what it announces: `password x`, `secret: x`, `"token": "x"`, `community=x`
_ANNOUNCED = re.compile(
    r"(?i)\b((?:[\w-]*(?:password|passwd|passphrase|passkey|secret|token|api[-_]?key|private[-_]?key|key-string|psk))\b[\"']?\s*(?:[:=]\s*|\s)"
    r"(?:(?:\d|sha512|md5|encrypted)\s+)?)([\"']?)([^\s\"',}]{3,})\2"
)
_COMMUNITY = re.compile(r"(?i)(\bsnmp(?:-server)?\s+community\s+)(\S+)")
# rows of SONiC's CONFIG_DB whose names or fields are secrets: a community is the name of its row
_ROWS = re.compile(r'("(?:SNMP_COMMUNITY|NTP_KEY)"\s*:\s*\{)(?:\s*"[^"]*"\s*:\s*\{[^{}]*\}\s*,?)+(\s*\})')
_BLOCK = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.DOTALL)
# words of prose that follow "password" and are no secret
_PROSE = frozenset(
    {"authentication", "prompt", "is", "was", "from", "for", "file", "required", "wrong", "refused", "and", "not"}
)


class Redactor:
    """Replaces secrets in text and in JSON-ready data. `known` are values that are secret wherever they stand."""

    def __init__(self, known: Iterable[str] = ()) -> None:
        values = sorted({value for value in known if len(value) >= 3}, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, values))) if values else None

    def text(self, text: str) -> str:
        """Return text without secrets."""
        if self._known:
            text = self._known.sub(HIDDEN, text)
        lowered = text.lower()
        if not any(word in lowered for word in ("pass", "secret", "token", "key", "psk", "community")):
            return text
        text = _BLOCK.sub(HIDDEN, text)
        text = _ROWS.sub(rf'\1"{HIDDEN}": {{}}\2', text)
        text = _COMMUNITY.sub(rf"\1{HIDDEN}", text)
        return _ANNOUNCED.sub(_hide, text)

    def data(self, data: Any) -> Any:
        """Return JSON-ready data without secrets, keys included."""
        if isinstance(data, str):
            return self.text(data)
        if isinstance(data, dict):
            return {
                self.text(key) if isinstance(key, str) else key: self._value(key, value) for key, value in data.items()
            }
        if isinstance(data, list | tuple):
            return [self.data(value) for value in data]
        return data

    def _value(self, key: Any, value: Any) -> Any:
        secret = (
            isinstance(key, str)
            and isinstance(value, str)
            and re.fullmatch(r"(?i)[\w-]*(password|passwd|passkey|secret|token)", key)
        )
        return HIDDEN if secret and value else self.data(value)


def _hide(match: re.Match[str]) -> str:
    return match[0] if match[3].lower() in _PROSE else f"{match[1]}{match[2]}{HIDDEN}{match[2]}"
