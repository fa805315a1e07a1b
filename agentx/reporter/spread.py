"""How a quantity is spread over turns: percentiles with the number of values and of sessions beside them.

Percentile p of n sorted values x[0] ... x[n - 1] is the value at rank p / 100 * (n - 1), with linear interpolation
between its two neighbours (numpy's default, Hyndman and Fan's type 7). No values: no spread, which is None and is
printed "n/a".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

PERCENTILES = (5, 25, 50, 75, 90, 95, 99)


@dataclass(frozen=True, slots=True)
class Spread:
    """Percentiles, mean and extremes of `n` values that came from `sessions` sessions, in the values' unit."""

    n: int
    sessions: int
    percentiles: tuple[float, ...]  # in the order of PERCENTILES
    mean: float
    minimum: float
    maximum: float

    def at(self, percent: int) -> float:
        """Percentile `percent`, one of PERCENTILES."""
        return self.percentiles[PERCENTILES.index(percent)]


def percentile(ordered: Sequence[float], percent: float) -> float:
    """Percentile of values in ascending order, at least one, by the rule above."""
    rank = percent / 100 * (len(ordered) - 1)
    low = math.floor(rank)
    high = min(low + 1, len(ordered) - 1)
    between = ordered[low] + (ordered[high] - ordered[low]) * (rank - low)
    return min(between, ordered[high])  # rounding must not carry it past its neighbour


def spread(values: Iterable[tuple[str, float]]) -> Spread | None:
    """The spread of (session, value) pairs; None when there are none."""
    pairs = list(values)
    return spread_of(sorted(value for _, value in pairs), len({session for session, _ in pairs}))


def spread_of(ordered: Sequence[float], sessions: int) -> Spread | None:
    """The spread of ascending values that came from so many sessions; None when there are none."""
    if not ordered:
        return None
    return Spread(
        n=len(ordered),
        sessions=sessions,
        percentiles=tuple(percentile(ordered, percent) for percent in PERCENTILES),
        mean=math.fsum(ordered) / len(ordered),
        minimum=ordered[0],
        maximum=ordered[-1],
    )


@dataclass(frozen=True, slots=True)
class Rates:
    """One over a spread of times: pX is 1 / pX of the time, the slow tail; the mean is 1 / mean. None where it is 0."""

    n: int
    sessions: int
    percentiles: tuple[float | None, ...]  # in the order of PERCENTILES: p95 is slower than p50
    mean: float | None

    def at(self, percent: int) -> float | None:
        return self.percentiles[PERCENTILES.index(percent)]


def rates(times: Spread | None) -> Rates | None:
    """Tokens per second out of a spread of seconds per token."""
    if times is None:
        return None
    return Rates(times.n, times.sessions, tuple(map(_one_over, times.percentiles)), _one_over(times.mean))


def _one_over(seconds: float) -> float | None:
    return 1 / seconds if seconds > 0 else None
