"""mitmproxy flow files: tagged netstrings (`length:payload` and a type), one after the other, a flow each.

The parser is bounded: nesting, the length of one value and the length of a file are limited, nothing is executed. A
file that is torn at its end gives the flows before. Bodies are as they passed, content codings included.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentx.errors import BadInput
from agentx.recorder.calls import ModelCall
from agentx.recorder.imports.books import Fidelity
from agentx.recorder.imports.exchanges import Heard, calls, pairs
from agentx.recorder.imports.instants import mapping, of_number
from agentx.recorder.imports.logged import LoggedFormat, Reading, matching, whole

MAX_DEPTH = 32
MAX_DIGITS = 10  # of a length


class Damaged(ValueError):
    """The bytes are no tagged netstring; the message says why."""


def read(path: Path, reading: Reading) -> Iterator[ModelCall]:
    """The calls of a file. Raises BadInput for what is no flow file."""
    data, at, number = whole(path), 0, 0
    while at < len(data):
        try:
            value, at = netstring(data, at)
        except Damaged as error:
            if not number:
                raise BadInput(f"not a mitmproxy flow file: {error}", file=path) from None
            reading.books.find(f"a file is torn behind {number} flows: {error}")
            return
        number += 1
        flow = _flow(value)
        if flow is None:
            reading.books.rows.read += 1
            reading.books.rows.drop("no HTTP flow")
        else:
            yield from calls(flow, reading, number)


def netstring(data: bytes, at: int = 0, depth: int = 0, stop: int | None = None) -> tuple[Any, int]:
    """The value that begins at `at`, and where it ends. Raises Damaged."""
    stop = len(data) if stop is None else stop
    colon = data.find(b":", at, min(at + MAX_DIGITS + 1, stop))
    if colon < 0 or not data[at:colon].isdigit():
        raise Damaged(f"no length at byte {at}")
    begin = colon + 1
    end = begin + int(data[at:colon])
    if end >= stop:
        raise Damaged(f"the value at byte {at} goes beyond the end")
    if depth > MAX_DEPTH:
        raise Damaged(f"values are nested deeper than {MAX_DEPTH}")
    return _value(data, begin, end, depth), end + 1


def _value(data: bytes, begin: int, end: int, depth: int) -> Any:
    kind = data[end : end + 1]
    if kind == b",":
        return data[begin:end]
    if kind == b";":
        return data[begin:end].decode("utf-8", "replace")
    if kind == b"~" and begin == end:
        return None
    if kind == b"!":
        return data[begin:end] == b"true"
    if kind in (b"#", b"^"):
        return _number(data[begin:end], kind)
    if kind == b"]":
        return list(_values(data, begin, end, depth))
    if kind == b"}":
        values = list(_values(data, begin, end, depth))
        if len(values) % 2 or not all(isinstance(key, str | bytes) for key in values[::2]):
            raise Damaged(f"the map at byte {begin} has no pairs")
        names = (key.decode("utf-8", "replace") if isinstance(key, bytes) else key for key in values[::2])
        return dict(zip(names, values[1::2], strict=True))
    raise Damaged(f"no type at byte {end}")


def _number(digits: bytes, kind: bytes) -> int | float:
    if len(digits) > 40:
        raise Damaged("a number of more than 40 digits")
    try:
        return int(digits) if kind == b"#" else float(digits)
    except ValueError:
        raise Damaged("a number that is none") from None


def _values(data: bytes, at: int, end: int, depth: int) -> Iterator[Any]:
    while at < end:
        value, at = netstring(data, at, depth + 1, end)
        yield value


def _text(value: Any) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


def _flow(value: Any) -> Heard | None:
    flow = mapping(value)
    request, response = mapping(flow.get("request")), mapping(flow.get("response"))
    if not request or _text(flow.get("type", "http")) != "http":
        return None
    status, content = response.get("status_code"), response.get("content")
    return Heard(
        method=_text(request.get("method")),
        url=_text(request.get("path")),
        headers=pairs(request.get("headers"), 0, 1),
        body=request["content"] if isinstance(request.get("content"), bytes) else None,
        opened=of_number(request.get("timestamp_start")),
        ended=of_number(response.get("timestamp_end")) or of_number(response.get("timestamp_start")),
        status=status if type(status) is int else None,
        reply_headers=pairs(response.get("headers"), 0, 1),
        reply=content if isinstance(content, bytes) else None,
        failed=bool(flow.get("error")) or not response,
    )


def make_format() -> LoggedFormat:
    """What `agentx import mitmproxy` reads."""
    return LoggedFormat(
        name="mitmproxy",
        row="flow",
        read=read,
        fidelity=Fidelity("exact", "start-end", "header", "server", "total"),
        unknowable=(
            "when the first token came: a flow has the first byte, which is the head of the reply",
            "why a pause was; how long each of several tools ran",
            "replies that were streamed without `store_streamed_bodies`",
        ),
        find=matching("*.mitm", "*.flow", "*.flows", "*.dump"),
    )
