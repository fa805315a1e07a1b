"""AIPerf's raw export (`profile_export_raw.jsonl`): requests of a benchmark, with a time for each event of a reply.

What is in it was played, not lived: pauses and contexts are those of the benchmark's own source. Times are one
performance clock, tied to the calendar by the start of each request.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentx.recorder.calls import ModelCall
from agentx.recorder.capture_reader import Chunk
from agentx.recorder.imports.books import Fidelity
from agentx.recorder.imports.instants import listing, mapping, of_number, text
from agentx.recorder.imports.logged import LoggedFormat, Reading, matching
from agentx.recorder.replies import Reply, reply_of_body

Json = dict[str, Any]


def read(path: Path, reading: Reading) -> Iterator[ModelCall]:
    """The calls of a file."""
    for _, row in reading.rows(path):
        call = _call(row, reading)
        if isinstance(call, str):
            reading.books.rows.drop(call)
        else:
            yield call


def _call(row: Json, reading: Reading) -> ModelCall | str:
    told, payload = mapping(row.get("metadata")), mapping(row.get("payload"))
    if not told or "responses" not in row:
        return "row without metadata and responses (the record export has neither bodies nor replies)"
    wire = _wire(payload)
    if wire is None:
        return "request with neither messages nor input nor prompt"
    request = reading.request(wire, payload)
    if isinstance(request, str):
        return request
    start, end = of_number(told.get("request_start_ns"), 1e-9), of_number(told.get("request_end_ns"), 1e-9)
    reading.books.note("request of a benchmark's warm-up", told.get("benchmark_phase") == "warmup")
    status = row.get("status")
    good = type(status) is int and 200 <= status < 300
    reply = _reply(wire, row, start) if good else Reply(False, error=f"status {status}" if status else "no answer")
    ids = (
        ("x-session-id", text(told, "root_correlation_id", "x_correlation_id", "conversation_id")),
        ("thread-id", text(told, "x_correlation_id")),
        ("x-client-request-id", text(told, "x_request_id")),
    )
    return reading.call(
        start, end, wire, request, reply, ids,
        cause="client_abort" if told.get("was_cancelled") is True else "done",
        status=status if type(status) is int else None,
    )  # fmt: skip


def _wire(payload: Json) -> str | None:
    """By what a body holds; Anthropic's has its system beside the messages."""
    if isinstance(payload.get("messages"), list):
        return "messages" if "system" in payload or "anthropic_version" in payload else "chat"
    if "input" in payload:
        return "responses"
    return "completions" if "prompt" in payload else None


def _reply(wire: str, row: Json, start: int | None) -> Reply:
    """A reply from its events, each dated by the performance clock."""
    zero = row.get("start_perf_ns")
    body, chunks = bytearray(), []
    for entry in map(mapping, listing(row.get("responses"))):
        data = _event(entry)
        at = entry.get("perf_ns")
        since = at - zero if type(at) is int and type(zero) is int else None
        body += data
        chunks.append(Chunk((start or 0) + (since or 0), len(data)))
    dated = start is not None and type(zero) is int and all(chunk.at >= start for chunk in chunks)
    return reply_of_body(wire, bytes(body), "", tuple(chunks) if dated else ())


def _event(entry: Json) -> bytes:
    """What one read brought: the fields of an event, or a whole body."""
    packets = entry.get("packets")
    if not isinstance(packets, list):
        return str(entry.get("text", "")).encode("utf-8", "surrogatepass")
    fields = [(text(packet, "name"), packet.get("value")) for packet in map(mapping, packets)]
    lines = [f"{name}: {line}" for name, value in fields if name for line in str(value).split("\n")]
    return ("\n".join(lines) + "\n\n").encode("utf-8", "surrogatepass")


def make_format() -> LoggedFormat:
    """What `agentx import aiperf` reads."""
    return LoggedFormat(
        name="aiperf",
        row="row",
        read=read,
        fidelity=Fidelity("exact", "chunk", "header", "server", "total"),
        unknowable=(
            "how agents behave: the pauses are a benchmark's, its contexts those of the trace that it played",
            "what a marker against caching stands in front of: it is part of the prompt",
        ),
        find=matching("*raw*.jsonl"),
    )
