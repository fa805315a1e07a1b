"""Server-sent events from bytes, and back: any chunking in, whole events out, no sockets.

The rules are those of the WHATWG event-stream format. Lines end with CRLF, LF or CR, and with nothing else: U+0085
and U+2028 are data. Everything stays bytes, so a character that is split over two reads cannot break.
"""

from __future__ import annotations

from typing import NamedTuple

_BOM = b"\xef\xbb\xbf"
_DATA_SPACE = b"data: "


class SseEvent(NamedTuple):
    """One dispatched event. A tuple, not a dataclass: one is made per token of every stream."""

    event: str
    data: bytes
    id: str


class SseParser:
    """Feed it what was read, in pieces of any size; it hands back the events that became complete."""

    def __init__(self) -> None:
        self._tail: list[bytes] = []  # of an unfinished line; a list, so that tiny reads stay linear
        self._skip_lf = False
        self._first = True
        self._data: list[bytes] = []
        self._event = ""
        self._id = ""

    def feed(self, data: bytes) -> list[SseEvent]:
        """Events completed by `data`, in order."""
        if self._skip_lf and data:
            # The CR that ended the last read was the first half of a CRLF.
            self._skip_lf = False
            if data[0] == 10:
                data = data[1:]
        end = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
        if end == 0:
            if data:
                self._tail.append(data)
            return []
        self._skip_lf = end == len(data) and data[-1] == 13
        whole, rest = data[:end], data[end:]
        if self._tail:
            whole = b"".join((*self._tail, whole))
        self._tail = [rest] if rest else []
        return self._lines(whole)

    def close(self) -> bool:
        """The stream has ended. An event without its blank line is dropped, as the format asks.

        Returns whether something was dropped, which means that the stream was cut.
        """
        dropped = bool(self._tail or self._data)
        self._tail, self._data, self._event = [], [], ""
        return dropped

    def _lines(self, whole: bytes) -> list[SseEvent]:
        events: list[SseEvent] = []
        if self._first:
            self._first = False
            whole = whole.removeprefix(_BOM)
        if whole.startswith(_DATA_SPACE) and whole.endswith(b"\n\n") and b"\r" not in whole and self._between:
            # What servers send, thousands of times a second: whole events of one data line each.
            plain = whole[6:-2].split(b"\n\ndata: ")
            if whole.count(b"\n") == 2 * len(plain):
                return [SseEvent("message", data, self._id) for data in plain]
        for line in whole.splitlines():  # of bytes: cuts at CR, LF and CRLF only
            if line:
                self._field(line)
            else:
                self._dispatch(events)
        return events

    @property
    def _between(self) -> bool:
        return not self._data and not self._event

    def _dispatch(self, events: list[SseEvent]) -> None:
        if self._data:
            events.append(SseEvent(self._event or "message", b"\n".join(self._data), self._id))
            self._data = []
        self._event = ""

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        # A comment has an empty name; `retry` and unknown fields mean nothing to a reader that never reconnects.


def sse_event(data: bytes) -> bytes:
    """`data` as one event, ready to be written; line breaks inside become one data line each."""
    if b"\n" not in data and b"\r" not in data:
        return b"data: %b\n\n" % data
    lines = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return b"".join(b"data: %b\n" % line for line in lines) + b"\n"
