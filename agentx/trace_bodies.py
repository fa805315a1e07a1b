"""Bodies of trace frames: from a core value to a plain map and back, every field checked.

A body leaves out what has its default value. Keys that this version does not know go into `extra` and come out
again when the value is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from agentx.core import (
    EVENTS,
    GAP_KINDS,
    IDENTITIES,
    LAYERS,
    PROVENANCES,
    THREAD_KINDS,
    Content,
    Extra,
    Gap,
    GapParts,
    Header,
    Observed,
    Opaque,
    OpaqueRun,
    Output,
    Piece,
    Prompt,
    Segment,
    Session,
    Text,
    Thread,
    TokenIds,
    Tool,
    Turn,
    TurnEvent,
)

MAX_TOKENS = 1 << 40  # of one segment or prompt
MAX_PIECES = 1 << 20  # of one prompt
MAX_ID = (1 << 64) - 1
MAX_SECONDS = 1e20  # sums stay finite; importers read nanoseconds of a calendar clock by the same rule
Body = dict[str, Any]
T = TypeVar("T")


class Invalid(ValueError):
    """A body that breaks the format's rules; the message names the field and the value."""


# --- single fields -----------------------------------------------------------------------------------------------


def integer(body: Body, key: str, *, low: int = 0, high: int = MAX_ID, default: int | None = None) -> int:
    value = body.get(key, default)
    if type(value) is not int or not low <= value <= high:
        raise _wrong(body, key, f"a whole number from {low} to {high}")
    return value


def seconds(body: Body, key: str) -> float | None:
    """A number of seconds within the limit, or None when the key is absent."""
    value = body.get(key)
    if value is None:
        return None
    if type(value) not in (int, float) or not -MAX_SECONDS <= value <= MAX_SECONDS:
        raise _wrong(body, key, f"a number of seconds within {MAX_SECONDS:.0e}")
    return float(value)


def string(body: Body, key: str) -> str:
    value = body.get(key)
    if not isinstance(value, str):
        raise _wrong(body, key, "a text")
    try:
        value.encode()
    except UnicodeEncodeError:  # JSON can spell half a character
        raise _wrong(body, key, "text that UTF-8 can hold") from None
    return value


def optional(read: Callable[..., T], body: Body, key: str, **limits: int) -> T | None:
    return None if body.get(key) is None else read(body, key, **limits)


def one_of(body: Body, key: str, names: Iterable[str], default: str | None = None) -> Any:
    value = body.get(key, default)
    if not isinstance(value, str) or value not in names:
        raise _wrong(body, key, "one of " + " ".join(names))
    return value


def mapping(body: Body, key: str) -> Body:
    value = body.get(key, {})
    if not isinstance(value, dict):
        raise _wrong(body, key, "a map")
    return value


def items(body: Body, key: str, limit: int = MAX_PIECES) -> list[Any]:
    value = body.get(key, [])
    if not isinstance(value, list) or len(value) > limit:
        raise _wrong(body, key, f"a list of at most {limit}")
    return value


def extra(body: Body, known: frozenset[str], nested: Mapping[str, frozenset[str]] | None = None) -> Extra:
    """What of a body is not known: its own keys, and those inside its `nested` maps under the map's key."""
    rest = {} if body.keys() <= known else {key: value for key, value in body.items() if key not in known}
    for key, inside in nested.items() if nested else ():
        if key in body and not body[key].keys() <= inside:
            rest[key] = {name: value for name, value in body[key].items() if name not in inside}
    return rest


def _wrong(body: Body, key: str, wanted: str) -> Invalid:
    if key not in body:
        return Invalid(f"the field {key!r} is missing")
    shown = repr(body[key])
    return Invalid(f"{key}: {shown[:60]}{'...' if len(shown) > 60 else ''} is not {wanted}")


def _compact(body: Body, more: Extra) -> Body:
    """A body without its empty values, and with the unknown fields that it was read with."""
    return _merge({key: value for key, value in body.items() if value not in (None, [], {}, ())}, more)


def _merge(body: Body, more: Extra) -> Body:
    result = dict(body)
    for key, value in more.items():
        known = result.get(key)
        result[key] = {**known, **value} if isinstance(known, dict) and isinstance(value, dict) else value
    return result


# --- header ------------------------------------------------------------------------------------------------------

HEADER_KEYS = frozenset({"version", "name", "scope", "identity", "content", "tokenizer", "provenance"})


def header(body: Body) -> Header:
    return Header(
        name=string(body, "name"),
        scope=string(body, "scope"),
        identity=one_of(body, "identity", IDENTITIES, "file"),
        content=one_of(body, "content", ("synthetic", "text", "opaque"), "synthetic"),
        tokenizer=optional(string, body, "tokenizer"),
        provenance=mapping(body, "provenance"),
        extra=extra(body, HEADER_KEYS),
    )


