"""Service-level objectives: which figures a plan, `--slo` and `--find` can set limits to, and which side is good.

An objective of turns is held against every turn that was due (`ttft`); one of runs against a figure of the whole run
(`ttft_p95`). Times have units (`5s`, `50ms`), shares are `95%` or `0.95`, rates are plain numbers of tokens per second.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, NamedTuple

import pydantic
from pydantic import Field

from agentx.errors import BadInput
from agentx.yamlspec import Duration, Strict, duration_text, seconds

Unit = Literal["time", "share", "rate"]


class Figure(NamedTuple):
    """What a limit is set to. `at_most`: less is better."""

    unit: Unit
    at_most: bool


TURN = ("ttft", "ttft_from_due", "tpot", "latency", "latency_from_due")  # s of one turn; less is better
PERCENTS = (50, 75, 90, 95, 99)
STATISTICS = (*(f"p{percent}" for percent in PERCENTS), "mean", "max")
_TIME, _RATE, _SHARE, _LOSS = (
    Figure("time", True),
    Figure("rate", False),
    Figure("share", False),
    Figure("share", True),
)

RUN: Mapping[str, Figure] = {
    **{f"{name}_{how}": _TIME for name in (*TURN, "job_latency") for how in STATISTICS},
    **{f"interactivity_{how}": _RATE for how in STATISTICS if how != "max"},
    "output_per_second": _RATE,
    "output_per_gpu": _RATE,
    "reuse": _SHARE,
    "goodput": _SHARE,
    "session_goodput": _SHARE,
    "failed": _LOSS,
}

ALLOWED = (
    f"{', '.join(TURN)} and job_latency, each with _{', _'.join(STATISTICS)}; interactivity_p95 and the like; "
    "output_per_second, output_per_gpu, reuse, goodput, session_goodput, failed"
)


@dataclass(frozen=True, slots=True)
class Objective:
    """`limit` in seconds, as a share 0 ... 1, or in tokens per second."""

    name: str
    limit: float

    @property
    def figure(self) -> Figure:
        return figure_of(self.name)

    def met(self, value: float) -> bool:
        return value <= self.limit if self.figure.at_most else value >= self.limit

    def __str__(self) -> str:
        return f"{self.name} {'<=' if self.figure.at_most else '>='} {limit_text(self.name, self.limit)}"


def figure_of(name: str) -> Figure:
    """Raises KeyError for a name that there is not."""
    return _TIME if name in TURN else RUN[name]


def limit_of(name: str, value: object) -> float:
    """A limit as written. Raises ValueError with what is wrong, for an unknown name with the nearest one."""
    if name not in TURN and name not in RUN:
        raise ValueError(_unknown(name))
    unit = figure_of(name).unit
    if unit == "time":
        found = seconds(value)
    else:
        text = str(value).strip()
        part = unit == "share" and text.endswith("%")
        try:
            found = float(text.removesuffix("%") if part else text) / (100 if part else 1)
        except ValueError:
            form = "a share such as 95% or 0.95" if unit == "share" else "tokens per second, a number such as 30"
            raise ValueError(f"should be {form}, not {text}") from None
        if unit == "share" and not 0 <= found <= 1:
            raise ValueError(f"should be a share between 0% and 100%, not {text}")
    if not 0 <= found < float("inf") or (found == 0 and unit != "share"):
        raise ValueError(f"should be above 0, not {value}")
    return found


def limit_text(name: str, value: float) -> str:
    """What `limit_of` reads back as the same value."""
    unit = figure_of(name).unit
    if unit == "time":
        return duration_text(value)
    percent = f"{value * 100:.10g}%"
    return percent if unit == "share" and limit_of(name, percent) == value else f"{value!r}".removesuffix(".0")


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name, [*TURN, *RUN], n=1)
    if near:
        return f"{name} is no figure to set a limit to, did you mean {near[0]!r}?"
    return f"{name} is no figure to set a limit to: there are {ALLOWED}"


def _named(name: str, error: ValueError) -> str:
    return str(error) if name in str(error) else f"{name}: {error}"


def _limits(value: object) -> object:
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ValueError("should be names with limits: {ttft_p95: 5s}")
    found = {}
    for name, limit in value.items():
        if name in TURN:
            raise ValueError(f"{name} is of one turn: it belongs to slo.turn, or say {name}_p95")
        try:
            found[name] = limit_of(str(name), limit)
        except ValueError as error:
            raise ValueError(_named(str(name), error)) from None
    return found


def _texts(value: Mapping[str, float]) -> dict[str, str]:
    return {name: limit_text(name, limit) for name, limit in value.items()}


Limits = Annotated[
    Mapping[str, float],
    pydantic.BeforeValidator(_limits),
    pydantic.PlainSerializer(_texts, when_used="json"),
]


class TurnSlo(Strict):
    """Limits of every turn; a turn that misses one, or had no answer, is no part of the goodput."""

    ttft: Duration | None = None
    ttft_from_due: Duration | None = None
    tpot: Duration | None = None
    latency: Duration | None = None
    latency_from_due: Duration | None = None

    @pydantic.model_validator(mode="after")
    def _some(self) -> TurnSlo:
        for name in TURN:
            if getattr(self, name) == 0:
                raise ValueError(f"{name} should be longer than nothing")
        return self


class Slo(Strict):
    """The objectives of a plan."""

    turn: TurnSlo = TurnSlo()
    run: Limits = Field(default_factory=dict)

    @property
    def turns(self) -> tuple[Objective, ...]:
        return tuple(Objective(name, limit) for name in TURN if (limit := getattr(self.turn, name)) is not None)

    @property
    def runs(self) -> tuple[Objective, ...]:
        return tuple(Objective(name, limit) for name, limit in self.run.items())

    def under(self, other: Slo) -> Slo:
        """These objectives, with those of `other` in place of the same names."""
        turn = {one.name: one.limit for one in (*self.turns, *other.turns)}
        return Slo.model_construct(turn=TurnSlo.model_construct(None, **turn), run={**self.run, **other.run})


_CONDITION = re.compile(r"\s*([A-Za-z0-9_]+)\s*(<=|>=|=)\s*(\S+)\s*\Z")


def objectives_of(text: str, label: str) -> list[Objective]:
    """`ttft_p95=5s,tpot_p95=50ms`, or with `<=` and `>=`; `label` is what the text was given to. Raises BadInput."""
    found: list[Objective] = []
    for part in text.split(","):
        match = _CONDITION.match(part)
        if match is None:
            example = "ttft_p95 <= 5s"
            raise BadInput(f"{label}: {part.strip() or 'nothing'} is no objective", hint=f"such as {example}")
        name, sign, limit = match.groups()
        try:
            one = Objective(name, limit_of(name, limit))
        except ValueError as error:
            raise BadInput(f"{label}: {_named(name, error)}") from None
        good = "<=" if one.figure.at_most else ">="
        if sign not in ("=", good):
            raise BadInput(f"{label}: {name} is good where it is {good} a limit: {one}")
        if any(one.name == other.name for other in found):
            raise BadInput(f"{label}: {name} is there twice")
        found.append(one)
    return found


def slo_of(texts: Sequence[str]) -> Slo:
    """What `--slo` says; of a name that is there twice the last counts. Raises BadInput."""
    found = {one.name: one.limit for text in texts for one in objectives_of(text, f"--slo {text}")}
    turn = {name: limit for name, limit in found.items() if name in TURN}
    run = {name: limit for name, limit in found.items() if name in RUN}
    return Slo.model_construct(turn=TurnSlo.model_construct(None, **turn), run=run)


def as_sets(objectives: Iterable[Objective]) -> list[str]:
    """As overrides of a plan."""
    sides = ((one, "turn" if one.name in TURN else "run") for one in objectives)
    return [f"slo.{side}.{one.name}={limit_text(one.name, one.limit)}" for one, side in sides]
