"""Times and numbers of logs, good and bad."""

from __future__ import annotations

from typing import Any

import pytest

from agentx.recorder.imports.instants import count, number, of_iso, of_number, text


@pytest.mark.parametrize(
    ("value", "nanoseconds"),
    [
        ("1970-01-01T00:00:01Z", 10**9),
        ("1970-01-01T00:00:01.5", 1_500_000_000),  # no zone: UTC
        ("1970-01-01 00:00:01,25", 1_250_000_000),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1969-12-31T23:00:00-0100", 0),
        ("1970-01-01T00:00:00.123456789Z", 123_456_789),
        ("1970-01-01T00:00:00.1234567891Z", 123_456_789),
        ("1970-02-30T00:00:00Z", None),
        ("0001-01-01T00:00:00+23:59", None),  # before the calendar
        ("yesterday", None),
        (7, None),
        ("2026" * 100, None),
    ],
)
def test_iso(value: Any, nanoseconds: int | None) -> None:
    assert of_iso(value) == nanoseconds


@pytest.mark.parametrize(
    ("value", "unit", "nanoseconds"),
    [
        (1.5, 1.0, 1_500_000_000),
        (1796054005189292615, 1e-9, 1796054005189292615),  # not rounded by a float
        (1796054005000, 0.001, 1796054005000 * 10**6),
        (0, 1.0, 0),
        (-1, 1.0, None),
        (1e300, 1.0, None),
        (float("nan"), 1.0, None),
        (float("inf"), 1.0, None),
        (True, 1.0, None),
        ("1", 1.0, None),
    ],
)
def test_numbers_of_seconds(value: Any, unit: float, nanoseconds: int | None) -> None:
    assert of_number(value, unit) == nanoseconds


def test_what_is_no_count_is_none() -> None:
    assert [count(value) for value in (0, 7, -1, 1 << 60, True, 1.0, None)] == [0, 7, None, None, None, None, None]
    assert [number(value) for value in (0, 7.5, -1, float("nan"), "1")] == [0.0, 7.5, None, None, None]
    assert text({"a": "", "b": 1, "c": "x"}, "a", "b", "c") == "x"
