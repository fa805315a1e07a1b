"""When sessions arrive in an open loop: seconds from the run's beginning, whatever the server does.

constant: at equal distances, the first at 0. poisson, gamma: gaps drawn by the seed and the session's number (gamma by
its coefficient of variation; 1 is Poisson). ramp: at equal distances of the expected number, while the rate rises or
falls evenly from `per_second` to `to` over `over` seconds and then stays. recorded: as in the trace, counted from its
first session; where sessions are played again, the next pass begins a mean gap behind the last arrival.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from agentx.core import Session
from agentx.errors import BadInput
from agentx.functions import gamma_quantile, log
from agentx.replayer.draws import share

RateKind = Literal["constant", "poisson", "gamma", "recorded", "ramp"]


@dataclass(frozen=True, slots=True)
class RateRule:
    """Sessions per second; `cv` is of gamma, `to` and `over` of ramp, and `recorded` has none of them."""

    kind: RateKind
    per_second: float = 1.0
    cv: float = 1.0
    to: float = 1.0
    over: float = 0.0
    seed: int = 0


class Arrivals:
    """The arrival of one session after another, never falling."""

    def __init__(self, rule: RateRule) -> None:
        self._rule = rule
        self._count = 0
        self._at = 0.0
        self._first: float | None = None  # of the recorded arrivals of this pass
        self._shift = 0.0

    def next(self, session: Session, again: bool) -> float:
        """When `session` arrives. `again`: it has been played before. Raises BadInput for one without an arrival."""
        number, self._count = self._count, self._count + 1
        if self._rule.kind == "recorded":
            self._at = self._recorded(session, again, number)
        elif self._rule.kind == "constant":
            self._at = number / self._rule.per_second
        elif self._rule.kind == "ramp":
            self._at = ramp_time(self._rule, number)
        else:
            self._at += self._gap(number)
        return self._at

    def _gap(self, number: int) -> float:
        chance = share(self._rule.seed, "arrival", number)
        if self._rule.kind == "poisson":
            return -log(1.0 - chance) / self._rule.per_second
        shape = 1.0 / self._rule.cv**2
        return gamma_quantile(shape, max(chance, 2.0**-53)) / (shape * self._rule.per_second)

    def _recorded(self, session: Session, again: bool, number: int) -> float:
        arrival = session.arrival
        if arrival is None:
            raise BadInput(
                f"session {session.key!r} has no arrival time, which load.rate.kind: recorded needs",
                hint="constant, poisson, gamma and ramp need none",
            )
        if self._first is None:
            self._first = arrival
        elif again and self._first + self._at - self._shift > arrival:  # the trace begins anew
            self._shift = self._at + self._at / max(1, number - 1)
            self._first = arrival
        at = arrival - self._first + self._shift
        if at < self._at:
            raise BadInput(
                f"session {session.key!r} arrives before the one that stands before it in the trace",
                hint="load.rate.kind: recorded needs a trace in order of arrival, and order: file",
            )
        return at


def ramp_time(rule: RateRule, number: float) -> float:
    """When so many sessions are expected to have come: the integral of the rate, solved for time."""
    first, last, over = rule.per_second, rule.to, rule.over
    ramped = over * (first + last) / 2  # expected by the end of the ramp
    if number >= ramped:
        return over + (number - ramped) / last
    slope = (last - first) / over
    if slope == 0:
        return number / first
    return (math.sqrt(first * first + 2 * slope * number) - first) / slope