def header_body(value: Header) -> Body:
    body = {
        "name": value.name,
        "scope": value.scope,
        "identity": value.identity,
        "content": value.content,
        "tokenizer": value.tokenizer,
        "provenance": dict(value.provenance),
    }
    return _compact(body, value.extra)


# --- segment -----------------------------------------------------------------------------------------------------

SEGMENT_KEYS = frozenset({"id", "layer", "tokens", "text", "ids", "opaque"})
SEGMENT_NESTED = {"opaque": frozenset({"block", "runs"})}


def segment(body: Body) -> Segment:
    tokens = integer(body, "tokens", high=MAX_TOKENS)
    content = _content(body)
    if isinstance(content, Opaque) and content.tokens != tokens:
        raise Invalid(f"its opaque runs hold {content.tokens} tokens, not {tokens}")
    if isinstance(content, TokenIds) and len(content.ids) != tokens:
        raise Invalid(f"it has {len(content.ids)} ids, not {tokens}")
    return Segment(
        id=integer(body, "id"),
        layer=one_of(body, "layer", LAYERS),
        tokens=tokens,
        content=content,
        extra=extra(body, SEGMENT_KEYS, SEGMENT_NESTED),
    )


def _content(body: Body) -> Content:
    kinds = [key for key in ("text", "ids", "opaque") if key in body]
    if len(kinds) > 1:
        raise Invalid(f"its content is given twice: {' and '.join(kinds)}")
    if "text" in body:
        return Text(string(body, "text"))
    if "ids" in body:
        ids = items(body, "ids", limit=1 << 24)
        return TokenIds(tuple(integer({"ids": id}, "ids", high=(1 << 32) - 1) for id in ids))
    return _opaque(mapping(body, "opaque")) if "opaque" in body else None


def _opaque(body: Body) -> Opaque:
    block = integer(body, "block", low=1, high=1 << 20)
    runs = []
    for run in items(body, "runs", limit=1 << 22):
        if not isinstance(run, list) or len(run) != 3:
            raise Invalid(f"runs: {run!r} is not [block id, offset, tokens]")
        fields = dict(zip(("block id", "offset", "tokens"), run, strict=True))
        runs.append(
            OpaqueRun(
                integer(fields, "block id"),
                integer(fields, "offset", high=block - 1),
                integer(fields, "tokens", low=1, high=MAX_TOKENS),
            )
        )
    return Opaque(block, tuple(runs))


def segment_body(value: Segment) -> Body:
    body: Body = {"id": value.id, "layer": value.layer, "tokens": value.tokens}
    content = value.content
    if isinstance(content, Opaque):
        body["opaque"] = {"block": content.block, "runs": [list(run) for run in content.runs]}
    elif isinstance(content, Text):
        body["text"] = content.text
    elif isinstance(content, TokenIds):
        body["ids"] = list(content.ids)
    return _merge(body, value.extra)


# --- session -----------------------------------------------------------------------------------------------------

SESSION_KEYS = frozenset({"id", "arrival", "threads"})


def threads(body: Body) -> tuple[Thread, ...]:
    """The threads of a session; one main thread 0 when none is listed. Raises Invalid on a parent that comes later."""
    listed = items(body, "threads", limit=1 << 16)
    result: list[Thread] = []
    for item in listed:
        if not isinstance(item, dict):
            raise Invalid(f"threads: {item!r} is not a map")
        parent = optional(integer, item, "parent")
        if parent is not None and all(thread.id != parent for thread in result):
            raise Invalid(f"threads: parent {parent} is not an earlier thread")
        kind = one_of(item, "kind", THREAD_KINDS, "main")
        more = extra(item, frozenset({"id", "parent", "kind", "type"}))
        result.append(Thread(integer(item, "id"), parent, kind, optional(string, item, "type"), more))
    if len({thread.id for thread in result}) < len(result):
        raise Invalid("threads: an id occurs twice")
    return tuple(result) or (Thread(0),)


END_KEYS = frozenset({"turns", "complete"})


def end_body(value: Session) -> Body:
    body: Body = {"turns": len(value.turns), **({} if value.complete else {"complete": False})}
    return {**body, **value.end_extra}


def session_body(value: Session) -> Body:
    listed = [
        {"id": thread.id, **_compact({"parent": thread.parent, "kind": thread.kind, "type": thread.type}, thread.extra)}
        for thread in value.threads
    ]
    return _compact({"id": value.id, "arrival": value.arrival, "threads": listed}, value.extra)


# --- turn --------------------------------------------------------------------------------------------------------

TURN_NESTED = {
    "gap": frozenset({"kind", "seconds", "provenance", "parts"}),
    "prompt": frozenset({"base", "keep", "append"}),
    "output": frozenset({"visible", "reasoning"}),
    "event": frozenset({"kind", "before", "kept", "summary"}),
    "observed": frozenset({"start", "ttft", "end", "cached", "status"}),
}
TURN_KEYS = frozenset(TURN_NESTED) | {"index", "thread", "model", "after", "tools", "isl", "reply", "sampling"}


