"""Weka sessions (kv-cache-tester, SemiAnalysis cc-traces) become a trace.

Each session is read, its times settled (`weka_times`), its calls sorted into threads (`weka_lines`), its prompts
made of segments (`weaving`); here are threads, waits and gaps. A turn waits for the previous one of its thread; a
subagent's first turn waits for the parent's turn that had ended when it started; the parent's first turn after a
subagent's end waits for that too. A gap runs from the last end of what a turn waits for to its start. Block ids are
compared inside one session only, as the format says. Memory is bounded by one session.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from agentx.core import Gap, GapKind, Header, Layer, Observed, Output, Session, Thread, Turn, TurnEvent
from agentx.recorder.imports.blocks import Weaver
from agentx.recorder.imports.books import Books, Fidelity
from agentx.recorder.imports.draft import Draft, scope_of
from agentx.recorder.imports.running import none_used, unique
from agentx.recorder.imports.weaving import Link, Root, Spun, spin
from agentx.recorder.imports.weka_counts import SIDE, Counts
from agentx.recorder.imports.weka_lines import Context, contexts
from agentx.recorder.imports.weka_rows import WekaSession, read_sessions, weka_files
from agentx.recorder.imports.weka_times import Call, Dialect, Strand, strands
from agentx.recorder.shaping import Shaping

FIDELITY = Fidelity("lengths", "start-end", "header", "estimated", "total")
UNKNOWABLE = (
    "text and token ids: only lengths and the identity of 64-token blocks",
    "what sessions share: block ids are local to a session",
    "where a prompt's messages begin; layers behind tools and system are inferred",
    "reasoning tokens apart from visible ones, tools' names and their own times",
    "the length of a compaction's summary",
    "cached tokens, failed and aborted calls",
)


def import_weka(
    paths: Sequence[Path],
    out: Path,
    progress: Callable[[Path], object] | None = None,
    shaping: Shaping | None = None,
) -> Books:
    """Turn session files, or folders of them, into one trace at `out`. Returns the books, balanced.

    `progress` is called before each file. Raises BadInput for a file that is no such session, naming the place.
    """
    files = weka_files(list(paths))
    books, dialect = Books("request", unknowable=UNKNOWABLE, fidelity=FIDELITY), Dialect()
    counts = Counts()
    provenance = {"importer": "weka", "fidelity": FIDELITY._asdict()}
    header = Header(_name(paths), scope_of(provenance), "session", "opaque", provenance=provenance)
    digests, names = [], dict[str, int]()
    with Draft(out, header, shaping) as draft:
        for file in files:
            if progress is not None:
                progress(file)
            digest = hashlib.sha256()
            for source in read_sessions(file, books, digest):
                counts.add(source)
                session = convert(source, books, dialect, unique(source.id, names, books))
                if session is not None:
                    draft.session(session)
            digests.append(digest.hexdigest())
        for reading, count in sorted(dialect.counts.items()):
            books.find(f"{reading} ({count} subagents)")
        counts.tell(books)
        books.check()
        none_used(books, paths[0])
        draft.finish(digests, books)
    return books


def _name(paths: Sequence[Path]) -> str:
    return paths[0].stem if len(paths) == 1 else "weka"


@dataclass(slots=True, eq=False)
class Line:
    """A context on its way to become a thread."""

    thread: Thread
    context: Context
    strand: Strand


def convert(source: WekaSession, books: Books, dialect: Dialect, id: str) -> Session | None:
    """One session as a trace's session; None, counted, when it has no request."""
    books.sessions.read += 1
    books.rows.read += len(source.requests) + sum(len(agent.requests) for agent in source.agents)
    found = strands(source, books, dialect)
    calls = [call for strand in found for call in strand.calls]
    if not calls:
        books.sessions.dropped["without requests"] += 1
        return None
    calls.sort(key=lambda call: call.start)
    for index, call in enumerate(calls):
        call.index = index
    lines = _lines(found, source.block)
    books.note(SIDE, sum(line.context.side for line in lines))
    waits = _waits(lines, books)
    weaver = Weaver(source.block)
    spun = _spin_all(lines, weaver, books)
    zero = min(call.start for call in calls)
    turns = [
        _turn(line, position, spun[call.index], waits[call.index], zero)
        for line in lines
        for position, call in enumerate(line.context.calls)
    ]
    books.sessions.used += 1
    books.rows.used += len(calls)
    return Session(
        id=id,
        turns=tuple(sorted(turns, key=lambda turn: turn.index)),
        threads=_threads(lines),
        segments=weaver.segments,
    )


def _threads(lines: Sequence[Line]) -> tuple[Thread, ...]:
    """All threads; the main one is there even when only its subagents called."""
    threads = tuple(line.thread for line in lines)
    return threads if threads[0].id == 0 else (Thread(0), *threads)


