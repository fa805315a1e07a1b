"""Reads a capture back: exchanges in the order of their ends, whole or with the reason why not.

Each segment is read to its end or to its tear; a tear costs what lies behind it in that segment, and is reported.
Memory: the exchanges that are open at one time, the recipes that may still be referred to, and the parts of the
run, each once and compressed. Hostile input is refused by the limits of `frames.py`.
"""

from __future__ import annotations

import zlib
from array import array
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from agentx.errors import BadInput
from agentx.frames import FrameReader, Tear
from agentx.recorder.capture import read_manifest
from agentx.recorder.parts import MAX_PART, Recent, resolve
from agentx.recorder.segments import first_frame_problem, segment_files

CACHE_BYTES = 256 << 20  # of parts that are kept unpacked
Pairs = tuple[tuple[str, str], ...]


class Chunk(NamedTuple):
    """One read of a response: nanoseconds on the run's clock, and bytes."""

    at: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Exchange:
    """One HTTP exchange of a capture. Times are nanoseconds since the epoch by the run's anchored monotonic clock.

    `asked`: the request was whole. `head`: the response's head came. `ids` are (header, pseudonym) pairs. `body` and
    `reply` are bytes as they passed, content codings included; `body` is None when it is not on record; `parts` are
    the stretches that it was stored in. `cause` is
    one of `copies.CAUSES`, or "recorder_crash" when no end was written. `why` says what is missing of the copy.
    """

    run: int
    number: int
    opened: int
    method: str
    path: str
    query: tuple[str, ...]
    wire: str | None
    headers: Pairs
    ids: Pairs
    credential: str | None
    connection: int
    asked: int | None
    body: bytes | None
    head: int | None
    status: int | None
    reply_headers: Pairs
    reply: bytes
    chunks: tuple[Chunk, ...]
    ended: int | None
    cause: str
    detail: str
    why: str
    parts: tuple[bytes, ...] = ()

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)

    def reply_header(self, name: str) -> str | None:
        return next((value for key, value in self.reply_headers if key == name), None)


@dataclass(slots=True)
class _Open:
    body: dict[str, Any]
    shift: int
    request: dict[str, Any] | None = None
    numbers: array[int] | None = None
    head: dict[str, Any] | None = None
    reply: list[bytes] = field(default_factory=list)
    chunks: list[Chunk] = field(default_factory=list)


