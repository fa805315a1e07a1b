"""BurstGPT CSV: rows of lengths and times; those of one `Session ID` are the turns of a session.

A row with a response of 0 tokens is a failed call: its turn has the event "error". Whether a conversation's request
tokens are the whole prompt or only its newest message is not said, so lengths decide, as for Mooncake rows without
ids. `Elapsed time` gives a reply's end, and with it the pause behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentx.core import Gap, Observed, Session, Turn, TurnEvent
from agentx.recorder.imports import tables
from agentx.recorder.imports.books import Books, Fidelity
from agentx.recorder.imports.groups import Groups
from agentx.recorder.imports.mooncake import convert
from agentx.recorder.imports.mooncake_rows import Clock, Row
from agentx.recorder.imports.running import Format, note_unknown
from agentx.recorder.imports.source import Line
from agentx.recorder.imports.tables import Cells, cells_of, named, number, whole

COLUMNS = ("Timestamp", "Model", "Request tokens", "Response tokens")
_KEYS = frozenset({*COLUMNS, "Session ID", "Elapsed time", "Total tokens", "Log Type"})
_SECONDS = Clock(1.0, 0.0, "times are seconds")


def read(path: Path, books: Books, digest: Any) -> Iterator[Session]:
    """The sessions of a file. Raises BadInput, with the line, for what is no such row."""
    table = _Table(path)
    groups = iter(Groups(path, digest, table.key))
    next(groups, None)  # the names of the columns
    for lines in groups:
        rows = [table.cells(line) for line in lines]
        for cells in rows:
            note_unknown(cells, _KEYS, books)
        yield _session(
            [table.row(line.number, cells) for line, cells in zip(lines, rows, strict=True)], rows, books, table
        )


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
        self.row(line.number, cells)
        return cells.get("Session ID") or None

    def cells(self, line: Line) -> Cells:
        return named(self.names, cells_of(line, self.path), self.path, line.number)

    def row(self, line: int, cells: Cells) -> Row:
        isl, out = (whole(cells, name, self.path, line) for name in COLUMNS[2:])
        at = number(cells, "Timestamp", self.path, line)
        return Row(line, isl, out, None, at, None, cells.get("Session ID") or None, cells["Model"] or None, {}, ())

    def elapsed(self, line: int, cells: Cells) -> float | None:
        return number(cells, "Elapsed time", self.path, line)


def _session(rows: Sequence[Row], all_cells: Sequence[Cells], books: Books, table: _Table) -> Session:
    order = sorted(range(len(rows)), key=lambda at: rows[at].timestamp or 0.0)
    made = convert(rows, rows[0].session or f"row-{rows[0].line}", _SECONDS, 512, None, books)
    took = [table.elapsed(rows[at].line, all_cells[at]) for at in order]
    human = all_cells[0].get("Log Type", "").lower().startswith("conversation")
    turns: list[Turn] = []
    for turn, seconds in zip(made.turns, took, strict=True):
        turns.append(_turn(turn, turns[-1] if turns else None, seconds, human))
        books.note("response of 0 tokens: a failed call", not turn.output.tokens)
    return replace(made, turns=tuple(turns))


def _turn(turn: Turn, before: Turn | None, took: float | None, human: bool) -> Turn:
    start = turn.observed.start if turn.observed else None
    failed = not turn.output.tokens
    end = None if start is None or took is None else round(start + took, 6)
    turn = replace(
        turn,
        observed=Observed(start=start, end=end, status="error" if failed else None),
        event=TurnEvent("error") if failed else turn.event,
    )
    if before is None:
        return turn
    known = before.observed.end if before.observed else None
    gap = replace(turn.gap, kind="human" if human else "unknown")
    if start is not None and known is not None:
        gap = Gap(gap.kind, max(0.0, round(start - known, 6)), "recorded")
    return replace(turn, gap=gap)


def make_format() -> Format:
    """What `agentx import burstgpt` reads."""
    return Format(
        name="burstgpt",
        row="row",
        sessions=read,
        unknowable=(
            "text, token ids, and what sessions share: only lengths",
            "whether request tokens hold the history: read by how they grow",
            "layers, reasoning tokens, cached tokens, tools, subagents",
            "why a call failed, and what it would have answered",
        ),
        endings=(".csv",),
        fidelity=Fidelity("lengths", "start-end", "header", "server", "total"),
    )