def _lines(found: Sequence[Strand], block: int) -> list[Line]:
    """The threads: the main line is thread 0, a strand's side lines have its first line as parent."""
    lines: list[Line] = []
    for strand in found:
        agent = strand.agent
        first = None
        for context in contexts(strand, block):
            id = len(lines) if found[0].calls else len(lines) + 1
            if context.side:
                thread = Thread(id, first, "side")
            elif agent is None:
                thread = Thread(id)
            else:
                extra = {key: value for key, value in (("agent", agent.name), ("status", agent.status)) if value}
                thread = Thread(id, 0, "subagent", agent.type, extra)
            first = thread.id if first is None else first
            lines.append(Line(thread, context, strand))
    return lines


def _waits(lines: Sequence[Line], books: Books) -> dict[int, list[Call]]:
    """What each call waits for, by its index; none of it comes later in the trace."""
    waits: dict[int, list[Call]] = {}
    main = [line.context.calls for line in lines if line.strand.agent is None and not line.context.side]
    parent = main[0] if main else []
    own: list[Call] = []
    for line in lines:
        calls = line.context.calls
        if not line.context.side:
            own = calls
        for previous, call in pairwise(calls):
            waits[call.index] = [previous]
        waits[calls[0].index] = _before_first(line, own, parent)
    for line in lines:
        if line.thread.kind == "subagent":
            _join(line, parent, waits, books)
    return waits


def _before_first(line: Line, own: Sequence[Call], parent: Sequence[Call]) -> list[Call]:
    """The call that had ended when a line began: of its agent's main line, else of the parent's."""
    first = line.context.calls[0]
    for calls in (own, parent):
        ended = [call for call in calls if call.over <= first.start + line.strand.slack and call.index < first.index]
        if ended:
            return [max(ended, key=lambda call: (call.over, call.index))]
    return []


def _join(line: Line, parent: Sequence[Call], waits: dict[int, list[Call]], books: Books) -> None:
    """The parent's first call after a subagent's end waits for its last one."""
    last = line.context.last
    ended = last.over if line.strand.end is None else max(last.over, line.strand.end)
    for call in parent:
        if call.start >= ended - line.strand.slack and call.index > last.index:
            waits[call.index].append(last)
            return
    books.note("subagent that no later call of its parent waited for")


def _spin_all(lines: Sequence[Line], weaver: Weaver, books: Books) -> dict[int, Spun]:
    """The prompts of all calls, by their index."""
    spun: dict[int, Spun] = {}
    roots: dict[int, Root] = {}
    wanted = {line.context.root.index for line in lines if line.context.root is not None}
    for line in lines:
        calls, root = line.context.calls, line.context.root
        links = [Link(call.index, call.request.isl, call.request.out, call.request.ids, _fresh(call)) for call in calls]
        lead = line.strand.lead if not line.context.side or root is not None else ()
        made_of = spin(weaver, links, lead, books, roots[root.index] if root else None)
        for call, made in zip(calls, made_of, strict=True):
            if call.index in wanted:
                roots[call.index] = made.root
            spun[call.index] = made
    return spun


def _fresh(call: Call) -> Layer:
    return "tool_result" if "tool_result" in call.request.input_types else "user"


def _turn(line: Line, position: int, spun: Spun, waits: Sequence[Call], zero: float) -> Turn:
    call = line.context.calls[position]
    previous = line.context.calls[position - 1] if position else None
    request = call.request
    start = call.start - zero
    return Turn(
        index=call.index,
        thread=line.thread.id,
        prompt=spun.prompt,
        isl=request.isl,
        output=Output(request.out),
        after=tuple(sorted({wait.index for wait in waits})),
        gap=_gap(call, previous, waits, zero, first=position == 0 and bool(waits)),
        model=request.model,
        reply=spun.reply,
        event=spun.event or _switch(call, previous),
        observed=Observed(_micro(start), request.ttft, None if call.end is None else _micro(call.end - zero)),
        extra={"stop": request.stop} if request.stop else {},
    )


def _switch(call: Call, previous: Call | None) -> TurnEvent | None:
    """The event of a thread that goes on with another model."""
    models = (previous.request.model if previous else None, call.request.model)
    return TurnEvent("model_switch") if None not in models and models[0] != models[1] else None


def _gap(call: Call, previous: Call | None, waits: Sequence[Call], zero: float, *, first: bool) -> Gap:
    kinds: dict[str | None, GapKind] = {"tool_use": "tool", "end_turn": "human"}
    kind: GapKind = "spawn" if first else kinds.get(previous.request.stop if previous else None, "unknown")
    since = max((wait.over for wait in waits), default=zero)
    inferred = any(wait.end is None or wait.inferred != call.inferred for wait in waits)
    return Gap(kind, max(0.0, _micro(call.start - since)), "inferred" if inferred else "recorded")


def _micro(value: float) -> float:
    """Rounded to a microsecond: sums of decimal seconds would show their binary noise."""
    return round(value, 6)
