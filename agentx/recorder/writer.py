"""The capture's side of recording: a thread (of the process in `scribe.py`) that writes events as frames, in groups.

Frames, in the order in which they may occur (x is the exchange's number in its run, times are nanoseconds of one
monotonic clock, whose wall-clock anchors are the `clock` frames):

    clock    {wall, mono}
    open     {x, at, method, path, query, wire, headers, ids, credential, connection}
    part     {id, digest, data | z}            a stretch of request bodies; always before what names it
    request  {x, at, bytes, base, keep, new, tail | why}      the whole request, as a recipe of parts
    head     {x, at, status, headers}
    data     {x, data | z, times: [µs since the head, bytes, …]}
    end      {x, at, cause, detail, request_bytes, response_bytes, lost}

Credentials are struck out of bodies; a compressed body is decoded to look for them, and left out when it has one.
A write that fails loses its group, which is counted; the next group is tried again, and starts its parts afresh.
"""

from __future__ import annotations

import sys
import threading
import time
import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from agentx.frames import encode
from agentx.recorder.copies import Copies, Event, Opened
from agentx.recorder.decoding import Undecodable, decoded
from agentx.recorder.headers import (
    PLAIN_REQUEST,
    PLAIN_RESPONSE,
    Scrubber,
    credential,
    identities,
    kept,
    kept_target,
    secrets,
)
from agentx.recorder.keys import CaptureKey
from agentx.recorder.parts import Parts
from agentx.recorder.segments import Segments

GROUP = 0.05  # s between two groups: what a killed writer loses at most
ANCHOR = 60.0  # s between two clock anchors
CALM = 5.0  # s without a failed write after which all is said to be well: a full disk still takes small groups
PIECE = 256 << 10  # bytes of a response that are collected before they are written
MAX_BODY = 256 << 20  # bytes of one body that are kept; what is longer is cut there, and marked
MAX_CODED = 16 << 20  # bytes of a compressed response, which waits for its end
MAX_SEARCHED = 64 << 20  # bytes that a compressed body may become when it is searched for credentials
SQUEEZE = 512  # bytes from which compressing is worth its time


@dataclass(slots=True)
class Tally:
    """What the writer counted."""

    recorded: int = 0  # exchanges whose end is on record
    incomplete: int = 0  # of these, ones that something is missing of
    bytes: int = 0  # written
    lost_frames: int = 0
    failures: int = 0  # writes that failed
    struck: int = 0  # credentials that were struck out of bodies


@dataclass(slots=True)
class _Live:
    """An exchange that has not ended."""

    opened: Opened
    secrets: Sequence[bytes]
    request: list[bytes] = field(default_factory=list)
    request_bytes: int = 0
    asked: bool = False
    scrubber: Scrubber = field(default_factory=lambda: Scrubber(()))
    coding: str = ""
    head_at: int = 0
    status: int = 0
    pieces: list[bytes] = field(default_factory=list)
    held: int = 0
    times: list[int] = field(default_factory=list)
    response_bytes: int = 0
    noted: bool = False  # its beginning is on the disk
    why: str = ""  # what is missing of the copy


