"""TraceLab's runner CSV: `session_id,[arrival_time,]round_idx,prefix_len,input_len,output_len,tool_wait_after_ms`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agentx.core import Gap, Output, Session, Turn, TurnEvent
from agentx.recorder.imports import tables
from agentx.recorder.imports.books import Books
from agentx.recorder.imports.groups import Groups
from agentx.recorder.imports.growth import Growth
from agentx.recorder.imports.running import note_unknown
from agentx.recorder.imports.source import Line
from agentx.recorder.imports.tables import Cells, cells_of, named, number, whole

COLUMNS = ("session_id", "round_idx", "prefix_len", "input_len", "output_len", "tool_wait_after_ms")
_KEYS = frozenset({*COLUMNS, "arrival_time"})


class Round(NamedTuple):
    """One row. `wait` is seconds after its reply, `arrival` seconds or None."""

    number: int
    prefix: int
    fresh: int
    out: int
    wait: float
    arrival: float | None


def read(path: Path, books: Books, digest: Any) -> Iterator[Session]:
    """The sessions of a file. Raises BadInput, with the line, for what is no such row."""
    table = _Table(path)
    groups = iter(Groups(path, digest, table.key))
    next(groups, None)  # the names of the columns
    for lines in groups:
        rounds = []
        for line in lines:
            cells = table.cells(line)
            note_unknown(cells, _KEYS, books)
            rounds.append(table.round(line.number, cells))
        yield convert(table.cells(lines[0])["session_id"], rounds, books)


class _Table:
    """The file's columns, known after its first line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.names: list[str] = []

    def key(self, line: Line) -> str | None:
        if not self.names:
            self.names = tables.header(cells_of(line, self.path), COLUMNS, self.path, line.number)
            return None
        cells = self.cells(line)
        self.round(line.number, cells)
        return cells["session_id"]

    def cells(self, line: Line) -> Cells:
        return named(self.names, cells_of(line, self.path), self.path, line.number)

    def round(self, line: int, cells: Cells) -> Round:
        count, prefix, fresh, out = (whole(cells, name, self.path, line) for name in COLUMNS[1:5])
        wait = number(cells, "tool_wait_after_ms", self.path, line) or 0.0
        arrival = number(cells, "arrival_time", self.path, line)
        return Round(count, prefix, fresh, out, wait / 1000, None if arrival is None else arrival / 1000)


def convert(id: str, rows: Sequence[Round], books: Books) -> Session:
    """The rounds of one session, in the order of their numbers."""
    books.sessions.read += 1
    books.rows.read += len(rows)
    rounds = sorted(rows, key=lambda each: each.number)
    books.note(
        "round out of order: sorted within its session", sum(a is not b for a, b in zip(rows, rounds, strict=True))
    )
    context, turns = Growth(), list[Turn]()
    for index, each in enumerate(rounds):
        before = turns[-1] if turns else None
        event = _keep(context, each, before, books)
        layer = "user" if before is None else "tool_result"
        context.add(layer, each.fresh)  # type: ignore[arg-type]
        isl, prompt = context.tokens, context.prompt(index)
        gap = Gap("tool", rounds[index - 1].wait) if before else Gap()
        after = (index - 1,) if index else ()
        reply = context.add("assistant", each.out)
        turns.append(Turn(index, 0, prompt, isl, Output(each.out), after, gap, reply=reply, event=event))
    books.rows.used += len(rows)
    books.sessions.used += 1
    return Session(id, tuple(turns), segments=context.segments, arrival=rounds[0].arrival)


def _keep(context: Growth, row: Round, before: Turn | None, books: Books) -> TurnEvent | None:
    """Keep `prefix` tokens of the previous prompt and reply."""
    have = context.tokens
    if row.prefix > have:
        if before is None:
            books.note("first round with a prefix: content from before it, called system (inferred)")
        else:
            books.note("prefix longer than the prompt and reply before it: the rest is new content")
        context.add("system" if before is None else "user", row.prefix - have)
    else:
        context.cut(row.prefix)
    if before is None or row.prefix >= before.isl:
        return None
    if row.prefix + row.fresh >= before.isl:
        books.note("prompt that rewrites the end of the one before")
        return None
    books.note("compaction" if row.prefix else "reset of the context")
    return TurnEvent("compaction" if row.prefix else "reset", before=before.isl, kept=row.prefix)
