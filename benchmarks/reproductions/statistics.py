"""What samples of simulated runs say: percentiles, the rank of a published value, intervals by resampling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random

from agentx.reporter.spread import percentile

Z = 1.96


def at(values: Sequence[float], percent: float) -> float:
    """Percentile of values in any order."""
    return percentile(sorted(values), percent)


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def rank(values: Sequence[float], value: float) -> float:
    """Percentile at which `value` lies: the share of the sample below it, ties counted half; 0 ... 100."""
    below = sum(each < value for each in values)
    equal = sum(each == value for each in values)
    return 100 * (below + equal / 2) / len(values)


def interval(
    values: Sequence[float], figure: Callable[[Sequence[float]], float], *, seed: int = 0, rounds: int = 2000
) -> tuple[float, float]:
    """95 % interval of a figure of a sample, by the bootstrap (percentile method)."""
    random = Random(seed)
    found = sorted(figure(random.choices(values, k=len(values))) for _ in range(rounds))
    return percentile(found, 2.5), percentile(found, 97.5)


def share(count: int, of: int) -> tuple[float, float]:
    """95 % interval of a share, Wilson's."""
    if not of:
        return 0.0, 1.0
    p, square = count / of, Z * Z
    middle = (p + square / (2 * of)) / (1 + square / of)
    half = Z * ((p * (1 - p) / of + square / (4 * of * of)) ** 0.5) / (1 + square / of)
    return max(0.0, middle - half), min(1.0, middle + half)
