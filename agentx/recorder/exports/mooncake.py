"""A trace as Mooncake JSON Lines: lengths, block ids, and times or delays.

*Delta* rows, as AIPerf reads sessions: each row has what is new behind the history and the reply. Only a prompt that
goes on from the prompt and reply before it can be one, so others begin a session of their own. *Cumulative* rows have
the whole prompt.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

from agentx.core import Session
from agentx.recorder.exports.blocks import Numbering
from agentx.recorder.exports.threads import Call, Line, cut, length, lines, name, stretches
from agentx.recorder.imports.books import Books

Rows = Literal["delta", "cumulative"]
CANNOT_HOLD = (
    "text, layers, reasoning tokens, tools and models",
    "subagents and what waits for them: a thread is a session of its own",
    "what prompts share inside a block: two blocks are equal or not",
    "what happened: compactions, resets, aborts and failures are prompts like others",
)
DELTA_CANNOT = ("a prompt that does not go on from the one before: it begins a session of its own",)


def cannot_hold(rows: Rows) -> tuple[str, ...]:
    return CANNOT_HOLD + (DELTA_CANNOT if rows == "delta" else ())


class Mooncake:
    """Makes the rows of one file."""

    def __init__(self, books: Books, rows: Rows = "delta", block: int = 512) -> None:
        self.books, self.rows = books, rows
        self.numbering = Numbering(block)

    def session(self, session: Session) -> Iterator[bytes]:
        """The lines of one session."""
        self.numbering.session(session)
        found = lines(session, self.books)
        self.books.note("thread beside the main one: a session of its own", max(0, len(found) - 1))
        for line in found:
            for body in self._delta(session, line) if self.rows == "delta" else self._cumulative(session, line):
                self.books.rows.used += 1
                yield json.dumps(body, separators=(",", ":")).encode() + b"\n"

    def _delta(self, session: Session, line: Line) -> Iterator[dict[str, Any]]:
        for part, calls in enumerate(stretches(line)):
            self.books.note("prompt that does not go on from the one before: begins a session", bool(part))
            last = -1
            for place, call in enumerate(calls):
                fresh = call.turn.isl if not place else call.fresh or 0
                self.books.note("row without new tokens", not fresh)
                ids = self.numbering.ids(cut(call.runs, length(call.runs) - fresh), last)
                last = ids[-1] if ids else last
                times = self._start(session, call) if not place else {"delay": _ms(call.turn.gap.seconds)}
                yield self._row(name(session, line.thread, part), call, fresh, ids, times)

    def _cumulative(self, session: Session, line: Line) -> Iterator[dict[str, Any]]:
        ids: list[int] = []
        for place, call in enumerate(line.calls):
            same = call.kept // self.numbering.block  # blocks that the prompt before has numbered already
            last = ids[same - 1] if same else -1
            ids = ids[:same] + self.numbering.ids(cut(call.runs, same * self.numbering.block), last)
            times = self._start(session, call)
            if not times and place:
                times = {"delay": _ms(call.turn.gap.seconds)}
            yield self._row(name(session, line.thread), call, call.turn.isl, ids, times)

    def _row(self, name: str, call: Call, tokens: int, ids: list[int], times: dict[str, Any]) -> dict[str, Any]:
        body = {"session_id": name, "input_length": tokens, "output_length": call.turn.output.tokens}
        return {**body, "hash_ids": ids, **times}

    def _start(self, session: Session, call: Call) -> dict[str, Any]:
        return {} if session.arrival is None else {"timestamp": _ms(session.arrival + call.start)}


def _ms(seconds: float) -> int | float:
    value = round(seconds * 1000, 3)
    return int(value) if value == int(value) else value
