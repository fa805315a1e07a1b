"""Claude Code's raw bodies (`OTEL_LOG_RAW_API_BODIES=file:DIR`), with its OTel spans where those are given too.

`index.jsonl` pairs `<uuid>.request.json` with `<request id>.response.json` and says whose they are; it has successful
calls alone. A request's own file is as old as the request; where that age is lost (a copied folder), a call starts when
it ended. Spans (`claude_code.llm_request`, `.tool.execution`, `.tool.blocked_on_user`) give starts, first tokens,
agents, attempts, and tools apart from waiting; they are joined on the request's id, and may be missing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from agentx.errors import BadInput
from agentx.recorder.calls import ModelCall
from agentx.recorder.imports.books import Fidelity
from agentx.recorder.imports.bundles import named_bytes, named_file
from agentx.recorder.imports.claude_spans import Spans
from agentx.recorder.imports.instants import mapping, of_iso, text
from agentx.recorder.imports.logged import LoggedFormat, Reading, parsed
from agentx.recorder.replies import Reply, reply_of

LONGEST = 3600 * 10**9  # ns between a request's file and the end of its call; more is a copied folder's clock
Json = dict[str, Any]


def make_reader() -> Any:
    """A reader that knows the spans of the files before the folders."""
    spans = Spans()

    def read(path: Path, reading: Reading) -> Iterator[ModelCall]:
        folder, index = (path, path / "index.jsonl") if path.is_dir() else (path.parent, path)
        if not _is_index(path):
            spans.read(path, reading)
            if spans.calls:
                reading.known(timing="ttft", gaps="split")
            return
        used: set[str] = set()
        for _, entry in reading.rows(index) if index.is_file() else ():
            used.update(name for name in (text(entry, "request_file"), text(entry, "response_file")) if name)
            call = _call(folder, entry, spans, reading)
            if isinstance(call, str):
                reading.books.rows.drop(call)
            else:
                yield call
        left = sum(1 for file in folder.glob("*.request.json") if file.name not in used)
        reading.books.rows.read += left
        reading.books.rows.drop("request without a line in index.jsonl: it failed, or the index was not written", left)

    return read


def _is_index(path: Path) -> bool:
    return path.is_dir() or ("index" in path.name and path.suffix == ".jsonl")


def _call(folder: Path, entry: Json, spans: Spans, reading: Reading) -> ModelCall | str:
    body = named_bytes(folder, entry.get("request_file"))
    if body is None:
        return "request whose file is not there"
    request = reading.request("messages", body)
    if isinstance(request, str):
        return request
    answer = named_bytes(folder, entry.get("response_file"))
    value = parsed(answer) if answer is not None else None
    if not isinstance(value, dict):
        return "response whose file is not there, or is no JSON"
    reply = _reply(value)
    span = spans.calls.get(text(entry, "request_id") or "")
    end = of_iso(entry.get("timestamp"))
    start = _age(folder, entry, end, reading)
    if span is not None:
        start, end = span.start, span.end
        reply = replace(reply, first_token=span.first_token)
    ids = (
        ("x-claude-code-session-id", text(entry, "session_id")),
        ("x-claude-code-agent-id", span.agent if span is not None else None),
        ("x-claude-code-parent-agent-id", span.parent if span is not None else None),
        ("x-client-request-id", text(entry, "request_id")),
    )
    retries = span.attempt - 1 if span is not None and span.attempt else 0
    reading.books.note("call that took more attempts than one: the failed ones are not in the files", retries > 0)
    return reading.call(start, end, "messages", request, reply, ids, retries=max(retries, 0))


def _reply(value: Json) -> Reply:
    """A response's message; some logs put it under `message`."""
    message = mapping(value.get("message")) if "content" not in value else value
    return reply_of("messages", {"type": "message", **message})


def _age(folder: Path, entry: Json, end: int | None, reading: Reading) -> int | None:
    """When a request was written, by its file; the call's end where that cannot be."""
    file = named_file(folder, entry.get("request_file"))
    at = file.stat().st_mtime_ns if file is not None else None
    if at is not None and end is not None and 0 <= end - at <= LONGEST:
        return at
    reading.books.note("request whose file's time does not fit: its call starts when it ended (inferred)")
    return end


def find(folder: Path) -> list[Path]:
    """The folders of bodies at or below a folder, and span files beside them."""
    bodies = sorted({path.parent for path in folder.rglob("*.request.json")} | _indexed(folder))
    if not bodies:
        raise BadInput("the folder holds no *.request.json and no index.jsonl", file=folder)
    spans = sorted(path for path in folder.rglob("*spans*.json*") if path.is_file())
    return [*spans, *bodies]


def _indexed(folder: Path) -> set[Path]:
    return {path.parent for path in folder.rglob("index.jsonl")}


def make_format() -> LoggedFormat:
    """What `agentx import claude-bodies` reads."""
    return LoggedFormat(
        name="claude-bodies",
        row="row",
        read=make_reader(),
        fidelity=Fidelity("exact", "start-end", "header", "server", "total"),
        unknowable=(
            "without spans: when the first token came, agents by name, tools apart from waiting",
            "requests that failed: the index has successful ones alone",
            "thinking of earlier turns: redacted in the files, its tokens are in the usage",
        ),
        find=find,
        order=lambda path: (_is_index(path), path),
    )