def turn(body: Body) -> Turn:
    return Turn(
        index=integer(body, "index"),
        thread=integer(body, "thread", default=0),
        prompt=_prompt(mapping(body, "prompt")),
        isl=integer(body, "isl", high=MAX_TOKENS),
        output=_output(mapping(body, "output")),
        after=tuple(integer({"after": index}, "after") for index in items(body, "after")),
        gap=_gap(mapping(body, "gap")),
        tools=tuple(_tool(tool) for tool in items(body, "tools", limit=1 << 16)),
        model=optional(string, body, "model"),
        reply=optional(integer, body, "reply"),
        event=_event(mapping(body, "event")) if "event" in body else None,
        sampling=mapping(body, "sampling"),
        observed=_observed(mapping(body, "observed")) if "observed" in body else None,
        extra=extra(body, TURN_KEYS, TURN_NESTED),
    )


def _prompt(body: Body) -> Prompt:
    pieces = []
    for item in items(body, "append"):
        if not isinstance(item, list) or len(item) != 3 or not all(type(part) is int for part in item):
            raise Invalid(f"prompt: {item!r} is not [segment, start, stop]")
        piece = Piece(*item)
        if not 0 <= piece.start < piece.stop:
            raise Invalid(f"prompt: the piece {item} is empty or starts below 0")
        pieces.append(piece)
    base = optional(integer, body, "base")
    keep = integer(body, "keep", default=0)
    if base is None and keep:
        raise Invalid(f"prompt: keeps {keep} pieces of no turn")
    return Prompt(tuple(pieces), base, keep)


def _output(body: Body) -> Output:
    return Output(
        integer(body, "visible", high=MAX_TOKENS, default=0), integer(body, "reasoning", high=MAX_TOKENS, default=0)
    )


def _gap(body: Body) -> Gap:
    wait = seconds(body, "seconds") or 0.0
    if wait < 0:
        raise Invalid(f"gap: {wait} seconds is below 0")
    kind = one_of(body, "kind", GAP_KINDS, "unknown")
    parts = _parts(mapping(body, "parts")) if "parts" in body else None
    return Gap(kind, wait, one_of(body, "provenance", PROVENANCES, "recorded"), parts)


def _parts(body: Body) -> GapParts:
    tool, human = seconds(body, "tool"), seconds(body, "human")
    if min(tool or 0.0, human or 0.0) < 0:
        raise Invalid(f"gap: parts of {tool} and {human} seconds: one is below 0")
    return GapParts(tool, human, one_of(body, "provenance", PROVENANCES, "recorded"))


def _tool(body: Any) -> Tool:
    if not isinstance(body, dict):
        raise Invalid(f"tools: {body!r} is not a map")
    return Tool(string(body, "name"), seconds(body, "seconds"), extra(body, frozenset({"name", "seconds"})))


def _event(body: Body) -> TurnEvent:
    return TurnEvent(
        one_of(body, "kind", EVENTS),
        optional(integer, body, "before"),
        optional(integer, body, "kept"),
        optional(integer, body, "summary"),
    )


def _observed(body: Body) -> Observed:
    return Observed(
        seconds(body, "start"),
        seconds(body, "ttft"),
        seconds(body, "end"),
        optional(integer, body, "cached"),
        optional(string, body, "status"),
    )


def turn_body(value: Turn) -> Body:
    prompt = {
        "base": value.prompt.base,
        "keep": value.prompt.keep or None,
        "append": [list(piece) for piece in value.prompt.append],
    }
    body: Body = {
        "model": value.model,
        "after": list(value.after),
        "gap": None if value.gap == Gap() else _gap_body(value.gap),
        "tools": [_compact({"name": tool.name, "seconds": tool.seconds}, tool.extra) for tool in value.tools],
        "prompt": _compact(prompt, {}),
        "output": {"visible": value.output.visible, **_nonzero("reasoning", value.output.reasoning)},
        "reply": value.reply,
        "event": None if value.event is None else _event_body(value.event),
        "sampling": dict(value.sampling),
        "observed": None if value.observed is None else _observed_body(value.observed),
    }
    required = {"index": value.index, "thread": value.thread, "isl": value.isl}
    return {**required, **_compact(body, value.extra)}


def _nonzero(key: str, value: int) -> Body:
    return {key: value} if value else {}


def _gap_body(value: Gap) -> Body:
    body: Body = {"kind": value.kind, "seconds": value.seconds, "provenance": value.provenance}
    if value.parts is not None:
        parts = value.parts
        body["parts"] = _compact({"tool": parts.tool, "human": parts.human, "provenance": parts.provenance}, {})
    return body


def _event_body(value: TurnEvent) -> Body:
    body = {"kind": value.kind, "before": value.before, "kept": value.kept, "summary": value.summary}
    return _compact(body, {})


def _observed_body(value: Observed) -> Body:
    body = {
        "start": value.start,
        "ttft": value.ttft,
        "end": value.end,
        "cached": value.cached,
        "status": value.status,
    }
    return _compact(body, {})
