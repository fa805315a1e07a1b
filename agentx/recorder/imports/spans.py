"""OpenTelemetry spans from the files that exporters write: OTLP-JSON, one span a line, or a list under `spans`.

Attribute values are plain again; times are nanoseconds. What has no start is no span.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentx.errors import BadInput
from agentx.recorder.imports.instants import listing, mapping, of_iso, text
from agentx.recorder.imports.logged import MAX_DOCUMENT, Reading, parsed, whole

MAX_NESTING = 12  # of OTLP's values


@dataclass(frozen=True, slots=True)
class Span:
    """One span. `events` are (name, time)."""

    name: str
    id: str
    parent: str
    trace: str
    start: int
    end: int | None
    attributes: Mapping[str, Any]
    events: tuple[tuple[str, int], ...]
    failed: bool


def spans_of(path: Path, reading: Reading) -> Iterator[Span]:
    """The spans of a file, each counted as read; an entry that is none is dropped. Raises BadInput."""
    value = parsed(whole(path))
    if value is not None:
        yield from _within(value, reading)
        return
    found = False
    for _, line in reading.rows(path):
        found = True
        reading.books.rows.read -= 1  # a line may hold several
        yield from _within(line, reading)
    if not found:
        raise BadInput("neither JSON nor JSON Lines", file=path, hint=f"at most {MAX_DOCUMENT >> 20} MiB")


def _within(value: Any, reading: Reading) -> Iterator[Span]:
    for raw in _raw(value):
        reading.books.rows.read += 1
        span = _span(raw)
        if span is None:
            reading.books.rows.drop("entry that is no span")
        else:
            yield span


def _raw(value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for entry in value:
            yield from _raw(entry) if isinstance(entry, dict) else iter((entry,))
        return
    body = mapping(value)
    if "resourceSpans" in body:
        for resource in listing(body["resourceSpans"]):
            for scope in listing(
                mapping(resource).get("scopeSpans", mapping(resource).get("instrumentationLibrarySpans"))
            ):
                yield from listing(mapping(scope).get("spans"))
    elif isinstance(body.get("spans"), list):
        yield from body["spans"]
    else:
        yield body


def _span(raw: Any) -> Span | None:
    body = mapping(raw)
    start = _time(body.get("startTimeUnixNano", body.get("start_time")))
    if start is None:
        return None
    context, status = mapping(body.get("context")), mapping(body.get("status"))
    events = []
    for event in map(mapping, listing(body.get("events"))):
        at = _time(event.get("timeUnixNano", event.get("timestamp")))
        if at is not None:
            events.append((text(event, "name") or "", at))
    code = status.get("status_code", status.get("code"))
    return Span(
        text(body, "name") or "",
        text(body, "spanId", "span_id") or text(context, "span_id") or "",
        text(body, "parentSpanId", "parent_span_id", "parent_id") or "",
        text(body, "traceId", "trace_id") or text(context, "trace_id") or "",
        start,
        _time(body.get("endTimeUnixNano", body.get("end_time"))),
        _attributes(body.get("attributes")),
        tuple(events),
        code in (2, "ERROR", "STATUS_CODE_ERROR"),
    )


def _time(value: Any) -> int | None:
    """OTLP writes nanoseconds as a text of digits, SDKs write ISO 8601."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        return int(value)
    if type(value) is int and 0 <= value < 1 << 63:
        return value
    return of_iso(value)


def _attributes(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    return {
        entry["key"]: _plain(entry.get("value"))
        for entry in map(mapping, listing(value))
        if isinstance(entry.get("key"), str)
    }


def _plain(value: Any, depth: int = 0) -> Any:
    body = mapping(value)
    if depth > MAX_NESTING:
        return None
    if "intValue" in body:
        digits = str(body["intValue"])
        return int(digits) if digits.lstrip("-").isdigit() and len(digits) < 20 else None
    if "arrayValue" in body:
        return [_plain(entry, depth + 1) for entry in listing(mapping(body["arrayValue"]).get("values"))]
    if "kvlistValue" in body:
        entries = map(mapping, listing(mapping(body["kvlistValue"]).get("values")))
        return {entry["key"]: _plain(entry.get("value"), depth + 1) for entry in entries if "key" in entry}
    return next((body[name] for name in ("stringValue", "doubleValue", "boolValue") if name in body), None)
