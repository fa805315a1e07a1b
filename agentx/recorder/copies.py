"""The traffic's side of recording: copies go into a bounded queue, or are dropped and counted; nothing ever waits.

The traffic's side appends, the writer's thread takes whatever is there every few milliseconds. There is no lock
between them (a deque's ends are atomic), and each of the two byte counts is changed by one side alone. The traffic's
side is one thread at a time: the proxy's loop, or whoever holds the lock of `sdk.py`. When the
writer is behind by `limit` bytes, bodies are replaced by their lengths; at twice that, exchanges are not noted at all.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, get_args

LIMIT = 64 << 20  # bytes of copies that may wait
EVENT_BYTES = 200  # what one event costs beside its data
Cause = Literal["done", "client_abort", "upstream_abort", "upstream_unreachable", "refused", "recorder_stopped"]
CAUSES: tuple[Cause, ...] = get_args(Cause)
Kind = Literal["open", "request", "asked", "head", "data", "end"]


# The last event of a stream. Clients close the connection when they have read it, without waiting for the body's end.
_LAST_EVENTS = (b"[DONE]", b'"message_stop"')
_LAST_BYTES = 128


class Event(NamedTuple):
    """One thing that happened to an exchange, at `at` nanoseconds on the monotonic clock.

    request, data: the bytes that passed, or only their number where they are not kept. asked: the request is whole.
    """

    kind: Kind
    exchange: int
    at: int
    data: Any


class Opened(NamedTuple):
    """What is known when a request's head is there. Header values are in the clear: the writer strikes them out."""

    method: str
    target: str
    headers: Sequence[tuple[str, str]]
    wire: str | None
    connection: int


@dataclass(slots=True)
class Tally:
    """What the traffic's side counted; bytes are those of bodies."""

    exchanges: int = 0
    calls: int = 0  # of them, on a path that holds model calls
    answered: int = 0  # of these, with a status of 2xx
    ends: Counter[str] = field(default_factory=Counter)
    request_bytes: int = 0
    response_bytes: int = 0
    dropped_bytes: int = 0
    unrecorded: int = 0  # exchanges that left no trace in the capture


class Copies:
    """The queue. `take` is the writer's end, all else the proxy's."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.tally = Tally()
        self._limit = limit
        self._events: deque[Event] = deque()
        self._put = 0
        self._taken = 0

    @property
    def waiting(self) -> int:
        """Bytes that the writer has not taken yet."""
        return self._put - self._taken

    def take(self, most: int | None = None) -> list[Event]:
        """Events that wait, in order: all, or as many as it takes to reach `most` bytes."""
        events: list[Event] = []
        begun = self._taken
        while self._events and (most is None or self._taken - begun < most):
            event = self._events.popleft()
            self._taken += cost(event)
            events.append(event)
        return events

    def put(self, kind: Kind, exchange: int, data: Any) -> None:
        event = Event(kind, exchange, time.monotonic_ns(), data)
        self._put += cost(event)
        self._events.append(event)

    def piece(self, kind: Kind, exchange: int, data: bytes, wanted: bool) -> None:
        """A piece of a body, or its length where it is not wanted or has no room; this is what each chunk costs."""
        waiting, kept, size = self._put - self._taken, data if wanted else None, len(data)
        if wanted and waiting + size > self._limit:
            self.tally.dropped_bytes += size
            kept = None
        if waiting <= 2 * self._limit:
            self._put += EVENT_BYTES + (0 if kept is None else size)
            self._events.append(Event(kind, exchange, time.monotonic_ns(), size if kept is None else kept))

    def open(self, opened: Opened) -> Copy:
        self.tally.exchanges += 1
        silent = self.full
        if silent:
            self.tally.unrecorded += 1
        return Copy(self, self.tally.exchanges, opened, silent)

    @property
    def full(self) -> bool:
        """Whether not even an event without data may be added."""
        return self.waiting > 2 * self._limit


def cost(event: Event) -> int:
    """Bytes that an event is reckoned at."""
    return EVENT_BYTES + (len(event.data) if isinstance(event.data, bytes) else 0)


class Copy:
    """The copy of one exchange. Every method returns at once, whatever the writer and its disk are doing."""

    def __init__(self, copies: Copies, exchange: int, opened: Opened, silent: bool) -> None:
        self._copies = copies
        self._exchange = exchange
        self._wanted = opened.wire is not None
        copies.tally.calls += self._wanted
        self._silent = silent
        self._ended = False
        self._last = b""
        self._put("open", opened)

    def request(self, data: bytes) -> None:
        self._copies.tally.request_bytes += len(data)
        self._piece("request", data)

    def asked(self) -> None:
        self._put("asked", None)

    def head(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        self._copies.tally.answered += self._wanted and 200 <= status < 300
        self._put("head", (status, headers))

    def data(self, data: bytes) -> None:
        self._copies.tally.response_bytes += len(data)
        self._last = data
        self._piece("data", data)

    def end(self, cause: Cause, detail: str = "") -> None:
        """The exchange is over; only the first call counts. A client that leaves after the last event was done."""
        if cause == "client_abort" and any(event in self._last[-_LAST_BYTES:] for event in _LAST_EVENTS):
            cause = "done"
        if not self._ended:
            self._ended = True
            self._copies.tally.ends[cause] += 1
            self._put("end", (cause, detail))

    def _put(self, kind: Kind, data: Any) -> None:
        if not self._silent:
            self._copies.put(kind, self._exchange, data)

    def _piece(self, kind: Kind, data: bytes) -> None:
        if not self._silent:
            self._copies.piece(kind, self._exchange, data, self._wanted)
        elif self._wanted:
            self._copies.tally.dropped_bytes += len(data)
