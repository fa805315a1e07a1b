"""Clients' own files, made by hand, with times on the clock of `capturing.Maker`."""

from __future__ import annotations

from typing import Any

from capturing import EPOCH

Json = dict[str, Any]


def moment(seconds: float) -> int:
    """A second of a capture that a Maker writes, in nanoseconds since the epoch."""
    return round(seconds * 1e9) + EPOCH


def span(name: str, begin: float, end: float, id: str = "x", parent: str = "", **attributes: str) -> Json:
    """A span; its attributes' names have __ where others have a dot."""
    listed = [{"key": key.replace("__", "."), "value": {"stringValue": value}} for key, value in attributes.items()]
    return {"name": name, "spanId": id, "parentSpanId": parent, "traceId": "t", "attributes": listed,
            "startTimeUnixNano": str(moment(begin)), "endTimeUnixNano": str(moment(end))}  # fmt: skip


def export(*spans: Json) -> Json:
    return {"resourceSpans": [{"scopeSpans": [{"spans": list(spans)}]}]}


def ran(call: str, begin: float, end: float) -> Json:
    """A tool's span by the GenAI conventions."""
    return span("execute_tool", begin, end, gen_ai__operation__name="execute_tool", gen_ai__tool__call__id=call)