class Writer:
    """Owns the segments while a recorder runs. `start`; `stop` writes what is left and raises what ended the thread."""

    def __init__(
        self,
        copies: Copies,
        segments: Segments,
        key: CaptureKey,
        identity_headers: Sequence[str] = (),
        warn: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True),
    ) -> None:
        self.tally = Tally()
        self._copies, self._segments, self._key = copies, segments, key
        self._more, self._warn = tuple(identity_headers), warn
        self._parts = Parts()
        self._live: dict[int, _Live] = {}
        self._frames: list[bytes] = []
        self._ended = [0, 0]  # exchanges of this group: all, incomplete
        self._anchored: float | None = None
        self._failing = False
        self._failed_at = 0.0
        self._handlers: dict[str, Callable[[_Live, Event], None]] = {
            "request": self._request,
            "asked": self._asked,
            "head": self._head,
            "data": self._data,
            "end": self._end,
        }
        self._stopping = threading.Event()
        self._outcome: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="agentx-capture", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join()
        self._outcome.result()

    def _run(self) -> None:
        try:
            while not self._stopping.wait(GROUP):
                self.group()
            self.group()
            self._close()
            self._outcome.set_result(None)
        except BaseException as error:  # carried over to the thread that stops this one, whatever it is
            self._warn(f"agentx record: a bug ended the writing: {error!r}; traffic goes on, and is NOT RECORDED")
            self._outcome.set_exception(error)

    def _close(self) -> None:
        try:
            self._segments.close()
        except OSError as error:
            self._failed(error)

    def group(self) -> None:
        """Write everything that waits, as one group."""
        for event in self._copies.take():
            self._feed(event)
        if self._frames:
            self._anchor()
            self._write()
        try:
            self._segments.tick()
        except OSError as error:
            self._failed(error)

    def _anchor(self) -> None:
        now = time.monotonic()
        if self._anchored is None or now - self._anchored >= ANCHOR:
            self._anchored = now
            self._frames.insert(0, encode("clock", {"wall": time.time_ns(), "mono": time.monotonic_ns()}))

    def _write(self) -> None:
        frames, self._frames = self._frames, []
        (ended, incomplete), self._ended = self._ended, [0, 0]
        data = b"".join(frames)
        try:
            self._segments.append(data)
        except OSError as error:
            self.tally.lost_frames += len(frames)
            self._failed(error)
            return
        for live in self._live.values():
            live.noted = True
        self.tally.bytes += len(data)
        self.tally.recorded += ended
        self.tally.incomplete += incomplete
        if self._failing and time.monotonic() - self._failed_at >= CALM:
            self._failing = False
            self._warn("agentx record: the capture is being written again")

    def _failed(self, error: OSError) -> None:
        """The disk is full or gone: traffic goes on, what was lost is counted and said once.

        An exchange whose beginning is lost is given up: what would still come of it belongs to nothing.
        """
        self.tally.failures += 1
        self._failed_at = time.monotonic()
        self._parts.forget()
        self._anchored = None
        self._live = {number: live for number, live in self._live.items() if live.noted}
        for live in self._live.values():
            live.why = live.why or "the disk failed"
        if not self._failing:
            self._failing = True
            what = error.strerror or str(error)
            self._warn(f"agentx record: the capture cannot be written: {what}; traffic goes on, and is NOT RECORDED")

    # --- events ------------------------------------------------------------------------------------------------

    def _feed(self, event: Event) -> None:
        if event.kind == "open":
            self._open(event)
            return
        live = self._live.get(event.exchange)
        if live is None:
            return
        self._handlers[event.kind](live, event)

    def _frame(self, kind: str, body: dict[str, Any]) -> None:
        self._frames.append(encode(kind, body))

    def _open(self, event: Event) -> None:
        opened: Opened = event.data
        live = _Live(opened, secrets(opened.headers, opened.target, self._more))
        live.scrubber = Scrubber(live.secrets)
        self._live[event.exchange] = live
        path, query = kept_target(opened.target)
        who = credential(opened.headers)
        self._frame(
            "open",
            {
                "x": event.exchange,
                "at": event.at,
                "method": opened.method,
                "path": self._clean(live, path),
                "query": [self._clean(live, part) for part in query],
                "wire": opened.wire,
                "headers": [list(pair) for pair in self._clean_pairs(live, kept(opened.headers, PLAIN_REQUEST))],
                "ids": [[name, self._key.pseudonym("id", value)] for name, value in self._identities(opened)],
                "credential": self._key.pseudonym("credential", who) if who else None,
                "connection": opened.connection,
            },
        )

    def _identities(self, opened: Opened) -> list[tuple[str, str]]:
        return identities(opened.headers, self._more)

    def _clean(self, live: _Live, text: str) -> str:
        """A text without the exchange's credentials, as UTF-8 that can be stored."""
        scrubber = Scrubber(live.secrets)
        data = scrubber.feed(text.encode("utf-8", "surrogateescape")) + scrubber.close()
        return data.decode("utf-8", "replace")

    def _clean_pairs(self, live: _Live, pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
        return [(name, self._clean(live, value)) for name, value in pairs]

    def _request(self, live: _Live, event: Event) -> None:
        data = event.data
        live.request_bytes += data if isinstance(data, int) else len(data)
        if isinstance(data, int) or live.request_bytes > MAX_BODY:
            self._missing(live, _why(live, data))
        else:
            live.request.append(data)

    def _missing(self, live: _Live, why: str) -> None:
        live.why = live.why or why

    def _asked(self, live: _Live, event: Event) -> None:
        live.asked = True
        self._request_frame(live, event)

    def _request_frame(self, live: _Live, event: Event) -> None:
        body = b"".join(live.request)
        live.request = []
        frame: dict[str, Any] = {"x": event.exchange, "at": event.at, "bytes": live.request_bytes}
        if live.opened.wire is None:
            self._frame("request", frame)
            return
        coding = _header(live.opened.headers, "content-encoding")
        clean = self._struck(live, body, coding)
        if len(body) != live.request_bytes or clean is None:
            self._missing(live, "a credential in a compressed body")
            self._frame("request", {**frame, "why": live.why})
            return
        new, recipe = self._parts.add(event.exchange, clean)
        for number, part in new:
            self._frame("part", {"id": number, "digest": self._key.digest("part", part), **_squeezed(part)})
        self._frame("request", {**frame, **recipe.body()})

    def _struck(self, live: _Live, body: bytes, coding: str) -> bytes | None:
        """The body without the exchange's credentials; None when it is compressed and has one."""
        if not live.secrets:
            return body
        if coding not in ("", "identity"):
            try:
                plain = decoded(body, coding, MAX_SEARCHED)
            except Undecodable:
                return None if live.status >= 400 else body  # an error is what echoes a credential
            return None if any(secret in plain for secret in live.secrets) else body
        scrubber = Scrubber(live.secrets)
        clean = scrubber.feed(body) + scrubber.close()
        self.tally.struck += scrubber.struck
        return clean

    def _head(self, live: _Live, event: Event) -> None:
        status, headers = event.data
        live.head_at, live.status = event.at, status
        live.coding = _header(headers, "content-encoding")
        pairs = self._clean_pairs(live, kept(headers, PLAIN_RESPONSE))
        self._frame(
            "head", {"x": event.exchange, "at": event.at, "status": status, "headers": [list(pair) for pair in pairs]}
        )

    def _data(self, live: _Live, event: Event) -> None:
        data = event.data
        size = data if isinstance(data, int) else len(data)
        live.response_bytes += size
        live.times += [(event.at - live.head_at) // 1000, size]
        if isinstance(data, int) or live.response_bytes > MAX_BODY:
            self._missing(live, _why(live, data))
            if len(live.times) > PIECE:
                self._piece(live, event.exchange)
            return
        live.pieces.append(data)
        live.held += size
        if live.coding in ("", "identity"):
            if live.held > PIECE:
                self._piece(live, event.exchange)
        elif live.secrets and live.held > MAX_CODED:
            self._missing(live, "a compressed response too long to search for credentials")
            live.pieces, live.held = [], 0
        elif not live.secrets and live.held > PIECE:
            self._piece(live, event.exchange)

    def _piece(self, live: _Live, exchange: int, last: bool = False) -> None:
        """Write what was collected of a response."""
        body = b"".join(live.pieces)
        if live.coding in ("", "identity"):
            body = live.scrubber.feed(body) + (live.scrubber.close() if last else b"")
        elif live.secrets:
            clean = self._struck(live, body, live.coding)
            if clean is None:
                self._missing(live, "a credential in a compressed body")
            body = clean or b""
        times, live.pieces, live.held, live.times = live.times, [], 0, []
        if body or times:
            self._frame("data", {"x": exchange, **_squeezed(body), "times": times})

    def _end(self, live: _Live, event: Event) -> None:
        cause, detail = event.data
        if not live.asked and live.opened.wire is not None:
            self._missing(live, "the request was cut")
            self._request_frame(live, event)
        self._piece(live, event.exchange, last=True)
        self.tally.struck += live.scrubber.struck
        self._ended[0] += 1
        self._ended[1] += bool(live.why)
        del self._live[event.exchange]
        self._frame(
            "end",
            {
                "x": event.exchange,
                "at": event.at,
                "cause": cause,
                "detail": self._clean(live, detail),
                "request_bytes": live.request_bytes,
                "response_bytes": live.response_bytes,
                "lost": live.why,
            },
        )


def _why(live: _Live, data: bytes | int) -> str:
    """Why bytes are missing of a copy; nothing is missing where none was wanted."""
    if live.opened.wire is None:
        return ""
    return "the writer was behind" if isinstance(data, int) else f"a body over {MAX_BODY} bytes"


def _header(headers: Sequence[tuple[str, str]], wanted: str) -> str:
    return next((value.strip().lower() for name, value in headers if name.lower() == wanted), "")


def _squeezed(data: bytes) -> dict[str, bytes]:
    """A body field: `data`, or `z` where compressing it pays."""
    if len(data) >= SQUEEZE:
        packed = zlib.compress(data, 1)
        if len(packed) < len(data) * 9 // 10:
            return {"z": packed}
    return {"data": data}
