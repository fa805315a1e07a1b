"""The break-even of two targets: what a GPU-hour of the second may cost until its work costs what the first one's does.

Work per GPU-hour of B over that of A is the ratio of prices at which both cost the same: it takes no price. With A's
price it is an amount. The work is output tokens emitted in the window, or job-equivalents, as under `cost`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from agentx.reporter.compare_figures import Measured
from agentx.reporter.compare_statistics import Estimate, estimate
from agentx.reporter.table import Block, Heading, Lines
from agentx.reporter.text import number


@dataclass(frozen=True, slots=True)
class BreakEven:
    """`prices`: of a GPU-hour of B over one of A at which `work` costs the same. `baseline`, `other`: dollars that a
    GPU-hour of each side costs, None where it is not known or not one."""

    work: str
    label: str
    prices: Estimate
    baseline: float | None
    other: float | None

    def dollars(self, ratio: float | None) -> float | None:
        """Of a GPU-hour of B, at a ratio of prices."""
        return None if ratio is None or not self.baseline else ratio * self.baseline

    @property
    def verdict(self) -> str | None:
        """cheaper | dearer, of the other side at its own price; None where a price is unknown, the interval holds the
        ratio of the prices, or there is none: one pair decides nothing."""
        low, high = self.prices.low, self.prices.high
        if low is None or high is None or not self.baseline or not self.other:
            return None
        asked = self.other / self.baseline
        return "cheaper" if asked < low else "dearer" if asked > high else None


def break_evens(a: Sequence[Measured], b: Sequence[Measured]) -> tuple[BreakEven, ...]:
    """Of the runs of two sides, by each kind of work."""
    return tuple(
        BreakEven(work, label, estimate([of(one) for one in a], [of(one) for one in b]), _price(a), _price(b))
        for work, label, of in (
            ("output_token", "an output token", _per_gpu(_output)),
            ("session", "a session (job-equivalent)", _per_gpu(lambda one: one.metrics.jobs.equivalents_per_hour)),
        )
    )


def _output(one: Measured) -> float | None:
    flow = one.metrics.throughput.emitted
    return flow.per_second(flow.output) if flow.output.whole else None


def _per_gpu(of: Callable[[Measured], float | None]) -> Callable[[Measured], float | None]:
    def per_gpu(one: Measured) -> float | None:
        value = of(one)
        return None if value is None or not one.about.gpus else value / one.about.gpus

    return per_gpu


def _price(runs: Sequence[Measured]) -> float | None:
    prices = {one.cost.dollars_per_gpu_hour for one in runs}
    return prices.pop() if len(prices) == 1 else None


def break_even_blocks(found: Sequence[BreakEven], a: str, b: str) -> list[Block]:
    """Nothing where no price is known, or no ratio."""
    told = [one for one in found if one.prices.ratio is not None]
    if not any(one.baseline or one.other for one in told):
        return []
    return [Heading(f"Break-even of {b} and {a}"), Lines(tuple(_sentence(one, a, b) for one in told), bullet=True)]


def _sentence(one: BreakEven, a: str, b: str) -> str:
    reach = [end for end in (one.prices.low, one.prices.high) if end is not None]
    words = f"{one.label} costs the same where a GPU-hour of {b} costs x{number(one.prices.ratio)}"
    words += f" ({'-'.join(number(end) for end in reach)})" if reach else ""
    words += f" of one of {a}"
    if one.baseline:
        words += f": ${number(one.dollars(one.prices.ratio))} against ${number(one.baseline)}"
    if one.other:
        words += f"; one of {b} is ${number(one.other)}" + (f", so {b} is {one.verdict}" if one.verdict else "")
    return words[0].upper() + words[1:] + "."


def break_even_document(found: Sequence[BreakEven]) -> list[dict[str, Any]]:
    """Plain values only."""
    return [
        {
            "work": one.work,
            "price_ratio": one.prices.ratio,
            "interval_low": one.prices.low,
            "interval_high": one.prices.high,
            "baseline_dollars_per_gpu_hour": one.baseline,
            "other_dollars_per_gpu_hour": one.other,
            "break_even_dollars_per_gpu_hour": one.dollars(one.prices.ratio),
            "verdict": one.verdict,
        }
        for one in found
    ]
