"""Axes of a chart: values to places, round ticks, and numbers that a person reads at a glance."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from agentx.plots import scale

DECADES = 7  # more powers of ten than this are thinned out


@dataclass(frozen=True, slots=True)
class Axis:
    """From `low` to `high`, by the logarithm where `log`. `ticks` lie within."""

    label: str
    low: float
    high: float
    ticks: tuple[float, ...]
    log: bool = False

    def place(self, value: float) -> float:
        """0 at `low`, 1 at `high`; what lies outside is at the edge."""
        low, high = self.low, self.high
        if self.log:
            value, low, high = math.log(max(value, low)), math.log(low), math.log(high)
        return min(1.0, max(0.0, (value - low) / (high - low)))


def linear(label: str, values: Sequence[float], *, zero: bool = True) -> Axis:
    """An axis with round ends around the values; from 0 on, unless told otherwise or where some are below it."""
    known = [*values, 0.0] if zero or not values else list(values)
    ticks = scale(known)
    return Axis(label, ticks[0], ticks[-1], tuple(ticks))


def exact(label: str, low: float, high: float) -> Axis:
    """An axis that ends where the values do, such as time."""
    high = high if high > low else low + 1.0
    ticks = tuple(tick for tick in scale([low, high]) if low <= tick <= high)
    return Axis(label, low, high, ticks)


def logarithmic(label: str, values: Sequence[float]) -> Axis:
    """An axis of powers of ten around the positive values; with 2 and 5 between them where there are few."""
    positive = [value for value in values if value > 0] or [1.0]
    low, high = math.floor(math.log10(min(positive))), math.ceil(math.log10(max(positive)))
    high = high if high > low else low + 1
    step = max(1, (high - low) // DECADES)
    powers = range(low, high + 1)
    parts = (1, 2, 5) if high - low <= 2 else (1,)
    ticks = [part * 10.0**power for power in powers[::step] for part in parts]
    return Axis(label, 10.0**low, 10.0**high, tuple(tick for tick in ticks if tick <= 10.0**high), log=True)


def short(value: float) -> str:
    """Four figures at most: 0.004, 87.5, 40k, 2.1M."""
    if value == 0:
        return "0"
    for unit, sign in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= unit:
            return f"{_four(value / (1e3 if sign == 'k' else unit))}{sign}"
    if abs(value) < 1e-3:
        return f"{value:.1e}"
    return _four(value)


def _four(value: float) -> str:
    return f"{float(f'{value:.4g}'):g}"
