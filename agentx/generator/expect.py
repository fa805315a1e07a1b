"""What a workload promised against what it makes: one verdict for each statistic of `expect`.

A statistic is `<quantity>_mean` or `<quantity>_p<1-99>`; the quantities, each over all turns unless said:
turns (model calls of a session), isl, osl, context (the longest prompt + reply of a session), tool_gap, human_gap
(seconds; only gaps of that kind); and possible_reuse, which the caller measures.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from agentx.core import Session
from agentx.generator.spec import QUANTITIES, Expectation


@dataclass(slots=True)
class Measured:
    """Every value of each quantity, in the order of the turns."""

    values: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in QUANTITIES})

    def watch(self, sessions: Iterable[Session]) -> Iterator[Session]:
        """Pass sessions on unchanged and note their values."""
        for session in sessions:
            self.add(session)
            yield session

    def add(self, session: Session) -> None:
        self.values["turns"].append(len(session.turns))
        self.values["isl"] += [turn.isl for turn in session.turns]
        self.values["osl"] += [turn.output.tokens for turn in session.turns]
        if session.turns:
            self.values["context"].append(max(turn.isl + turn.output.tokens for turn in session.turns))
        for turn in session.turns:
            if turn.gap.kind in ("tool", "human"):
                self.values[f"{turn.gap.kind}_gap"].append(turn.gap.seconds)

    def statistic(self, name: str) -> float | None:
        """The value of `isl_p50`, `turns_mean` and so on; None when nothing of that kind occurred."""
        quantity, _, which = name.rpartition("_")
        values = sorted(self.values[quantity])
        if not values:
            return None
        return math.fsum(values) / len(values) if which == "mean" else quantile(values, int(which[1:]) / 100)


def quantile(ordered: list[float], p: float) -> float:
    """The p-quantile of sorted values, linear between the two nearest."""
    place = p * (len(ordered) - 1)
    low = math.floor(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


@dataclass(frozen=True, slots=True)
class Verdict:
    """One expectation and what came of it. `realised` None: nothing of that kind occurred, which is a miss."""

    statistic: str
    expectation: Expectation
    realised: float | None

    @property
    def met(self) -> bool:
        distance = math.inf if self.realised is None else abs(self.realised - self.expectation.value)
        return distance <= self.expectation.difference


def verdicts(
    expect: Mapping[str, Expectation], measured: Measured, possible_reuse: float | None = None
) -> list[Verdict]:
    """A verdict for each expectation, in the spec's order."""
    return [
        Verdict(name, each, possible_reuse if name == "possible_reuse" else measured.statistic(name))
        for name, each in expect.items()
    ]
