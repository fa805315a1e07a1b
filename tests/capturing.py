"""Captures made by hand: exchanges with the times, headers and bodies that a test wants."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentx.core import Header, Session
from agentx.recorder.capture import recording
from agentx.recorder.compiling import Compiled, Level, compile_capture
from agentx.recorder.copies import Copies, Event, Opened
from agentx.recorder.segments import Segments
from agentx.recorder.writer import Writer
from agentx.trace import read_trace

SSE = ("Content-Type", "text/event-stream")
JSON = ("Content-Type", "application/json")
EPOCH = 10**12  # ns: where the seconds of a Maker begin


class _Given(Copies):
    """A queue that holds what a test put there."""

    def __init__(self) -> None:
        super().__init__()
        self.events: list[Event] = []

    def take(self) -> list[Event]:
        taken, self.events = self.events, []
        return taken


@dataclass
class Maker:
    """Collects exchanges; `compile` writes them as a capture and makes the trace. Times are seconds."""

    folder: Path
    _given: _Given = field(default_factory=_Given)
    _count: int = 0

    def exchange(
        self,
        at: float,
        body: Mapping[str, Any] | bytes,
        reply: bytes | Sequence[tuple[float, bytes]],
        *,
        took: float = 1.0,
        path: str = "/v1/chat/completions",
        wire: str | None = "chat",
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        reply_headers: Sequence[tuple[str, str]] = (JSON,),
        cause: str = "done",
    ) -> None:
        """One exchange. `reply`: its bytes at its end, or (seconds after `at`, bytes) of each read."""
        self._count += 1
        sent = body if isinstance(body, bytes) else json.dumps(body).encode()
        pairs = [("Authorization", "Bearer sk-test-0123456789"), *(headers or {}).items()]
        self._put(at, "open", Opened("POST", path, pairs, wire, 1))
        self._put(at, "request", sent)
        self._put(at, "asked", None)
        if status:
            self._put(at, "head", (status, list(reply_headers)))
        for offset, data in [(took, reply)] if isinstance(reply, bytes) else reply:
            self._put(at + offset, "data", data)
        self._put(at + took, "end", (cause, ""))

    def _put(self, at: float, kind: Any, data: Any) -> None:
        self._given.events.append(Event(kind, self._count, round(at * 1e9) + EPOCH, data))

    def write(self) -> Path:
        """The capture's folder."""
        with recording(self.folder / "cap", {}, self.folder / "key") as capture:
            segments = Segments(capture.folder, {"capture": capture.id, "run": capture.run}, "none")
            writer = Writer(self._given, segments, capture.key, (), lambda text: None)
            self._given.events.sort(key=lambda event: event.at)
            writer.group()
            segments.close()
        return self.folder / "cap"

    def compile(self, level: Level = "shape") -> tuple[list[Session], Header, Compiled]:
        folder = self.write()
        out = self.folder / "b.trace"
        done = compile_capture(folder, out, level, self.folder / "key")
        reader = read_trace(out)
        return list(reader), reader.header, done


def chat(messages: Sequence[Mapping[str, Any]], **more: Any) -> dict[str, Any]:
    return {"model": "m", "messages": list(messages), **more}


def chat_reply(text: str | None, prompt: int | None, completion: int, **more: Any) -> bytes:
    """A chat reply that was not streamed; `more` goes into the message."""
    usage = None if prompt is None else {"prompt_tokens": prompt, "completion_tokens": completion}
    message = {"role": "assistant", "content": text, **more}
    return json.dumps({"id": "c", "choices": [{"message": message, "finish_reason": "stop"}], "usage": usage}).encode()


def call_of(id: str, name: str, **arguments: str) -> dict[str, Any]:
    """A tool call of a chat message."""
    return {"id": id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def sse(*events: Mapping[str, Any], named: bool = False) -> bytes:
    lines = []
    for event in events:
        head = f"event: {event['type']}\n" if named else ""
        lines.append(f"{head}data: {json.dumps(event)}\n\n")
    return "".join(lines).encode()


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def assistant(text: str | None, *calls: Mapping[str, Any]) -> dict[str, Any]:
    return {"role": "assistant", "content": text, **({"tool_calls": list(calls)} if calls else {})}


def tool(id: str, text: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id, "content": text}
