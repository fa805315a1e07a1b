"""Replies of Anthropic's `/v1/messages` as SGLang 0.5.23 sends them: a reply's progress in, bytes out. No sockets.

A stream says what the cache gave in `message_start`, which waits for the first token. After the first block has begun
there is one `ping`, as from Anthropic's own servers (SGLang sends none), so that clients meet one.
"""

from __future__ import annotations

import json

from agentx.engine.http_parts import Kind, Part, Parts, shown
from agentx.engine.http_replies import Progress, call_id, dumps, finish_reason, named_event

STOP_REASONS = {"length": "max_tokens", "tool_calls": "tool_use"}  # any other reason, an abort too, is end_turn
ERROR_TYPES = {
    400: "invalid_request_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
}


class MessagesReply:
    """The reply of one `/v1/messages` call, streamed or whole."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._parts = Parts(progress.call.script)
        self._started = self._pinged = False
        self._open: tuple[Kind, int] | None = None  # the block that has begun: its kind, the number of its call
        self._index = -1  # of that block

    def start(self) -> bytes:
        """Nothing goes out before the first token, but the headers do."""
        return b""

    def tokens(self, ids: bytes) -> bytes:
        """The tokens of one step."""
        out = self._start(_usage(self._progress) | {"output_tokens": 0})
        for part in self._parts.feed(ids):
            out += self._part(part)
        return out

    def end(self, ids: bytes) -> bytes:
        """The last step, why it is, usage."""
        delta = {"stop_reason": _stop_reason(self._progress)}
        usage = {"output_tokens": self._progress.completion_tokens}
        return (
            self.tokens(ids)
            + self._close()
            + named_event({"type": "message_delta", "delta": delta, "usage": usage})
            + named_event({"type": "message_stop"})
        )

    def refused(self, status: int, message: str) -> bytes:
        """The request was refused or given up: an error takes the place of the rest, and what is open is closed."""
        error = {"type": ERROR_TYPES.get(status, "api_error"), "message": message}
        return (
            self._start({"input_tokens": 0, "output_tokens": 0})
            + self._close()
            + named_event({"type": "error", "error": error})
            + named_event({"type": "message_stop"})
        )

    def whole(self) -> bytes:
        """The reply that is not streamed."""
        progress = self._progress
        reply = shown(progress.call.script, bytes(progress.ids))
        content: list[object] = []
        if reply.reasoning:
            content.append({"type": "thinking", "thinking": reply.reasoning})
        if reply.text or not (reply.reasoning or reply.calls):
            content.append({"type": "text", "text": reply.text})
        for number, (name, arguments) in enumerate(reply.calls):
            block = {"type": "tool_use", "id": call_id(progress, number), "name": name, "input": _input(arguments)}
            content.append(block)
        return dumps(self._message(content) | {"stop_reason": _stop_reason(progress), "usage": _usage(progress)})

    def _message(self, content: list[object]) -> dict[str, object]:
        call = self._progress.call
        return {"id": call.rid, "type": "message", "role": "assistant", "content": content, "model": call.model}

    def _start(self, usage: dict[str, int]) -> bytes:
        if self._started:
            return b""
        self._started = True
        return named_event({"type": "message_start", "message": self._message([]) | {"usage": usage}})

    def _part(self, part: Part) -> bytes:
        if part.kind == "call":
            block: dict[str, object] = {"type": "tool_use", "id": call_id(self._progress, part.call)}
            return self._begin(part, block | {"name": part.text, "input": {}})
        if part.kind == "arguments":
            return self._delta({"type": "input_json_delta", "partial_json": part.text})
        if part.kind == "reasoning":
            begin = self._begin(part, {"type": "thinking", "thinking": ""})
            return begin + self._delta({"type": "thinking_delta", "thinking": part.text})
        return self._begin(part, {"type": "text", "text": ""}) + self._delta({"type": "text_delta", "text": part.text})

    def _begin(self, part: Part, block: dict[str, object]) -> bytes:
        """Begin a block, unless the part goes on with the one that is open."""
        if self._open == (part.kind, part.call):
            return b""
        out = self._close()
        self._open = (part.kind, part.call)
        self._index += 1
        out += named_event({"type": "content_block_start", "index": self._index, "content_block": block})
        if not self._pinged:
            self._pinged = True
            out += named_event({"type": "ping"})
        return out

    def _delta(self, delta: dict[str, str]) -> bytes:
        return named_event({"type": "content_block_delta", "index": self._index, "delta": delta})

    def _close(self) -> bytes:
        if self._open is None:
            return b""
        self._open = None
        return named_event({"type": "content_block_stop", "index": self._index})


def messages_error(status: int, message: str, _: str) -> bytes:
    """An error body."""
    return dumps({"type": "error", "error": {"type": ERROR_TYPES.get(status, "api_error"), "message": message}})


def _stop_reason(progress: Progress) -> str:
    return STOP_REASONS.get(finish_reason(progress), "end_turn")


def _usage(progress: Progress) -> dict[str, int]:
    """Input without what came from the cache; that is told apart, when there is any."""
    usage = {"input_tokens": progress.call.prompt_tokens - progress.cached, "output_tokens": progress.completion_tokens}
    return usage | ({"cache_read_input_tokens": progress.cached} if progress.cached else {})


def _input(arguments: str) -> object:
    """The arguments of a call; those that the limit cut short are none."""
    try:
        return json.loads(arguments)
    except ValueError:
        return {}
