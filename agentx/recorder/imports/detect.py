"""Which format a file or a folder is of, by its first bytes or by the keys of its first objects; never by a guess.

What fits no rule is refused, with the list of what can be named.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentx.errors import BadInput
from agentx.frames import MAGIC, open_for_reading
from agentx.recorder.imports.logged import MAX_DOCUMENT, parsed
from agentx.recorder.imports.source import signed

HEAD = 1 << 20  # bytes that are looked at; a JSON document that is longer is read as a whole
LINES = 50  # of a file of lines: some begin with lines that say little
FILES = 50  # of a folder
_NETSTRING = re.compile(rb"\d{1,10}:\d{1,10}:")
_HEADERS = (  # of CSV files
    (b"TIMESTAMP,ContextTokens,GeneratedTokens", "azure"),
    (b"Timestamp,", "burstgpt"),
    (b"session_id,", "tracelab"),
)


def detect(path: Path) -> str:
    """The format's name as `agentx import` knows it. Raises BadInput when there is none."""
    found = _folder(path) if path.is_dir() else _file(path)
    if found is None:
        raise BadInput("the format cannot be told", file=path, hint="name it: agentx import FORMAT PATH; see --help")
    return found


def _folder(path: Path) -> str | None:
    if (path / "manifest.json").exists() and any(path.glob("*.rec")):
        raise BadInput("this is a capture", file=path, hint="agentx compile makes a trace of it")
    if any(path.rglob("*.request.json")) or any(path.rglob("*.response.json")):
        return "claude-bodies"
    if any(_file(file) == "codex-trace" for file in path.rglob("trace.jsonl") if file.stat().st_size):
        return "codex-trace"  # its payloads may look like anything
    files = (file for file in sorted(path.rglob("*"))[: FILES * 20] if file.is_file() and file.stat().st_size)
    found = {name for _, file in zip(range(FILES), files, strict=False) if (name := _file(file)) is not None}
    if len(found) > 1:
        names = ", ".join(sorted(found))
        raise BadInput(
            f"the folder holds several formats: {names}", file=path, hint="name one: agentx import FORMAT PATH"
        )
    return found.pop() if found else None


def _file(path: Path) -> str | None:
    with open_for_reading(path) as file:
        head = file.read(HEAD)
    if head.startswith(MAGIC):
        raise BadInput("this is an agentx trace already", file=path, hint="agentx inspect reads it")
    if head[:2] in (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"):
        return "sglang-dump"
    if _NETSTRING.match(head):
        return "mitmproxy"
    if head.startswith(b"\x1f\x8b"):
        head = _unzipped(head)
    head = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    for start, name in _HEADERS:
        if head.startswith(start):
            return name
    for value in _objects(head, path):
        found = _object(value)
        if found is not None:
            return found
    return None


def _unzipped(head: bytes) -> bytes:
    try:
        return zlib.decompressobj(16 + zlib.MAX_WBITS).decompress(head, HEAD)
    except zlib.error:
        return b""


def _objects(head: bytes, path: Path) -> Iterator[Any]:
    """The first objects: one a line, or the document."""
    first = parsed(head.split(b"\n", 1)[0])
    if isinstance(first, dict | list) or head.startswith(b"["):
        for line in head.split(b"\n")[:LINES]:
            yield parsed(line[line.find(b"{") :] if line.startswith(b"[2") else line)
    if not isinstance(first, dict | list) and path.stat().st_size <= MAX_DOCUMENT:
        yield parsed(path.read_bytes())


def _object(value: Any) -> str | None:
    if isinstance(value, list) and value and isinstance(value[0], dict):
        if {"role", "content"} <= value[0].keys():
            return "mini-swe-agent"
        value = value[0]
    found = signed(value)
    return found.format if found is not None else None
