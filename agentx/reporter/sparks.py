"""Distributions and curves in one line of text: block characters, or plain ASCII where a terminal has no others."""

from __future__ import annotations

import math
from collections.abc import Sequence

BLOCKS, ASCII = "▁▂▃▄▅▆▇█", "_.:-=+*#"


def glyphs(encoding: str | None) -> str:
    """What an output of this encoding can show."""
    try:
        BLOCKS.encode(encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return BLOCKS


def bars(values: Sequence[float], shown: str = BLOCKS, top: float | None = None) -> str:
    """A character for each value, which is at least 0; `top` (default: the largest) is the tallest. 0 is a blank."""
    highest = max(values, default=0.0) if top is None else top
    if highest <= 0:
        return " " * len(values)
    steps = len(shown)
    return "".join(shown[min(steps - 1, int(value / highest * steps))] if value > 0 else " " for value in values)


def histogram(values: Sequence[float], bins: int) -> tuple[list[int], list[float]]:
    """How many values lie in each of `bins` ranges of equal ratio from the least positive one to the largest, and the
    middles of the ranges. What is 0 is in the first. No middles where no value is positive.
    """
    positive = [value for value in values if value > 0]
    if not positive:
        return [len(values)] + [0] * (bins - 1), []
    low, high = math.log(min(positive)), math.log(max(positive))
    return counted(values, low, high, bins), [
        math.exp(low + (place + 0.5) * (high - low) / bins) for place in range(bins)
    ]


def counted(values: Sequence[float], low: float, high: float, bins: int) -> list[int]:
    """How many values lie in each of `bins` ranges, evenly spaced in the logarithm from `low` to `high`."""
    counts = [0] * bins
    width = (high - low) / bins or 1.0
    for value in values:
        place = int((math.log(value) - low) / width) if value > 0 else 0
        counts[min(max(place, 0), bins - 1)] += 1
    return counts
