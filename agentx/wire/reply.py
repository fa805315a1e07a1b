"""What a server said about one request, in one shape for every wire; what it did not say is None, never 0."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from agentx.core import Cached

DONE = b"[DONE]"

_COUNT_KEY = b'"completion_tokens"'
_COUNT = re.compile(rb'"completion_tokens"\s*:\s*(\d{1,12})')


class ServerError(NamedTuple):
    """An error that the server reported. `code` is an HTTP status or a server's own word, None when it gave none."""

    code: int | str | None
    message: str


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply, streamed or not.

    `token_counts` and `carries` have one entry per event (one for a reply that was not streamed): the completion
    tokens so far, None where the event does not say, and whether the event carried a token at all.
    `text` is assembled only when asked for. `done` is whether the reply came to its proper end: `[DONE]` was seen.
    `spec` holds the server's own speculation figures under the server's own names.
    """

    token_counts: tuple[int | None, ...] = ()
    carries: tuple[bool, ...] = ()
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached: Cached | None = None
    finish_reason: str | None = None
    matched_stop: int | str | None = None
    error: ServerError | None = None
    done: bool = False
    output_ids: tuple[int, ...] | None = None
    text: str | None = None
    queue_seconds: float | None = None
    server_first_token_seconds: float | None = None
    spec: Mapping[str, object] | None = None


def count_of(value: object) -> int | None:
    """`value` if it is a count, else None (servers send null, and sometimes worse)."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def seconds_of(value: object) -> float | None:
    """`value` as seconds if it is a number that can be one, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e9:
        return None
    return float(value)


def mapping_of(value: object) -> dict[str, object]:
    """`value` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def first_of(value: object) -> dict[str, object]:
    """The first object of a JSON array; empty when there is none (`choices: []` is common)."""
    return mapping_of(value[0]) if isinstance(value, list) and value else {}


def load_object(data: bytes) -> dict[str, object] | ServerError:
    """`data` as a JSON object, or the error that it is none."""
    try:
        value = json.loads(data.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else ServerError(None, f"not a JSON object: {excerpt(data)}")


def scan_count(data: bytes) -> int | None:
    """The completion tokens that an event tells, found without parsing it; None when it tells none.

    Quotes inside a JSON string are escaped, so generated text cannot look like the key.
    """
    at = data.rfind(_COUNT_KEY)
    found = _COUNT.match(data, at) if at >= 0 else None
    return int(found.group(1)) if found else None


def excerpt(data: bytes, limit: int = 200) -> str:
    """The beginning of `data` as one printable line."""
    text = " ".join(data[: 4 * limit].decode("utf-8", "replace").split())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def join_text(parts: list[str]) -> str:
    """Join text of several chunks; a surrogate pair that a server cut in two becomes one character again."""
    return "".join(parts).encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def error_in(body: Mapping[str, object]) -> ServerError | None:
    """The error that a JSON body reports, whatever the status it came with; None when it reports none.

    Shapes: `{"error": {"message", "code"}}`, `{"error": "text"}`, `{"object": "error", "message", "code"}` and
    FastAPI's `{"detail": …}`.
    """
    error = body.get("error")
    if isinstance(error, dict):
        return _error(error.get("code", error.get("type")), error.get("message", error))
    if error:
        return _error(None, error)
    if body.get("object") == "error":
        return _error(body.get("code"), body.get("message"))
    if "detail" in body and "choices" not in body:
        return _error(None, body["detail"])
    return None


def parse_error(body: bytes, status: int) -> ServerError:
    """The error behind a non-200 answer: JSON of any known shape, else the beginning of what was sent."""
    loaded = load_object(body)
    error = None if isinstance(loaded, ServerError) else error_in(loaded)
    if error is None:
        return ServerError(status, excerpt(body) or "no body")
    return error if error.code is not None else ServerError(status, error.message)


def _error(code: object, message: object) -> ServerError:
    text = message if isinstance(message, str) else json.dumps(message)
    return ServerError(code if isinstance(code, int | str) else None, text)
