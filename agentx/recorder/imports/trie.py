"""Trie rows (Applied Compute's inference benchmark): one JSON line is one session of lengths.

`num_turns` tool turns: turn i has the prompt so far, replies with `assistant_response_length[i]` tokens, then a tool
runs for `tool_call_latency[i]` seconds and returns `tool_call_output_length[i]` tokens. One more turn gives the final
answer. Nothing is shared between rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentx.core import Gap, Output, Session, Turn
from agentx.errors import BadInput
from agentx.recorder.imports.books import Books, Fidelity
from agentx.recorder.imports.growth import Growth
from agentx.recorder.imports.running import Format, note_unknown
from agentx.recorder.imports.source import lines, looks_like, parse
from agentx.trace_bodies import MAX_TOKENS, Body, Invalid, integer, items, seconds

_PROMPT, _FINAL = "input_prompt_length", "final_assistant_response_length"
_REPLIES, _RESULTS, _TIMES = "assistant_response_length", "tool_call_output_length", "tool_call_latency"
_KEYS = frozenset({"num_turns", _PROMPT, _REPLIES, _RESULTS, _TIMES, _FINAL})
MAX_TURNS = 100_000


def read(path: Path, books: Books, digest: Any) -> Iterator[Session]:
    """The sessions of a file of rows. Raises BadInput, with the line, for what is none."""
    for line in lines(path, digest):
        value = parse(line.data, path, line.number)
        if not isinstance(value, dict) or not {"num_turns", _PROMPT} <= value.keys():
            raise BadInput(f"not a trie row: this looks like {looks_like(value)}", file=path, line=line.number)
        try:
            session = convert(value, f"row-{line.number}")
        except Invalid as error:
            raise BadInput(str(error), file=path, line=line.number) from None
        note_unknown(value, _KEYS, books)
        books.note("reply of no tokens", sum(not turn.output.visible for turn in session.turns))
        books.rows.read += 1
        books.rows.used += 1
        books.sessions.read += 1
        books.sessions.used += 1
        yield session


def convert(row: Body, id: str) -> Session:
    """A row as a session. Raises Invalid, with the field and the value."""
    count = integer(row, "num_turns", high=MAX_TURNS)
    replies, results = _lengths(row, _REPLIES, count), _lengths(row, _RESULTS, count)
    waits = [_seconds(row, at) for at in range(len(_list(row, _TIMES, count)))]
    context, turns = Growth(), []
    context.add("user", integer(row, _PROMPT, high=MAX_TOKENS))
    for index, out in enumerate([*replies, integer(row, _FINAL, high=MAX_TOKENS)]):
        gap = Gap("tool", waits[index - 1]) if index else Gap()
        isl, prompt = context.tokens, context.prompt(index)
        reply = context.add("assistant", out)
        turns.append(Turn(index, 0, prompt, isl, Output(out), (index - 1,) if index else (), gap, reply=reply))
        if index < count:
            context.add("tool_result", results[index])
    return Session(id, tuple(turns), segments=context.segments)


def _list(row: Body, key: str, count: int) -> list[Any]:
    values = items(row, key, limit=MAX_TURNS)
    if len(values) != count:
        raise Invalid(f"{key} has {len(values)} values, num_turns is {count}")
    return values


def _lengths(row: Body, key: str, count: int) -> list[int]:
    return [
        integer({f"{key}[{at}]": value}, f"{key}[{at}]", high=MAX_TOKENS)
        for at, value in enumerate(_list(row, key, count))
    ]


def _seconds(row: Body, at: int) -> float:
    key = f"{_TIMES}[{at}]"
    value = seconds({key: row[_TIMES][at]}, key)
    if value is None or value < 0:
        raise Invalid(f"{key}: {value} is not a number of seconds of at least 0")
    return value


def make_format() -> Format:
    """What `agentx import trie` reads."""
    return Format(
        name="trie",
        row="row",
        sessions=read,
        unknowable=(
            "text, token ids, and what sessions share: only lengths",
            "tools' names, and parallel calls: one latency a turn",
            "system prompts and tool definitions apart from the first message",
            "reasoning tokens, subagents, compaction, human pauses, arrivals, failed and aborted calls",
        ),
        endings=(".jsonl", ".json"),
        fidelity=Fidelity("lengths", "ordinal", "none", "none", "split"),
    )
