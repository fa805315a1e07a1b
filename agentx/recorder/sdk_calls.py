"""A call of the openai package as an exchange: keyword arguments in, the JSON body that they mean out; results too.

Bytes are made anew from the package's values, so they are what was said and not how it was spelled on the wire.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

# Arguments of the package's own, which are no part of the body.
_AROUND = frozenset(["extra_headers", "extra_query", "extra_body", "timeout", "idempotency_key"])
_ABSENT = frozenset(["NotGiven", "Omit"])  # its types for an argument that was left out
Pairs = list[tuple[str, str]]


def repeatable(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments with iterators as lists, so that reading them for the copy takes nothing from the call."""
    return {name: list(value) if isinstance(value, Iterator) else value for name, value in arguments.items()}


def request_body(arguments: Mapping[str, Any]) -> bytes:
    """The body that the package sends for these arguments. Raises TypeError or ValueError for what is no JSON."""
    body = {
        name: value
        for name, value in arguments.items()
        if name not in _AROUND and type(value).__name__ not in _ABSENT and not isinstance(value, type)
    }
    body |= arguments.get("extra_body") or {}
    return json.dumps(body, default=_plain, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_unset=True)
    if hasattr(value, "__iter__"):
        return list(value)
    raise TypeError(f"{type(value).__name__} is not JSON")


def request_headers(client: Any, arguments: Mapping[str, Any]) -> Pairs:
    """The headers that say who calls, the key included: the capture's writer keeps a pseudonym of it."""
    key = client.api_key
    pairs = [("Authorization", f"Bearer {key}")] if isinstance(key, str) and key else []
    named = {**client.default_headers, **(arguments.get("extra_headers") or {})}
    return pairs + [(name, value) for name, value in named.items() if isinstance(value, str)]


def result_body(result: Any) -> bytes:
    """A whole result as the JSON that it was read from."""
    text: str = result.model_dump_json(exclude_unset=True, warnings=False)
    return text.encode()


def event(wire: str, item: Any) -> bytes:
    """One item of a stream as the server-sent event that it was read from."""
    data = result_body(item)
    name = f"event: {item.type}\n".encode() if wire == "responses" else b""
    return name + b"data: " + data + b"\n\n"


def last_event(wire: str) -> bytes:
    """What stands behind the last item of a stream; the package swallows it."""
    return b"" if wire == "responses" else b"data: [DONE]\n\n"


def failure(error: BaseException) -> tuple[int, Pairs, bytes] | None:
    """(status, headers, body) of an answer that the package raises as an error; None when there was no answer."""
    response = getattr(error, "response", None)
    if response is None or not hasattr(error, "status_code"):
        return None
    return response.status_code, list(response.headers.items()), response.content
