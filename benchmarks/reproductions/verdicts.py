"""A published value against simulated runs: where it lies in them, and what may be said of that.

It passes when it lies in the central 90 % of the runs. A band of those 90 % that is wider than 30 points of reuse, or
than a factor of 3 in a rate or a time, says too little to pass: "not informative".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.reproductions.statistics import at, rank

LOW, HIGH = 5, 95
MOST_POINTS, MOST_RATIO = 0.30, 3.0
LEAST_RUNS = 20  # below which 5 % of the runs is less than one
WORDS = {
    "output": "output, tok/s/GPU",
    "total": "all tokens, tok/s/GPU",
    "reuse": "reuse, %",
    "ttft_mean": "TTFT mean, s",
    "ttft_p50": "TTFT median, s",
    "ttft_p90": "TTFT p90, s",
    "tpot_mean": "TPOT mean, ms",
    "latency_p50": "latency median, s",
}


@dataclass(frozen=True, slots=True)
class Verdict:
    """`word`: pass, miss, not informative, or too few runs. `place`: the percentile of the published value."""

    figure: str
    published: float
    n: int
    median: float
    low: float
    high: float
    place: float
    word: str


def judged(figure: str, published: float, values: Sequence[float]) -> Verdict:
    """Raises ValueError when there are no values."""
    if not values:
        raise ValueError(f"no run has {figure}")
    low, high = at(values, LOW), at(values, HIGH)
    if len(values) < LEAST_RUNS:
        word = "too few runs"
    elif not low <= published <= high:
        word = "miss"
    elif too_wide(figure, low, high):
        word = "not informative"
    else:
        word = "pass"
    return Verdict(figure, published, len(values), at(values, 50), low, high, rank(values, published), word)


def too_wide(figure: str, low: float, high: float) -> bool:
    """Whether the central 90 % say too little."""
    if figure == "reuse":
        return high - low > MOST_POINTS
    return low <= 0 or high / low > MOST_RATIO


def shown(figure: str, value: float) -> str:
    """A value in the unit of WORDS."""
    if figure == "reuse":
        return f"{100 * value:.1f}"
    if figure.startswith("tpot"):
        return f"{1e3 * value:.1f}"
    return f"{value:.3g}" if value < 100 else f"{value:,.0f}"
