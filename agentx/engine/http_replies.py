"""Replies of the engine's HTTP server in SGLang's shapes: what happened to a request in, bytes out. No sockets.

A chunk of a stream is joined around a head that is made once per request. Generated text needs no thought about split
characters: a token is four whole bytes of text.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from http import HTTPStatus

from agentx.engine.http_calls import Call
from agentx.engine.messages import Finished
from agentx.engine.tokenizer import ids_to_list, ids_to_text
from agentx.wire.sse import sse_event

DONE = sse_event(b"[DONE]")


@dataclass(slots=True)
class Progress:
    """What is known about a request so far; `ids` and `reason` are as far as its reply was taken.

    Times are seconds on the server's monotonic clock; None: not yet. `reason` is `length`, `stop` or `abort`;
    `refused`: the scheduler did not take it. `cached` tokens are those of the first admission. `histogram[i]` counts
    the verification steps that accepted i draft tokens; there are none without speculation.
    """

    call: Call
    received: float
    received_unix: float
    cached_device: int | None = None
    cached_host: int | None = None
    queued: float | None = None
    first: float | None = None
    end: float | None = None
    reason: str | None = None
    refused: bool = False
    retractions: int = 0
    verify_steps: int = 0
    histogram: tuple[int, ...] = ()
    ids: bytearray = field(default_factory=bytearray)

    @property
    def completion_tokens(self) -> int:
        return len(self.ids) // 4

    @property
    def cached(self) -> int:
        return (self.cached_device or 0) + (self.cached_host or 0)

    @property
    def cached_details(self) -> dict[str, int] | None:
        """The split by tier; None for a miss, as in SGLang."""
        return {"device": self.cached_device or 0, "host": self.cached_host or 0} if self.cached else None


def dumps(value: object) -> bytes:
    """Compact JSON, as servers send it."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")


def usage(progress: Progress) -> dict[str, object]:
    """OpenAI's usage object. The cache report is always on here; as in SGLang, a refused prompt has 0 tokens."""
    prompt, completion = 0 if progress.refused else progress.call.prompt_tokens, progress.completion_tokens
    return {
        "prompt_tokens": prompt,
        "total_tokens": prompt + completion,
        "completion_tokens": completion,
        "prompt_tokens_details": {"cached_tokens": progress.cached},
        "reasoning_tokens": 0,
    }


class ChatStream:
    """The events of one chat stream; each method returns bytes to write."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        call = progress.call
        self._head = b'{"id":%b,"object":"chat.completion.chunk","created":%d,"model":%b,"choices":[' % (
            dumps(call.rid),
            int(progress.received_unix),
            dumps(call.model),
        )
        self._started = False

    def tokens(self, ids: bytes) -> bytes:
        """The tokens of one step. The role goes out with the first of them, never before."""
        role = b""
        if not self._started:
            self._started = True
            role = self._chunk(b'{"reasoning_content":null,"role":"assistant","content":""}', b"null", b"")
        told = b',"usage":' + dumps(usage(self._progress)) if self._progress.call.continuous_usage else b""
        delta = b'{"reasoning_content":null,"content":%b}' % dumps(ids_to_text(ids))
        return role + self._chunk(delta, b"null", told)

    def end(self) -> bytes:
        """Finish reason, cached tokens by tier, usage, [DONE]."""
        progress, call = self._progress, self._progress.call
        parts = [self._chunk(b'{"reasoning_content":null}', dumps(progress.reason), b"")]
        if call.cached_details and progress.cached_details:
            parts.append(self._bare(b'"sglext":' + dumps({"cached_tokens_details": progress.cached_details})))
        return b"".join(parts) + self._close()

    def refused(self, status: int, message: str) -> bytes:
        """The request was refused or given up: an error event takes the place of the rest."""
        error = {"object": "error", "message": message, "type": HTTPStatus(status).name, "param": None, "code": status}
        return sse_event(dumps({"error": error})) + self._close()

    def _close(self) -> bytes:
        told = self._bare(b'"usage":' + dumps(usage(self._progress))) if self._progress.call.include_usage else b""
        return told + DONE

    def _chunk(self, delta: bytes, reason: bytes, told: bytes) -> bytes:
        return (b'data: %b{"index":0,"delta":%b,"logprobs":null,"finish_reason":%b,"matched_stop":null}]%b}\n\n') % (
            self._head,
            delta,
            reason,
            told,
        )

    def _bare(self, rest: bytes) -> bytes:
        return b"data: %b],%b}\n\n" % (self._head, rest)


def chat_reply(progress: Progress) -> bytes:
    """The whole reply of a chat call that is not streamed."""
    call = progress.call
    message = {
        "role": "assistant",
        "content": ids_to_text(bytes(progress.ids)),
        "reasoning_content": None,
        "tool_calls": None,
    }
    body: dict[str, object] = {
        "id": call.rid,
        "object": "chat.completion",
        "created": int(progress.received_unix),
        "model": call.model,
        "choices": [
            {
                "index": 0,
                "message": message,
                "logprobs": None,
                "finish_reason": progress.reason,
                "matched_stop": None,
            }
        ],
        "usage": usage(progress),
        "metadata": {"weight_version": "default"},
    }
    if call.cached_details and progress.cached_details:
        body["sglext"] = {"cached_tokens_details": progress.cached_details}
    return dumps(body)


class GenerateStream:
    """The objects of one `/generate` call: each repeats all text and ids so far, the last adds the timings."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._text, self._ids = bytearray(), bytearray()  # both as JSON already, without what encloses them

    def tokens(self, ids: bytes) -> bytes:
        """The object after the tokens of one step."""
        self._text += dumps(ids_to_text(ids))[1:-1]
        if self._ids and ids:
            self._ids += b","
        self._ids += dumps(ids_to_list(ids))[1:-1]
        return b'{"text":"%b","output_ids":[%b],"meta_info":%b}' % (
            bytes(self._text),
            bytes(self._ids),
            dumps(_meta(self._progress)),
        )


