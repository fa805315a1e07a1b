"""The figures of a comparison, each the same function of a list of answered turns.

So that the ratio over all answered turns and the ratio over the same turns are of one definition. Rates are tokens of
the turns over (last end - first send) of these very turns, in each run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

from agentx.reporter.about import About, about
from agentx.reporter.cost import Cost, cost_of
from agentx.reporter.findings import Finding, findings
from agentx.reporter.losses import Losses, losses_of
from agentx.reporter.metrics import Metrics, measure
from agentx.reporter.spread import percentile
from agentx.reporter.throughput import cached_tokens
from agentx.reporter.turns import TurnTimes
from agentx.results import RunResults

TurnKey = tuple[str, int, int]  # session, play, turn
Value = Callable[[TurnTimes], float | None]


@dataclass(frozen=True)
class Measured:
    """A run with its figures. `turns`: the answered measured turns. `name` is the run folder's."""

    name: str
    run: RunResults
    about: About
    metrics: Metrics
    findings: tuple[Finding, ...]
    turns: Mapping[TurnKey, TurnTimes]
    cost: Cost

    @cached_property
    def losses(self) -> Losses:
        """Made when they are asked for: neighbours need none."""
        return losses_of(self.run, self.metrics)


class Figure(NamedTuple):
    """`needs` says of a turn whether it has the figure (None: no), `reduce` makes one number of those that have it.

    `scale` turns the value into the unit of the label.
    """

    name: str
    label: str
    scale: float
    needs: Value
    reduce: Callable[[Sequence[TurnTimes], int | None], float | None]

    def of(self, turns: Sequence[TurnTimes], gpus: int | None) -> float | None:
        kept = [turn for turn in turns if self.needs(turn) is not None]
        return self.reduce(kept, gpus) if kept else None


def measured(run: RunResults, price: float | None = None) -> Measured:
    """All that a comparison wants to know of a run; `price` in dollars per GPU-hour, None: the target's.

    Cached tokens that are doubtful count as not told.
    """
    what, metrics = about(run), measure(run)
    doubtful = metrics.reuse.by_request.doubtful
    times = (replace(one, attempt=replace(one.attempt, cached=None)) if doubtful else one for one in metrics.times)
    turns = {(one.attempt.session, one.attempt.play, one.attempt.turn): one for one in times}
    name = run.folder.name or run.folder.resolve().name
    return Measured(name, run, what, metrics, findings(what, metrics), turns, cost_of(run, metrics, price))


def cached_of(turn: TurnTimes) -> float | None:
    """Cached prompt tokens of a turn that told its prompt tokens too."""
    return None if turn.attempt.prompt_tokens is None else cached_tokens(turn.attempt)


def _statistics(name: str, label: str, scale: float, value: Value) -> list[Figure]:
    """Median, p90 and mean of one time."""

    def at(percent: int) -> Callable[[Sequence[TurnTimes], int | None], float]:
        return lambda turns, _: percentile(sorted(value(turn) or 0.0 for turn in turns), percent)

    def mean(turns: Sequence[TurnTimes], _: int | None) -> float:
        return math.fsum(value(turn) or 0.0 for turn in turns) / len(turns)

    return [
        Figure(f"{name}_p50_seconds", label.format("p50"), scale, value, at(50)),
        Figure(f"{name}_p90_seconds", label.format("p90"), scale, value, at(90)),
        Figure(f"{name}_mean_seconds", label.format("mean"), scale, value, mean),
    ]


def _share(turns: Sequence[TurnTimes], _: int | None) -> float | None:
    prompt = sum(turn.attempt.prompt_tokens or 0 for turn in turns)
    return math.fsum(cached_of(turn) or 0.0 for turn in turns) / prompt if prompt else None


def _rate(turns: Sequence[TurnTimes], _: int | None = None) -> float | None:
    ends = [turn.attempt.end or turn.attempt.last for turn in turns]
    known = [end for end in ends if end is not None]
    seconds = max(known) - min(turn.attempt.sent for turn in turns) if known else 0.0
    return math.fsum(turn.tokens or 0 for turn in turns) / seconds if seconds > 0 else None


def _rate_per_gpu(turns: Sequence[TurnTimes], gpus: int | None) -> float | None:
    rate = _rate(turns)
    return None if rate is None or gpus is None else rate / gpus


TIMES: Mapping[str, Value] = {
    "ttft": lambda turn: turn.ttft,
    "tpot": lambda turn: turn.tpot,
    "latency": lambda turn: turn.latency,
}
FIGURES: tuple[Figure, ...] = (
    *_statistics("ttft", "TTFT {}, s", 1, TIMES["ttft"]),
    *_statistics("tpot", "TPOT {}, ms", 1000, TIMES["tpot"]),
    *_statistics("latency", "latency {}, s", 1, TIMES["latency"]),
    Figure("reuse_share", "reuse by request, %", 100, cached_of, _share),
    Figure("output_tokens_per_second", "output, tok/s", 1, lambda turn: turn.tokens, _rate),
    Figure("output_tokens_per_second_per_gpu", "output, tok/s/GPU", 1, lambda turn: turn.tokens, _rate_per_gpu),
)


class RunFigure(NamedTuple):
    """A figure of the whole run, which has no counterpart on the same turns."""

    name: str
    label: str
    scale: float
    of: Callable[[Measured], float | None]


def _emitted(one: Measured) -> float | None:
    flow = one.metrics.throughput.emitted
    return flow.per_second(flow.output)


def _counters(one: Measured) -> float | None:
    counters = one.metrics.reuse.counters
    return None if counters is None else counters.share


def _cost(one: Measured, name: str) -> float | None:
    value: float | None = getattr(one.cost, name)
    return value


RUN_FIGURES: tuple[RunFigure, ...] = (
    RunFigure("emitted_output_tokens_per_second", "output in the window, tok/s", 1, _emitted),
    RunFigure("reuse_by_counters_share", "reuse by counters, %", 100, _counters),
    RunFigure(
        "job_equivalents_per_hour", "job-equivalents per hour", 1, lambda one: one.metrics.jobs.equivalents_per_hour
    ),
    *(
        RunFigure(f"dollars_per_{name}", f"$ per {label}", 1, partial(_cost, name=f"dollars_per_{name}"))
        for name, label in (
            ("million_output_tokens", "million output"),
            ("million_input_tokens", "million input"),
            ("million_uncached_input_tokens", "million uncached input"),
            ("session", "session"),
        )
    ),
)
