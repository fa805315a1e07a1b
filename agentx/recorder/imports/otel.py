"""Model calls in OpenTelemetry exports: OpenInference, GenAI conventions (several ages of them), Exgentic's spans.

A call may be seen by two instrumentations: spans with one response id are one call. The one nearest the wire (which
counts resends, or times the first chunk) gives times and usage, whichever holds messages gives the content. Content is
opt-in and may be cut or hidden: what is no whole JSON counts as not told, and then only lengths are known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from agentx.recorder.calls import ModelCall
from agentx.recorder.canonical import Call, Item
from agentx.recorder.imports.books import Fidelity
from agentx.recorder.imports.claude_spans import PREFIX, take_tools
from agentx.recorder.imports.instants import count, number, of_number, text
from agentx.recorder.imports.logged import LoggedFormat, Reading, matching
from agentx.recorder.imports.otel_content import reply_message, request_body
from agentx.recorder.imports.spans import Span, spans_of
from agentx.recorder.pauses import Run, ToolTime
from agentx.recorder.replies import Reply, Usage, reply_of

_OPERATIONS = frozenset({"chat", "text_completion", "generate_content", "completion", "messages", "responses"})
_FIRST = frozenset({"First Token Stream Event", "gen_ai.first_token", "first_token"})
# The names of the same count in the conventions and libraries of several years; the first that is there counts.
_PROMPT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt")
_COMPLETION = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion")
_CACHED = (
    "gen_ai.usage.cache_read.input_tokens",
    "gen_ai.usage.cache_read_input_tokens",
    "llm.token_count.prompt_details.cache_read",
    "llm.token_count.prompt_details.cache_input",
)
_REASONING = ("gen_ai.usage.reasoning.output_tokens", "llm.token_count.completion_details.reasoning")
_SESSION = (
    "gen_ai.conversation.id",
    "session.id",
    "langfuse.session.id",
    "langfuse.trace.session_id",
    "exgentic.session.id",
    "traceloop.association.properties.session_id",
)
_TOOL_CALL = ("gen_ai.tool.call.id", "tool_call.id", "tool.id")


def read(path: Path, reading: Reading) -> Iterator[ModelCall]:
    """The calls of a file."""
    groups: dict[str, list[Span]] = {}
    own: list[Span] = []  # of Claude Code
    for span in spans_of(path, reading):
        own += [span] if span.name.startswith(PREFIX) else []
        if _is_call(span):
            id = text(span.attributes, "gen_ai.response.id")
            groups.setdefault(f"response {id}" if id else f"span {span.trace} {span.id} {len(groups)}", []).append(span)
        else:
            _tool(span, reading)
            reading.books.rows.drop("span of no model call")
    take_tools(own, reading)
    traces = Counter(spans[0].trace for spans in groups.values())
    for spans in groups.values():
        reading.books.rows.merged += len(spans) - 1
        call = _call(spans, traces[spans[0].trace] > 1, reading)
        if isinstance(call, str):
            reading.books.rows.drop(call)
        else:
            yield call


def _is_call(span: Span) -> bool:
    told = span.attributes
    kind = told.get("openinference.span.kind")
    if kind is not None:
        return bool(kind == "LLM")
    operation = told.get("gen_ai.operation.name")
    if operation is not None:
        return operation in _OPERATIONS
    return span.name == "claude_code.llm_request" or (
        "gen_ai.request.model" in told and any(name in told for name in (*_PROMPT, *_COMPLETION))
    )


def _tool(span: Span, reading: Reading) -> None:
    """When a tool ran. One without a call's id is known by its time alone."""
    told = span.attributes
    call = text(told, *_TOOL_CALL)
    if span.end is None or span.end < span.start:
        return
    time = ToolTime((span.end - span.start) / 1e9, runs=((span.start, span.end),))
    if call is not None:
        reading.tool_times.setdefault(call, time)
    elif told.get("openinference.span.kind") == "TOOL" or told.get("gen_ai.operation.name") == "execute_tool":
        reading.runs.append((None, Run(text(told, "gen_ai.tool.name", "tool.name") or span.name, time)))


