"""What the replies of all the engine's HTTP routes share: how far a request is, usage, finish reasons, errors, the log.

Each route's own shape has a file: http_chat, http_completions, http_generate, http_messages_reply,
http_responses_reply. Generated text needs no thought about split characters: a token is four whole bytes of text.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Protocol

from agentx.engine.http_calls import Call
from agentx.engine.messages import Finished, told_speculation
from agentx.engine.tokenizer import ids_to_list
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
    def reasoning_tokens(self) -> int:
        script = self.call.script
        return 0 if script is None else min(script.reasoning_tokens, self.completion_tokens)

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


class Replies(Protocol):
    """The shape of one reply; each method returns bytes to write. After `refused` or `end` there is nothing more."""

    def start(self) -> bytes:
        """What a stream begins with before its first token."""

    def tokens(self, ids: bytes) -> bytes:
        """The tokens of one step."""

    def end(self, ids: bytes) -> bytes:
        """The tokens of the last step, and all that follows."""

    def refused(self, status: int, message: str) -> bytes:
        """The end of a stream whose request was refused or given up."""

    def whole(self) -> bytes:
        """The body of a reply that is not streamed."""


def named_event(body: Mapping[str, object]) -> bytes:
    """An event of the APIs that name their events: the name is the type of its body."""
    return b"event: %b\ndata: %b\n\n" % (str(body["type"]).encode(), dumps(body))


def usage(progress: Progress) -> dict[str, object]:
    """OpenAI's usage object. The cache report is always on here; as in SGLang, a refused prompt has 0 tokens."""
    prompt, completion = 0 if progress.refused else progress.call.prompt_tokens, progress.completion_tokens
    reasoning = progress.reasoning_tokens
    return {
        "prompt_tokens": prompt,
        "total_tokens": prompt + completion,
        "completion_tokens": completion,
        "prompt_tokens_details": {"cached_tokens": progress.cached},
        "reasoning_tokens": reasoning,
        "completion_tokens_details": {"reasoning_tokens": reasoning} if reasoning else None,
    }


def extension(progress: Progress, *, ids: bool = False) -> dict[str, object]:
    """SGLang's own part of a reply of the OpenAI routes, as far as it was asked for; `ids`: the reply's stand there."""
    call, more = progress.call, dict[str, object]()
    if call.cached_details and progress.cached_details:
        more["cached_tokens_details"] = progress.cached_details
    if call.spec_details and progress.verify_steps:
        more["spec_tokens_details"] = speculation(progress)
    if ids and call.output_ids:
        more["output_ids"] = [ids_to_list(bytes(progress.ids))]
    return more


def speculation(progress: Progress) -> dict[str, object]:
    """What is told of speculative decoding; nothing without it."""
    return told_speculation(progress.verify_steps, progress.histogram, progress.completion_tokens)


def finish_reason(progress: Progress) -> str:
    """Why a reply ended; a reply that came to its own end with tool calls ended for them."""
    script = progress.call.script
    calls = progress.reason == "stop" and script is not None and script.names
    return "tool_calls" if calls else progress.reason or "stop"


def call_id(progress: Progress, number: int) -> str:
    """The id of tool call `number` of a reply."""
    digest = hashlib.blake2b(f"{progress.call.rid}:{number}".encode("utf-8", "surrogatepass"), digest_size=12)
    return f"call_{digest.hexdigest()}"


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


def openai_refusal(status: int, message: str) -> bytes:
    """The event in a stream of the OpenAI routes whose request was refused or given up."""
    error = {"object": "error", "message": message, "type": HTTPStatus(status).name, "param": None, "code": status}
    return sse_event(dumps({"error": error}))


def openai_error(status: int, message: str, kind: str) -> bytes:
    """The error body of the OpenAI routes."""
    return dumps({"object": "error", "message": message, "type": kind, "param": None, "code": status})


def _rounded(value: float | None, start: float = 0.0) -> float | None:
    return None if value is None else round(value - start, 6)
