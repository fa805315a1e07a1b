"""What is in a trace: counts, lengths, gaps, arrivals, and how much of its prompts a cache could reuse.

One pass over the file; of each turn a few numbers are kept. Prompts meet in the order of `interleaving.py`, on which
hangs how much a cache of each size could give (`agentx.capacity`). Possible reuse is that of an unbounded cache with
page 1 and the trace's identities, replies included (`agentx.reuse`); a layer's share is its part of all prompt tokens.
What the trace does not say is None, printed "unknown".
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from agentx.capacity import Capacity, Curve
from agentx.core import GAP_KINDS, THREAD_KINDS, Gap, Header, Session, Turn
from agentx.frames import Tear
from agentx.prefix_tree import PrefixTree
from agentx.replayer.health import seldom_collecting
from agentx.reporter.capacity_document import capacity_document
from agentx.reporter.interleaving import AT_ONCE, interleaved
from agentx.reporter.spread import PERCENTILES, Spread, percentile
from agentx.reuse import ReuseTable, TurnReuse, Walk
from agentx.trace import TraceReader

SCHEMA = "agentx/inspect/1"


@dataclass(slots=True)
class Values:
    """Numbers of one kind, and from how many sessions they come; sessions must be added one after another."""

    values: array[float] = field(default_factory=lambda: array("d"))
    sessions: int = 0
    last: int = -1

    def add(self, session: int, value: float) -> None:
        if session != self.last:
            self.sessions, self.last = self.sessions + 1, session
        self.values.append(value)

    def spread(self) -> Spread | None:
        if not self.values:
            return None
        ordered = sorted(self.values)
        percentiles = tuple(percentile(ordered, percent) for percent in PERCENTILES)
        mean = sum(ordered) / len(ordered)
        return Spread(len(ordered), self.sessions, percentiles, mean, ordered[0], ordered[-1])


@dataclass(slots=True)
class Apart:
    """Gaps whose parts are told, in seconds: `tool` and `human` (None: told of none), `rest` what is left over."""

    gaps: int = 0
    tool: float | None = None
    human: float | None = None
    rest: float = 0.0

    def add(self, gap: Gap) -> None:
        if gap.parts is not None:
            tool, human = gap.parts.tool, gap.parts.human
            self.gaps += 1
            self.tool = self.tool if tool is None else (self.tool or 0.0) + tool
            self.human = self.human if human is None else (self.human or 0.0) + human
            self.rest += max(gap.seconds - (tool or 0.0) - (human or 0.0), 0.0)


@dataclass(slots=True)
class Inspection:
    """The statistics of a trace. Lengths are tokens, times seconds."""

    headers: list[Header] = field(default_factory=list)
    tear: Tear | None = None
    sessions: int = 0
    incomplete: int = 0
    turns: int = 0
    threads: Counter[str] = field(default_factory=Counter)  # by kind
    thread_turns: Counter[str] = field(default_factory=Counter)  # turns by the kind of their thread
    models: Counter[str] = field(default_factory=Counter)
    tools: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    provenance: Counter[str] = field(default_factory=Counter)  # of gaps
    isl: Values = field(default_factory=Values)
    osl: Values = field(default_factory=Values)
    fresh: Values = field(default_factory=Values)  # prompt tokens that no cache could have
    turns_each: Values = field(default_factory=Values)  # turns of a session
    gaps: dict[str, Values] = field(default_factory=lambda: {kind: Values() for kind in GAP_KINDS})
    apart: Apart = field(default_factory=Apart)
    ttft: Values = field(default_factory=Values)  # as the source of the trace saw it
    arrivals: array[float] = field(default_factory=lambda: array("d"))
    longest: int = 0  # prompt + reply
    no_reply: int = 0  # turns with a reply of 0 tokens
    unknown_reply: int = 0  # turns whose reply no segment shows
    cached: int = 0
    cached_of: int = 0  # prompt tokens of the turns whose cached tokens were recorded
    reuse: ReuseTable = field(default_factory=ReuseTable)
    curve: Curve | None = None
    at_once: int | None = None  # sessions at a time, for the curve; None: as they arrive
    reach: tuple[float, ...] = ()  # shares of the prompt tokens: how large a cache must be for them
    kv_bytes: int | None = None  # of a token on all ranks together
    engine: tuple[tuple[int, int], ...] = ()  # (capacity, reused tokens) of the engine's cache, where it was asked
    _ended: int = 0

    def session(self, session: Session) -> None:
        kinds = {thread.id: thread.kind for thread in session.threads}
        self.threads.update(kinds.values())
        self.incomplete += not session.complete
        self.turns += len(session.turns)
        self.turns_each.add(self.sessions, len(session.turns))
        if session.arrival is not None:
            self.arrivals.append(session.arrival)
        for turn in session.turns:
            self.thread_turns[kinds[turn.thread]] += 1
            self._turn(turn)
        self.sessions += 1

    def _turn(self, turn: Turn) -> None:
        osl = turn.output.tokens
        self.isl.add(self.sessions, turn.isl)
        self.osl.add(self.sessions, osl)
        self.longest = max(self.longest, turn.isl + osl)
        self.no_reply += osl == 0
        self.unknown_reply += osl > 0 and turn.reply is None
        if turn.model is not None:
            self.models[turn.model] += 1
        if turn.after:  # a session's first turn waits for nothing
            self.gaps[turn.gap.kind].add(self.sessions, turn.gap.seconds)
            self.provenance[turn.gap.provenance] += 1
            self.apart.add(turn.gap)
        self.tools.update(tool.name for tool in turn.tools)
        if turn.event is not None:
            self.events[turn.event.kind] += 1
        if turn.observed is not None:
            if turn.observed.ttft is not None:
                self.ttft.add(self.sessions, turn.observed.ttft)
            if turn.observed.cached is not None:
                self.cached += turn.observed.cached
                self.cached_of += turn.isl

    def account(self, turns: Sequence[TurnReuse]) -> None:
        """Sum up the possible reuse of the turns of one session."""
        for turn in turns:
            self.reuse.add(turn)
            self.fresh.add(self._ended, sum(turn.tokens) + turn.unattributed - sum(turn.reused))
        self._ended += 1

    def document(self) -> dict[str, Any]:
        """One JSON document; None where the trace does not say."""
        first = self.headers[0]
        layers = self.reuse.by_layer()
        return {
            "schema": SCHEMA,
            "name": first.name,
            "headers": len(self.headers),
            "identity": first.identity,
            "content": first.content,
            "tokenizer": first.tokenizer,
            "provenance": dict(first.provenance),
            "tear": None if self.tear is None else str(self.tear),
            "sessions": self.sessions,
            "sessions_incomplete": self.incomplete,
            "turns": self.turns,
            "threads": {kind: self.threads[kind] for kind in THREAD_KINDS},
            "turns_by_thread": {kind: self.thread_turns[kind] for kind in THREAD_KINDS},
            "models": dict(sorted(self.models.items())),
            "tools": dict(sorted(self.tools.items())),
            "events": dict(sorted(self.events.items())),
            "isl": _json(self.isl),
            "osl": _json(self.osl),
            "new_tokens": _json(self.fresh),
            "turns_per_session": _json(self.turns_each),
            "longest_context": self.longest,
            "gaps": {kind: _json(values) for kind, values in self.gaps.items()},
            "gap_provenance": dict(sorted(self.provenance.items())),
            "gap_parts": asdict(self.apart) if self.apart.gaps else None,
            "arrivals": self._arrivals(),
            "observed_ttft": _json(self.ttft),
            "observed_cached_share": self.cached / self.cached_of if self.cached_of else None,
            "replies_empty": self.no_reply,
            "replies_unknown": self.unknown_reply,
            "prompt_tokens": self.reuse.tokens,
            "unattributed_tokens": self.reuse.unattributed,
            "possible_reuse": self.reuse.share,
            "layers": {
                name: {"tokens": tokens, "share": tokens / self.reuse.tokens, "reused": reused}
                for name, (tokens, reused) in layers.items()
            },
            "capacity": self._capacity(),
        }

    def _capacity(self) -> dict[str, Any] | None:
        if self.curve is None:
            return None
        return capacity_document(self.curve, self.at_once, self.reach, self.kv_bytes, self.engine)

    def _arrivals(self) -> dict[str, float | int | None] | None:
        if not self.arrivals:
            return None
        low, high = min(self.arrivals), max(self.arrivals)
        rate = (len(self.arrivals) - 1) / (high - low) if high > low else None
        return {"sessions": len(self.arrivals), "first": low, "last": high, "per_second": rate}


def _json(values: Values) -> dict[str, float | int] | None:
    found = values.spread()
    if found is None:
        return None
    percents = {f"p{percent}": found.at(percent) for percent in PERCENTILES}
    return {
        "n": found.n,
        "sessions": found.sessions,
        "min": found.minimum,
        **percents,
        "mean": found.mean,
        "max": found.maximum,
    }


class Watcher(Protocol):
    """Someone else who looks at the sessions when they begin and at the reuse of all their turns when they end."""

    def session(self, session: Session) -> None: ...

    def turns(self, turns: Sequence[TurnReuse]) -> None: ...


@seldom_collecting()  # a trace makes no cycles worth looking for
def inspect(
    path: Path | str, watcher: Watcher | None = None, *, at_once: int | None = None, page: int = 1
) -> Inspection:
    """Read a trace once. `at_once`, `page`: sessions at a time and the page size of the capacity curve.

    Raises BadInput for what is no trace; a torn end is told in `tear`.
    """
    reader, found, capacity = TraceReader(path), Inspection(), Capacity(page)
    for turns in walked(_shown(iter(reader), found, watcher), capacity, at_once):
        found.account(turns)
        if watcher is not None:
            watcher.turns(turns)
    found.headers, found.tear = reader.headers, reader.tear
    found.curve = capacity.curve()
    found.at_once = None if at_once is None and found.arrivals else at_once or AT_ONCE
    return found


def walked(sessions: Iterator[Session], capacity: Capacity, at_once: int | None) -> Iterator[list[TurnReuse]]:
    """The possible reuse of the turns of each session, when it ends. What only it can reach is forgotten then."""
    tree = PrefixTree()
    walks: dict[int, tuple[Walk, list[TurnReuse]]] = {}
    for session, index, last in interleaved(sessions, at_once):
        if id(session) not in walks:
            walks[id(session)] = Walk(session, tree, possible=True), []
        walk, turns = walks[id(session)]
        turns.append(walk.turn(index))
        capacity.add(turns[-1])
        if last:
            walk.forget()
            del walks[id(session)]
            yield turns


def _shown(sessions: Iterator[Session], found: Inspection, watcher: Watcher | None) -> Iterator[Session]:
    for session in sessions:
        found.session(session)
        if watcher is not None:
            watcher.session(session)
        yield session
