"""The capture's writer in a process of its own, so that no byte of traffic ever waits for Python's lock.

A thread in the recorder takes the queued events every few milliseconds and writes them into a pipe. Bodies go from the
queue into the kernel as they are: neither packed nor joined, which would hold the lock for as long as it copies. The
child (`python -m agentx.recorder.scribe`) unpacks them for its `Writer`. It holds the capture's lock too, ignores the
terminal's signals and ends when the pipe does: what a killed recorder had handed over is still written. A child that is
slow fills the pipe, then the queue; then copies are dropped.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

import msgpack

import agentx
from agentx.recorder.capture import Capture
from agentx.recorder.copies import Copies, Event, Opened, cost
from agentx.recorder.keys import CaptureKey
from agentx.recorder.segments import Durability, Segments
from agentx.recorder.writer import Tally, Writer

PERIOD = 0.01  # s between two looks at the queue: what a killed recorder loses at most
SLICE = 1 << 20  # bytes that are taken from the queue at once: what may wait in the recorder beside it
ALONE = 8 << 10  # bytes from which a body's piece is written behind its message instead of packed into it
BACKLOG = 64 << 20  # bytes that the child takes in before its writer has done with them
_SIZE = struct.Struct("<I")  # of a message
_VECTOR = 1024  # buffers of one write (IOV_MAX of Linux and macOS)


class Scribe:
    """The recorder's end. `start`, then `stop` waits until all is written and gives the writer's counts."""

    def __init__(
        self,
        copies: Copies,
        capture: Capture,
        durability: Durability,
        identity_headers: Sequence[str],
        warn: Callable[[str], None],
    ) -> None:
        self._copies, self._warn = copies, warn
        self._lock_fd = capture.lock_fd
        self._settings = {
            "folder": str(capture.folder),
            "head": {"capture": capture.id, "run": capture.run},
            "durability": durability,
            "key": capture.key.secret,
            "identity": list(identity_headers),
        }
        self._tally: Tally | None = None
        self._dead = self._behind = False
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=each, daemon=True) for each in (self._feed, self._listen)]

    def start(self) -> None:
        root = str(Path(agentx.__file__).parent.parent)
        path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
        self._child = subprocess.Popen(
            [sys.executable, "-m", "agentx.recorder.scribe"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,
            pass_fds=(self._lock_fd,),
        )
        for thread in self._threads:
            thread.start()

    def stop(self) -> Tally | None:
        """The writer's counts; None when it died."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        self._child.wait()
        return self._tally

    def _feed(self) -> None:
        pipe = self._child.stdin
        if pipe is None:
            raise RuntimeError("the child has no pipe")
        self._send(pipe, _packed(self._settings))
        while not self._stopping.wait(PERIOD):
            self._turn(pipe)
        self._turn(pipe)
        pipe.close()

    def _turn(self, pipe: IO[bytes]) -> None:
        while events := self._copies.take(SLICE):
            self._send(pipe, _message(events))
        tally = self._copies.tally
        if not self._behind and (tally.dropped_bytes or tally.unrecorded):
            self._behind = True
            self._warn("agentx record: the capture cannot keep up; traffic goes on, copies are DROPPED and counted")

    def _send(self, pipe: IO[bytes], buffers: list[bytes]) -> None:
        if self._dead:
            return
        try:
            for begin in range(0, len(buffers), _VECTOR):
                _write(pipe.fileno(), buffers[begin : begin + _VECTOR])
        except OSError:
            self._died()

    def _died(self) -> None:
        if not self._dead:
            self._dead = True
            self._warn("agentx record: the writer has ended; traffic goes on, and is NOT RECORDED")

    def _listen(self) -> None:
        """Lines from the child: warnings, and its counts at the end."""
        for line in self._child.stdout or ():
            said = json.loads(line)
            if "warn" in said:
                self._warn(said["warn"])
            else:
                self._tally = Tally(**said["tally"])


def _write(pipe: int, buffers: list[bytes]) -> None:
    """All of some buffers, in one call unless a signal cuts it short. Raises OSError."""
    wrote, whole = os.writev(pipe, buffers), sum(map(len, buffers))
    if wrote < whole:
        rest = memoryview(b"".join(buffers))[wrote:]
        while rest:
            rest = rest[os.write(pipe, rest) :]


def _message(events: Sequence[Event]) -> list[bytes]:
    """Events as buffers for the pipe: one message, and behind it the large pieces of bodies in their order."""
    behind: list[bytes] = []
    fields: list[tuple[Any, ...]] = []
    for event in events:
        if isinstance(event.data, bytes) and len(event.data) >= ALONE:
            behind.append(event.data)
            fields.append((*event[:3], None, len(event.data)))
        else:
            fields.append(event)
    return [*_packed(fields), *behind]


def _packed(value: Any) -> list[bytes]:
    data: bytes = msgpack.packb(value, use_bin_type=True, unicode_errors="surrogatepass")
    return [_SIZE.pack(len(data)), data]


# --- the child ---------------------------------------------------------------------------------------------------


class _Inbox(Copies):
    """The events that have come through the pipe; `put_all` waits while too much lies there."""

    def __init__(self) -> None:
        super().__init__()
        self._inside: list[Event] = []
        self._bytes = 0
        self._changed = threading.Condition()

    def put_event(self, event: Event) -> None:
        with self._changed:
            while self._bytes > BACKLOG:
                self._changed.wait()
            self._inside.append(event)
            self._bytes += cost(event)

    def take(self, most: int | None = None) -> list[Event]:
        with self._changed:
            events, self._inside, self._bytes = self._inside, [], 0
            self._changed.notify()
        return events


def _events(pipe: IO[bytes]) -> Iterator[Event]:
    """The events of all messages; what a cut one has before the cut comes, if its fields are there."""
    while fields := _unpacked(pipe):
        for kind, exchange, at, data, *behind in fields:
            if kind == "open":
                method, target, headers, wire, connection = data
                data = Opened(method, target, [(name, text) for name, text in headers], wire, connection)
            elif behind:
                data = pipe.read(behind[0])
                if len(data) < behind[0]:
                    return
            yield Event(kind, exchange, at, data)


def _unpacked(pipe: IO[bytes]) -> Any:
    """The next message; None where the pipe ends, or inside it."""
    head = pipe.read(_SIZE.size)
    if len(head) < _SIZE.size:
        return None
    size = _SIZE.unpack(head)[0]
    data = pipe.read(size)
    if len(data) < size:
        return None
    return msgpack.unpackb(data, raw=False, use_list=True, unicode_errors="surrogatepass")


def main() -> None:
    """Write what comes through stdin until it ends. A parent that is gone reads no answers."""

    def say(value: dict[str, Any]) -> None:
        try:
            print(json.dumps(value), flush=True)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    settings: dict[str, Any] = _unpacked(sys.stdin.buffer)
    try:
        segments = Segments(Path(settings["folder"]), settings["head"], settings["durability"])
    except OSError as error:
        return say({"warn": f"agentx record: the capture cannot be written: {error.strerror or error}"})
    inbox = _Inbox()
    key = CaptureKey(settings["key"])
    writer = Writer(inbox, segments, key, settings["identity"], lambda text: say({"warn": text}))
    writer.start()
    for event in _events(sys.stdin.buffer):
        inbox.put_event(event)
    writer.stop()
    say({"tally": asdict(writer.tally)})


if __name__ == "__main__":
    os.umask(0o077)
    main()
