"""Mooncake JSON Lines become a trace.

Rows without a session are sessions of one turn; rows of one session are put together in the order of their time
stamps. Their prompts are read in one of two ways, found out session by session: *cumulative* rows give the whole
prompt, so that its ids go on from those of the row before; *delta* rows give only what is new, to be put behind the
history and the reply before. Two passes: the survey notes where each session's rows are, the second pass reads them
again one session at a time, so that memory is bounded by one session and some 60 bytes a row.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path

from agentx.core import Gap, Header, Observed, Output, Piece, Prompt, Session, Turn, TurnEvent
from agentx.errors import BadInput
from agentx.recorder.imports.blocks import Mark, Weaver, blocks_of, common
from agentx.recorder.imports.books import Books, Fidelity
from agentx.recorder.imports.draft import Draft, scope_of
from agentx.recorder.imports.mooncake_rows import Clock, Row, Survey, row_of
from agentx.recorder.imports.source import lines
from agentx.recorder.imports.weaving import Link, spin
from agentx.recorder.shaping import Shaping

BLOCK = 512
FIDELITY = Fidelity("lengths", "start-only", "header", "server", "total")
UNKNOWABLE = (
    "text and token ids: only lengths and the identity of blocks",
    "what the layers of a prompt are: all but replies is called user",
    "how long replies took: time-stamps are starts",
    "whether a pause was a tool or a human; subagents; models, where no row names one",
    "reasoning tokens, cached tokens, failed and aborted calls",
)
Woven = tuple[Prompt, int, "int | None", "TurnEvent | None"]  # prompt, isl, reply segment, event


def import_mooncake(
    path: Path,
    out: Path,
    *,
    unit: str | None = None,
    rows: str | None = None,
    block: int = BLOCK,
    progress: Callable[[int], object] | None = None,
    shaping: Shaping | None = None,
) -> Books:
    """Turn a file of Mooncake rows into a trace at `out`. Returns the books, balanced.

    `unit` ("s", "ms") and `rows` ("cumulative", "delta") force what is detected otherwise; `progress` gets the
    number of each row that was written. Raises BadInput for a file that is none, with the line.
    """
    books = Books(unknowable=UNKNOWABLE, fidelity=FIDELITY)
    provenance = {"importer": "mooncake", "block": block, "fidelity": FIDELITY._asdict()}
    header = Header(path.stem, scope_of(provenance), "file", "opaque", provenance=provenance)
    survey, digest = Survey(path, block), hashlib.sha256()
    survey.read(digest)
    if not survey.rows:
        raise BadInput("the file has no rows", file=path)
    clock = survey.clock(unit)
    books.find(clock.found)
    with Draft(out, header, shaping) as draft:
        for number, line in enumerate(lines(path)):
            place = survey.first[number]
            if place != 2:
                row = row_of(line, path)
                group = [row] if row.session is None else list(survey.session(row.session))
                draft.session(convert(group, _id(row, survey), clock, block, rows, books))
            if progress is not None:
                progress(number)
        books.check()
        draft.finish([digest.hexdigest()], books)
    return books


def _id(row: Row, survey: Survey) -> str:
    """The session's id; a row without one is named by its line."""
    if row.session is not None:
        return row.session
    name = f"row-{row.line}"
    while name in survey.places:
        name += "#"
    return name


def convert(rows: Sequence[Row], id: str, clock: Clock, block: int, reading: str | None, books: Books) -> Session:
    """The rows of one session as a trace's session."""
    books.sessions.read += 1
    books.rows.read += len(rows)
    rows = _ordered(rows, books)
    for row in rows:
        _note(row, block, books)
    weaver = Weaver(block)
    how = reading or (read_as(rows, block, books) if len(rows) > 1 else "cumulative")
    if len(rows) > 1:
        books.note(f"session of {how} rows")
    woven = _delta(weaver, rows) if how == "delta" else _cumulative(weaver, rows, books)
    books.note("reply whose content is not told: a synthetic segment", how == "delta" and len(rows) - 1)
    turns = tuple(_turn(index, rows, made, clock, books) for index, made in enumerate(woven))
    books.sessions.used += 1
    books.rows.used += len(rows)
    start = rows[0].timestamp
    arrival = None if start is None else clock.at(start)
    if arrival is not None and arrival < 0:
        books.note("row before the earliest of the first 10,000: arrives at 0")
        arrival = 0.0
    return Session(id, turns, segments=weaver.segments, arrival=arrival)


