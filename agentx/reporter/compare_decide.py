"""Whether repeats decide: looked at after each pair of them, and stopped as soon as they do.

Looking again and again finds a difference by chance sooner or later. So look number k has the level 0.3 / (pi k)^2:
over all looks, however many, a difference that is not there is found with 5 % at most. At each look the ratio of the
first n runs of both sides has Welch's interval of that level. Decided: *higher* or *lower* when it leaves out 1; *same*
when it lies within the margin around 1. Undecided repeats say how many more it would take, at the spread and the ratio
that were seen, and how many hours that is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import fmean, variance
from typing import Any

from agentx.errors import BadInput
from agentx.reporter.compare_pair import Pair, Row
from agentx.reporter.compare_statistics import MINIMUM, estimate, student_quantile
from agentx.reporter.table import Block, Heading, Lines

ALPHA = 0.05
MARGIN = 0.05  # a ratio nearer to 1 than this is no difference to act on
DEFAULT = "output_tokens_per_second"
MOST = 500  # repeats of a side that an outlook goes to


@dataclass(frozen=True, slots=True)
class Look:
    """After `runs` of each side; None where they had no spread."""

    runs: int
    ratio: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Decision:
    """`verdict`: higher | lower | same | undecided, of the second side. `more`: further runs of each side that it would
    take; None when decided, or when nothing tells. `same_turns`: over the turns that all runs answered."""

    baseline: str
    other: str
    figure: str
    label: str
    same_turns: bool
    margin: float
    verdict: str
    looks: tuple[Look, ...]
    more: int | None
    hours: float | None


def decide(pair: Pair, figure: str = DEFAULT, margin: float = MARGIN) -> Decision:
    """Raises BadInput for a figure that a comparison does not have."""
    row = next((row for row in pair.rows if row.name == figure), None)
    if row is None:
        raise BadInput(
            f"--decide {figure}: no such figure", hint=f"there are {', '.join(row.name for row in pair.rows)}"
        )
    values = row.same if row.same is not None else row.all
    looks: list[Look] = []
    verdict = "undecided"
    for runs in range(MINIMUM, min(len(values.a), len(values.b)) + 1):
        level = 1 - _alpha(len(looks) + 1)
        found = estimate(values.a[:runs], values.b[:runs], level)
        looks.append(Look(runs, found.ratio, found.low, found.high))
        verdict = _verdict(found.low, found.high, margin)
        if verdict != "undecided":
            break
    more = _more(row, margin, len(looks)) if verdict == "undecided" else None
    return Decision(
        pair.a.label, pair.b.label, row.name, row.label, row.same is not None, margin, verdict, tuple(looks), more,
        None if more is None else more * _seconds(pair) / 3600,
    )  # fmt: skip


def _alpha(look: int) -> float:
    """The level of a look; those of all looks sum to ALPHA."""
    return ALPHA * 6 / (math.pi * look) ** 2


def _verdict(low: float | None, high: float | None, margin: float) -> str:
    if low is None or high is None:
        return "undecided"
    if low > 1 or high < 1:
        return "higher" if low > 1 else "lower"
    return "same" if 1 / (1 + margin) < low and high < 1 + margin else "undecided"


def _more(row: Row, margin: float, looked: int) -> int | None:
    """Further runs of each side until the interval is expected to decide, at the spread and ratio seen so far."""
    values = row.same if row.same is not None else row.all
    logs = [[math.log(value) for value in side if value is not None and value > 0] for side in (values.a, values.b)]
    if any(len(side) < 2 for side in logs):
        return None
    spread = math.sqrt((variance(logs[0]) + variance(logs[1])) / 2)
    if spread == 0:  # more of the same show no spread either
        return None
    apart, within = abs(fmean(logs[1]) - fmean(logs[0])), math.log1p(margin)
    reach = max(apart, within - apart)  # to leave out 1, or to lie within the margin, whichever is wider
    have = min(map(len, logs))
    for runs in range(max(MINIMUM, have + 1), MOST + 1):
        quantile = student_quantile(1 - _alpha(looked + runs - have) / 2, 2 * runs - 2)
        if quantile * spread * math.sqrt(2 / runs) < reach:
            return runs - have
    return None


def _seconds(pair: Pair) -> float:
    """How long one more run of each side takes."""
    total = 0.0
    for side in (pair.a, pair.b):
        lengths = [float(one.run.end["at"]) for one in side.runs if one.run.end and "at" in one.run.end]
        total += fmean(lengths) if lengths else 0.0
    return total


def decision_blocks(found: Decision) -> list[Block]:
    """A few sentences."""
    over = "the same turns" if found.same_turns else "all answered turns"
    what = f"{found.label} of {found.other} against {found.baseline}, over {over}"
    words = [f"{what}: {_sentence(found)}"]
    for look in found.looks:
        interval = "no spread between runs" if look.low is None else f"{look.low:.3f} to {look.high:.3f}"
        ratio = "unknown" if look.ratio is None else f"x{look.ratio:.3f}"
        words.append(f"after {look.runs} runs of each: {ratio}, {interval}")
    return [Heading("Do the repeats decide?"), Lines(tuple(words), bullet=True)]


def _sentence(found: Decision) -> str:
    if found.verdict in ("higher", "lower"):
        return f"decided, {found.verdict}, at the 5 % level over all looks."
    if found.verdict == "same":
        return f"decided, the same within {found.margin * 100:g} %."
    if not found.looks:
        return f"undecided: it takes {MINIMUM} runs of each side to look at all."
    if all(look.low is None for look in found.looks):
        return "undecided: the runs show no spread, or not all tell it, and more like these would not either."
    if found.more is None:
        return f"undecided, and more than {MOST} runs of each side would not decide it, as far as these tell."
    hours = "" if found.hours is None else f", some {found.hours:.2g} hours"
    return f"undecided: some {found.more} more runs of each side would decide{hours}, if they are like these."


def decision_document(found: Decision) -> dict[str, Any]:
    """Plain values only."""
    return {
        "baseline": found.baseline,
        "other": found.other,
        "figure": found.figure,
        "over_same_turns": found.same_turns,
        "margin": found.margin,
        "verdict": found.verdict,
        "looks": [
            {"runs": look.runs, "ratio": look.ratio, "interval_low": look.low, "interval_high": look.high}
            for look in found.looks
        ],
        "more_runs_of_each": found.more,
        "more_hours": found.hours,
    }
