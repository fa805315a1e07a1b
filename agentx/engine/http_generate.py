"""Replies of SGLang's own `/generate`: a reply's progress in, bytes out. No sockets.

Each event of a stream repeats all text and ids so far, as SGLang 0.5.23 does unless it is told otherwise.
"""

from __future__ import annotations

from agentx.engine.http_parts import Parts
from agentx.engine.http_replies import DONE, Progress, dumps, speculation
from agentx.engine.tokenizer import ids_to_list, ids_to_text
from agentx.wire.sse import sse_event


class GenerateStream:
    """The objects of one `/generate` call: each repeats all text and ids so far, the last adds the timings."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._parts = Parts(progress.call.script)
        self._text, self._ids = bytearray(), bytearray()  # both as JSON already, without what encloses them

    def tokens(self, ids: bytes) -> bytes:
        """The object after the tokens of one step."""
        self._text += dumps("".join(part.text for part in self._parts.feed(ids)))[1:-1]
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
        "reasoning_tokens": progress.reasoning_tokens,
        "completion_tokens": progress.completion_tokens,
        "cached_tokens": progress.cached,
        "cached_tokens_details": progress.cached_details,
    }
    if progress.queued is not None:
        meta["queue_time"] = progress.queued
    if progress.reason is not None:
        meta["finish_reason"] = _reason(progress)
        meta |= _times(progress)
        meta |= speculation(progress)
    return meta


def _reason(progress: Progress) -> dict[str, object]:
    if progress.reason == "abort":  # by /abort_request
        return {"type": "abort", "message": "Aborted", "status_code": None, "err_type": None}
    why = {"length": progress.completion_tokens} if progress.reason == "length" else {"matched": None}
    return {"type": progress.reason, **why}


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


def generate_error(message: str) -> bytes:
    """The error body of `/generate`."""
    return dumps({"error": {"message": message}})


def generate_stream_error(status: int, message: str) -> bytes:
    """A refusal after the 200 that `/generate` streams begin with."""
    error = {"message": message, "type": "invalid_request_error", "code": status, "retryable": False}
    return sse_event(dumps({"error": error})) + DONE
