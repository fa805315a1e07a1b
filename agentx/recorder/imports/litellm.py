"""LiteLLM's standard logging payloads: one JSON object, a list of them, or one a line.

The response is put together by LiteLLM; times are those of its caller, failed attempts that it made in between
included: the time to the first token is then too long, and nothing in the payload tells.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentx.recorder.calls import ModelCall
from agentx.recorder.imports.books import Fidelity
from agentx.recorder.imports.instants import count, mapping, of_number, text
from agentx.recorder.imports.logged import LoggedFormat, Reading, matching, parsed, whole
from agentx.recorder.replies import Reply, Usage, reply_of, usage_of

Json = dict[str, Any]
_SAMPLING = ("temperature", "top_p", "top_k", "max_tokens", "max_completion_tokens", "tools", "prompt_cache_key")


def payloads(path: Path, reading: Reading) -> Iterator[Json]:
    """The objects of a file, each counted as read."""
    value = parsed(whole(path))
    if value is None:
        for _, row in reading.rows(path):
            yield row
        return
    for entry in value if isinstance(value, list) else [value]:
        reading.books.rows.read += 1
        if isinstance(entry, dict):
            yield entry
        else:
            reading.books.rows.drop("entry that is no JSON object")


def read(path: Path, reading: Reading) -> Iterator[ModelCall]:
    """The calls of a file."""
    found = list(payloads(path, reading))
    traces = Counter(text(payload, "trace_id") for payload in found)
    for payload in found:
        # LiteLLM makes up a trace id for a call that brought none; one that occurs once says nothing.
        call = _call(payload, traces[text(payload, "trace_id")] > 1, reading)
        if isinstance(call, str):
            reading.books.rows.drop(call)
        else:
            yield call


def _call(payload: Json, traced: bool, reading: Reading) -> ModelCall | str:
    if "call_type" not in payload and "litellm_call_id" not in payload:
        return "object that is no payload"
    if payload.get("cache_hit") is True:
        return "answered from the proxy's own cache: no model call"
    parameters, response = mapping(payload.get("model_parameters")), mapping(payload.get("response"))
    messages = payload.get("messages")
    if not isinstance(messages, list) or not messages:
        return "payload whose messages are not logged"
    wire = _wire(payload, response)
    body = {name: parameters[name] for name in _SAMPLING if parameters.get(name) is not None}
    request = reading.request(
        wire,
        {
            **body,
            "model": text(payload, "model"),
            "input" if wire == "responses" else "messages": messages,
            "system": parameters.get("system"),
            "instructions": parameters.get("instructions"),
        },
    )
    if isinstance(request, str):
        return request
    start, end = of_number(payload.get("startTime")), of_number(payload.get("endTime"))
    failed = payload.get("status") == "failure"
    return reading.call(
        start, end, wire, request, _reply(payload, response, wire, start, failed), _ids(payload, traced),
        cause="upstream_abort" if failed else "done",
    )  # fmt: skip


def _wire(payload: Json, response: Json) -> str:
    if "choices" in response:
        return "chat"
    if isinstance(response.get("output"), list):
        return "responses"
    kind = text(payload, "call_type") or ""
    return "messages" if response.get("type") == "message" or "anthropic" in kind else "chat"


def _reply(payload: Json, response: Json, wire: str, start: int | None, failed: bool) -> Reply:
    reply = reply_of(wire, response) if response else Reply(not failed)
    usage = usage_of("chat", mapping(payload.get("metadata")).get("usage_object"))
    known = reply.usage if reply.usage.prompt is not None else usage
    if known.prompt is None:
        known = Usage(count(payload.get("prompt_tokens")) or None, count(payload.get("completion_tokens")))
    first = of_number(payload.get("completionStartTime"))
    streamed = payload.get("stream") is True and first is not None and start is not None and first >= start
    return replace(reply, usage=known, whole=reply.whole and not failed, first_token=first if streamed else None)


def _ids(payload: Json, traced: bool) -> list[tuple[str, str | None]]:
    headers = mapping(mapping(payload.get("metadata")).get("requester_custom_headers"))
    own = [(name.lower(), value) for name, value in sorted(headers.items()) if isinstance(value, str)]
    return [
        *own,
        ("x-litellm-session-id", text(payload, "session_id")),
        ("x-litellm-trace-id", text(payload, "trace_id") if traced else None),
        ("x-client-request-id", text(payload, "litellm_call_id")),
    ]


def make_format() -> LoggedFormat:
    """What `agentx import litellm` reads."""
    return LoggedFormat(
        name="litellm",
        row="payload",
        read=read,
        fidelity=Fidelity("reconstructed", "ttft", "header", "server", "total"),
        unknowable=(
            "retries inside LiteLLM: their time is in that to the first token",
            "a subagent's own session: LiteLLM puts it into its parent's",
            "why a pause was; how long each of several tools ran",
        ),
        find=matching("*.json", "*.jsonl"),
    )
