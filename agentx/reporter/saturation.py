"""Whether a server kept up with an open loop: do the sessions that are live, and the time of a turn, grow with time?

Below saturation the number of live sessions stays what it is, arrivals times the time that one takes (Little's law),
and the output is rate x tokens of a session whatever the server does. Above, both grow for as long as sessions arrive.
So their means in the second quarter of the arrivals are held against those in the fourth. Live sessions alone also grow
in a run that is shorter than its sessions, which then tells nothing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean
from typing import Literal

from agentx.core import Attempt, Play
from agentx.results import RunResults

State = Literal["below", "saturated", "unknown"]
GROWN = 1.25  # times as much at the end; of live sessions also more than two standard errors of Poisson counts
LONG = 0.25  # of the time in which sessions arrive: where each takes longer, the run is too short to tell
FEW = 20  # sessions: fewer tell nothing


def saturation(run: RunResults) -> State:
    """Of a run whose sessions began by the clock. "unknown": too few of them, or each took long beside the run."""
    plays = [play for play in run.plays if play.outcome != "failed"]
    if len(plays) < FEW:
        return "unknown"
    first, last = min(play.started for play in plays), max(play.started for play in plays)
    span = last - first
    quarters = [(first + at * span, first + (at + 0.25) * span) for at in (0.25, 0.75)]
    early, late = (_live(plays, *quarter) for quarter in quarters)
    if late > GROWN * early and late - early > 2 * math.sqrt(early + 1):
        before, after = (_seconds(run.attempts, *quarter) for quarter in quarters)
        slower = before is not None and after is not None and after > GROWN * before
        return "saturated" if slower else "unknown"
    whole = [play.ended - play.started for play in plays if play.outcome == "done" and play.started < first + span / 2]
    return "below" if whole and fmean(whole) <= LONG * span else "unknown"


def _live(plays: Sequence[Play], start: float, stop: float) -> float:
    """The mean number of sessions that had begun and not ended."""
    overlap = (min(play.ended, stop) - max(play.started, start) for play in plays)
    return math.fsum(max(0.0, each) for each in overlap) / (stop - start) if stop > start else 0.0


def _seconds(attempts: Sequence[Attempt], start: float, stop: float) -> float | None:
    """The mean time from due to end of the turns that were due then."""
    found = [one.end - one.due for one in attempts if one.end is not None and start <= one.due <= stop]
    return fmean(found) if found else None
