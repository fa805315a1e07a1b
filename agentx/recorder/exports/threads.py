"""A session as other formats see it: lines of prompts one after another, with identities and times.

Most formats have no threads, no waiting and no edits of a context. So each thread is laid out as a line of its own; a
*stretch* of it is what a format that only appends can hold: every prompt begins with the prompt before it and, behind
that, at least as many tokens as the reply had. A time-line of starts is rebuilt from waits, gaps and what was observed
of each call's duration; where nothing was observed a call takes no time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentx.core import Run, Session, Stream, Thread, Turn
from agentx.recorder.imports.books import Books


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A turn at its place in a line. `runs` are the identities of its prompt's tokens, `isl` of them.

    `start` is seconds after the session's, `took` seconds or None. The first `told` tokens are those of its `pieces`
    pieces. `kept` tokens lead both this prompt and the one before it in the line. `fresh` tokens are what comes behind
    prompt and reply before it; None: it does not go on.
    """

    turn: Turn
    runs: list[Run]
    start: float
    took: float | None
    told: int
    pieces: int
    kept: int = 0
    fresh: int | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A thread and its calls in order."""

    thread: Thread
    calls: tuple[Call, ...]


def lines(session: Session, books: Books) -> list[Line]:
    """The threads of a session that call, in the order of their first calls."""
    starts = begins(session)
    calls: dict[int, list[Call]] = {}
    for turn in session.turns:
        before = calls.setdefault(turn.thread, [])
        before.append(_call(session, turn, starts[turn.index], before[-1] if before else None, books))
    threads = {thread.id: thread for thread in session.threads}
    return [Line(threads[id], tuple(found)) for id, found in calls.items()]


def _call(session: Session, turn: Turn, start: float, before: Call | None, books: Books) -> Call:
    runs, pieces = _runs(session, turn, before)
    told = length(runs)
    kept = 0 if before is None else shared(before.runs, runs)
    fresh = None if before is None else _fresh(session, before, turn, runs, kept, books)
    if told < turn.isl:
        books.note("prompt with tokens that no piece accounts for: they get an identity of their own")
        stream = Stream(f"{session.scope}/{session.id}/turn", "segment", turn.index)
        runs.append(Run(stream, 0, turn.isl - told, "user"))
    return Call(turn, runs, start, duration(turn), told, pieces, kept, fresh)


def _runs(session: Session, turn: Turn, before: Call | None) -> tuple[list[Run], int]:
    """The joined runs of a prompt's pieces, and how many pieces these are."""
    prompt = turn.prompt
    if before is not None and prompt.base == before.turn.index and prompt.keep == before.pieces:
        # It keeps the whole prompt before it: only what is new is looked up.
        new = [run for piece in prompt.append for run in session.piece_runs(piece)]
        old = before.runs if before.told == before.turn.isl else before.runs[:-1]
        return joined([*old, *new]), before.pieces + len(prompt.append)
    found = session.pieces(turn.index)
    return joined([run for piece in found for run in session.piece_runs(piece)]), len(found)


def _fresh(session: Session, before: Call, turn: Turn, runs: list[Run], kept: int, books: Books) -> int | None:
    """Tokens behind the prompt and the reply before, None when the prompt does not go on from them."""
    grown = turn.isl - before.turn.isl - before.turn.output.tokens
    if kept < before.told or grown < 0:
        return None
    reply = joined(session.reply_runs(before.turn.index))
    if before.turn.output.tokens and (not reply or shared(reply, joined(cut(runs, before.told))) < length(reply)):
        books.note("reply that the next prompt does not hold as it was: as many of its tokens stand for it")
    return grown


def duration(turn: Turn) -> float | None:
    """Seconds that a call took, None where that was not observed."""
    seen = turn.observed
    if seen is None or seen.start is None or seen.end is None:
        return None
    return max(0.0, seen.end - seen.start)


def begins(session: Session) -> list[float]:
    """When each turn starts, in seconds after the session's: the last end of what it waits for, and the gap."""
    starts: list[float] = []
    ends: list[float] = []
    for turn in session.turns:
        since = max((ends[index] for index in turn.after), default=0.0)
        starts.append(round(since + turn.gap.seconds, 6))
        ends.append(starts[-1] + (duration(turn) or 0.0))
    return starts


def stretches(line: Line) -> Iterator[tuple[Call, ...]]:
    """A line cut where a prompt does not go on from the prompt and reply before it."""
    found: list[Call] = []
    for call in line.calls:
        if found and call.fresh is None:
            yield tuple(found)
            found = []
        found.append(call)
    yield tuple(found)


def name(session: Session, thread: Thread, part: int = 0) -> str:
    """What a stretch of a thread is called as a session of another format."""
    own = session.key if thread.id == 0 else f"{session.key}/{thread.id}"
    return f"{own}#{part + 1}" if part else own


# --- runs of token identities ------------------------------------------------------------------------------------


def joined(runs: Sequence[Run]) -> list[Run]:
    """The runs without borders between neighbours of one stream."""
    found: list[Run] = []
    for run in runs:
        if found and found[-1].stream == run.stream and found[-1].stop == run.start:
            found[-1] = found[-1]._replace(stop=run.stop)
        elif run.stop > run.start:
            found.append(run)
    return found


def length(runs: Sequence[Run]) -> int:
    return sum(run.stop - run.start for run in runs)


def shared(left: Sequence[Run], right: Sequence[Run]) -> int:
    """How many leading tokens two joined lists of runs share."""
    tokens = 0
    for one, other in zip(left, right, strict=False):
        if one.stream != other.stream or one.start != other.start:
            return tokens
        tokens += min(one.stop, other.stop) - one.start
        if one.stop != other.stop:
            return tokens
    return tokens


def cut(runs: Sequence[Run], start: int, stop: int | None = None) -> list[Run]:
    """Tokens `start ... stop - 1` of a list of runs."""
    found, at = [], 0
    for run in runs:
        size = run.stop - run.start
        low = max(start - at, 0)
        high = size if stop is None else min(stop - at, size)
        if low < high:
            found.append(run._replace(start=run.start + low, stop=run.start + high))
        at += size
    return found
