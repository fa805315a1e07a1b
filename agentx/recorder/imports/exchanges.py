"""HTTP exchanges that a proxy's log holds, as exchanges of a capture: what a body is, its path says.

Headers are sorted as the recorder sorts them: those on its allow-list are read, identity headers become pseudonyms,
credentials become one that tells two of them apart. None of them reaches a trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

from agentx.recorder.calls import ModelCall, of_exchange
from agentx.recorder.capture_reader import Exchange
from agentx.recorder.headers import PLAIN_REQUEST, PLAIN_RESPONSE, credential, identities, kept
from agentx.recorder.imports.logged import Reading
from agentx.recorder.parts import split

PATHS = (  # the end of a path, and the wire of its bodies; the first that fits
    ("/chat/completions", "chat"),
    ("/completions", "completions"),
    ("/responses", "responses"),
    ("/messages", "messages"),
    ("/generate", "generate"),
)
Headers = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Heard:
    """One exchange of a log. Times are nanoseconds since the epoch; `reply` None: the log does not hold it."""

    method: str
    url: str
    headers: Headers
    body: bytes | None
    opened: int | None
    ended: int | None
    status: int | None
    reply_headers: Headers
    reply: bytes | None
    failed: bool = False


def wire_of(path: str) -> str | None:
    """The wire of a path, by its end."""
    return next((wire for end, wire in PATHS if path.rstrip("/").endswith(end)), None)


def calls(heard: Heard, reading: Reading, number: int) -> Iterator[ModelCall]:
    """The model call of an exchange; one that holds none is counted as dropped."""
    reading.books.rows.read += 1
    why = _unusable(heard)
    call = of_exchange(_exchange(heard, reading, number), reading.memo) if why is None else why
    if isinstance(call, str):
        reading.books.rows.drop(call)
        return
    reading.progress()
    yield call


def _unusable(heard: Heard) -> str | None:
    if heard.method != "POST" or wire_of(_path(heard.url)) is None:
        return "no model call: another path or method"
    if heard.opened is None:
        return "exchange without a time"
    if heard.body is None:
        return "the request's body is not in the file"
    if heard.reply is None and heard.status is not None and not heard.failed:
        return "the reply's body is not in the file (a proxy that streams stores it only when told to)"
    return None


def _path(url: str) -> str:
    try:
        return urlsplit(url).path
    except ValueError:
        return ""


def _exchange(heard: Heard, reading: Reading, number: int) -> Exchange:
    secret, key = credential(heard.headers), reading.key
    body = heard.body or b""
    opened = heard.opened or 0
    return Exchange(
        run=0,
        number=number,
        opened=opened,
        method=heard.method,
        path=_path(heard.url),
        query=(),
        wire=wire_of(_path(heard.url)),
        headers=tuple(kept(heard.headers, PLAIN_REQUEST)),
        ids=tuple((name, key.pseudonym("id", value)) for name, value in identities(heard.headers)),
        credential=key.pseudonym("credential", secret) if secret is not None else None,
        connection=0,
        asked=opened,
        body=body,
        head=None,
        status=heard.status,
        reply_headers=tuple(kept(heard.reply_headers, PLAIN_RESPONSE)),
        reply=heard.reply or b"",
        chunks=(),
        ended=max(heard.ended, opened) if heard.ended is not None else None,
        cause="upstream_abort" if heard.failed else "done",
        detail="",
        why="",
        parts=tuple(split(body)) if body else (b"",),
    )


def pairs(value: Any, name: Any, text: Any) -> list[tuple[str, str]]:
    """Header pairs from a list whose entries hold a name and a value under these keys; others are left out."""
    found = []
    for entry in value if isinstance(value, list) else []:
        try:
            key, held = entry[name], entry[text]
        except (KeyError, IndexError, TypeError):
            continue
        key, held = (part.decode("latin-1") if isinstance(part, bytes) else part for part in (key, held))
        if isinstance(key, str) and isinstance(held, str):
            found.append((key, held))
    return found
