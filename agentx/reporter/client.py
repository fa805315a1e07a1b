"""What the client itself had to do with the figures: where it departed from the trace, and whether it kept up."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentx.results import RunResults


@dataclass(frozen=True, slots=True)
class Adjustments:
    """Where the run departed from the trace as it is written.

    `dropped_turns` were not sent: they do not fit, or were aborted and the plan skips those; `empty_sessions` had
    nothing to send; `moved_turns` were brought forward by idle caps, which shortened the sessions by `moved_seconds`
    in all; `reconnects` requests met a connection that was just closing and went again.
    """

    dropped_turns: int
    empty_sessions: int
    moved_turns: int
    moved_seconds: float
    reconnects: int


@dataclass(frozen=True, slots=True)
class Client:
    """Seconds by which the client's event loop was late for its timers: its time-stamps are off by as much.

    `cpu_seconds` of the client's process. None: the run has no end record, or was too short to tell.
    """

    loop_lag_mean: float | None
    loop_lag_p99: float | None
    loop_lag_max: float | None
    cpu_seconds: float | None


def adjustments_of(run: RunResults) -> Adjustments:
    return Adjustments(
        dropped_turns=sum(play.extra.get("dropped", 0) for play in run.plays),
        empty_sessions=(run.end or {}).get("dropped_sessions", 0),
        moved_turns=sum(bool(attempt.extra.get("moved")) for attempt in run.attempts),
        moved_seconds=math.fsum(play.extra.get("moved", 0.0) for play in run.plays),
        reconnects=sum(attempt.extra.get("reconnects", 0) for attempt in run.attempts),
    )


def client_of(run: RunResults) -> Client:
    end = run.end or {}
    lag: Mapping[str, Any] = end.get("loop_lag") or {}
    return Client(lag.get("mean"), lag.get("p99"), lag.get("max"), end.get("cpu_seconds"))
