"""Replies of OpenAI's `/v1/responses` as SGLang 0.5.23 sends them: a reply's progress in, bytes out. No sockets.

A response is a list of items: reasoning, a message, function calls. A stream begins before the first token, numbers
its events, says each item when it begins, as it grows and when it has ended, and repeats them all at its end.
"""

from __future__ import annotations

import hashlib
from typing import Any

from agentx.engine.http_parts import Kind, Part, Parts, shown
from agentx.engine.http_replies import Progress, call_id, dumps, named_event

_STATUS = {"length": "incomplete", "abort": "failed"}


class _Items:
    """The items of one response; their ids follow from the request's."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def reasoning(self, index: int, text: str, status: str = "completed") -> dict[str, Any]:
        content = [{"type": "reasoning_text", "text": text}] if text else []
        body = {"id": f"rs_{self._token(index, 32)}", "summary": [], "type": "reasoning", "content": content}
        return body | {"encrypted_content": None, "status": status}

    def message(self, index: int, text: str, status: str = "completed") -> dict[str, Any]:
        content = [text_part(text)] if status == "completed" else []
        script = self._progress.call.script
        last = status != "completed" or script is None or not script.names
        head = {"id": f"msg_{self._token(index, 32)}", "content": content, "role": "assistant", "status": status}
        return head | {"type": "message", "phase": "final_answer" if last else "commentary"}

    def call(self, index: int, number: int, name: str, arguments: str, status: str = "completed") -> dict[str, Any]:
        call = {"arguments": arguments, "call_id": call_id(self._progress, number), "name": name}
        return call | {"type": "function_call", "id": f"fc_{self._token(index, 8)}", "status": status}

    def _token(self, index: int, length: int) -> str:
        return hashlib.blake2b(f"{self._progress.call.rid}/{index}".encode()).hexdigest()[:length]


class ResponsesReply:
    """The reply of one `/v1/responses` call, streamed or whole."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._parts = Parts(progress.call.script)
        self._items = _Items(progress)
        self._done: list[dict[str, Any]] = []
        self._open: tuple[Kind, int] | None = None  # the item that has begun: its kind, the number of its call
        self._name = self._text = ""  # of that item
        self._number = 0  # of the next event

    def start(self) -> bytes:
        """The response as it is before its first token."""
        begun = self._response("in_progress")
        return self._event("response.created", response=begun) + self._event("response.in_progress", response=begun)

    def tokens(self, ids: bytes) -> bytes:
        """The tokens of one step."""
        return b"".join(map(self._part, self._parts.feed(ids)))

    def end(self, ids: bytes) -> bytes:
        """The last step, and the whole response."""
        out = self.tokens(ids) + self._close()
        status = _status(self._progress)
        return out + self._event(f"response.{status}", response=self._finished(self._done))

    def refused(self, status: int, message: str) -> bytes:
        """The request was refused or given up: the response has failed."""
        out = self.start() if not self._number else self._close()
        response = self._response("failed") | {"error": {"code": "server_error", "message": message}}
        return out + self._event("response.failed", response=response)

    def whole(self) -> bytes:
        """The reply that is not streamed."""
        progress = self._progress
        reply = shown(progress.call.script, bytes(progress.ids))
        output = [self._items.reasoning(0, reply.reasoning)] if reply.reasoning else []
        if reply.text:
            output.append(self._items.message(len(output), reply.text))
        for number, (name, arguments) in enumerate(reply.calls):
            output.append(self._items.call(len(output), number, name, arguments))
        return dumps(self._finished(output))

    # -- items of a stream

    def _part(self, part: Part) -> bytes:
        kind: Kind = "call" if part.kind == "arguments" else part.kind
        out = b""
        if self._open != (kind, part.call):
            out = self._close()
            self._open, self._text = (kind, part.call), ""
            self._name = part.text if kind == "call" else ""
            out += self._begin(kind, part.call)
        if part.kind == "call":
            return out
        self._text += part.text
        return out + self._grow(kind, part.text)

    def _begin(self, kind: Kind, number: int) -> bytes:
        index = len(self._done)
        if kind == "call":
            item = self._items.call(index, number, self._name, "", "in_progress")
            return self._event("response.output_item.added", item=item, output_index=index)
        thinking = kind == "reasoning"
        part = reasoning_part("") if thinking else text_part("")
        item = (self._items.reasoning if thinking else self._items.message)(index, "", "in_progress")
        added = self._event("response.output_item.added", item=item, output_index=index)
        return added + self._event("response.content_part.added", **self._place(), part=part)

    def _grow(self, kind: Kind, text: str) -> bytes:
        if kind == "call":
            place = {"item_id": self._item_id, "output_index": len(self._done)}
            return self._event("response.function_call_arguments.delta", **place, delta=text)
        if kind == "reasoning":
            return self._event("response.reasoning_text.delta", **self._place(), delta=text)
        return self._event("response.output_text.delta", **self._place(), delta=text, logprobs=[])

    def _close(self) -> bytes:
        """The end of the item that is open."""
        if self._open is None:
            return b""
        (kind, number), index, text = self._open, len(self._done), self._text
        if kind == "call":
            item = self._items.call(index, number, self._name, text)
            done = {"item_id": item["id"], "output_index": index, "arguments": text, "name": self._name}
            out = self._event("response.function_call_arguments.done", **done)
        elif kind == "reasoning":
            item = self._items.reasoning(index, text)
            out = self._event("response.reasoning_text.done", **self._place(), text=text)
            out += self._event("response.content_part.done", **self._place(), part=reasoning_part(text))
        else:
            item = self._items.message(index, text)
            out = self._event("response.output_text.done", **self._place(), text=text, logprobs=[])
            out += self._event("response.content_part.done", **self._place(), part=text_part(text))
        out += self._event("response.output_item.done", item=item, output_index=index)
        self._done.append(item)
        self._open = None
        return out

    @property
    def _item_id(self) -> str:
        kind, number = self._open or ("text", 0)
        index = len(self._done)
        if kind == "call":
            return str(self._items.call(index, number, "", "")["id"])
        return str((self._items.reasoning if kind == "reasoning" else self._items.message)(index, "")["id"])

    def _place(self) -> dict[str, object]:
        return {"content_index": 0, "item_id": self._item_id, "output_index": len(self._done)}

    # -- the response

    def _event(self, kind: str, **body: object) -> bytes:
        event = named_event({"type": kind, **body, "sequence_number": self._number})
        self._number += 1
        return event

    def _response(self, status: str) -> dict[str, object]:
        progress = self._progress
        head = {"id": progress.call.rid, "object": "response", "created_at": int(progress.received_unix)}
        body: dict[str, object] = {"model": progress.call.model, "output": [], "status": status, "usage": None}
        return head | body | {"error": None, "incomplete_details": None} | dict(progress.call.told)

    def _finished(self, output: list[dict[str, Any]]) -> dict[str, object]:
        status = _status(self._progress)
        body = self._response(status) | {"output": output, "usage": _usage(self._progress)}
        body["text"] = body.get("text") or {"format": {"type": "text"}}
        if status == "incomplete":
            body["incomplete_details"] = {"reason": "max_output_tokens"}
        if status == "failed":
            body["error"] = {"code": "server_error", "message": "Aborted"}
        return body


def responses_error(status: int, message: str, kind: str) -> bytes:
    """An error body."""
    told = kind if kind == "Bad Request" else "invalid_request_error" if status < 500 else "server_error"
    return dumps({"error": {"message": message, "type": told, "param": None, "code": status}})


def text_part(text: str) -> dict[str, object]:
    """The one content part of a message."""
    return {"annotations": [], "text": text, "type": "output_text", "logprobs": None}


def reasoning_part(text: str) -> dict[str, object]:
    """The one content part of a reasoning item."""
    return {"type": "reasoning_text", "text": text}


def _status(progress: Progress) -> str:
    return _STATUS.get(progress.reason or "", "completed")


def _usage(progress: Progress) -> dict[str, object]:
    prompt, completion = progress.call.prompt_tokens, progress.completion_tokens
    return {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": progress.cached, "cache_write_tokens": 0},
        "output_tokens": completion,
        "output_tokens_details": {"reasoning_tokens": progress.reasoning_tokens},
        "total_tokens": prompt + completion,
    }
