"""Forecasts: `agentx: forecast/1`, the figures that a run is expected to have, with intervals, written before it.

Every draw simulates the same work, the run's own seed included; but for the first, each scales every constant of the
target's timing by a factor of its own (lognormal, sigma SPREAD: what a fitted timing is off by where it is good). Where
the order in which requests meet decides what is evicted the draws part, and the interval says so. What it does not hold
is a model that is wrong; that is for the runs to show.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import NormalDist
from typing import Any

import pydantic
from pydantic import Field

from agentx.engine.facts import RULES
from agentx.engine.settings import EngineSettings
from agentx.errors import BadInput
from agentx.replayer.calibration_yaml import span
from agentx.replayer.draws import share
from agentx.replayer.order import order_of
from agentx.replayer.plan import Plan
from agentx.replayer.simulate import simulate
from agentx.reporter.compare_figures import FIGURES, RUN_FIGURES, Measured, measured
from agentx.reporter.spread import percentile
from agentx.results import sha256_of
from agentx.yamlspec import Strict, load

DRAWS = 12
SPREAD = 0.10
LEVEL = 0.8  # of the draws lie within an interval
LEAST = 0.01  # of the median, that an interval reaches on either side: nothing is known better than that
NAMES = (
    *("reuse_by_counters_share", "reuse_share", "output_tokens_per_second"),
    *("ttft_p50_seconds", "ttft_p90_seconds", "tpot_p50_seconds", "latency_p50_seconds"),
)


class Expected(Strict):
    """One figure: the median of the draws, and the interval that holds `level` of them."""

    low: float
    median: float
    high: float

    @pydantic.model_validator(mode="after")
    def _ordered(self) -> Expected:
        if not self.low <= self.median <= self.high:
            raise ValueError("should have low <= median <= high")
        return self


class Forecast(Strict):
    """What is expected of a run. `trace` is named by its SHA-256, so that a run of another one can be told."""

    target: str
    plan: str
    trace: str
    trace_sha256: str
    sessions: int | None = None
    rules: str
    draws: int = Field(ge=1)
    level: float = Field(default=LEVEL, gt=0, lt=1)
    figures: dict[str, Expected] = Field(min_length=1)

    @pydantic.field_validator("figures")
    @classmethod
    def _known(cls, value: dict[str, Expected]) -> dict[str, Expected]:
        known = {figure.name for figure in FIGURES} | {figure.name for figure in RUN_FIGURES}
        if unknown := [name for name in value if name not in known]:
            raise ValueError(f"{unknown[0]} is no figure of agentx (known: {', '.join(sorted(known))})")
        return value


def load_forecast(path: Path | str) -> Forecast:
    """Raises BadInput with one line per mistake."""
    return load(Forecast, path, kind="forecast")


def figure(name: str, one: Measured) -> float | None:
    """A run's own figure by its name; None: it does not tell."""
    for each in FIGURES:
        if each.name == name:
            return each.of([*one.turns.values()], one.about.gpus)
    return next(each.of(one) for each in RUN_FIGURES if each.name == name)


def make_forecast(
    trace: str | Path | None = None,
    *,
    plan: Plan | str | Path | None = None,
    target: str | None = None,
    sets: Sequence[str] = (),
    draws: int = DRAWS,
) -> Forecast:
    """Simulate `draws` times what a run with these arguments does.

    Raises BadInput, also for a target that is no engine.
    """
    with tempfile.TemporaryDirectory(prefix="agentx-") as scratch:
        folder = Path(scratch)
        order = order_of(trace, plan, target, sets, folder=folder, scratch=folder, salt="")
        settings = order.target.settings
        if not isinstance(settings, EngineSettings):
            raise BadInput(f"the target {order.target.name} is an address, and only an engine can be simulated")
        found: dict[str, list[float]] = {}
        for number in range(draws):
            scaled = [*sets, *_scaled(settings, number)]
            run = simulate(order.trace, plan=plan, target=target, out=folder / f"{number}", sets=scaled)
            one = measured(run)
            for name in NAMES:
                if (value := figure(name, one)) is not None:
                    found.setdefault(name, []).append(value)
        sha = sha256_of(order.trace)
    if not found:
        raise BadInput("no simulated request was answered, so there is nothing to expect")
    return Forecast(
        target=order.target.name,
        plan=str(plan) if isinstance(plan, str | Path) else "given" if plan else "none",
        trace=Path(str(order.plan.trace)).stem,
        trace_sha256=sha,
        sessions=order.plan.load.sessions,
        rules=RULES,
        draws=draws,
        figures={name: _expected(values) for name, values in found.items()},
    )


def _scaled(settings: EngineSettings, number: int) -> list[str]:
    """Overrides of the timing of one draw; the first draw is the target as it is."""
    if not number:
        return []
    normal = NormalDist(0.0, SPREAD)
    return [
        f"target.timing.{name}={span(value * math.exp(normal.inv_cdf(min(max(share(number, name), 1e-6), 1 - 1e-6))))}"
        for name, value in settings.timing
    ]


def _expected(values: Sequence[float]) -> Expected:
    ordered = sorted(values)
    tail = 100 * (1 - LEVEL) / 2
    low, median, high = (percentile(ordered, at) for at in (tail, 50, 100 - tail))
    room = LEAST * abs(median)
    low, high = min(low, median - room), max(high, median + room)
    low, median, high = (float(f"{value:.6g}") for value in (low, median, high))
    return Expected(low=low, median=median, high=high)


def as_yaml(forecast: Forecast) -> str:
    """The file, which reads back as the same forecast."""
    body: Mapping[str, Any] = forecast.model_dump(exclude_none=True, exclude={"figures"})
    lines = [
        "agentx: forecast/1",
        f"# {forecast.draws} simulations of one run, each with its timing off by some {SPREAD:.0%}: a model's figures.",
        *(f"{key}: {json.dumps(value)}" for key, value in body.items()),
        "figures:",
    ]
    lines += [
        f"  {name}: {{low: {each.low:.6g}, median: {each.median:.6g}, high: {each.high:.6g}}}"
        for name, each in forecast.figures.items()
    ]
    return "\n".join(lines) + "\n"
