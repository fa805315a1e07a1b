"""OpenAI's chat and completions, with SGLang's additions: requests joined, replies read, from bytes that exist already.

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
_TOKEN = re.compile(
    rb'"(?:content|reasoning_content|reasoning|text|refusal)"\s*:\s*"[^"]'
    rb'|"tool_calls"\s*:\s*\[\s*\{|"token_ids"\s*:\s*\[\s*\d'
)
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
    told = {"stream": stream, "include_usage": include_usage, "continuous_usage": continuous_usage}
    fields = _fields(max_tokens, min_tokens, ignore_eos, cached_details=cached_details, **told)
    fields.update(extra or {})
    parts.append(b"]," + json.dumps(fields, separators=(",", ":")).encode()[1:])
    return parts


def chat_ids_request(
    ids: Sequence[bytes], *, model: str, max_tokens: int, min_tokens: int | None, ignore_eos: bool, output_ids: bool
) -> list[bytes]:
    """The body of a chat request with SGLang's `input_ids`, which take the place of the messages, as parts to join.

    `ids` as for `sglang.generate_request`; `output_ids`: the reply is to tell its ids.
    """
    # A request without messages is refused, although nothing of them is read.
    head = b'{"model":%b,"messages":[{"role":"user","content":""}],"input_ids":[' % json.dumps(model).encode()
    fields = _fields(max_tokens, min_tokens, ignore_eos)
    if output_ids:
        fields["return_output_ids_in_sglext"] = True
    return [head, *joined_ids(ids), b"]," + json.dumps(fields, separators=(",", ":")).encode()[1:]]


def completions_request(
    ids: Sequence[bytes], *, model: str, max_tokens: int, min_tokens: int | None, ignore_eos: bool, output_ids: bool
) -> list[bytes]:
    """The body of a `/v1/completions` request for a prompt of token ids, as parts to join."""
    fields = _fields(max_tokens, min_tokens, ignore_eos)
    if output_ids:
        fields["return_token_ids"] = True
    head = b'{"model":%b,"prompt":[' % json.dumps(model).encode()
    return [head, *joined_ids(ids), b"]," + json.dumps(fields, separators=(",", ":")).encode()[1:]]


def joined_ids(ids: Sequence[bytes]) -> list[bytes]:
    """Runs of ids with commas between them."""
    parts = [part for run in ids if run for part in (run, b",")]
    return parts[:-1]


def _fields(
    max_tokens: int,
    min_tokens: int | None,
    ignore_eos: bool,
    *,
    stream: bool = True,
    include_usage: bool = True,
    continuous_usage: bool = True,
    cached_details: bool = True,
) -> dict[str, object]:
    """What a request says beside its prompt."""
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
        fields["return_spec_tokens_details"] = True
    return fields


def has_token(data: bytes) -> bool:
    """Whether a stream event carries content, reasoning or a tool call. The role-only first event does not."""
    at = data.find(_CONTENT)
    if at >= 0 and data[at + 11 : at + 12] != b'"':
        return True
    return _TOKEN.search(data) is not None


def parse_chat_stream(events: Iterable[bytes], *, text: bool = False) -> Reply:
    """Read a whole stream: the data of each of its events, in order. Never raises: what is wrong is in `error`.

    With `text` every event is read, for all that was generated (reasoning too) and for ids that come bit by bit.
    """
    ids: list[int] = []
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
                    choice = first_of(event.get("choices"))
                    texts.append(_text_of(mapping_of(choice.get("delta")) or choice))
                    ids += ids_of(choice.get("token_ids")) or ()
    known = [count for count in counts if count is not None]
    if ids:
        told["output_ids"] = tuple(ids)
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
    choice = first_of(event.get("choices"))
    message = mapping_of(choice.get("message")) or choice
    if (ids := ids_of(choice.get("token_ids"))) is not None:
        told["output_ids"] = ids
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
    outputs = more.get("output_ids")
    if isinstance(outputs, list) and outputs and (ids := ids_of(outputs[0])) is not None:
        told["output_ids"] = ids


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
    """All that was generated: reasoning, content and tool calls of a message, or the text of a completion."""
    parts = [message.get(key) for key in ("reasoning_content", "content", "text")]
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        parts.append(mapping_of(mapping_of(call).get("function")).get("arguments"))
    return "".join(part for part in parts if isinstance(part, str))


def ids_of(value: object) -> tuple[int, ...] | None:
    """`value` if it is a list of ids, else None."""
    if not isinstance(value, list) or not all(isinstance(one, int) for one in value):
        return None
    return tuple(value)
