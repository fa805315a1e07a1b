"""When sessions arrive: the interval before session i is a draw of its own, so all processes agree on every time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, cycle, repeat

from agentx.distributions import Bits
from agentx.functions import gamma_quantile, log
from agentx.generator.spec_events import Arrivals


def arrival_times(arrivals: Arrivals | None, seed: int) -> Iterator[float | None]:
    """Seconds from the start of the trace for session 0, 1, 2 ... without end; None for each without arrivals."""
    if arrivals is None:
        return repeat(None)
    if arrivals.per_second is not None:
        rate = arrivals.per_second
        return (mass / rate for mass in _masses(arrivals, seed))
    return _by_schedule(arrivals, _masses(arrivals, seed))


def _masses(arrivals: Arrivals, seed: int) -> Iterator[float]:
    """Running sums of intervals of mean 1: exponential ones, or gamma ones with the coefficient of variation."""
    total = 0.0
    for index in count():
        uniform = Bits(seed, "arrival", index).uniform()
        if arrivals.cv is None:
            total -= log(1 - uniform)
        else:
            shape = 1 / (arrivals.cv * arrivals.cv)
            total += gamma_quantile(shape, uniform) / shape
        yield total


def _by_schedule(arrivals: Arrivals, masses: Iterator[float]) -> Iterator[float]:
    """The times at which the integral of the rate reaches each mass."""
    stages = cycle(arrivals.steps)
    stage, began, before = next(stages), 0.0, 0.0
    for mass in masses:
        while before + stage.lasts * stage.per_second < mass:
            before += stage.lasts * stage.per_second
            began += stage.lasts
            stage = next(stages)
        yield began + (mass - before) / stage.per_second
