"""What Claude Code's own spans say of its calls and tools, by the ids that other files join on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from agentx.recorder.imports.instants import count, of_number, text
from agentx.recorder.imports.logged import Reading
from agentx.recorder.imports.spans import Span, spans_of
from agentx.recorder.pauses import ToolTime

PREFIX = "claude_code."


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
        take_tools([span for span in spans_of(path, reading) if self._take(span, reading)], reading)

    def _take(self, span: Span, reading: Reading) -> bool:
        rows = reading.books.rows
        if not span.name.startswith(PREFIX):
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


def take_tools(spans: Iterable[Span], reading: Reading) -> None:
    """What Claude Code's spans say of tools, of the subagents that they started, and of its user's messages.

    A tool's children tell its run apart from the wait for leave; where it has none, its own span holds both.
    """
    listed = [span for span in spans if span.name.startswith(PREFIX)]
    own = {span.id: span for span in listed}
    calls = {id: call for id, span in own.items() if (call := text(span.attributes, "tool_use_id"))}
    for span in listed:
        call = text(span.attributes, "tool_use_id") or calls.get(span.parent)
        if span.name == "claude_code.interaction":
            session = text(span.attributes, "session.id", "session_id")
            reading.prompts.append((reading.pseudonym(session), span.start))
        elif span.name == "claude_code.llm_request":
            _agent(span, own, calls, reading)
        elif call is not None and span.end is not None and span.end >= span.start:
            _tool(call, span, span.end, reading)


def _tool(call: str, span: Span, end: int, reading: Reading) -> None:
    known, seconds, at = reading.tool_times.get(call, ToolTime()), (end - span.start) / 1e9, ((span.start, end),)
    if span.name == "claude_code.tool.execution":
        known = known._replace(ran=seconds, runs=at, exact=True)
    elif span.name == "claude_code.tool.blocked_on_user":
        known = known._replace(waited=seconds, waits=at)
    elif span.name == "claude_code.tool":
        known = known._replace(spawns=known.spawns or text(span.attributes, "subagent_type") is not None)
        if not known.runs:
            known = known._replace(runs=at, exact=False)
    else:
        return
    reading.tool_times[call] = known


def _agent(span: Span, own: dict[str, Span], calls: dict[str, str], reading: Reading) -> None:
    """Which tool call a subagent's model call stands below."""
    agent, at, seen = reading.pseudonym(text(span.attributes, "agent_id")), span.parent, set[str]()
    while agent is not None and at in own and at not in seen:
        seen.add(at)
        if at in calls:
            known = reading.tool_times.get(calls[at], ToolTime())
            reading.tool_times[calls[at]] = known._replace(spawns=True, agent=agent)
            return
        at = own[at].parent