def _call(spans: list[Span], together: bool, reading: Reading) -> ModelCall | str:
    """One call, seen by one span or more. `together`: its trace holds other calls, and so is a session."""
    wire = max(spans, key=_nearness)
    body = next((found for span in spans if (found := request_body(span.attributes)) is not None), None)
    usage = _usage(wire, spans)
    model = next((m for s in spans if (m := text(s.attributes, *_MODELS)) is not None), "")
    if body is not None:
        request = reading.request("chat", {"model": model, **body})
    elif usage.prompt is not None:
        reading.books.note("call without its messages (content is opt-in): only its lengths are known")
        key = f"span {wire.trace} {wire.id} {reading.books.rows.read}".encode("utf-8", "surrogatepass")
        request = Call(model, (Item("user", key, max(usage.prompt, 1), tokens=usage.prompt),))
    else:
        return "span with neither messages nor usage"
    if isinstance(request, str):
        return request
    session = next((s for span in spans if (s := text(span.attributes, *_SESSION)) is not None), None)
    reading.books.note("session by its trace id (inferred)", session is None and together)
    ids = (
        ("session-id", session),
        ("x-client-request-id", text(wire.attributes, "request_id")),
        ("x-claude-code-agent-id", text(wire.attributes, "agent_id")),
        ("x-claude-code-parent-agent-id", text(wire.attributes, "parent_agent_id")),
        ("x-trace-session-id", (wire.trace or None) if together else None),
    )
    reply = _reply(spans, wire, usage, reading)
    cause = "upstream_abort" if wire.failed else "done"
    return reading.call(wire.start, wire.end, "chat", request, reply, ids, cause=cause)


_MODELS = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "model")


def _nearness(span: Span) -> int:
    """How near the wire a span was made."""
    told = span.attributes
    resends = "http.request.resend_count" in told
    return 2 * resends + ("gen_ai.response.time_to_first_chunk" in told) + (number(told.get("ttft_ms")) is not None)


def _usage(wire: Span, spans: list[Span]) -> Usage:
    def first(names: tuple[str, ...]) -> int | None:
        for span in (wire, *spans):
            for name in names:
                if (found := count(span.attributes.get(name))) is not None:
                    return found
        return None

    if wire.name.startswith("claude_code."):
        told = [count(wire.attributes.get(f"{name}_tokens")) for name in ("input", "cache_read", "cache_creation")]
        prompt = None if told[0] is None else sum(part or 0 for part in told)
        return Usage(prompt, count(wire.attributes.get("output_tokens")), None, told[1])
    return Usage(first(_PROMPT), first(_COMPLETION), first(_REASONING), first(_CACHED))


def _reply(spans: list[Span], wire: Span, usage: Usage, reading: Reading) -> Reply:
    message = next((found for span in spans if (found := reply_message(span.attributes)) is not None), None)
    value = {"choices": [{"message": message or {}}]}
    reply = replace(reply_of("chat", value), usage=usage)
    whole = not wire.failed and (message is not None or usage.completion is not None)
    return replace(reply, whole=whole, first_token=_first_token(spans, wire, reading))


def _first_token(spans: list[Span], wire: Span, reading: Reading) -> int | None:
    if (count(wire.attributes.get("http.request.resend_count")) or 0) > 0:
        reading.books.note("time to the first token that includes failed attempts: left out")
        return None
    chunk = of_number(wire.attributes.get("gen_ai.response.time_to_first_chunk"))
    if chunk is None:
        chunk = of_number(wire.attributes.get("ttft_ms"), 0.001)
    if chunk is not None:
        return wire.start + chunk
    times = (at for span in spans for name, at in span.events if name in _FIRST and at >= wire.start)
    return next(times, None)


def make_format() -> LoggedFormat:
    """What `agentx import otel` reads."""
    return LoggedFormat(
        name="otel",
        row="span",
        read=read,
        fidelity=Fidelity("reconstructed", "ttft", "linked", "server", "total"),
        unknowable=(
            "retries: most instrumentations hide them, and their time is then in that to the first token",
            "bodies as they were sent: messages are told in the convention's own shape, where they are told at all",
            "attributes that an exporter cut without a sign",
            "why a pause was, where no span of a tool says",
        ),
        find=matching("*.json", "*.jsonl"),
    )
