"""FEC statistics and light levels from SONiC's tables and ethtool. BER is a share of bits, light is in dBm."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from validators.devices.answers import UnreadableError


@dataclass(frozen=True, slots=True)
class FecState:
    """FEC of one port; a value that the device does not give is None."""

    uncorrectable: int | None
    pre_ber: float | None
    post_ber: float | None


def parse_fec(text: str) -> dict[str, FecState]:
    """Read `show interfaces counters fec-stats`. Raises UnreadableError."""
    lines = text.splitlines()
    rule = next((i for i, line in enumerate(lines) if re.fullmatch(r"\s*-+(\s+-+)+\s*", line)), 0)
    titles = lines[rule - 1].split() if rule else []
    if "FEC_UNCORR" not in titles:
        message = f"not `show interfaces counters fec-stats`: {text.strip()[:60]!r}"
        raise UnreadableError(message)
    found = {}
    for line in lines[rule + 1 :]:
        row = dict(zip(titles, line.split(), strict=False))
        if "IFACE" in row:
            uncorrectable = _number(row.get("FEC_UNCORR", ""))
            count = None if uncorrectable is None else int(uncorrectable)
            pre, post = _number(row.get("FEC_PRE_BER", "")), _number(row.get("FEC_POST_BER", ""))
            found[row["IFACE"]] = FecState(count, pre, post)
    return found


def _number(text: str) -> float | None:
    try:
        number = float(text.replace(",", ""))
    except ValueError:
        return None
    # less than nothing, or what is no number, would be below any limit
    return number if 0 <= number < math.inf else None


_LEVEL = r"-?\d+(?:\.\d+)?|-inf"


def parse_light(text: str) -> dict[str, list[float | None]]:
    """Return interface -> receive power of each lane in dBm, from SONiC's two forms or `ethtool -m`.

    SONiC prints `RX1Power: -1.2dBm`, its sonic-cli `Rx1Power: -1.2 dBm`, ethtool `... power (Channel 1) : 0.7 mW /
    -1.5 dBm`; dark is `-inf`. A lane of which no number is said (`N/A`) is None.
    """
    found: dict[str, list[float | None]] = {}
    port = ""
    for line in text.splitlines():
        head = re.match(r"(?:# )?([A-Za-z][\w./-]*):? ?(?:SFP EEPROM detected)?$", line)
        if head and not line.startswith((" ", "\t")) and not head[1].endswith("Values"):
            port = head[1]
            found.setdefault(port, [])
            continue
        lane = re.search(r"(?i)\bRX\d+Power: *(.*)|rcvr signal avg[^:]*: *(.*)|receiver signal[^:]*: *(.*)", line)
        if lane and port:
            level = re.search(rf"(?:^|/ *)({_LEVEL}) *dBm", next((text for text in lane.groups() if text), ""))
            found[port].append(float(level[1]) if level else None)
    return found


@dataclass(frozen=True, slots=True)
class Alert:
    """A figure of a transceiver beyond a threshold of its own: `side` is `above` or `below`."""

    figure: str
    average: str
    unit: str
    side: str


def parse_alerts(text: str) -> dict[str, list[Alert]]:
    """Return interface -> figures beyond a threshold, from SONiC's `show interfaces transceiver pm`.

    A port that keeps no such figures is not in it. Raises UnreadableError when the text is none of that command's.
    """
    found: dict[str, list[Alert]] = {}
    port, told = "", False
    for line in text.splitlines():
        head = re.match(r"(\S+):\s*(?:Transceiver .*)?$", line)
        if head:
            port, told = head[1], True
            continue
        cells = re.split(r"\s{2,}", line.strip())
        if len(cells) != 11 or cells[0] in {"Parameter", ""} or set(line.strip()) <= {"-", " "}:
            continue
        alerts = found.setdefault(port, [])
        for column, side in ((7, "above"), (10, "below")):
            if cells[column].lower() == "true":
                alerts.append(Alert(cells[0], cells[3], cells[1], side))
    if not told:
        message = f"not `show interfaces transceiver pm`: {text.strip()[:60]!r}"
        raise UnreadableError(message)
    return found