def generate_reply(progress: Progress) -> bytes:
    """The whole reply of a `/generate` call that is not streamed."""
    return GenerateStream(progress).tokens(bytes(progress.ids))


def generate_aborted(progress: Progress, status: int, message: str) -> bytes:
    """The last object of a `/generate` stream that the scheduler refused or gave up."""
    ids = bytes(progress.ids)
    reason = {"type": "abort", "message": message, "status_code": status, "err_type": None}
    meta = {**_meta(progress), "finish_reason": reason}
    return dumps({"text": ids_to_text(ids), "output_ids": ids_to_list(ids), "meta_info": meta})


def _meta(progress: Progress) -> dict[str, object]:
    meta: dict[str, object] = {
        "id": progress.call.rid,
        "finish_reason": None,
        "prompt_tokens": progress.call.prompt_tokens,
        "weight_version": "default",
        "num_retractions": progress.retractions,
        "reasoning_tokens": 0,
        "completion_tokens": progress.completion_tokens,
        "cached_tokens": progress.cached,
        "cached_tokens_details": progress.cached_details,
    }
    if progress.queued is not None:
        meta["queue_time"] = progress.queued
    if progress.reason is not None:
        length = {"length": progress.completion_tokens} if progress.reason == "length" else {"matched": None}
        meta["finish_reason"] = {"type": progress.reason, **length}
        meta |= _times(progress)
        meta |= _speculation(progress)
    return meta


def _speculation(progress: Progress) -> dict[str, object]:
    steps = progress.verify_steps
    if not steps:
        return {}
    return {
        "spec_verify_ct": steps,
        "spec_num_correct_drafts": sum(index * count for index, count in enumerate(progress.histogram)),
        # As SGLang counts it: the token of the prefill is in, so this is above the mean of the histogram.
        "spec_accept_length": progress.completion_tokens / steps,
        "spec_correct_drafts_histogram": list(progress.histogram),
    }


def _times(progress: Progress) -> dict[str, object]:
    """Durations in seconds; the `_ts` are Unix times."""
    times: dict[str, object] = {"request_received_ts": progress.received_unix}
    if progress.first is not None:
        times["first_token_latency"] = progress.first - progress.received
    if progress.end is not None:
        times["e2e_latency"] = progress.end - progress.received
        times["request_finished_ts"] = progress.received_unix + progress.end - progress.received
        if progress.first is not None and progress.end > progress.first and progress.completion_tokens > 1:
            times["decode_throughput"] = (progress.completion_tokens - 1) / (progress.end - progress.first)
    return times


def log_line(progress: Progress, end: Finished) -> bytes:
    """One line of `serve --log`: what a request was and what the cache did for it. Null is what never came to be."""
    cached = None
    if progress.cached_device is not None:
        cached = {"device": progress.cached_device, "host": progress.cached_host or 0}
    line = {
        "rid": progress.call.rid,
        "received": round(progress.received_unix, 6),
        "prompt_tokens": progress.call.prompt_tokens,
        "completion_tokens": end.completion_tokens,
        "cached_tokens": cached,
        "queue_seconds": _rounded(progress.queued),
        "first_token_seconds": _rounded(progress.first, progress.received),
        "end_seconds": _rounded(progress.end, progress.received),
        "finish_reason": end.reason,
        "retractions": end.retractions,
    }
    return dumps(line) + b"\n"


def openai_error(status: int, message: str, kind: str) -> bytes:
    """The error body of the OpenAI routes."""
    return dumps({"object": "error", "message": message, "type": kind, "param": None, "code": status})


def generate_error(message: str) -> bytes:
    """The error body of `/generate`."""
    return dumps({"error": {"message": message}})


def generate_stream_error(status: int, message: str) -> bytes:
    """A refusal after the 200 that `/generate` streams begin with."""
    error = {"message": message, "type": "invalid_request_error", "code": status, "retryable": False}
    return sse_event(dumps({"error": error})) + DONE


def _rounded(value: float | None, start: float = 0.0) -> float | None:
    return None if value is None else round(value - start, 6)
