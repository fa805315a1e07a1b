"""Ratios of repeated runs with their intervals: the run is the unit, never the turn.

A figure of n runs of each side is compared on its logarithm: the ratio is that of the geometric means, its interval is
Welch's t-interval (Welch, 1947) for the difference of the mean logarithms. Fewer than MINIMUM runs of a side give none:
turns of one run share a server, a cache and a queue, so their number says nothing of how the next run would differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import fmean, variance

from agentx.functions import log_gamma, probit

MINIMUM = 3  # runs of each side
LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """Other over baseline; None where a figure is unknown or not above 0. `low`, `high`: the interval."""

    ratio: float | None
    low: float | None = None
    high: float | None = None


def typical(values: Sequence[float | None]) -> float | None:
    """The geometric mean; the arithmetic one where a value is not above 0; None when one is unknown."""
    known = [value for value in values if value is not None]
    if not known or len(known) < len(values):
        return None
    if len(known) == 1 or min(known) <= 0:
        return fmean(known)
    return math.exp(fmean(math.log(value) for value in known))


def estimate(baseline: Sequence[float | None], other: Sequence[float | None], level: float = LEVEL) -> Estimate:
    """The ratio of two sides' runs, with an interval where both have MINIMUM runs that differ at all."""
    logs = [[math.log(value) for value in side if value is not None and value > 0] for side in (baseline, other)]
    if any(not own or len(own) < len(side) for own, side in zip(logs, (baseline, other), strict=True)):
        return Estimate(None)
    centre = fmean(logs[1]) - fmean(logs[0])
    single = len(baseline) == len(other) == 1
    ratio = (other[0] or 0.0) / (baseline[0] or 1.0) if single else math.exp(centre)
    reach = _reach(logs, level)
    if reach is None:
        return Estimate(ratio)
    return Estimate(ratio, math.exp(centre - reach), math.exp(centre + reach))


def difference(
    baseline: Sequence[float | None], other: Sequence[float | None], level: float = LEVEL
) -> tuple[float, float] | None:
    """Welch's t-interval of other less baseline; None where a value is unknown, and where `estimate` has none."""
    sides = [[value for value in side if value is not None] for side in (baseline, other)]
    if any(len(own) < len(side) for own, side in zip(sides, (baseline, other), strict=True)):
        return None
    reach = _reach(sides, level)
    centre = 0.0 if reach is None else fmean(sides[1]) - fmean(sides[0])
    return None if reach is None else (centre - reach, centre + reach)


def _reach(sides: Sequence[Sequence[float]], level: float) -> float | None:
    """Half the width of Welch's interval for the difference of two means."""
    if min(map(len, sides)) < MINIMUM:
        return None
    parts = [variance(own) / len(own) for own in sides]
    error = sum(parts)
    if error <= 0:  # repeats to the last byte: how runs spread was not seen
        return None
    freedom = error**2 / sum(part**2 / (len(own) - 1) for part, own in zip(parts, sides, strict=True))
    return student_quantile((1 + level) / 2, freedom) * math.sqrt(error)


def mean(values: Sequence[float | None]) -> float | None:
    """None when one of them is unknown."""
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


@lru_cache(maxsize=4096)  # an outlook asks for hundreds, the same ones for every figure
def student_quantile(p: float, freedom: float) -> float:
    """The quantile of p > 0.5 of Student's t with `freedom` > 0 degrees.

    By Newton's method from the normal's quantile, which is smaller: the distribution function is concave above 0, so
    the steps approach from below.
    """
    half = (freedom + 1) / 2
    norm = log_gamma(half) - log_gamma(freedom / 2) - math.log(freedom * math.pi) / 2
    t = probit(p)
    for _ in range(200):
        step = (p - _student_share(t, freedom)) / math.exp(norm - half * math.log1p(t * t / freedom))
        t += step
        if step < 1e-11 * t:
            break
    return t


def _student_share(t: float, freedom: float) -> float:
    """P(T <= t) for t >= 0 (Abramowitz and Stegun 26.7.1)."""
    return 1 - _beta_share(freedom / (freedom + t * t), freedom / 2, 0.5) / 2


def _beta_share(x: float, a: float, b: float) -> float:
    """The regularised incomplete beta function, by its continued fraction (Abramowitz and Stegun 26.5.8)."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - _beta_share(1 - x, b, a)
    front = math.exp(log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * math.log(x) + b * math.log1p(-x)) / a
    return front / _fraction(x, a, b)


def _fraction(x: float, a: float, b: float) -> float:
    """1 + d1 / (1 + d2 / (1 + ...)), backwards from a term of the order of sqrt(max(a, b)), which is far enough."""
    value = 1.0
    for term in range(30 + 3 * math.isqrt(int(max(a, b))), 0, -1):
        m = term // 2
        if term % 2:
            d = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        else:
            d = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        value = 1 + d / value
    return value
