"""Sessions as jobs: how long a whole one takes, and how many an hour brings.

The latency is of plays that ran from their first turn to their last, all of them measured; cut and failed ones have
none, nor have those that began in the middle or warmed the server. Job-equivalents
also count what was done of the others: each completed turn is 1 / (turns of its play) of a job.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from agentx.core import Attempt
from agentx.reporter.spread import Spread, spread
from agentx.reporter.throughput import MEASURED, Window
from agentx.reporter.turns import finished
from agentx.results import RunResults


@dataclass(frozen=True, slots=True)
class Jobs:
    """`whole`: plays of which every turn was done in the window. `equivalents`: jobs' worth of turns done in it.

    `latency` in seconds, over all plays done from first turn to last, those that ended after the window included.

    `unsized`: plays whose number of turns is unknown, as the run ended without their record; they count nowhere. Where
    all are, nothing is known of jobs: None.
    """

    plays: int
    whole: int | None
    equivalents: float | None
    unsized: int
    latency: Spread | None
    seconds: float | None

    @property
    def whole_per_hour(self) -> float | None:
        return self.whole * 3600 / self.seconds if self.seconds and self.whole is not None else None

    @property
    def equivalents_per_hour(self) -> float | None:
        return self.equivalents * 3600 / self.seconds if self.seconds and self.equivalents is not None else None


def jobs_of(run: RunResults, measured: Sequence[Attempt], window: Window | None) -> Jobs:
    """Over the plays that have measured attempts, and those that were recorded without any."""
    warmed = {(attempt.session, attempt.play) for attempt in run.attempts if attempt.phase != MEASURED}
    done = [
        play
        for play in run.plays
        if play.outcome == "done" and play.completed == play.turns > 0 and (play.session, play.play) not in warmed
    ]
    inside = {
        (attempt.session, attempt.play, attempt.turn)
        for attempt in measured
        if attempt.ok and window is not None and window.holds(finished(attempt))
    }
    turns_done = Counter((session, play) for session, play, _ in inside)
    sizes = {(play.session, play.play): play.turns for play in run.plays}
    shares = (done / sizes[key] for key, done in turns_done.items() if sizes.get(key))
    started = {(attempt.session, attempt.play) for attempt in run.attempts} | sizes.keys()
    known = bool(sizes) or not started
    return Jobs(
        plays=len(started),
        whole=sum(turns_done[play.session, play.play] == play.turns for play in done) if known else None,
        equivalents=math.fsum(shares) if known else None,
        unsized=len(started - sizes.keys()),
        latency=spread((play.session, play.ended - play.started) for play in done),
        seconds=window.seconds if window is not None and window.seconds > 0 else None,
    )