def _ordered(rows: Sequence[Row], books: Books) -> Sequence[Row]:
    """By time-stamp, where every row has one."""
    if any(row.timestamp is None for row in rows):
        return rows
    late = sum(later.timestamp < earlier.timestamp for earlier, later in pairwise(rows))  # type: ignore[operator]
    books.note("row out of order in time: sorted within its session", late)
    return sorted(rows, key=lambda row: row.timestamp or 0.0) if late else rows


def _note(row: Row, block: int, books: Books) -> None:
    if row.ids is None:
        books.note("row without hash ids: its tokens occur nowhere else")
    elif len(row.ids) < row.isl // block:
        books.note("row with fewer hash ids than its length has blocks: the rest is not identified")
    for key in row.left:
        books.note(f"key {key!r:.40} is not part of the format: left out")
    for key in row.kept:
        books.note(f"key {key!r:.40} is not part of the format: kept as it is")


def read_as(rows: Sequence[Row], block: int, books: Books) -> str:
    """ "cumulative" or "delta". Ids decide; where rows are too short for a whole block, growing lengths do."""
    joined = apart = 0
    for before, row in pairwise(rows):
        if before.ids and row.ids:
            shared = common(before.ids, row.ids) > 0
            joined += shared and (row.isl >= before.isl or before.isl >= block)
            apart += not shared and before.isl >= block  # an id of a cut block changes when it grows
    if joined or apart:
        return "cumulative" if joined >= apart else "delta"
    books.note("session read by its lengths alone: its ids cannot tell cumulative from delta rows")
    grows = all(row.isl >= before.isl + before.out for before, row in pairwise(rows))
    return "cumulative" if grows else "delta"


def _cumulative(weaver: Weaver, rows: Sequence[Row], books: Books) -> list[Woven]:
    empty = array("Q")
    links = [Link(index, row.isl, row.out, row.ids or empty) for index, row in enumerate(rows)]
    spun = spin(weaver, links, (), books, by_length=all(row.ids is None for row in rows))
    return [(made.prompt, row.isl, made.reply, made.event) for made, row in zip(spun, rows, strict=True)]


def _delta(weaver: Weaver, rows: Sequence[Row]) -> list[Woven]:
    """Each row's tokens behind the history and the reply before."""
    woven: list[Woven] = []
    isl = keep = 0
    reply: int | None = None
    for index, row in enumerate(rows):
        pieces: list[Piece] = []
        if reply is not None:
            pieces.append(Piece(reply, 0, rows[index - 1].out))
            isl += rows[index - 1].out
        ids = (row.ids or array("Q"))[: blocks_of(row.isl, weaver.block)]
        if row.isl:
            pieces += weaver.stretch(ids, Mark("user", 0, row.isl))
        isl += row.isl
        prompt = Prompt(tuple(pieces), index - 1, keep) if keep else Prompt(tuple(pieces))
        keep += len(pieces)
        more = index < len(rows) - 1 and row.out
        reply = weaver.unidentified("assistant", row.out) if more else None
        woven.append((prompt, isl, reply, None))
    return woven


def _turn(index: int, rows: Sequence[Row], made: Woven, clock: Clock, books: Books) -> Turn:
    row, (prompt, isl, reply, event) = rows[index], made
    start = None
    if row.timestamp is not None and rows[0].timestamp is not None:
        start = clock.span(row.timestamp - rows[0].timestamp)
    return Turn(
        index=index,
        thread=0,
        prompt=prompt,
        isl=isl,
        output=Output(row.out),
        after=(index - 1,) if index else (),
        gap=_gap(index, rows, clock, books),
        model=row.model,
        reply=reply,
        event=event,
        observed=None if start is None else Observed(start=start),
        extra={"source": row.kept} if row.kept else {},
    )


def _gap(index: int, rows: Sequence[Row], clock: Clock, books: Books) -> Gap:
    row = rows[index]
    if row.delay is not None:
        return Gap("unknown", clock.span(row.delay), "recorded")
    if not index:
        return Gap()
    before = rows[index - 1].timestamp
    if row.timestamp is None or before is None:
        books.note("turn without a time: a gap of 0 (inferred)")
        return Gap("unknown", 0.0, "inferred")
    books.note("gap taken from two starts: it includes the reply before (inferred)")
    return Gap("unknown", clock.span(row.timestamp - before), "inferred")
