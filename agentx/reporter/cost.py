"""What the tokens of a run cost: GPU-hours of the window times a price, over what came in that window.

Each figure divides the *whole* cost by one kind of token alone, as price lists do for comparison; they are not to be
added up. Without a price, or with an unknown number of GPUs, every figure is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from agentx.errors import BadInput
from agentx.reporter.metrics import Metrics
from agentx.reporter.table import Block, Facts, Heading, Lines
from agentx.reporter.text import number
from agentx.reporter.throughput import Amount
from agentx.results import RunResults

MILLION = 1e6


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars. `missing` says why the figures are unknown. `upper_bounds`: figures whose tokens not all responses
    told, so that they are at most this."""

    dollars_per_gpu_hour: float | None
    gpus: int | None
    gpu_hours: float | None
    dollars: float | None
    dollars_per_million_output_tokens: float | None
    dollars_per_million_input_tokens: float | None
    dollars_per_million_uncached_input_tokens: float | None
    dollars_per_session: float | None
    output_tokens_per_dollar: float | None
    upper_bounds: tuple[str, ...]
    missing: str | None


def check_price(price: float | None) -> float | None:
    """The price as it is. Raises BadInput unless it is a number above 0."""
    if price is not None and not (math.isfinite(price) and price > 0):
        raise BadInput(f"--price {price:g}: should be above 0, in dollars per GPU and hour")
    return price


def cost_of(run: RunResults, metrics: Metrics, price: float | None = None) -> Cost:
    """`price` in dollars per GPU-hour; None: the target's. Over the window, what was emitted in it."""
    rate = _target_price(run) if price is None else price
    found, window = metrics.throughput, metrics.throughput.window
    hours = None if found.gpus is None or window is None else found.gpus * window.seconds / 3600
    dollars = hours * rate if hours and rate else None
    flow = found.emitted
    parts = [flow.input_computed.tokens, flow.input_cached.tokens]
    prompt = Amount(
        math.fsum(part for part in parts if part is not None) if None not in parts else None,
        min(flow.input_computed.told, flow.input_cached.told),
        flow.input_computed.of,
    )
    amounts = {"output": flow.output, "input": prompt, "uncached_input": flow.input_computed}
    costs = {name: _per_million(dollars, amount) for name, amount in amounts.items()}
    jobs, output = metrics.jobs.equivalents, flow.output.tokens
    return Cost(
        dollars_per_gpu_hour=rate,
        gpus=found.gpus,
        gpu_hours=hours,
        dollars=dollars,
        dollars_per_million_output_tokens=costs["output"],
        dollars_per_million_input_tokens=costs["input"],
        dollars_per_million_uncached_input_tokens=costs["uncached_input"],
        dollars_per_session=dollars / jobs if dollars and jobs else None,
        output_tokens_per_dollar=output / dollars if dollars and output is not None else None,
        upper_bounds=tuple(name for name, amount in amounts.items() if costs[name] is not None and not amount.whole),
        missing=_missing(rate, hours),
    )


def _target_price(run: RunResults) -> float | None:
    target = run.settings.get("target")
    price = target.get("price") if isinstance(target, Mapping) else None
    rate = price.get("gpu_hour") if isinstance(price, Mapping) else None
    return float(rate) if isinstance(rate, int | float) else None


def _per_million(dollars: float | None, amount: Amount) -> float | None:
    return dollars / amount.tokens * MILLION if dollars and amount.tokens else None


def _missing(rate: float | None, hours: float | None) -> str | None:
    if rate is None:
        return "no price is known: price.gpu_hour of the target, or --price"
    if rate == 0:
        return "the price is 0, and nothing costs nothing"
    if hours is None:
        return "the number of GPUs or the window is not known: gpus of the target"
    return None if hours else "no time passed"


def cost_document(found: Cost) -> dict[str, Any]:
    """Plain values only."""
    return {**asdict(found), "upper_bounds": list(found.upper_bounds)}


def cost_blocks(found: Cost) -> list[Block]:
    """Nothing where no price was given at all."""
    if found.dollars_per_gpu_hour is None:
        return []
    if found.missing is not None:
        return [Heading("Cost"), Lines((f"Unknown: {found.missing}.",))]

    def money(value: float | None, name: str = "") -> str:
        mark = "at most " if name in found.upper_bounds else ""
        return "unknown" if value is None else f"{mark}${number(value)}"

    pairs = (
        ("window", f"{number(found.gpu_hours)} GPU-hours at {money(found.dollars_per_gpu_hour)}: "
         f"{money(found.dollars)}"),
        ("per million", f"output {money(found.dollars_per_million_output_tokens, 'output')}, "
         f"input {money(found.dollars_per_million_input_tokens, 'input')}, uncached input "
         f"{money(found.dollars_per_million_uncached_input_tokens, 'uncached_input')} (each the whole cost)"),
        ("per session", f"{money(found.dollars_per_session)} (job-equivalents)"),
        ("per dollar", f"{number(found.output_tokens_per_dollar)} output tokens"),
    )  # fmt: skip
    return [Heading("Cost, US dollars"), Facts(pairs)]
