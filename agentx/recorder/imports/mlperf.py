"""MLPerf agentic rows: one JSON line is one message of a conversation, with its text.

An assistant's row is a turn on the rows before it: its reasoning, text and tool calls are the reply. `delay_seconds`
of the rows between is the pause, the longest of them where there are several. Tool definitions and the system prompt
stand on a conversation's first row. A token is four bytes of text, since no tokenizer is known.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from agentx.core import Gap, Output, Session, Turn
from agentx.errors import BadInput
from agentx.recorder.imports.books import Books, Fidelity
from agentx.recorder.imports.groups import Groups
from agentx.recorder.imports.growth import Growth, tokens_of
from agentx.recorder.imports.running import Format, note_unknown
from agentx.recorder.imports.source import Line, looks_like, parse
from agentx.trace_bodies import Body, Invalid, integer, items, one_of, optional, seconds, string

ROLES = ("user", "assistant", "tool")
_KEYS = frozenset(
    {"conversation_id", "turn", "role", "system", "content", "tools", "tool_calls", "tool_results"}
    | {"reasoning_content", "delay_seconds"}
)


@dataclass(frozen=True, slots=True)
class Row:
    """One message. `results` are those of a tool row; `delay` seconds or None."""

    conversation: str
    turn: int
    role: str
    tools: str
    system: str
    text: str
    reasoning: str
    results: tuple[str, ...]
    delay: float | None


def read(path: Path, books: Books, digest: Any) -> Iterator[Session]:
    """The conversations of a file. Raises BadInput, with the line, for what is no such row."""
    for found in Groups(path, digest, lambda line: row_of(line, path)[0].conversation):
        rows = []
        for line in found:
            row, body = row_of(line, path)
            note_unknown(body, _KEYS, books)
            rows.append(row)
        session = convert(rows, books)
        if session is not None:
            yield session


def row_of(line: Line, path: Path) -> tuple[Row, Body]:
    """A line as a row. Raises BadInput, with the line."""
    value = parse(line.data, path, line.number)
    if not isinstance(value, dict) or not {"conversation_id", "turn", "role"} <= value.keys():
        raise BadInput(f"not an MLPerf agentic row: this looks like {looks_like(value)}", file=path, line=line.number)
    try:
        return _checked(value), value
    except Invalid as error:
        raise BadInput(str(error), file=path, line=line.number) from None


def _checked(body: Body) -> Row:
    calls = items(body, "tool_calls") if body.get("tool_calls") is not None else []
    delay = seconds(body, "delay_seconds")
    if delay is not None and delay < 0:
        raise Invalid(f"delay_seconds: {delay} is below 0")
    return Row(
        conversation=string(body, "conversation_id"),
        turn=integer(body, "turn"),
        role=one_of(body, "role", ROLES),
        tools=_json(body.get("tools")),
        system=optional(string, body, "system") or "",
        text=(optional(string, body, "content") or "") + "".join(_json(call) for call in calls),
        reasoning=optional(string, body, "reasoning_content") or "",
        results=tuple(_result(item) for item in items(body, "tool_results")),
        delay=delay,
    )


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")) if value else ""


def _result(item: Any) -> str:
    if not isinstance(item, dict):
        raise Invalid(f"tool_results: {item!r:.40} is not an object")
    return optional(string, item, "content") or ""


def convert(rows: Sequence[Row], books: Books) -> Session | None:
    """The rows of a conversation as a session; None, counted, when no assistant speaks in it."""
    ordered = sorted(rows, key=lambda row: row.turn)
    books.note(
        "row out of order: sorted within its conversation",
        sum(a.turn > b.turn for a, b in pairwise(rows)),
    )
    books.sessions.read += 1
    books.rows.read += len(rows)
    last = max((at for at, row in enumerate(ordered) if row.role == "assistant"), default=-1)
    if last < 0:
        books.sessions.drop("no assistant row: it makes no call that tells its length")
        books.rows.drop("in a conversation without an assistant row", len(rows))
        return None
    books.rows.drop("behind the last assistant row: no call has it", len(rows) - last - 1)
    books.rows.used += last + 1
    books.sessions.used += 1
    return _session(ordered[: last + 1])


def _session(rows: Sequence[Row]) -> Session:
    context, turns, between = Growth(), list[Turn](), list[Row]()
    for row in rows:
        if row.role != "assistant":
            between.append(row)
            _append(context, row)
            continue
        index, isl = len(turns), context.tokens
        prompt = context.prompt(index)
        text = row.reasoning + row.text
        tokens, reasoning = tokens_of(text), min(tokens_of(row.reasoning), tokens_of(text))
        turns.append(
            Turn(
                index=index,
                thread=0,
                prompt=prompt,
                isl=isl,
                output=Output(tokens - reasoning, reasoning),
                after=(index - 1,) if index else (),
                gap=_gap(between) if index else Gap(),
                reply=context.text("assistant", text),
            )
        )
        between = []
    return Session(rows[0].conversation, tuple(turns), segments=context.segments)


def _append(context: Growth, row: Row) -> None:
    context.text("tools", row.tools)
    context.text("system", row.system)
    context.text("tool_result" if row.role == "tool" else "user", row.text)
    for result in row.results:
        context.text("tool_result", result)


def _gap(rows: Sequence[Row]) -> Gap:
    """The longest delay: the tools of one reply run side by side."""
    kind = Gap("tool" if any(row.role == "tool" for row in rows) else "human" if rows else "unknown").kind
    delays = [row.delay for row in rows if row.delay is not None]
    return Gap(kind, max(delays)) if delays else Gap(kind, 0.0, "inferred")


def make_format() -> Format:
    """What `agentx import mlperf` reads."""
    return Format(
        name="mlperf",
        row="row",
        sessions=read,
        unknowable=(
            "token counts: a token is four bytes of text here",
            "tools' own times: only the pause before a call; how long replies took, arrivals",
            "a call whose reply is not in the file",
            "models, subagents, cached tokens, failed and aborted calls",
        ),
        endings=(".jsonl",),
        content="text",
        fidelity=Fidelity("reconstructed", "ordinal", "header", "estimated", "total"),
    )
