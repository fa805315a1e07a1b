"""The times of attempts, each from its own record alone.

The first chunk is everything that arrived at the moment of the first token: what one read brought has one time.
Token counts are the server's. Where chunks carry none, the reply's tokens are spread evenly over its chunks, and
what follows from that is marked estimated; where the server told no count at all, it stays unknown: the tokens
that were asked for are never taken for those that came. Chunks are many, so those of some attempts at a time are
columns of numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agentx.chunks import Chunks
from agentx.core import Attempt

_MICRO = 1e-6
_PART = 1024  # attempts whose chunks are columns at one time
_LATER = 1 << 60  # microseconds: later than any last token
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class TurnTimes:
    """Seconds of one completed attempt; None where it cannot be told.

    `tpot` is (last - first) / (tokens - tokens in the first chunk); there is none when all came in one chunk.
    """

    attempt: Attempt
    tokens: int | None
    ttft: float | None
    ttft_from_due: float | None
    tpot: float | None
    tpot_estimated: bool
    latency: float | None
    latency_from_due: float | None
    per_token: float | None  # latency / tokens


@dataclass(frozen=True, slots=True)
class Arrivals:
    """When the replies of some attempts came.

    By attempt: the `tokens` of its reply; whether it is `known` how many came when, and whether that is `exact` and not
    estimated; how many chunks (`sizes`). By chunk: the place of its attempt (`owner`, ascending), `micros` after it was
    sent, the tokens that were `told` (below 0: none), seconds on the run's clock (`at`), and its tokens (`counts`, 0
    where they are not known). A reply without chunks came at its end, as one chunk that `told` 0.
    """

    attempts: Sequence[Attempt]
    tokens: Sequence[int | None]
    known: Flags
    exact: Flags
    sizes: Ints
    owner: Ints
    micros: Ints
    told: Ints
    at: Floats
    counts: Floats

    def between(self, start: Floats | float, stop: Floats | float) -> Floats:
        """By attempt: tokens that came at start <= t <= stop, which are numbers or by chunk."""
        inside = (start <= self.at) & (self.at <= stop)
        return _sums(self.owner, self.counts * inside, len(self.attempts))


def arrivals(attempts: Sequence[Attempt]) -> Iterator[Arrivals]:
    """Of all attempts in their order, some at a time."""
    for start in range(0, len(attempts), _PART):
        yield _arrivals(attempts[start : start + _PART])


def _arrivals(attempts: Sequence[Attempt]) -> Arrivals:
    many = len(attempts)
    chunks = [Chunks.of(one.chunks).flat for one in attempts]
    sizes = np.array([len(flat) // 2 for flat in chunks])
    whole = b"".join(flat or _NO_CHUNK for flat in chunks)
    micros, told = np.frombuffer(whole, np.int64).reshape(-1, 2).T
    owner = np.repeat(np.arange(many), np.maximum(sizes, 1))
    silent = told < 0
    sums, silences = _sums(owner, np.where(silent, 0, told), many), _sums(owner, silent, many)
    tokens = [
        one.completion_tokens if one.completion_tokens is not None else int(told) if size and not quiet else None
        for one, told, size, quiet in zip(attempts, sums, sizes, silences, strict=True)
    ]
    latest = np.array([math.inf if (done := finished(one)) is None else done for one in attempts])
    missing = np.array([math.nan if count is None else count for count in tokens]) - sums
    known = np.where(sizes > 0, ~np.isnan(missing) | (silences < sizes), ~np.isnan(missing) & (latest < math.inf))
    return Arrivals(
        attempts,
        tokens,
        known=known,
        exact=(missing == 0) | (sizes == 0),
        sizes=sizes,
        owner=owner,
        micros=micros,
        told=told,
        # rounding to microseconds must not carry a token past the last
        at=np.minimum(np.array([one.sent for one in attempts])[owner] + micros / 1e6, latest[owner]),
        counts=_spread_out(owner, np.where(silent, 0.0, told), silent, missing, silences),
    )


def _sums(owner: Ints, values: npt.ArrayLike, many: int) -> Floats:
    """By attempt, added up in the order of the chunks."""
    return np.bincount(owner, values, many).astype(np.float64, copy=False)


_NO_CHUNK = np.array([_LATER, 0], np.int64).tobytes()


def _spread_out(owner: Ints, counts: Floats, silent: Flags, missing: Floats, silences: Floats) -> Floats:
    """Tokens by chunk: what no chunk accounts for goes evenly to those without a count, else to the last one."""
    lacks = np.where(missing > 0, missing, 0.0)
    counts += np.where(silent, (lacks / np.maximum(silences, 1))[owner], 0.0)
    ends = np.flatnonzero(np.diff(owner, append=-1))
    counts[ends] += np.where(silences == 0, lacks, 0.0)
    return counts


def turn_times(attempts: Sequence[Attempt]) -> list[TurnTimes]:
    """All times of each attempt."""
    return [times for part in arrivals(attempts) for times in _turn_times(part)]


def _turn_times(part: Arrivals) -> Iterator[TurnTimes]:
    # chunks are stamped in whole microseconds
    first = np.array([math.nan if one.first is None else one.first + 1.5 * _MICRO for one in part.attempts])
    sent = np.array([one.sent for one in part.attempts])
    heads = part.between(sent[part.owner], first[part.owner]).tolist()
    columns = zip(part.attempts, part.tokens, heads, part.sizes.tolist(), part.exact.tolist(), strict=True)
    for one, tokens, head, size, exact in columns:
        done = finished(one)
        pace = _tpot(one, tokens, head if size else 1.0)
        latency = None if done is None else done - one.sent
        yield TurnTimes(
            attempt=one,
            tokens=tokens,
            ttft=None if one.first is None else one.first - one.sent,
            ttft_from_due=None if one.first is None else one.first - one.due,
            tpot=pace,
            tpot_estimated=pace is not None and not (size and exact),
            latency=latency,
            latency_from_due=None if done is None else done - one.due,
            per_token=latency / tokens if latency is not None and tokens else None,
        )


def _tpot(one: Attempt, tokens: int | None, head: float) -> float | None:
    if tokens is None or one.first is None or one.last is None or one.last <= one.first:
        return None
    return (one.last - one.first) / (tokens - head) if tokens > head else None


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
    counts = Chunks.of(attempt.chunks).flat[1::2]
    return sum(counts) if counts and min(counts) >= 0 else None


@dataclass(frozen=True, slots=True)
class Gaps:
    """Seconds between chunks that arrived at different times, and how many sessions they are of."""

    values: Floats
    sessions: int


def chunk_gaps(attempts: Sequence[Attempt]) -> tuple[Gaps, Gaps]:
    """(of all attempts, of those whose every token came alone, so that they are gaps between tokens)."""
    every, alone = _Gathered(), _Gathered()
    for part in arrivals(attempts):
        kept = part.told != 0
        order = np.lexsort((part.micros[kept], part.owner[kept]))
        owner, micros, told = (column[kept][order] for column in (part.owner, part.micros, part.told))
        gaps, same = np.diff(micros), owner[1:] == owner[:-1]
        many = len(part.attempts)
        chunks = _sums(owner, np.ones(len(owner)), many)
        single = _sums(owner, told == 1, many) - _sums(owner[1:], same & (gaps == 0), many) == chunks
        single &= chunks == [-1 if count is None else count for count in part.tokens]
        apart = same & (gaps > 0)
        every.add(part, owner[1:][apart], gaps[apart])
        apart &= single[owner[1:]]
        alone.add(part, owner[1:][apart], gaps[apart])
    return every.found(), alone.found()


class _Gathered:
    def __init__(self) -> None:
        self.values: list[Floats] = []
        self.sessions: set[str] = set()

    def add(self, part: Arrivals, owner: Ints, micros: Ints) -> None:
        self.values.append(np.asarray(micros * _MICRO, np.float64))
        self.sessions.update(part.attempts[place].session for place in np.unique(owner).tolist())

    def found(self) -> Gaps:
        return Gaps(np.concatenate(self.values) if self.values else np.empty(0), len(self.sessions))
