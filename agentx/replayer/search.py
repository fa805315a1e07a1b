"""Which load to try next: `rate: ttft_p95 <= 5s` read, and bracketing and bisection as a function of what is known.

The rules:

1. A value is good when all its runs meet all conditions. The answer lies between the lowest value that is not good
   and the highest good one below it, so where the points are not in order, the lower answer is given.
2. Without a bad point the load is doubled, without a good one below the bad it is halved: ten times, or to the bounds.
3. Between the two the next value is the geometric mean, until they are within 5 % (`by`), or are neighbours.

Nothing here runs anything, and there is no state: the points that are known decide, whichever search they came from.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from typing import NamedTuple

from agentx.errors import BadInput
from agentx.replayer.slo import RUN, Objective, objectives_of

KNOBS = {  # what is searched: the key of the plan, and its unit
    "rate": ("load.rate.per_second", "sessions per second"),
    "sessions": ("load.sessions", "sessions at a time"),
    "requests": ("load.requests", "requests in flight"),
}
WHOLE = ("sessions", "requests")
DIGITS = 3  # of a rate that is tried
DOUBLINGS = 10  # up or down from where a search begins
WITHIN = 0.05  # how far apart the ends of the answer may be, as a share of the lower one
FORM = "such as 'rate: ttft_p95 <= 5s', 'sessions 1..64: ttft_p95 <= 5s, tpot_p95 <= 50ms' or 'rate 0.5..8 by 10%: …'"
_GOAL = re.compile(r"\s*([A-Za-z_.]+)(?:\s+([^\s:]+?)\.\.([^\s:]+))?(?:\s+by\s+([^\s:]+)\s*)?\s*:(.*)\Z", re.DOTALL)


class Goal(NamedTuple):
    """`low`, `high`: bounds of what is tried; None: ten doublings from the start. `within`: when to stop."""

    knob: str
    conditions: tuple[Objective, ...]
    low: float | None = None
    high: float | None = None
    within: float = WITHIN

    @property
    def key(self) -> str:
        return KNOBS[self.knob][0]

    @property
    def unit(self) -> str:
        return KNOBS[self.knob][1]

    @property
    def whole(self) -> bool:
        return self.knob in WHOLE

    def rounded(self, value: float) -> float:
        """A value that can be tried."""
        return float(max(1, round(value))) if self.whole else float(f"{value:.{DIGITS}g}")

    def text(self, value: float) -> str:
        return f"{value:g}"


class Bracket(NamedTuple):
    """The highest good value below the lowest bad one; None: there is none."""

    good: float | None
    bad: float | None


def goal_of(text: str) -> Goal:
    """Read one `--find`. Raises BadInput."""
    label = f"--find {text}"
    match = _GOAL.match(text)
    if match is None:
        raise BadInput(f"{label}: should say what is searched and on which conditions", hint=FORM)
    knob, low, high, within, conditions = match.groups()
    if knob not in KNOBS:
        near = difflib.get_close_matches(knob, KNOBS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(KNOBS)}"
        raise BadInput(f"{label}: {knob} cannot be searched", hint=hint)
    if not conditions.strip():
        raise BadInput(f"{label}: no condition", hint=FORM)
    objectives = tuple(_of_run(label, part) for part in objectives_of(conditions, label))
    least = None if low is None else _bound(label, low, knob in WHOLE)
    most = None if high is None else _bound(label, high, knob in WHOLE)
    if least is not None and most is not None and least >= most:
        raise BadInput(f"{label}: {low} is not below {high}")
    return Goal(knob, objectives, least, most, WITHIN if within is None else _share(label, within))


def _of_run(label: str, one: Objective) -> Objective:
    if one.name not in RUN:
        raise BadInput(f"{label}: {one.name} is of one turn, and a run has many", hint=f"{one.name}_p95, for example")
    return one


def _bound(label: str, text: str, whole: bool) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf or (whole and value != int(value)):
        raise BadInput(f"{label}: {text} should be a {'whole ' if whole else ''}number above 0")
    return value


def _share(label: str, text: str) -> float:
    try:
        value = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        value = math.nan
    if not 0.001 <= value <= 1:
        raise BadInput(f"{label}: by {text} should be a share between 0.1% and 100%")
    return value


def bracket(good: Mapping[float, bool]) -> Bracket:
    """Between which of the known values the answer lies."""
    bad = min((value for value, met in good.items() if not met), default=None)
    below = [value for value, met in good.items() if met and (bad is None or value < bad)]
    return Bracket(max(below, default=None), bad)


def out_of_order(good: Mapping[float, bool]) -> list[float]:
    """Good values above the lowest bad one: more load was borne than there."""
    bad = bracket(good).bad
    return sorted(value for value, met in good.items() if met and bad is not None and value > bad)


def next_value(goal: Goal, start: float, good: Mapping[float, bool]) -> float | None:
    """The value to try next; None: what is known answers, as far as the bounds allow.

    `good`: of the values that were tried, whether all their runs met all conditions.
    """
    low = goal.rounded(start / 2**DOUBLINGS) if goal.low is None else goal.low
    high = goal.rounded(start * 2**DOUBLINGS) if goal.high is None else goal.high
    found = bracket(good)
    if found.good is None and found.bad is None:
        return goal.rounded(min(max(start, low), high))
    if found.bad is None:
        best = found.good or 0.0
        return None if best >= high else min(goal.rounded(best * 2), high)
    if found.good is None:
        return None if found.bad <= low else max(goal.rounded(found.bad / 2), low)
    if found.bad / found.good <= 1 + goal.within:
        return None
    between = goal.rounded(math.sqrt(found.good * found.bad))
    if goal.whole and between <= found.good:
        between = found.good + 1
    return between if found.good < between < found.bad else None
