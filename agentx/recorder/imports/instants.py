"""Moments and numbers as logs write them, as nanoseconds since the epoch and as counts; what is none is None.

A time without a zone is taken for UTC: only differences count in a trace.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta, timezone
from typing import Any

_ISO = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[T ](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9})\d*)?\s*(Z|[+-]\d\d:?\d\d)?\Z", re.ASCII
)
MOST = 1 << 63  # nanoseconds: year 2262
MOST_COUNT = 1 << 40


def of_iso(value: Any) -> int | None:
    """Nanoseconds of a text such as 2026-06-01T05:40:20.151Z."""
    match = _ISO.match(value) if isinstance(value, str) and len(value) < 64 else None
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part) for part in match.groups()[:6])
    zone = match[8]
    offset = timedelta()
    if zone and zone != "Z":
        sign = -1 if zone[0] == "-" else 1
        offset = sign * timedelta(hours=int(zone[1:3]), minutes=int(zone[-2:]))
    try:
        whole = datetime(year, month, day, hour, minute, second, tzinfo=timezone.utc) - offset
    except (ValueError, OverflowError):
        return None
    since = whole - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return (since.days * 86_400 + since.seconds) * 10**9 + int((match[7] or "").ljust(9, "0") or 0)


def of_number(value: Any, unit: float = 1.0) -> int | None:
    """Nanoseconds of a number of `unit` seconds since the epoch (or of a length of time)."""
    if type(value) not in (int, float) or not 0 <= value < MOST:
        return None
    nanoseconds = value * round(unit * 1e9) if isinstance(value, int) else round(value * unit * 1e9)
    return nanoseconds if nanoseconds < MOST else None


def count(value: Any) -> int | None:
    """A number of tokens, at least 0."""
    return value if type(value) is int and 0 <= value <= MOST_COUNT else None


def number(value: Any) -> float | None:
    """A finite number of at least 0."""
    if type(value) not in (int, float) or not 0 <= value < 1e15:
        return None
    return float(value)


def text(value: Mapping[str, Any], *names: str) -> str | None:
    """The first of these keys that holds a text which is not empty."""
    for name in names:
        found = value.get(name)
        if found and isinstance(found, str):
            return found
    return None


def mapping(value: Any) -> dict[str, Any]:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def listing(value: Any) -> list[Any]:
    """The value where it is a list, else an empty one."""
    return value if isinstance(value, list) else []
