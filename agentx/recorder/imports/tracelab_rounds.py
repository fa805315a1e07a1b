"""TraceLab's recorded rounds: one JSON line is one model call of a Claude Code or Codex session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone
from itertools import pairwise
from pathlib import Path
from typing import Any

from agentx.core import Gap, Layer, Observed, Output, Session, Tool, Turn, TurnEvent
from agentx.errors import BadInput
from agentx.recorder.imports.books import Books
from agentx.recorder.imports.groups import Groups
from agentx.recorder.imports.growth import Growth
from agentx.recorder.imports.source import Line, looks_like, parse
from agentx.trace_bodies import MAX_TOKENS, Body, Invalid, integer, items, optional, seconds, string

_INPUTS = ("user_message", "tool_result")  # events of a round that come before its call; the others are its reply


@dataclass(frozen=True, slots=True)
class Round:
    """One round. `start`, `end` are seconds of a calendar clock: its last input, the end of its reply."""

    session: str
    index: int
    id: str | None
    model: str | None
    isl: int
    cached: int
    out: int
    reasoning: int
    tools: tuple[Tool, ...]
    start: float | None
    end: float | None
    human: bool  # a user's message is among its inputs


def read(path: Path, books: Books, digest: Any) -> Iterator[Session]:
    """The sessions of a file. Raises BadInput, with the line, for what is no such round."""
    for lines in Groups(path, digest, lambda line: round_of(line, path).session):
        yield convert([round_of(line, path) for line in lines], books)


def round_of(line: Line, path: Path) -> Round:
    """A line as a round. Raises BadInput, with the line."""
    value = parse(line.data, path, line.number)
    if not isinstance(value, dict) or not {"session_id", "input_tokens_total"} <= value.keys():
        raise BadInput(f"not a TraceLab round: this looks like {looks_like(value)}", file=path, line=line.number)
    try:
        return _checked(value)
    except Invalid as error:
        raise BadInput(str(error), file=path, line=line.number) from None


def _checked(body: Body) -> Round:
    events = [event for event in items(body, "timing_events") if isinstance(event, dict)]
    inputs = [at for event in events if event.get("event_type") in _INPUTS and (at := _moment(event)) is not None]
    replies = [at for event in events if event.get("event_type") not in _INPUTS and (at := _moment(event)) is not None]
    out = integer(body, "output_tokens", high=MAX_TOKENS)
    return Round(
        session=string(body, "session_id"),
        index=integer(body, "round_index"),
        id=optional(string, body, "round_id"),
        model=optional(string, body, "model"),
        isl=integer(body, "input_tokens_total", high=MAX_TOKENS),
        cached=integer(body, "prefix_tokens", high=MAX_TOKENS, default=0),
        out=out,
        reasoning=min(out, optional(integer, body, "reasoning_output_tokens", high=MAX_TOKENS) or 0),
        tools=tuple(_tool(tool) for tool in items(body, "tools", limit=1 << 16)),
        start=max(inputs, default=None),
        end=max(replies, default=None),
        human=any(event.get("event_type") == "user_message" for event in events),
    )


def _tool(body: Any) -> Tool:
    if not isinstance(body, dict):
        raise Invalid(f"tools: {body!r:.40} is not an object")
    took = seconds(body, "tool_wall_latency_ms")
    if took is not None and took < 0:
        raise Invalid(f"tool_wall_latency_ms: {took} is below 0")
    return Tool(optional(string, body, "tool_name") or "tool", None if took is None else round(took / 1000, 6))


def _moment(event: Body) -> float | None:
    if event.get("timestamp") is None:
        return None
    text = string(event, "timestamp")
    try:
        at = datetime.fromisoformat(text.replace("Z", "+00:00"))
        return (at if at.tzinfo else at.replace(tzinfo=timezone.utc)).timestamp()
    except (ValueError, OverflowError):
        raise Invalid(f"timestamp: {text[:40]!r} is not a time such as 2026-06-01T05:40:20.151Z") from None


def convert(rows: Sequence[Round], books: Books) -> Session:
    """The rounds of one session, in the order of their numbers."""
    books.sessions.read += 1
    books.rows.read += len(rows)
    rounds = _single(sorted(rows, key=lambda each: each.index), books)
    books.note(
        "round out of order: sorted within its session",
        sum(a.index > b.index for a, b in pairwise(rows)),
    )
    zero = next((at for each in rounds for at in (each.start, each.end) if at is not None), 0.0)
    context, turns = Growth(), list[Turn]()
    for index, each in enumerate(rounds):
        before = rounds[index - 1] if index else None
        event = _grow(context, each, before, turns, books)
        turns.append(
            Turn(
                index=index,
                thread=0,
                prompt=context.prompt(index),
                isl=each.isl,
                output=Output(each.out - each.reasoning, each.reasoning),
                after=(index - 1,) if index else (),
                gap=_gap(each, before, books) if before else Gap(),
                tools=before.tools if before and not _only_human(each, before) else (),
                model=each.model,
                event=event or _switch(each, before),
                observed=Observed(_since(each.start, zero), None, _since(each.end, zero), each.cached),
            )
        )
    books.note("reply of a session's last round: no later prompt shows it", bool(rounds[-1].out))
    books.rows.used += len(rounds)
    books.sessions.used += 1
    return Session(rounds[0].session, tuple(turns), segments=context.segments)


def _single(rounds: Sequence[Round], books: Books) -> list[Round]:
    """The rounds without those whose id occurs again: a transcript that was resumed repeats them."""
    kept: list[Round] = []
    seen: set[str] = set()
    for each in rounds:
        if each.id is not None and each.id in seen:
            books.rows.drop("round_id that occurs again in its session")
            continue
        if each.id is not None:
            seen.add(each.id)
        kept.append(each)
    return kept


def _grow(context: Growth, row: Round, before: Round | None, turns: list[Turn], books: Books) -> TurnEvent | None:
    """Make the context that of `row`; the reply before it is told to its turn when it is in the context."""
    if before is None:
        context.add("system", min(row.cached, row.isl))
        books.note("first round with a cached prefix: called system (inferred)", bool(row.cached))
        context.add("user", row.isl - min(row.cached, row.isl))
        return None
    layer: Layer = "user" if row.human else "tool_result"
    if row.isl < before.isl:
        kept = min(row.cached, row.isl)
        books.note("reply unknown: the next prompt does not go on from this one", bool(before.out))
        context.cut(kept)
        stripped = row.human and before.isl - row.isl <= sum(turn.output.reasoning for turn in turns)
        if stripped:
            books.note("prompt shorter by no more than the reasoning so far, at a user's message: reasoning dropped")
            context.add(layer, row.isl - kept)
            return TurnEvent("think_strip")
        books.note("compaction" if kept else "reset of the context")
        context.add("summary", row.isl - kept)
        return TurnEvent("compaction" if kept else "reset", before=before.isl, kept=kept)
    books.note(
        "provider's cache gave less than the prompt before: the context is kept whole (inferred)",
        row.cached < before.isl,
    )
    grown = row.isl - before.isl
    if before.out and grown >= before.out:
        turns[-1] = replace(turns[-1], reply=context.add("assistant", before.out))
        books.note("reply taken from the next prompt's growth (inferred)")
        grown -= before.out
    else:
        books.note("reply unknown: the next prompt grew by less", bool(before.out))
    context.add(layer, grown)
    return None


def _only_human(row: Round, before: Round) -> bool:
    """Whether a round waits for a user and not for tools."""
    return row.human and not before.tools


def _gap(row: Round, before: Round, books: Books) -> Gap:
    """The longest of the tools that the round before called, or the time until the user's message."""
    if row.human and row.start is not None and before.end is not None:
        return Gap("human", max(0.0, round(row.start - before.end, 6)), "recorded")
    times = [tool.seconds for tool in before.tools if tool.seconds is not None]
    if times and not row.human:
        return Gap("tool", max(times), "recorded")
    kind = Gap("human" if row.human else "tool" if before.tools else "unknown").kind
    if row.start is not None and before.end is not None:
        return Gap(kind, max(0.0, round(row.start - before.end, 6)), "inferred")
    books.note("turn without a time: a gap of 0 (inferred)")
    return Gap(kind, 0.0, "inferred")


def _switch(row: Round, before: Round | None) -> TurnEvent | None:
    models = (before.model if before else None, row.model)
    return TurnEvent("model_switch") if None not in models and models[0] != models[1] else None


def _since(at: float | None, zero: float) -> float | None:
    return None if at is None else max(0.0, round(at - zero, 6))
