"""Anthropic's messages, as SGLang serves them: what stands around a prompt, and replies read from bytes that were kept.

The API has no way to ask for a fewest number of tokens or to ignore end tokens, and its streams carry no counts until
the end. What came from the cache is told apart from the input, and only when there is some.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from agentx.wire.openai import merge_cached
from agentx.wire.reply import Reply, ServerError, count_of, error_in, join_text, load_object, mapping_of

_TEXTS = ("text", "thinking", "partial_json")


def messages_parts(*, model: str, max_tokens: int) -> list[bytes]:
    """What stands before a prompt and behind it in a `/v1/messages` body.

    A prompt is `"system":"…",` (or nothing), then `"messages":[…`.
    """
    fields = {"max_tokens": max_tokens, "temperature": 0, "stream": True}
    return [
        b'{"model":%b,' % json.dumps(model).encode(),
        b"]," + json.dumps(fields, separators=(",", ":")).encode()[1:],
    ]


def parse_messages_stream(events: Iterable[bytes], *, text: bool = False) -> Reply:
    """Read a whole stream: the data of each of its events, in order. Never raises: what is wrong is in `error`."""
    counts: list[int | None] = []
    carries: list[bool] = []
    texts: list[str] = []
    told: dict[str, Any] = {}
    for data in events:
        event = load_object(data)
        if isinstance(event, ServerError):
            told.setdefault("error", event)
            event = {}
        piece = _text_in(mapping_of(event.get("delta"))) if event.get("type") == "content_block_delta" else ""
        texts.append(piece)
        carries.append(bool(piece))
        counts.append(_read_event(told, event))
    known = [count for count in counts if count is not None]
    return Reply(
        token_counts=tuple(counts),
        carries=tuple(carries),
        completion_tokens=max(known) if known else None,
        text=join_text(texts) if text else None,
        **told,
    )


def parse_messages(body: bytes) -> Reply:
    """Read a reply that was not streamed. Never raises: what is wrong is in `error`."""
    event = load_object(body)
    if isinstance(event, ServerError):
        return Reply(error=event)
    told: dict[str, Any] = {}
    count = _read_event(told, {"type": "message_start", "message": event, "error": event.get("error")})
    content = event.get("content")
    blocks = [mapping_of(block) for block in content] if isinstance(content, list) else []
    text = join_text([_text_in(block) for block in blocks])
    return Reply(
        token_counts=(count,),
        carries=(bool(text),),
        completion_tokens=count,
        text=text,
        finish_reason=_word(event.get("stop_reason")),
        done=event.get("type") == "message" and "error" not in told,
        **told,
    )


def _read_event(told: dict[str, Any], event: Mapping[str, object]) -> int | None:
    """Add to the fields of a reply what one event says. Returns the reply's tokens, where it tells them."""
    if error := error_in(event):
        told.setdefault("error", error)
        return None
    kind = event.get("type")
    if kind == "message_stop":
        told["done"] = True
    elif kind == "message_start":
        usage = mapping_of(mapping_of(event.get("message")).get("usage"))
        _read_input(told, usage)
        return count_of(usage.get("output_tokens")) or None
    elif kind == "message_delta":
        reason = _word(mapping_of(event.get("delta")).get("stop_reason"))
        if reason is not None:
            told["finish_reason"] = reason
        return count_of(mapping_of(event.get("usage")).get("output_tokens"))
    return None


def _read_input(told: dict[str, Any], usage: Mapping[str, object]) -> None:
    fresh = count_of(usage.get("input_tokens"))
    if fresh is None:
        return
    read = count_of(usage.get("cache_read_input_tokens")) or 0
    made = count_of(usage.get("cache_creation_input_tokens")) or 0
    if fresh + read + made:  # after a refusal all are 0, which tells nothing
        told["prompt_tokens"] = fresh + read + made
        told["cached"] = merge_cached(None, read, {})


def _text_in(block: Mapping[str, object]) -> str:
    return "".join(part for key in _TEXTS if isinstance(part := block.get(key), str))


def _word(value: object) -> str | None:
    return value if isinstance(value, str) else None
