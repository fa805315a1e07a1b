"""Whether a server kept up with an open loop: does the number of sessions that are live grow with time?

Below saturation it stays what it is, arrivals times the time that one takes (Little's law), and the output is rate x
tokens of a session whatever the server does. Above, it grows for as long as sessions arrive. So the mean number that is
live in the second quarter of the arrivals is held against that in the fourth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Literal

from agentx.core import Play
from agentx.results import RunResults

State = Literal["below", "saturated", "unknown"]
GROWN = 1.25  # times as many at the end: saturated, if it is also more than two standard errors of Poisson counts
FEW = 20  # sessions: fewer tell nothing


def saturation(run: RunResults) -> State:
    """Of a run whose sessions began by the clock. "unknown": too few of them, or each took long beside the run."""
    plays = [play for play in run.plays if play.outcome != "failed"]
    if len(plays) < FEW:
        return "unknown"
    first, last = min(play.started for play in plays), max(play.started for play in plays)
    span = last - first
    early, late = (_live(plays, first + at * span, first + (at + 0.25) * span) for at in (0.25, 0.75))
    if late > GROWN * early and late - early > 2 * math.sqrt(early + 1):
        return "saturated"
    whole = [play.ended - play.started for play in plays if play.outcome == "done" and play.started < first + span / 2]
    return "below" if whole and fmean(whole) <= span / 4 else "unknown"


def _live(plays: Sequence[Play], start: float, stop: float) -> float:
    """The mean number of sessions that had begun and not ended."""
    overlap = (min(play.ended, stop) - max(play.started, start) for play in plays)
    return math.fsum(max(0.0, each) for each in overlap) / (stop - start) if stop > start else 0.0
