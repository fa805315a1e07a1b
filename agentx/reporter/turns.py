"""The times of one attempt, from its own record alone.

The first chunk is everything that arrived at the moment of the first token: what one read brought has one time.
Token counts are the server's. Where chunks carry none, the reply's tokens are spread evenly over its chunks, and
what follows from that is marked estimated; where the server told no count at all, it stays unknown: the tokens
that were asked for are never taken for those that came.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from agentx.core import Attempt, Chunk

_MICRO = 1e-6


@dataclass(frozen=True, slots=True)
class Arrivals:
    """When a reply's tokens came: (seconds on the run's clock, tokens), ascending. `exact` unless estimated."""

    tokens: tuple[tuple[float, float], ...]
    exact: bool

    def between(self, start: float, stop: float) -> float:
        """Tokens that came at start <= t <= stop."""
        return sum(count for at, count in self.tokens if start <= at <= stop)


@dataclass(frozen=True, slots=True)
class TurnTimes:
    """Seconds of one completed attempt; None where it cannot be told (see the functions of the same names)."""

    attempt: Attempt
    tokens: int | None
    ttft: float | None
    ttft_from_due: float | None
    tpot: float | None
    tpot_estimated: bool
    latency: float | None
    latency_from_due: float | None
    per_token: float | None  # latency / tokens


def turn_times(attempt: Attempt) -> TurnTimes:
    """All times of an attempt."""
    tokens, done = reply_tokens(attempt), finished(attempt)
    pace, estimated = tpot(attempt)
    latency = None if done is None else done - attempt.sent
    return TurnTimes(
        attempt=attempt,
        tokens=tokens,
        ttft=None if attempt.first is None else attempt.first - attempt.sent,
        ttft_from_due=None if attempt.first is None else attempt.first - attempt.due,
        tpot=pace,
        tpot_estimated=estimated,
        latency=latency,
        latency_from_due=None if done is None else done - attempt.due,
        per_token=latency / tokens if latency is not None and tokens else None,
    )


def finished(attempt: Attempt) -> float | None:
    """When the last token came, or the body ended where no token was seen."""
    return attempt.last if attempt.last is not None else attempt.end


def mean_in_flight(attempts: Iterable[Attempt], start: float, stop: float) -> float:
    """Requests at a time between `start` < `stop`: from when each was sent to its last token, or its end."""
    ends = ((one.sent, done) for one in attempts if (done := finished(one)) is not None)
    return math.fsum(max(0.0, min(stop, done) - max(start, sent)) for sent, done in ends) / (stop - start)


def reply_tokens(attempt: Attempt) -> int | None:
    """The reply's tokens: the server's usage, else the sum over chunks if each carried a count, else unknown."""
    if attempt.completion_tokens is not None:
        return attempt.completion_tokens
    counts = [chunk.tokens for chunk in attempt.chunks]
    known = [count for count in counts if count is not None]
    return sum(known) if counts and len(known) == len(counts) else None


def arrivals(attempt: Attempt) -> Arrivals | None:
    """When the tokens came; None when nothing tells how many there were."""
    tokens, done = reply_tokens(attempt), finished(attempt)
    if not attempt.chunks:
        return Arrivals(((done, float(tokens)),), exact=True) if tokens is not None and done is not None else None
    known = [chunk.tokens for chunk in attempt.chunks if chunk.tokens is not None]
    if tokens is None and not known:
        return None
    counts, exact = _spread_out(attempt.chunks, tokens)
    latest = float("inf") if done is None else done  # rounding to microseconds must not carry a token past the last
    times = (min(attempt.sent + chunk.micros / 1e6, latest) for chunk in attempt.chunks)
    return Arrivals(tuple(zip(times, counts, strict=True)), exact)


def _spread_out(chunks: Sequence[Chunk], total: int | None) -> tuple[list[float], bool]:
    """Tokens by chunk, and whether they are exact: what no chunk accounts for goes evenly to those without a count."""
    counts = [float(chunk.tokens or 0) for chunk in chunks]
    silent = [at for at, chunk in enumerate(chunks) if chunk.tokens is None]
    missing = 0.0 if total is None else total - sum(counts)
    if missing > 0:
        for at in silent or [len(chunks) - 1]:
            counts[at] += missing / (len(silent) or 1)
    return counts, total is not None and missing == 0


def tpot(attempt: Attempt) -> tuple[float | None, bool]:
    """(last - first) / (tokens - tokens in the first chunk), and whether it is estimated.

    None when all came in one chunk, or when the tokens are unknown.
    """
    tokens, first, last = reply_tokens(attempt), attempt.first, attempt.last
    if tokens is None or first is None or last is None or last <= first:
        return None, False
    came = arrivals(attempt) if attempt.chunks else None
    limit = first + 1.5 * _MICRO  # chunks are stamped in whole microseconds
    head = came.between(attempt.sent, limit) if came else 1.0
    rest = tokens - head
    estimated = came is None or not came.exact
    return ((last - first) / rest, estimated) if rest > 0 else (None, False)


def chunk_gaps(attempt: Attempt) -> list[float]:
    """Seconds between chunks that arrived at different times."""
    times = sorted({chunk.micros for chunk in attempt.chunks if chunk.tokens != 0})
    return [(later - earlier) * _MICRO for earlier, later in pairwise(times)]


def tokens_have_own_times(attempt: Attempt) -> bool:
    """Whether each token came alone, so that a gap between chunks is a gap between tokens."""
    chunks = [chunk for chunk in attempt.chunks if chunk.tokens != 0]
    alone = all(chunk.tokens == 1 for chunk in chunks) and len({chunk.micros for chunk in chunks}) == len(chunks)
    return bool(chunks) and alone and reply_tokens(attempt) == len(chunks)
