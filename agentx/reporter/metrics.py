"""All figures of a run as frozen values: `measure(run)`. Pure; docs/reference/metrics.md defines each figure.

What counts: attempts of the phase "measure". Latencies are of completed attempts only, failures are counted by kind.
A figure that cannot be told is None ("unknown", or "n/a" where the run has nothing of the kind), never 0.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agentx.core import Attempt
from agentx.reporter.acceptance import Acceptance, acceptance_of
from agentx.reporter.client import Adjustments, Client, adjustments_of, client_of
from agentx.reporter.halves import drifts, halves
from agentx.reporter.jobs import Jobs, jobs_of
from agentx.reporter.observed import Reuse, reuse
from agentx.reporter.server_counters import counters_of
from agentx.reporter.spread import Rates, Spread, rates, spread, spread_of
from agentx.reporter.throughput import MEASURED, Throughput, Window, throughput, window_of
from agentx.reporter.turns import Gaps, TurnTimes, chunk_gaps, mean_in_flight, turn_times
from agentx.results import Books, RunResults


@dataclass(frozen=True, slots=True)
class Latency:
    """Spreads in seconds; None: no completed turn has the figure.

    `tpot_estimated` of the `tpot.n` turns had chunks without token counts, `tpot_missing` completed turns have no
    TPOT (all tokens in one chunk, or unknown). `inter_token` goes over the turns whose every token came alone,
    `inter_chunk` over all.
    """

    ttft: Spread | None
    ttft_from_due: Spread | None
    tpot: Spread | None
    tpot_estimated: int
    tpot_missing: int
    inter_token: Spread | None
    inter_chunk: Spread | None
    latency: Spread | None
    latency_from_due: Spread | None
    lag: Spread | None
    queue: Spread | None
    server_ttft: Spread | None
    client_server_ttft: Spread | None


@dataclass(frozen=True, slots=True)
class Interactivity:
    """Tokens per second that one user sees, while a reply streams and end to end."""

    streaming: Rates | None
    end_to_end: Rates | None


@dataclass(frozen=True, slots=True)
class Lengths:
    """Completed turns by tokens told against tokens asked; `untold`: the server gave no count.

    `missing` tokens were asked for and did not come. `isl`, `osl` are spreads of the server's counts.
    """

    shorter: int
    longer: int
    untold: int
    missing: int
    isl: Spread | None
    osl: Spread | None


@dataclass(frozen=True, slots=True)
class Failed:
    """One kind of failure among measured attempts, with the HTTP status of those that have one and an example."""

    kind: str
    count: int
    statuses: Mapping[int, int]
    example: str


@dataclass(frozen=True, slots=True)
class Metrics:
    """Every figure of one run. `attempts` measured ones, of which `completed` were answered.

    `in_flight` of them at a time, on average over the window; None without one of some length. `drifts`: what changed
    from the first half of the plan's window to the second, as a ratio; empty where the plan has none. `times` of the
    completed ones.
    """

    times: Sequence[TurnTimes]
    attempts: int
    completed: int
    sessions: int
    other_phases: Mapping[str, int]
    in_flight: float | None
    drifts: Mapping[str, float]
    books: Books
    latency: Latency
    interactivity: Interactivity
    throughput: Throughput
    lengths: Lengths
    reuse: Reuse
    jobs: Jobs
    failures: tuple[Failed, ...]
    adjustments: Adjustments
    client: Client
    acceptance: Acceptance | None


def measure(run: RunResults) -> Metrics:
    """All figures. Reads the trace for the ideal reuse, and does without it when it is gone."""
    measured = [attempt for attempt in run.attempts if attempt.phase == MEASURED]
    done = [attempt for attempt in measured if attempt.ok]
    times = turn_times(done)
    window = window_of(run, measured)
    others = Counter(attempt.phase for attempt in run.attempts if attempt.phase != MEASURED)
    latency, reused = _latency(times, measured), reuse(run, measured, counters_of(run, measured))
    return Metrics(
        times=times,
        attempts=len(measured),
        completed=len(done),
        sessions=len({attempt.session for attempt in measured}),
        other_phases=dict(sorted(others.items())),
        in_flight=None
        if window is None or window.seconds <= 0
        else mean_in_flight(measured, window.start, window.stop),
        drifts=_drifts(run, window),
        books=run.books(),
        latency=latency,
        interactivity=Interactivity(rates(latency.tpot), rates(_spread(times, lambda one: one.per_token))),
        throughput=throughput(run, measured, window, trust_cached=not reused.by_request.doubtful),
        lengths=_lengths(times),
        reuse=reused,
        jobs=jobs_of(run, measured, window),
        failures=_failures(measured),
        adjustments=adjustments_of(run),
        client=client_of(run, measured),
        acceptance=acceptance_of(run, done, reused.counters),
    )


def _drifts(run: RunResults, window: Window | None) -> Mapping[str, float]:
    """Only of a window that the plan gave: fixed work begins and ends with few in flight."""
    pair = halves(run, window) if window is not None and window.source == "plan" else None
    return {} if pair is None else drifts(pair)


def _latency(times: Sequence[TurnTimes], measured: Sequence[Attempt]) -> Latency:
    tpot = _spread(times, lambda one: one.tpot)
    every, alone = chunk_gaps([one.attempt for one in times])
    return Latency(
        ttft=_spread(times, lambda one: one.ttft),
        ttft_from_due=_spread(times, lambda one: one.ttft_from_due),
        tpot=tpot,
        tpot_estimated=sum(one.tpot_estimated for one in times),
        tpot_missing=len(times) - (tpot.n if tpot else 0),
        inter_token=_gaps(alone),
        inter_chunk=_gaps(every),
        latency=_spread(times, lambda one: one.latency),
        latency_from_due=_spread(times, lambda one: one.latency_from_due),
        lag=spread((attempt.session, attempt.lag) for attempt in measured),
        queue=_spread(times, lambda one: one.attempt.queue_seconds),
        server_ttft=_spread(times, lambda one: one.attempt.server_ttft),
        client_server_ttft=_spread(times, _client_less_server),
    )


def _spread(times: Sequence[TurnTimes], figure: Callable[[TurnTimes], float | None]) -> Spread | None:
    return spread((one.attempt.session, value) for one in times if (value := figure(one)) is not None)


def _gaps(gaps: Gaps) -> Spread | None:
    return spread_of(np.sort(gaps.values).data, gaps.sessions)  # not a list: there may be millions


def _client_less_server(one: TurnTimes) -> float | None:
    server = one.attempt.server_ttft
    return None if one.ttft is None or server is None else one.ttft - server


def _lengths(times: Sequence[TurnTimes]) -> Lengths:
    known = [(one.tokens, one.attempt.osl) for one in times if one.tokens is not None]
    return Lengths(
        shorter=sum(came < asked for came, asked in known),
        longer=sum(came > asked for came, asked in known),
        untold=len(times) - len(known),
        missing=sum(max(0, asked - came) for came, asked in known),
        isl=_spread(times, lambda one: one.attempt.prompt_tokens),
        osl=_spread(times, lambda one: one.tokens),
    )


def _failures(measured: Sequence[Attempt]) -> tuple[Failed, ...]:
    """Most frequent first."""
    by_kind: dict[str, list[Attempt]] = {}
    for attempt in measured:
        if attempt.failure is not None:
            by_kind.setdefault(attempt.failure.kind, []).append(attempt)
    rows = []
    for kind, failed in sorted(by_kind.items(), key=lambda item: (-len(item[1]), item[0])):
        statuses = Counter(attempt.status for attempt in failed if attempt.status is not None)
        example = next((one.failure.message for one in failed if one.failure and one.failure.message), "")
        rows.append(Failed(kind, len(failed), dict(sorted(statuses.items())), example))
    return tuple(rows)
