"""SGLang's own `/generate`: token ids in, cumulative text and ids out, with the server's figures in `meta_info`.

Every event repeats the whole reply so far, so only the last one is parsed; of the others the count is scanned.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from agentx.wire.openai import ids_of, joined_ids, merge_cached
from agentx.wire.reply import (
    DONE,
    Reply,
    ServerError,
    count_of,
    error_in,
    join_text,
    load_object,
    mapping_of,
    scan_count,
    seconds_of,
)

_TOKEN = re.compile(rb'"text"\s*:\s*"[^"]|"output_ids"\s*:\s*\[\s*\d|"completion_tokens"\s*:\s*[1-9]')
_ERROR = b'"error"'


def generate_request(
    ids: Sequence[bytes],
    *,
    max_new_tokens: int,
    min_new_tokens: int | None,
    ignore_eos: bool,
    stream: bool = True,
    extra: Mapping[str, object] | None = None,
) -> list[bytes]:
    """The body of a `/generate` request, as parts to join.

    Each part of `ids` is a run of decimal token ids with commas between them, none at its ends.
    `extra` adds fields and overrides the ones made here.
    """
    parts = [b'{"input_ids":[', *joined_ids(ids)]
    sampling: dict[str, object] = {"max_new_tokens": max_new_tokens, "temperature": 0}
    if min_new_tokens is not None:
        sampling["min_new_tokens"] = min_new_tokens
    if ignore_eos:
        sampling["ignore_eos"] = True
    fields: dict[str, object] = {"sampling_params": sampling, "stream": stream}
    fields.update(extra or {})
    parts.append(b"]," + json.dumps(fields, separators=(",", ":")).encode()[1:])
    return parts


def has_token(data: bytes) -> bool:
    """Whether a stream event stands for at least one generated token, decodable or not."""
    return _TOKEN.search(data) is not None


def parse_generate_stream(events: Iterable[bytes], *, text: bool = False) -> Reply:
    """Read a whole stream: the data of each of its events, in order. Never raises: what is wrong is in `error`."""
    kept = list(events)
    counts: list[int | None] = []
    carries: list[bool] = []
    last = -1
    error: ServerError | None = None
    for index, data in enumerate(kept):
        done = data.strip() == DONE
        counts.append(None if done else scan_count(data))
        carries.append(not done and has_token(data))
        if _ERROR in data or not (done or carries[-1]):
            event = load_object(data)
            error = error or (event if isinstance(event, ServerError) else error_in(event))
        if not done and error is None:
            last = index
    reply = _read(kept[last], text=text) if last >= 0 else Reply()
    if reply.output_ids is not None and len(reply.output_ids) < (reply.completion_tokens or 0):
        reply = _joined(reply, kept, text=text)
    return replace(
        reply,
        token_counts=tuple(counts),
        carries=_growing(counts, carries),
        error=error or reply.error,
        done=any(data.strip() == DONE for data in kept[-1:]),
    )


def parse_generate(body: bytes) -> Reply:
    """Read a reply that was not streamed. Never raises: what is wrong is in `error`."""
    reply = _read(body, text=True)
    return replace(
        reply,
        token_counts=(reply.completion_tokens,),
        carries=(has_token(body),),
        done=reply.error is None,
    )


def _growing(counts: Sequence[int | None], carries: Sequence[bool]) -> tuple[bool, ...]:
    """A cumulative event that repeats the count before it carries nothing new (the finish event may do so)."""
    known = 0
    result = []
    for count, carrying in zip(counts, carries, strict=True):
        result.append(carrying and (count is None or count > known))
        known = max(known, count or 0)
    return tuple(result)


def _read(data: bytes, *, text: bool) -> Reply:
    """One event, or a whole body, on its own."""
    event = load_object(data)
    if isinstance(event, ServerError):
        return Reply(error=event)
    error = error_in(event)
    if error is not None:
        return Reply(error=error)
    meta = mapping_of(event.get("meta_info"))
    reason = mapping_of(meta.get("finish_reason"))
    kind, matched = reason.get("type"), reason.get("matched")
    if kind == "abort":
        error = ServerError(count_of(reason.get("status_code")), str(reason.get("message") or "aborted by the server"))
    spec = {key: value for key, value in meta.items() if key.startswith("spec_")}
    content = event.get("text")
    return Reply(
        prompt_tokens=count_of(meta.get("prompt_tokens")),
        completion_tokens=count_of(meta.get("completion_tokens")),
        cached=merge_cached(None, count_of(meta.get("cached_tokens")), mapping_of(meta.get("cached_tokens_details"))),
        finish_reason=kind if isinstance(kind, str) else None,
        matched_stop=matched if isinstance(matched, int | str) else None,
        error=error,
        output_ids=ids_of(event.get("output_ids")),
        text=join_text([content]) if text and isinstance(content, str) else None,
        queue_seconds=seconds_of(meta.get("queue_time")),
        server_first_token_seconds=seconds_of(meta.get("first_token_latency")),
        spec=spec or None,
    )


def _joined(reply: Reply, kept: Sequence[bytes], *, text: bool) -> Reply:
    """The reply of a server that streams increments (`--incremental-streaming-output`): the events put together."""
    ids: list[int] = []
    texts: list[str] = []
    for data in kept:
        event = load_object(data)
        if not isinstance(event, ServerError):
            ids.extend(ids_of(event.get("output_ids")) or ())
            content = event.get("text")
            texts.append(content if isinstance(content, str) else "")
    if len(ids) != reply.completion_tokens:
        return reply  # neither cumulative nor incremental: leave what the last event said
    return replace(reply, output_ids=tuple(ids), text=join_text(texts) if text else None)
