"""Replies of `/v1/chat/completions` as SGLang 0.5.23 sends them: a reply's progress in, bytes out. No sockets.

A chunk of a stream is joined around a head that is made once per request.
"""

from __future__ import annotations

from agentx.engine.http_parts import Part, Parts, shown
from agentx.engine.http_replies import DONE, Progress, call_id, dumps, extension, finish_reason, openai_refusal, usage


class ChatReply:
    """The reply of one chat call, streamed or whole."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._parts = Parts(progress.call.script)
        call = progress.call
        self._head = b'{"id":%b,"object":"chat.completion.chunk","created":%d,"model":%b,"choices":[' % (
            dumps(call.rid),
            int(progress.received_unix),
            dumps(call.model),
        )
        self._started = False

    def start(self) -> bytes:
        """Nothing goes out before the first token."""
        return b""

    def tokens(self, ids: bytes) -> bytes:
        """The tokens of one step. The role goes out with the first of them, never before."""
        role = b""
        if not self._started:
            self._started = True
            role = self._chunk(b'{"reasoning_content":null,"role":"assistant","content":""}', b"null", b"")
        told = b',"usage":' + dumps(usage(self._progress)) if self._progress.call.continuous_usage else b""
        return role + b"".join(self._chunk(self._delta(part), b"null", told) for part in self._parts.feed(ids))

    def end(self, ids: bytes) -> bytes:
        """The last step, finish reason, cached tokens by tier, usage, [DONE]."""
        progress = self._progress
        parts = [self.tokens(ids)] if ids else []
        parts.append(self._chunk(b'{"reasoning_content":null}', dumps(finish_reason(progress)), b""))
        if more := extension(progress, ids=True):
            parts.append(self._bare(b'"usage":null,"sglext":' + dumps(more)))
        return b"".join(parts) + self._close()

    def refused(self, status: int, message: str) -> bytes:
        """The request was refused or given up: an error event takes the place of the rest."""
        return openai_refusal(status, message) + self._close()

    def whole(self) -> bytes:
        """The reply that is not streamed."""
        progress, call = self._progress, self._progress.call
        reply = shown(call.script, bytes(progress.ids))
        calls = [_call(call_id(progress, number), number, *made) for number, made in enumerate(reply.calls)]
        message: dict[str, object] = {
            "role": "assistant",
            "content": reply.text if reply.text or not (reply.reasoning or calls) else None,
            "reasoning_content": reply.reasoning or None,
        }
        if calls:
            message["tool_calls"] = calls
        choice = {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": finish_reason(progress),
            "matched_stop": None,
        }
        body: dict[str, object] = {
            "id": call.rid,
            "object": "chat.completion",
            "created": int(progress.received_unix),
            "model": call.model,
            "choices": [choice],
            "usage": usage(progress),
            "metadata": {"weight_version": "default"},
        }
        if more := extension(progress, ids=True):
            body["sglext"] = more
        return dumps(body)

    def _delta(self, part: Part) -> bytes:
        """A call is begun with its id and name; the rest of it are pieces of its arguments."""
        if part.kind == "text":
            return b'{"reasoning_content":null,"content":%b}' % dumps(part.text)
        if part.kind == "reasoning":
            return b'{"reasoning_content":%b}' % dumps(part.text)
        if part.kind == "call":
            call = _call(call_id(self._progress, part.call), part.call, part.text, "")
        else:
            call = _call(None, part.call, None, part.text)
        return dumps({"role": None, "content": None, "reasoning_content": None, "tool_calls": [call]})

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


def _call(call: str | None, number: int, name: str | None, arguments: str) -> dict[str, object]:
    function = {"name": name, "arguments": arguments}
    return {"id": call, "index": number, "type": "function", "function": function}
