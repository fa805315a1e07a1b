"""What came back for a model call: its content in canonical form, its tokens by the server's usage, its times.

A stream is read as events, each dated by the read that completed it. Usage counts are the last that were told for
each field, never added. A reply is `whole` when its wire's own last word was there: a stream that was cut, an error in
the middle of one, or an error page is none.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentx.recorder.canonical import Item, ToolCall, argument_texts, assistant, reply_item, response_items, tool_calls
from agentx.recorder.capture_reader import Chunk, Exchange
from agentx.recorder.decoding import Undecodable, decoded
from agentx.wire.sse import SseParser

MOST_TOKENS = 1 << 30
_ERROR_KIND = re.compile(r"[a-z]{1,20}(_[a-z]{1,20}){0,3}\Z")


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens by the server. `prompt` includes cached ones; None: not told, which is not zero."""

    prompt: int | None = None
    completion: int | None = None
    reasoning: int | None = None
    cached: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """A reply. `items` are its message as a later prompt would hold it. Times are nanoseconds since the epoch."""

    whole: bool
    usage: Usage = Usage()
    items: tuple[Item, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    id: str | None = None
    first_token: int | None = None
    error: str | None = None
    size: int = 0  # bytes of visible and reasoning text, for an estimate where usage is not told
    ids: tuple[int, ...] = ()  # its tokens, where a reply of /generate tells all of them


@dataclass(slots=True)
class _Gathering:
    """A message in the making: blocks by index, and what was said of it."""

    blocks: dict[int, dict[str, Any]] = field(default_factory=dict)
    calls: dict[int, dict[str, Any]] = field(default_factory=dict)
    text: list[str] = field(default_factory=list)
    ids: list[int] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    output: list[dict[str, Any]] = field(default_factory=list)
    usage: dict[str, Any] = field(default_factory=dict)
    id: str | None = None
    whole: bool = False
    error: str | None = None
    first_token: int | None = None


def read_reply(wire: str, exchange: Exchange) -> Reply:
    """The reply of an exchange; never raises for what a server sent."""
    if exchange.status is None:
        return Reply(False, error="no answer")
    coding = exchange.reply_header("content-encoding") or ""
    try:
        body = decoded(exchange.reply, coding)
    except Undecodable as error:
        return Reply(False, error=str(error))
    if not 200 <= exchange.status < 300:
        return Reply(False, error=f"status {exchange.status}")
    chunks = exchange.chunks if coding in ("", "identity") else ()
    return reply_of_body(wire, body, exchange.reply_header("content-type") or "", chunks)


def reply_of_body(wire: str, body: bytes, content_type: str = "", chunks: Sequence[Chunk] = ()) -> Reply:
    """The reply in a body that is not encoded, a stream or a JSON document. `chunks` date its reads."""
    if not _is_stream(content_type, body):
        value = _load(body)
        return reply_of(wire, value) if value is not None else Reply(False, error="the reply is not JSON")
    gathering = _Gathering()
    for at, data in _events(body, chunks):
        _event(wire, gathering, data, at)
    return _made(wire, gathering)


def reply_of(wire: str, value: Mapping[str, Any]) -> Reply:
    """The reply in a JSON document that was parsed."""
    gathering = _Gathering()
    _whole(wire, gathering, dict(value))
    return _made(wire, gathering)


def _made(wire: str, gathering: _Gathering) -> Reply:
    try:
        return _reply(wire, gathering)
    except RecursionError:
        return Reply(False, _usage(wire, gathering.usage), error="the reply is nested too deeply")


def usage_of(wire: str, told: Any) -> Usage:
    """The tokens of a `usage` object as the wire means it."""
    return _usage(wire, _map(told))


def _is_stream(content_type: str, body: bytes) -> bool:
    """By its type, or, where that is missing or wrong, by how it begins."""
    start = body.lstrip(b"\xef\xbb\xbf \r\n")[:16]
    return "event-stream" in content_type or start.startswith((b"data:", b"event:", b":"))


def _events(body: bytes, chunks: Sequence[Chunk]) -> Iterator[tuple[int | None, bytes]]:
    """The events' data and the times of the reads that completed them; None where no times fit the body."""
    parser = SseParser()
    if sum(chunk.bytes for chunk in chunks) != len(body):
        yield from ((None, event.data) for event in parser.feed(body))
        return
    at = 0
    for chunk in chunks:
        for event in parser.feed(body[at : at + chunk.bytes]):
            yield chunk.at, event.data
        at += chunk.bytes


def _load(data: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _merge(usage: dict[str, Any], told: Any) -> None:
    """The last value that is told for each field; fields are never added."""
    for key, value in _map(told).items():
        if isinstance(value, dict):
            _merge(usage.setdefault(key, {}) if isinstance(usage.get(key, {}), dict) else {}, value)
        elif value is not None:
            usage[key] = value


# --- streams -----------------------------------------------------------------------------------------------------


def _event(wire: str, gathering: _Gathering, data: bytes, at: int | None) -> None:
    if data.strip() == b"[DONE]":
        gathering.whole = True
        return
    event = _load(data)
    if event is None:
        return
    if event.get("error") and wire != "responses":
        gathering.error = _message(event["error"])
    token = {"messages": _messages_event, "responses": _responses_event}.get(wire, _chat_event)(gathering, event)
    if token and gathering.first_token is None:
        gathering.first_token = at


def _message(error: Any) -> str:
    """The kind of an error. Its message may echo anything, and is not for a trace."""
    kind = _map(error).get("type") or _map(error).get("code")
    return kind if isinstance(kind, str) and _ERROR_KIND.match(kind) else "error"


def _chat_event(gathering: _Gathering, event: dict[str, Any]) -> bool:
    """Chat, completions and generate: the last is cumulative. Returns whether a token came."""
    _merge(gathering.usage, event.get("usage"))
    gathering.id = gathering.id or (event["id"] if isinstance(event.get("id"), str) else None)
    if isinstance(event.get("text"), str):
        _merge(gathering.usage, event.get("meta_info"))
        gathering.whole = bool(_map(event.get("meta_info")).get("finish_reason"))
        gathering.text = [event["text"]]
        _ids(gathering, event)
        return bool(event["text"])
    choices = _list(event.get("choices"))
    choice = _map(choices[0]) if choices else {}
    if choice.get("finish_reason"):
        gathering.whole = True
    delta = _map(choice.get("delta"))
    text = delta.get("content") if delta else choice.get("text")
    reasoning = delta.get("reasoning_content") or delta.get("reasoning")
    if isinstance(text, str):
        gathering.text.append(text)
    if isinstance(reasoning, str):
        gathering.reasoning.append(reasoning)
    for position, call in enumerate(_list(delta.get("tool_calls"))):
        _call_delta(gathering, _map(call), position)
    return bool(text or reasoning or delta.get("tool_calls"))


def _ids(gathering: _Gathering, told: Mapping[str, Any]) -> None:
    """Token ids of a reply: all so far, or, as a server may be set, those that are new."""
    ids = _list(told.get("output_ids"))
    gathering.ids = ids if ids[: len(gathering.ids)] == gathering.ids else gathering.ids + ids


def _call_delta(gathering: _Gathering, call: dict[str, Any], position: int) -> None:
    index = call.get("index")
    known = gathering.calls.setdefault(index if isinstance(index, int) else position, {"id": None, "name": "", "a": []})
    known["id"] = known["id"] or call.get("id")
    function = _map(call.get("function"))
    known["name"] = known["name"] or str(function.get("name") or "")
    if isinstance(function.get("arguments"), str):
        known["a"].append(function["arguments"])


def _messages_event(gathering: _Gathering, event: dict[str, Any]) -> bool:
    kind, index = event.get("type"), event.get("index")
    if kind == "message_start":
        message = _map(event.get("message"))
        gathering.id = message.get("id") if isinstance(message.get("id"), str) else None
        _merge(gathering.usage, message.get("usage"))
    elif kind == "message_delta":
        _merge(gathering.usage, event.get("usage"))
    elif kind == "message_stop":
        gathering.whole = True
    elif kind == "content_block_start" and isinstance(index, int):
        gathering.blocks[index] = {**_map(event.get("content_block")), "_parts": []}
    elif kind == "content_block_delta" and isinstance(index, int):
        block = gathering.blocks.setdefault(index, {"type": "text", "_parts": []})
        delta = _map(event.get("delta"))
        text = delta.get("text") or delta.get("thinking") or delta.get("partial_json")
        if isinstance(text, str):
            block["_parts"].append(text)
            return True
    return False


def _responses_event(gathering: _Gathering, event: dict[str, Any]) -> bool:
    kind = str(event.get("type", ""))
    response = _map(event.get("response"))
    if isinstance(response.get("id"), str):
        gathering.id = response["id"]
    if kind == "response.output_item.done":
        gathering.output.append(_map(event.get("item")))
    elif kind in ("response.completed", "response.incomplete"):
        gathering.whole = True
        _merge(gathering.usage, response.get("usage"))
        gathering.output = [_map(item) for item in _list(response.get("output"))] or gathering.output
    elif kind in ("response.failed", "error"):
        gathering.error = _message(response.get("error") or event)
    return kind.endswith(".delta") and bool(event.get("delta"))


# --- replies that were not streamed ------------------------------------------------------------------------------


def _whole(wire: str, gathering: _Gathering, value: dict[str, Any]) -> None:
    gathering.id = value["id"] if isinstance(value.get("id"), str) else None
    _merge(gathering.usage, value.get("usage"))
    if value.get("error"):
        gathering.error = _message(value["error"])
        return
    if wire == "messages":
        gathering.blocks = {index: _map(block) for index, block in enumerate(_list(value.get("content")))}
        gathering.whole = value.get("type") == "message"
    elif wire == "responses":
        gathering.output = [_map(item) for item in _list(value.get("output"))]
        gathering.whole = value.get("status") in ("completed", "incomplete", None) and "output" in value
    elif isinstance(value.get("text"), str):
        gathering.text, gathering.whole = [value["text"]], True
        _ids(gathering, value)
        _merge(gathering.usage, value.get("meta_info"))
    else:
        choices = _list(value.get("choices"))
        choice = _map(choices[0]) if choices else {}
        message = _map(choice.get("message"))
        text = message.get("content") if message else choice.get("text")
        gathering.text = [text] if isinstance(text, str) else []
        reasoning = message.get("reasoning_content") or message.get("reasoning")
        gathering.reasoning = [reasoning] if isinstance(reasoning, str) else []
        for position, call in enumerate(_list(message.get("tool_calls"))):
            _call_delta(gathering, {**_map(call), "index": position}, position)
        gathering.whole = bool(choice)


# --- the reply ---------------------------------------------------------------------------------------------------


def _reply(wire: str, gathering: _Gathering) -> Reply:
    items: list[Item] = []
    if wire == "responses":
        items += response_items(gathering.output)
        calls = [_response_call(entry) for entry in gathering.output if str(entry.get("type", "")).endswith("_call")]
        size = sum(each.weight for each in items)
    else:
        message = _as_message(wire, gathering)
        calls = tool_calls(message)
        if wire in ("completions", "generate"):  # no message: text that a later prompt may hold
            items += [reply_item(text)] if (text := "".join(gathering.text)) else []
        else:
            items += assistant(message)
        size = sum(each.weight for each in items) + sum(map(len, gathering.reasoning))
    usage = _usage(wire, gathering.usage)
    return Reply(
        gathering.whole and gathering.error is None,
        usage,
        tuple(items),
        tuple(calls),
        gathering.id,
        gathering.first_token,
        gathering.error,
        size,
        _all_of(gathering.ids, usage),
    )


def _all_of(ids: list[Any], usage: Usage) -> tuple[int, ...]:
    """The ids, where they are as many as the reply has tokens."""
    told = len(ids) == usage.completion and all(type(id) is int and abs(id) < 1 << 62 for id in ids)
    return tuple(ids) if told else ()


def _as_message(wire: str, gathering: _Gathering) -> dict[str, Any]:
    if wire == "messages":
        return {"content": [_finished(block) for _, block in sorted(gathering.blocks.items())]}
    calls = [
        {"id": call["id"], "function": {"name": call["name"], "arguments": "".join(call["a"])}}
        for _, call in sorted(gathering.calls.items())
    ]
    return {"content": "".join(gathering.text), "tool_calls": calls}


def _finished(block: dict[str, Any]) -> dict[str, Any]:
    """A streamed content block with its parts put together."""
    parts = block.pop("_parts", None)
    if not parts:
        return block
    joined = "".join(parts)
    if block.get("type") in ("tool_use", "server_tool_use"):
        try:
            return {**block, "input": json.loads(joined)}
        except (ValueError, RecursionError):
            return {**block, "input": joined}
    name = "thinking" if block.get("type") == "thinking" else "text"
    return {**block, name: joined}


def _response_call(entry: Mapping[str, Any]) -> ToolCall:
    name = entry.get("name") or str(entry.get("type", "")).removesuffix("_call")
    return ToolCall(str(entry.get("call_id")), str(name), argument_texts(entry.get("arguments")))


def _count(value: Any) -> int | None:
    """A number of tokens; one that no prompt can have is as good as none."""
    return value if type(value) is int and 0 <= value <= MOST_TOKENS else None


def _usage(wire: str, told: Mapping[str, Any]) -> Usage:
    """Anthropic's cached tokens are beside its input tokens, everyone else's are among the prompt's."""
    if wire == "messages":
        fields = ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
        parts = [_count(told.get(name)) for name in fields]
        # Gateways that do not know send 0, and no prompt is empty.
        prompt = None if parts[0] is None else sum(part or 0 for part in parts) or None
        return Usage(prompt, _count(told.get("output_tokens")), None, parts[1])
    prompt = _count(told.get("prompt_tokens", told.get("input_tokens")))
    completion = _count(told.get("completion_tokens", told.get("output_tokens")))
    if prompt == 0:
        return Usage()  # what SGLang says after a refusal
    inside = _map(told.get("prompt_tokens_details") or told.get("input_tokens_details"))
    outside = _map(told.get("completion_tokens_details") or told.get("output_tokens_details"))
    cached = _count(inside.get("cached_tokens"))
    reasoning = _count(outside.get("reasoning_tokens", told.get("reasoning_tokens")))
    return Usage(prompt, completion, reasoning, cached if cached is not None else _count(told.get("cached_tokens")))
