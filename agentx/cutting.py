"""A smaller trace out of a big one: fewer sessions, fewer turns, shorter contexts.

What is left keeps its identities: the header's scope, the session ids and the segment ids stay, so a cut trace
shares with itself what the whole one shared. Turns are numbered anew; a turn whose wait or prompt depends on a
dropped one goes with it, except that a prompt which merely branches from one is written out in full. Segments and
threads that nothing uses any more are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from agentx.core import Header, Prompt, Session, Thread, Turn
from agentx.errors import BadInput
from agentx.frames import Tear
from agentx.trace import TraceReader, TraceWriter, Unknown


@dataclass(frozen=True, slots=True)
class Limits:
    """Keep the first `sessions`, the first `turns` of each, and no turn of more than `max_context` tokens.

    A turn's context is its prompt and its reply, isl + osl. The turn that exceeds it ends its thread, and everything
    that waits for it. None: no limit.
    """

    sessions: int | None = None
    turns: int | None = None
    max_context: int | None = None


@dataclass(slots=True)
class CutReport:
    """What was read and kept, and what was dropped by reason; `tear`: what of the source could not be read."""

    sessions_read: int = 0
    sessions: int = 0
    turns_read: int = 0
    turns: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    more: bool = False  # sessions behind the last one that was kept were not read
    tear: Tear | None = None

    def lines(self) -> list[str]:
        """The report in sentences, for a terminal."""
        behind = "; those behind were not read" if self.more else ""
        lines = [
            f"sessions  {self.sessions_read:,} read = {self.sessions:,} kept + "
            f"{self.sessions_read - self.sessions:,} dropped{behind}",
            f"turns     {self.turns_read:,} read = {self.turns:,} kept + {self.turns_read - self.turns:,} dropped",
        ]
        lines += [f"  {count:>9,}  {reason}" for reason, count in sorted(self.dropped.items())]
        return [*lines, *([f"the source is {self.tear}"] if self.tear else [])]


OVER = "turns above the context limit"
BEHIND = "turns behind one that was dropped"
LATE = "turns behind the first N of a session"
EMPTY = "sessions without a turn left"


def cut(source: Path, out: Path, limits: Limits) -> CutReport:
    """Write the part of `source` within `limits` to `out`, one session in memory at a time.

    Raises BadInput when the source is no trace, or when nothing of it is left: then nothing is written.
    """
    reader, report, target = TraceReader(source), CutReport(), _Target(out)
    try:
        for item in _parts(reader, limits, report):
            target.write(item)
    except BadInput:
        target.discard()
        raise
    if target.writer is None:
        why = ", ".join(f"{count} {reason}" for reason, count in sorted(report.dropped.items()))
        raise BadInput(f"nothing is left of this trace: {why or 'it has no session'}", file=source)
    target.writer.close()
    report.tear = reader.tear
    return report


def _parts(reader: TraceReader, limits: Limits, report: CutReport) -> Iterator[Header | Session | Unknown]:
    """What goes into the cut trace. File-scoped segments are left to the writer: it knows which are used."""
    for item in reader.items():
        if isinstance(item, Header):
            yield _marked(item, limits)
        elif isinstance(item, Session):
            if limits.sessions is not None and report.sessions == limits.sessions:
                report.more = True
                return
            session = cut_session(item, limits, report)
            if session is not None:
                yield session
        elif isinstance(item, Unknown):
            yield item


@dataclass(slots=True)
class _Target:
    """The cut trace. Headers are written with the first session behind them: none at the end, none left out before."""

    out: Path
    writer: TraceWriter | None = None
    waiting: list[Header | Unknown] = field(default_factory=list)

    def write(self, item: Header | Session | Unknown) -> None:
        if isinstance(item, Header) or (self.waiting and isinstance(item, Unknown)):
            self.waiting.append(item)
            return
        for before in self.waiting:
            self._put(before)
        self.waiting = []
        self._put(item)

    def _put(self, item: Header | Session | Unknown) -> None:
        if self.writer is not None:
            self.writer.write(item)
        elif isinstance(item, Header):
            self.writer = TraceWriter(self.out, item)

    def discard(self) -> None:
        if self.writer is not None:
            self.writer.close()
            self.out.unlink()


def _marked(header: Header, limits: Limits) -> Header:
    """The header with a note of the cut; cuts of cuts are listed in order."""
    wanted = {"sessions": limits.sessions, "turns": limits.turns, "max_context": limits.max_context}
    note = {name: value for name, value in wanted.items() if value is not None}
    before = header.provenance.get("cut")
    cuts = [*before, note] if isinstance(before, list) else [note]
    return replace(header, provenance={**header.provenance, "cut": cuts})


def cut_session(session: Session, limits: Limits, report: CutReport) -> Session | None:
    """The part of a session within the limits, None when no turn is left; counted in the report."""
    report.sessions_read += 1
    report.turns_read += len(session.turns)
    kept = _within(session, limits, report.dropped)
    report.turns += len(kept)
    if not kept:
        report.dropped[EMPTY] += 1
        return None
    report.sessions += 1
    return session if len(kept) == len(session.turns) else _part(session, kept)


def _within(session: Session, limits: Limits, dropped: Counter[str]) -> list[int]:
    """The indices of the turns to keep: with each one, everything it waits for."""
    gone: set[int] = set()
    ended: set[int] = set()  # threads
    kept = []
    for turn in session.turns:
        size = turn.isl + turn.output.tokens
        if limits.turns is not None and turn.index >= limits.turns:
            reason = LATE
        elif turn.thread in ended or not gone.isdisjoint(turn.after):
            reason = BEHIND
        elif limits.max_context is not None and size > limits.max_context:
            reason = OVER
        else:
            kept.append(turn.index)
            continue
        dropped[reason] += 1
        gone.add(turn.index)
        ended.add(turn.thread)
    return kept


def _part(session: Session, kept: list[int]) -> Session:
    """A session of the turns `kept` alone, numbered anew."""
    number = {old: new for new, old in enumerate(kept)}
    turns = tuple(_renumbered(session, session.turns[old], number) for old in kept)
    used = set(_used(turns))
    segments = {id: segment for id, segment in session.segments.items() if id in used}
    shared = {id: segment for id, segment in session.shared.items() if id in used}
    return replace(session, turns=turns, threads=_threads(session, turns), segments=segments, shared=shared)


def _renumbered(session: Session, turn: Turn, number: dict[int, int]) -> Turn:
    prompt = turn.prompt
    if prompt.base in number:
        prompt = replace(prompt, base=number[prompt.base])
    elif prompt.base is not None:  # it branched from a turn that is gone
        prompt = Prompt(tuple(session.pieces(turn.index)))
    return replace(turn, index=number[turn.index], after=tuple(number[index] for index in turn.after), prompt=prompt)


def _used(turns: tuple[Turn, ...]) -> Iterator[int]:
    for turn in turns:
        yield from (piece.segment for piece in turn.prompt.append)
        if turn.reply is not None:
            yield turn.reply


def _threads(session: Session, turns: tuple[Turn, ...]) -> tuple[Thread, ...]:
    """The threads that still have turns, and their parents."""
    wanted = {turn.thread for turn in turns}
    for thread in reversed(session.threads):  # a parent comes before its children
        if thread.id in wanted and thread.parent is not None:
            wanted.add(thread.parent)
    return tuple(thread for thread in session.threads if thread.id in wanted)
