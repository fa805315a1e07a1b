"""Chat completions: requests joined from bytes that exist already, replies read from bytes that were kept.

A stream is read by scanning: of an event that carries a token only the count is looked up; the few others (role,
finish, usage, error) are parsed as JSON. A parser per token would cost more than the rest of a client.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from agentx.core import Cached
from agentx.wire.reply import (
    DONE,
    Reply,
    ServerError,
    count_of,
    error_in,
    first_of,
    join_text,
    load_object,
    mapping_of,
    scan_count,
)

# Quotes inside a JSON string are escaped, so these cannot match inside generated text.
_TOKEN = re.compile(rb'"(?:content|reasoning_content|reasoning|text|refusal)"\s*:\s*"[^"]|"tool_calls"\s*:\s*\[\s*\{')
_CONTENT = b'"content":"'
_UNFINISHED = b'"finish_reason":null'  # a token's event that has this says nothing else but the count


def json_text(text: str) -> bytes:
    """`text` as the inside of a JSON string, without its quotes: what `chat_request` takes as a content part."""
    return json.dumps(text, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")


def chat_request(
    messages: Sequence[tuple[str, Sequence[bytes]]],
    *,
    model: str,
    max_tokens: int,
    min_tokens: int | None,
    ignore_eos: bool,
    stream: bool = True,
    include_usage: bool = True,
    continuous_usage: bool = True,
    cached_details: bool = True,
    extra: Mapping[str, object] | None = None,
) -> list[bytes]:
    """The body of a `/v1/chat/completions` request, as parts to join.

    A message is (role, content parts); each part is JSON-escaped UTF-8 (`json_text`) and goes in as it is.
    `extra` adds fields and overrides the ones made here.
    """
    parts = [b'{"model":', json.dumps(model).encode(), b',"messages":[']
    for index, (role, content) in enumerate(messages):
        parts.append(b'%b{"role":%b,"content":"' % (b"," if index else b"", json.dumps(role).encode()))
        parts.extend(content)
        parts.append(b'"}')
    fields: dict[str, object] = {"max_tokens": max_tokens}
    if min_tokens is not None:
        fields["min_tokens"] = min_tokens
    if ignore_eos:
        fields["ignore_eos"] = True
    fields["temperature"] = 0
    fields["stream"] = stream
    if stream and include_usage:
        fields["stream_options"] = {"include_usage": True}
        if continuous_usage:
            fields["stream_options"] = {"include_usage": True, "continuous_usage_stats": True}
    if cached_details:
        fields["return_cached_tokens_details"] = True
    fields.update(extra or {})
    parts.append(b"]," + json.dumps(fields, separators=(",", ":")).encode()[1:])
    return parts


def has_token(data: bytes) -> bool:
    """Whether a stream event carries content, reasoning or a tool call. The role-only first event does not."""
    at = data.find(_CONTENT)
    if at >= 0 and data[at + 11 : at + 12] != b'"':
        return True
    return _TOKEN.search(data) is not None


def parse_chat_stream(events: Iterable[bytes], *, text: bool = False) -> Reply:
    """Read a whole stream: the data of each of its events, in order. Never raises: what is wrong is in `error`."""
    counts: list[int | None] = []
    carries: list[bool] = []
    texts: list[str] = []
    told: dict[str, Any] = {}
    for data in events:
        carrying = has_token(data)
        carries.append(carrying)
        if carrying and not text and _UNFINISHED in data:
            counts.append(scan_count(data))
        elif data.strip() == DONE:
            told["done"] = True
            counts.append(None)
        else:
            event = load_object(data)
            if isinstance(event, ServerError):
                told.setdefault("error", event)  # the first error is the cause
                counts.append(None)
            else:
                _read_event(told, event)
                counts.append(count_of(_usage(event).get("completion_tokens")))
                if text:
                    texts.append(_text_of(mapping_of(first_of(event.get("choices")).get("delta"))))
    known = [count for count in counts if count is not None]
    return Reply(
        token_counts=tuple(counts),
        carries=tuple(carries),
        completion_tokens=max(known) if known else None,
        text=join_text(texts) if text else None,
        **told,
    )


def parse_chat(body: bytes) -> Reply:
    """Read a reply that was not streamed. Never raises: what is wrong is in `error`."""
    event = load_object(body)
    if isinstance(event, ServerError):
        return Reply(error=event)
    told: dict[str, Any] = {}
    _read_event(told, event)
    message = mapping_of(first_of(event.get("choices")).get("message"))
    count = count_of(_usage(event).get("completion_tokens"))
    return Reply(
        token_counts=(count,),
        carries=(has_token(body),),
        completion_tokens=count,
        text=join_text([_text_of(message)]),
        done="error" not in told and "choices" in event,
        **told,
    )


def _read_event(told: dict[str, Any], event: Mapping[str, object]) -> None:
    """Add to the fields of a reply what one event (or body) says."""
    error = error_in(event)
    if error is not None:
        told.setdefault("error", error)
        return
    choice = first_of(event.get("choices"))
    reason, matched = choice.get("finish_reason"), choice.get("matched_stop")
    if isinstance(reason, str):
        told["finish_reason"] = reason
        if isinstance(matched, int | str):
            told["matched_stop"] = matched
        if reason == "abort":
            message = f"aborted by the server: {matched or 'no reason given'}"
            told.setdefault("error", ServerError(None, message))
    usage = _usage(event)
    prompt = count_of(usage.get("prompt_tokens"))
    if prompt is not None:
        told["prompt_tokens"] = prompt
    total = count_of(mapping_of(usage.get("prompt_tokens_details")).get("cached_tokens"))
    more = mapping_of(event.get("sglext"))
    if total is not None or more:
        told["cached"] = merge_cached(told.get("cached"), total, mapping_of(more.get("cached_tokens_details")))
        told["spec"] = mapping_of(more.get("spec_tokens_details")) or told.get("spec")


def _usage(event: Mapping[str, object]) -> dict[str, object]:
    """The usage object. One for a prompt of 0 tokens (SGLang sends it after a refusal) tells nothing."""
    usage = mapping_of(event.get("usage"))
    return {} if usage.get("prompt_tokens") == 0 else usage


def merge_cached(known: Cached | None, total: int | None, tiers: Mapping[str, object]) -> Cached | None:
    """`known` with what an event adds: total, split by tier, or neither. A total not told is the tiers' sum."""
    if total is None and not tiers:
        return known
    known = known or Cached()
    told = {tier: count for tier in ("device", "host", "storage") if (count := count_of(tiers.get(tier))) is not None}
    if total == 0:
        told = {"device": 0, "host": 0, "storage": 0, **told}  # SGLang leaves the split out of a miss
    merged = replace(known, **told)
    if total is None and merged.total is None and told:
        total = sum(told.values())
    return merged if total is None else replace(merged, total=total)


def _text_of(message: Mapping[str, object]) -> str:
    content = message.get("content")
    return content if isinstance(content, str) else ""