class CaptureReader:
    """Iterate for the exchanges. Afterwards `tears` lists (segment, tear) and `fragments` counts stray frames."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.manifest = read_manifest(self.folder)
        self.tears: list[tuple[str, Tear]] = []
        self.fragments = 0
        self._run: int | None = None
        self._start()

    def _start(self) -> None:
        self._parts: dict[int, tuple[bytes, bool]] = {}
        self._unpacked: OrderedDict[int, bytes] = OrderedDict()
        self._held = 0
        self._recent = Recent()
        self._open: dict[int, _Open] = {}
        self._shift: int | None = None

    def __iter__(self) -> Iterator[Exchange]:
        self.tears, self.fragments, self._run = [], 0, None
        for path in segment_files(self.folder):
            if path.stat().st_size == 0:
                continue
            reader = FrameReader(path)
            for number, (kind, body) in enumerate(reader):
                if number == 0:
                    if kind != "capture":
                        raise BadInput("this is not a segment of a capture", file=path)
                    first_frame_problem(body, path)
                    if body.get("run") != self._run:
                        yield from self._crashed()
                        self._start()
                        self._run = body.get("run")
                    continue
                try:
                    ended = self._feed(kind, body)
                except (KeyError, TypeError, ValueError) as error:
                    raise BadInput(f"a {kind} frame is damaged: {error!r}", file=path) from None
                if ended is not None:
                    yield ended
            if reader.tear is not None:
                self.tears.append((path.name, reader.tear))
        yield from self._crashed()

    def _crashed(self) -> Iterator[Exchange]:
        """What the run left open: its recorder was killed, or the disk had no room for the end."""
        for number in sorted(self._open):
            yield self._exchange(number, self._open[number], None)
        self._open = {}

    def _feed(self, kind: str, body: dict[str, Any]) -> Exchange | None:
        if kind == "clock":
            # The first anchor of a run holds for all of it: durations are the monotonic clock's, whatever NTP does.
            self._shift = self._shift if self._shift is not None else int(body["wall"]) - int(body["mono"])
            return None
        if kind == "part":
            self._parts[int(body["id"])] = (body["z"], True) if "z" in body else (body["data"], False)
            return None
        if kind == "open":
            self._open[int(body["x"])] = opened = _Open(body, self._shift or 0)
            self._exchange(int(body["x"]), opened, None)  # damage shows here, where its place is known
            return None
        numbers = None
        if kind == "request" and "new" in body:
            # Also one whose exchange is not known: others may refer to its recipe.
            numbers = resolve(body, self._recent.recipes)
            if numbers is not None:
                self._recent.add(int(body["x"]), numbers)
        live = self._open.get(body["x"]) if "x" in body else None
        if live is None:
            self.fragments += 1
            return None
        if kind == "request":
            live.request, live.numbers = body, numbers
        elif kind == "head":
            live.head = body
        elif kind == "data":
            self._data(live, body)
        elif kind == "end":
            del self._open[body["x"]]
            return self._exchange(int(body["x"]), live, body)
        return None

    def _data(self, live: _Open, body: dict[str, Any]) -> None:
        live.reply.append(_unsqueezed(body["z"], 1 << 30) if "z" in body else body["data"])
        base = int(live.head["at"]) if live.head is not None else 0
        times = body["times"]
        live.chunks += [
            Chunk(base + int(micros) * 1000 + live.shift, int(size))
            for micros, size in zip(times[::2], times[1::2], strict=True)
        ]

    def _part(self, number: int) -> bytes | None:
        known = self._unpacked.get(number)
        if known is not None:
            self._unpacked.move_to_end(number)
            return known
        packed = self._parts.get(number)
        if packed is None:
            return None
        data = _unsqueezed(packed[0], MAX_PART) if packed[1] else packed[0]
        self._unpacked[number] = data
        self._held += len(data)
        while self._held > CACHE_BYTES:
            self._held -= len(self._unpacked.popitem(last=False)[1])
        return data

    def _stored(self, numbers: array[int] | None) -> tuple[bytes, ...] | None:
        if numbers is None:
            return None
        parts = []
        for number in numbers:
            part = self._part(number)
            if part is None:
                return None
            parts.append(part)
        return tuple(parts)

    def _exchange(self, number: int, live: _Open, end: dict[str, Any] | None) -> Exchange:
        shift, request, head, opened = live.shift, live.request, live.head, live.body
        parts = self._stored(live.numbers)
        body = b"".join(parts) if parts is not None else None
        why = str(end["lost"]) if end is not None else "its end is not on record"
        if body is None and request is not None and "new" in request:
            why = why or "parts of the request are lost"
        return Exchange(
            run=self._run or 0,
            number=number,
            opened=int(opened["at"]) + shift,
            method=str(opened["method"]),
            path=str(opened["path"]),
            query=tuple(map(str, opened["query"])),
            wire=opened["wire"],
            headers=_pairs(opened["headers"]),
            ids=_pairs(opened["ids"]),
            credential=opened["credential"],
            connection=int(opened["connection"]),
            asked=int(request["at"]) + shift if request is not None else None,
            body=body,
            head=int(head["at"]) + shift if head is not None else None,
            status=int(head["status"]) if head is not None else None,
            reply_headers=_pairs(head["headers"]) if head is not None else (),
            reply=b"".join(live.reply),
            chunks=tuple(live.chunks),
            ended=int(end["at"]) + shift if end is not None else None,
            cause=str(end["cause"]) if end is not None else "recorder_crash",
            detail=str(end["detail"]) if end is not None else "",
            why=why,
            parts=parts or (),
        )


def _pairs(value: Any) -> Pairs:
    return tuple((str(name), str(text)) for name, text in value)


def _unsqueezed(data: bytes, limit: int) -> bytes:
    decoder = zlib.decompressobj()
    try:
        result = decoder.decompress(data, limit)
    except zlib.error as error:
        raise ValueError(f"compressed data: {error}") from None
    if decoder.unconsumed_tail:
        raise ValueError(f"compressed data grows beyond {limit} bytes")
    return result
