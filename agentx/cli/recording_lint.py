"""What recorders get wrong, looked for in a trace that was recorded or imported.

Clocks: whole seconds, calls of one thread that overlap, subagents placed elsewhere than at their spawn, pauses of many
hours, pauses that hold failed attempts. Rows: sessions that repeat another one's calls, prompts that shrink or models
that change without an event. Counts: prompts too short for the replies in them (`growth_lint.py`). Figures: more tokens
cached than there were, first tokens outside of their call, or hardly any. Reach: prompts without tools and system,
identities that end with their session, one tenant alone. What the importer itself detected, left out, or knows of its
format stands in the header, and is said again. Only a trace that says who imported or compiled it is looked at so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agentx.cli.growth_lint import Growth
from agentx.core import LEADING_LAYERS, Header, Session, Turn

CLOCK = 0.05  # seconds by which two clocks, or two roundings, may differ
WHOLE = 1.0  # the same where times are whole seconds
LONGEST_GAP = 6 * 3600.0
RUN = 5  # calls in a row with equal lengths, from which it is no accident
LEAST_TIMES, LEAST_SESSIONS = 5, 10  # of which a share is worth a finding
_NOT_CALLS = frozenset({"lines", "events", "spans", "messages"})  # rows that are dropped for what they are
Found = tuple[str, str, str]  # level, rule, where


@dataclass(slots=True)
class Recording:
    """The sessions of one file, as far as rules need more than one of them."""

    starts: int = 0  # differences of starts within a thread
    whole: int = 0  # of which whole seconds
    ended: int = 0  # turns whose end is known
    first_tokens: int = 0  # of which the first token is, too
    sessions: int = 0
    runs: dict[int, str] = field(default_factory=dict)  # a digest of lengths in a row -> the session that had it first
    openings: Counter[object] = field(default_factory=Counter)
    growth: Growth = field(default_factory=Growth)

    def add(self, session: Session) -> Iterator[Found]:
        """What one session shows."""
        self.sessions += 1
        self._opening(session)
        self._clock(session)
        self.growth.add(session)
        yield from self._double(session)
        threads: dict[int, Turn] = {}
        slack = WHOLE if self.starts and self.whole == self.starts else CLOCK
        for turn in session.turns:
            for level, rule, detail in _turn(session, turn, threads.get(turn.thread), slack):
                yield level, rule, f" turn {turn.index}{': ' + detail if detail else ''}"
            threads[turn.thread] = turn
        yield from _tools(session)

    def end(self, header: Header) -> Iterator[Found]:
        """What the file shows as a whole."""
        if self.starts >= LEAST_TIMES and self.whole >= 0.95 * self.starts:
            yield "note", "times are whole seconds: pauses are off by up to a second", f"{self.whole} of {self.starts}"
        if self.ended >= LEAST_TIMES and self.first_tokens < 0.5 * self.ended:
            yield "note", "the time to the first token is known for few turns", f"{self.first_tokens} of {self.ended}"
        if header.identity == "session" and self.sessions > 1:
            yield "note", "identities end with their session: what sessions share cannot be replayed", ""
        if self.sessions >= LEAST_SESSIONS and max(self.openings.values(), default=0) == self.sessions:
            yield "note", "all sessions begin with the same content: one tenant", f"{self.sessions} sessions"
        yield from self.growth.end()
        yield from _told(header)

    def _opening(self, session: Session) -> None:
        runs = session.runs(0) if session.turns else []
        self.openings[(runs[0].stream, runs[0].start) if runs else None] += 1

    def _clock(self, session: Session) -> None:
        before: dict[int, float] = {}
        for turn in session.turns:
            seen = turn.observed
            if seen is None or seen.start is None:
                continue
            if turn.thread in before:
                step = seen.start - before[turn.thread]
                self.starts += 1
                self.whole += abs(step - round(step)) < 1e-6
            before[turn.thread] = seen.start
            if seen.end is not None:
                self.ended += 1
                self.first_tokens += seen.ttft is not None

    def _double(self, session: Session) -> Iterator[Found]:
        lengths = [(turn.isl, turn.output.tokens) for turn in session.turns]
        yield from self._short(session)
        mine: set[int] = set()
        other: str | None = None
        for at in range(len(lengths) - RUN + 1):
            digest = hash(tuple(lengths[at : at + RUN]))
            other = other or self.runs.get(digest)
            mine.add(digest)
        for digest in mine:
            self.runs.setdefault(digest, session.id)
        if other is not None:
            yield "note", f"a session has {RUN} calls in a row like another's: a copy, a resume or a fork", f": {other}"

    def _short(self, session: Session) -> Iterator[Found]:
        """A session too short for a run: its pauses must be the same, too."""
        if not 1 < len(session.turns) < RUN:
            return
        digest = hash(tuple((turn.isl, turn.output.tokens, turn.gap.seconds) for turn in session.turns))
        other = self.runs.setdefault(digest, session.id)
        if other != session.id:
            yield "note", "a short session has the lengths and pauses of another one: a copy", f": {other}"


def _turn(session: Session, turn: Turn, before: Turn | None, slack: float) -> Iterator[Found]:
    seen = turn.observed
    if seen is not None:
        yield from _figures(turn)
        yield from _order(session, turn, slack)
    if turn.gap.seconds > LONGEST_GAP:
        yield "note", "a pause is longer than six hours", f"{turn.gap.seconds:,.0f} s"
    if before is None:
        return
    if turn.isl < before.isl and turn.event is None:
        yield "note", "a prompt is shorter than the one before, and no event says why", f"{before.isl} to {turn.isl}"
    changed = None not in (turn.model, before.model) and turn.model != before.model
    if changed and (turn.event is None or turn.event.kind != "model_switch"):
        yield "note", "the model changes in a thread, and no event says so", ""


def _figures(turn: Turn) -> Iterator[Found]:
    seen = turn.observed
    if seen is None:
        return
    if seen.cached is not None and seen.cached > turn.isl:
        yield "error", "more tokens were cached than the prompt has", f"{seen.cached} of {turn.isl}"
    if seen.ttft is not None and seen.start is not None and seen.end is not None:
        took = seen.end - seen.start
        if seen.ttft > took + CLOCK:
            yield "error", "the first token came after the end", f"{seen.ttft} s of {took:.3f} s"


def _order(session: Session, turn: Turn, slack: float) -> Iterator[Found]:
    """A turn starts when all that it waits for has ended, as late as its pause says."""
    start = turn.observed.start if turn.observed is not None else None
    for index in turn.after:
        other = session.turns[index]
        end = other.observed.end if other.observed is not None else None
        if start is None or end is None or start >= end - slack:
            continue
        here, there = session.threads[turn.thread].kind, session.threads[other.thread].kind
        if turn.thread == other.thread:
            yield "note", "two calls of one thread overlap in time", f"{end - start:.3f} s"
        elif here == "subagent":
            yield "note", "a subagent starts before the reply that started it had ended", f"{end - start:.3f} s"
        elif there == "subagent":
            yield "note", "a turn starts before the subagent that it waits for had ended", f"{end - start:.3f} s"
    yield from _attempts(session, turn, start)


def _attempts(session: Session, turn: Turn, start: float | None) -> Iterator[Found]:
    told = turn.extra.get("attempts")
    count = told.get("count") if isinstance(told, dict) else None
    ends = [other.end for index in turn.after if (other := session.turns[index].observed) is not None]
    known = [end for end in ends if end is not None]
    if not isinstance(count, int) or count < 2 or start is None or not known:
        return
    if turn.gap.seconds >= start - max(known) - 1e-6:
        yield "note", "a pause holds failed attempts", f"{count - 1} in {turn.gap.seconds} s"


def _tools(session: Session) -> Iterator[Found]:
    if not any(turn.tools or turn.gap.kind == "tool" for turn in session.turns):
        return
    segments = [*session.segments.values(), *session.shared.values()]
    if not any(segment.layer in LEADING_LAYERS for segment in segments):
        yield "note", "tools are called, but no prompt has tools or a system text: it is not what was sent", ""


def _told(header: Header) -> Iterator[Found]:
    """What whoever made the trace detected, what was dropped, and what is known of the source, from the header."""
    for known in header.provenance.get("known") or ():
        if isinstance(known, dict):
            yield "known", str(known.get("what", "")), str(known.get("source", "unknown"))
    losses: Any = header.provenance.get("losses")
    if not isinstance(losses, dict):
        return
    for sentence in losses.get("detected") or ():
        yield "note", f"detected when it was made: {sentence}", ""
    for what, count in sorted((losses.get("notes") or {}).items()):
        if isinstance(what, str) and what.startswith("request that was not streamed"):
            yield "note", f"noted when it was made: {what}", f"{count} requests"
    for kind, reasons in sorted((losses.get("dropped") or {}).items()):
        if kind in _NOT_CALLS:
            continue
        for reason, count in sorted(reasons.items()) if isinstance(reasons, dict) else ():
            yield "note", f"dropped when it was made: {reason}", f"{count} {kind}"


def is_recorded(header: Header) -> bool:
    """Whether these rules apply: what was generated or written by hand has no recorder."""
    return "importer" in header.provenance
