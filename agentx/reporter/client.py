"""What the client itself had to do with the figures: where it departed from the trace, and whether it kept up.

The verdict: the client was the bottleneck where its event loop or its sends were later than LATE, or where its loop
used all of a core in more than SOME of the seconds. What a plan's cap on requests held back is not its lateness.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentx.core import Attempt
from agentx.reporter.spread import Spread, spread
from agentx.results import RunResults
from agentx.room import LOST

LATE = 0.05  # s; a client that sends later than this, or hears later than the server spoke, is part of the figures
SOME, MOST = 0.2, 0.5  # shares of the seconds in which a core was full: part of the figures; not to be used
ENOUGH = 5  # seconds of which CPU time is known, to judge by them


@dataclass(frozen=True, slots=True)
class Adjustments:
    """Where the run departed from the trace as it is written.

    `dropped_turns` were not sent: they do not fit, or were aborted and the plan skips those; `empty_sessions` had
    nothing to send; `moved_turns` were brought forward by idle caps, which shortened the sessions by `moved_seconds`
    in all; `reconnects` requests met a connection that was just closing and went again. `skipped_sessions` were not
    played, as one of their turns does not fit, with `skipped_turns` and `skipped_share` of all prompt tokens that were
    read; `shortened_turns` were sent without `shortened_tokens` of their oldest history.
    """

    dropped_turns: int
    empty_sessions: int
    moved_turns: int
    moved_seconds: float
    reconnects: int
    skipped_sessions: int = 0
    skipped_turns: int = 0
    skipped_share: float | None = None
    shortened_turns: int = 0
    shortened_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Client:
    """The client's own figures; with several workers the worst of them, but `cpu_seconds`, which is of all.

    Seconds by which the event loop was late for its timers: its time-stamps are off by as much. `cpu_mean`,
    `cpu_busiest`: shares of a core that the loop used, over all and in the busiest second; `cpu_full`: share of the
    `cpu_looked` seconds in which it used all of it. `cpu_wait`: seconds in which it could run and got no CPU.
    `gc_longest`: the longest pause of the garbage collector. `send_lag`: seconds by which requests left late.
    None: the run does not tell (no end record, too short, another system than Linux).
    """

    loop_lag_mean: float | None = None
    loop_lag_p99: float | None = None
    loop_lag_max: float | None = None
    cpu_seconds: float | None = None
    cpu_mean: float | None = None
    cpu_busiest: float | None = None
    cpu_full: float | None = None
    cpu_looked: int = 0
    cpu_wait: float | None = None
    gc_seconds: float | None = None
    gc_longest: float | None = None
    files: int | None = None
    files_limit: int | None = None
    workers: int = 1
    send_lag: Spread | None = None

    @property
    def causes(self) -> tuple[str, ...]:
        """Why the client was the bottleneck; empty: it was not, as far as it tells."""
        return tuple(self._causes())

    def _causes(self) -> Iterator[str]:
        if self.loop_lag_p99 is not None and self.loop_lag_p99 > LATE:
            yield f"its event loop was {self.loop_lag_p99 * 1000:.0f} ms late (p99)"
        if self.send_lag is not None and self.send_lag.at(95) > LATE:
            yield f"requests left {self.send_lag.at(95) * 1000:.0f} ms late (p95)"
        if self.full(SOME):
            yield f"its loop used all of a core in {self.cpu_full:.0%} of the seconds"

    def full(self, share: float) -> bool:
        """Whether its loop used all of a core in more than this share of the seconds."""
        return self.cpu_full is not None and self.cpu_looked >= ENOUGH and self.cpu_full > share

    @property
    def bottleneck(self) -> bool | None:
        """The verdict; None: nothing is known."""
        if self.causes:
            return True
        return None if self.loop_lag_p99 is None else False


def adjustments_of(run: RunResults) -> Adjustments:
    end = run.end or {}
    skipped, read = end.get("skipped") or {}, end.get("read") or {}
    lost = [attempt.extra[LOST] for attempt in run.attempts if LOST in attempt.extra]
    return Adjustments(
        dropped_turns=sum(play.extra.get("dropped", 0) for play in run.plays),
        empty_sessions=end.get("dropped_sessions", 0),
        moved_turns=sum(bool(attempt.extra.get("moved")) for attempt in run.attempts),
        moved_seconds=math.fsum(play.extra.get("moved", 0.0) for play in run.plays),
        reconnects=sum(attempt.extra.get("reconnects", 0) for attempt in run.attempts),
        skipped_sessions=skipped.get("sessions", 0),
        skipped_turns=skipped.get("turns", 0),
        skipped_share=skipped["tokens"] / read["tokens"] if skipped and read.get("tokens") else None,
        shortened_turns=len(lost),
        shortened_tokens=sum(lost),
    )


def client_of(run: RunResults, measured: Sequence[Attempt] = ()) -> Client:
    """The client's figures; `measured` are the attempts by which its sends are judged."""
    ends = run.ends
    lags, cpus, pauses, files = (_of(ends, name) for name in ("loop_lag", "loop_cpu", "gc", "files"))
    full = [cpu["full"] / cpu["seconds"] for cpu in cpus if cpu.get("seconds")]
    return Client(
        loop_lag_mean=_most(lags, "mean"),
        loop_lag_p99=_most(lags, "p99"),
        loop_lag_max=_most(lags, "max"),
        cpu_seconds=_sum(end.get("cpu_seconds") for end in ends),
        cpu_mean=_most(cpus, "mean"),
        cpu_busiest=_most(cpus, "busiest"),
        cpu_full=max(full, default=None),
        cpu_looked=min((cpu["seconds"] for cpu in cpus if cpu.get("seconds")), default=0),
        cpu_wait=_most(ends, "cpu_wait"),
        gc_seconds=_most(pauses, "seconds"),
        gc_longest=_most(pauses, "longest"),
        files=_most(files, "most"),
        files_limit=min((each["limit"] for each in files if each.get("limit") is not None), default=None),
        workers=len(run.workers) or 1,
        send_lag=spread((attempt.session, attempt.lag - attempt.extra.get("held", 0.0)) for attempt in measured),
    )


def _of(ends: Iterable[Mapping[str, Any]], name: str) -> list[Mapping[str, Any]]:
    return [found for end in ends if isinstance(found := end.get(name), Mapping)]


def _most(all_of: Iterable[Mapping[str, Any]], name: str) -> Any:
    return max((value for each in all_of if (value := each.get(name)) is not None), default=None)


def _sum(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) if known else None
