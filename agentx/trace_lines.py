"""The JSON Lines form of a trace frame: one object a line, sorted keys, the frame's type under "frame"."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from agentx.errors import BadInput
from agentx.frames import Frame

MAX_LINE = 64 << 20  # bytes of one JSON line


def to_line(kind: str, body: dict[str, Any]) -> bytes:
    """One frame as a line of canonical JSON. Raises BadInput for a number that JSON has not (NaN, infinity)."""
    try:
        text = json.dumps(
            {**body, "frame": kind},
            sort_keys=True,
            ensure_ascii=False,
            separators=(",", ":"),
            allow_nan=False,
            default=_binary,
        )
    except ValueError as error:
        raise BadInput(f"a {kind} frame cannot be written as JSON: {error}") from None
    return text.encode("utf-8", "surrogatepass") + b"\n"


def _binary(value: object) -> dict[str, str]:
    if isinstance(value, bytes):
        return {"$bytes": base64.b64encode(value).decode()}
    raise ValueError(f"{type(value).__name__} has no JSON form")


def from_line(line: bytes, path: Path, number: int) -> Frame:
    """One frame from its line. Raises BadInput, with the line, for what is not JSON or not a frame."""
    try:
        body = json.loads(line, object_hook=_restore, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        reason = str(error).split(":")[0]
        raise BadInput(f"this line is not JSON: {reason}", file=path, line=number) from None
    if not isinstance(body, dict) or not isinstance(body.get("frame"), str):
        hint = "agentx import FORMAT turns other formats into traces"
        raise BadInput('not an agentx trace: this line has no "frame"', file=path, line=number, hint=hint)
    return body.pop("frame"), body


def _restore(value: dict[str, Any]) -> Any:
    if value.keys() != {"$bytes"}:
        return value
    if not isinstance(value["$bytes"], str):
        raise ValueError("$bytes is not a text of base64")
    return base64.b64decode(value["$bytes"], validate=True)


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number")


def lines_of(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """The lines of a file, their ends included, none longer than `MAX_LINE`."""
    while line := file.readline(MAX_LINE + 1):
        if len(line) > MAX_LINE:
            raise BadInput(f"a line is longer than the limit of {MAX_LINE} bytes", file=path)
        yield line
