"""What Claude Code's own spans say of its calls and tools, by the ids that other files join on."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from agentx.recorder.composing import ToolTime
from agentx.recorder.imports.instants import count, of_number, text
from agentx.recorder.imports.logged import Reading
from agentx.recorder.imports.spans import Span, spans_of


@dataclass(frozen=True, slots=True)
class CallSpan:
    """A model call. Times are nanoseconds since the epoch."""

    start: int
    end: int | None
    first_token: int | None
    agent: str | None
    parent: str | None
    attempt: int | None


@dataclass(slots=True)
class Spans:
    """Calls by request id."""

    calls: dict[str, CallSpan] = field(default_factory=dict)

    def read(self, path: Path, reading: Reading) -> None:
        """Take the spans of a file; its tools go to the reading."""
        kept = [span for span in spans_of(path, reading) if self._take(span, reading)]
        names = {span.id: call for span in kept if (call := text(span.attributes, "tool_use_id"))}
        for span in kept:
            self._tool(span, names, reading)

    def _take(self, span: Span, reading: Reading) -> bool:
        rows = reading.books.rows
        if not span.name.startswith("claude_code."):
            rows.drop("span that is none of Claude Code's")
            return False
        rows.merged += 1
        told, request = span.attributes, text(span.attributes, "request_id")
        if span.name == "claude_code.llm_request" and request is not None:
            ttft = of_number(told.get("ttft_ms"), 0.001)
            self.calls[request] = CallSpan(
                span.start,
                span.end,
                span.start + ttft if ttft is not None else None,
                text(told, "agent_id"),
                text(told, "parent_agent_id"),
                count(told.get("attempt")),
            )
        return True

    def _tool(self, span: Span, names: dict[str, str], reading: Reading) -> None:
        """How long a tool ran and waited: its children tell these apart."""
        what = span.name.removeprefix("claude_code.tool")
        call = text(span.attributes, "tool_use_id") or names.get(span.parent)
        if call is None or what not in (".execution", ".blocked_on_user") or span.end is None:
            return
        known, seconds = reading.tool_times.get(call, ToolTime()), max(span.end - span.start, 0) / 1e9
        new = known._replace(ran=seconds) if what == ".execution" else known._replace(waited=seconds)
        reading.tool_times[call] = new
