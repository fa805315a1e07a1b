"""HAR files (browsers, mitmproxy's hardump, Charles, Fiddler): each POST to a model's path is a call.

Bodies stand in the file decoded, whatever their headers say. A HAR tells when a request began, when its first byte came
and how long the rest took; the first byte is not the first token, so that TTFT stays unknown.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agentx.errors import BadInput
from agentx.recorder.calls import ModelCall
from agentx.recorder.imports.books import Fidelity
from agentx.recorder.imports.exchanges import Heard, calls, pairs
from agentx.recorder.imports.instants import mapping, of_iso, of_number
from agentx.recorder.imports.logged import LoggedFormat, Reading, document, matching

_DONE = frozenset({"content-encoding", "content-length", "transfer-encoding"})  # said of bytes that are decoded by now


def read(path: Path, reading: Reading) -> Iterator[ModelCall]:
    """The calls of a file. Raises BadInput for what is no HAR."""
    log = mapping(mapping(document(path)).get("log"))
    if not isinstance(log.get("entries"), list):
        raise BadInput("not a HAR file: it has no log.entries", file=path)
    for number, entry in enumerate(log["entries"]):
        yield from calls(heard(mapping(entry)), reading, number)


def heard(entry: dict[str, Any]) -> Heard:
    """An entry as an exchange."""
    request, response = mapping(entry.get("request")), mapping(entry.get("response"))
    opened = of_iso(entry.get("startedDateTime"))
    took = of_number(entry.get("time"), 0.001)
    status = response.get("status")
    answered = type(status) is int and status > 0
    return Heard(
        method=str(request.get("method")),
        url=str(request.get("url")),
        headers=_decoded(pairs(request.get("headers"), "name", "value")),
        body=_bytes(mapping(request.get("postData"))),
        opened=opened,
        ended=opened + took if opened is not None and took is not None else None,
        status=status if answered else None,
        reply_headers=_decoded(pairs(response.get("headers"), "name", "value")),
        reply=_bytes(mapping(response.get("content"))),
        failed=not answered,
    )


def _decoded(headers: list[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in headers if name.lower() not in _DONE]


def _bytes(content: dict[str, Any]) -> bytes | None:
    text = content.get("text")
    if not isinstance(text, str) or not text:
        return None
    if content.get("encoding") == "base64":
        try:
            return base64.b64decode(text, validate=False)
        except (binascii.Error, ValueError):
            return None
    return text.encode("utf-8", "surrogatepass")


def make_format() -> LoggedFormat:
    """What `agentx import har` reads."""
    return LoggedFormat(
        name="har",
        row="exchange",
        read=read,
        fidelity=Fidelity("exact", "start-end", "header", "server", "total"),
        unknowable=(
            "when the first token came: a HAR has the first byte, which is the head of the reply",
            "why a pause was; how long each of several tools ran",
            "replies that a proxy streamed without storing them",
        ),
        find=matching("*.har"),
    )
