"""Records what a server's cache publishes (SGLang's `--kv-events-config`, vLLM's `--kv-events-config`), as it comes.

A thread subscribes and writes; nothing of a payload is read, and nothing of it waits for the run. What comes faster
than it is written is dropped by ZeroMQ at WAITING messages, and is seen as missing numbers. A publisher that is not
there is no error: it is said, and the run goes on. Needs the extra `kv-events`.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from agentx.errors import BadInput
from agentx.frames import FrameWriter, WriteFailed
from agentx.kv_events import KV_EVENTS, VERSION

WAITING = 10_000  # messages that may wait to be written
CONNECT = 1.0  # s that a publisher may take to be there
POLL = 0.1  # s between looks at whether to stop
QUIET = 0.3  # s of silence after which nothing more is expected when the run is over


def check_installed(addresses: Sequence[str]) -> None:
    """Raises BadInput where KV events are wanted and cannot be read."""
    if addresses:
        _zmq()


def _zmq() -> Any:
    try:
        import zmq
        import zmq.utils.monitor
    except ImportError:
        raise BadInput(
            "KV events need pyzmq, which is not installed", hint="pip install 'agentx-replay[kv-events]'"
        ) from None
    return zmq


class KvRecorder:
    """Of the publishers at `addresses` into a run folder; `clock` is the run's."""

    def __init__(self, addresses: Sequence[str], folder: Path, clock: Callable[[], float]) -> None:
        self._addresses, self._clock = list(addresses), clock
        self._path = folder / KV_EVENTS
        self._stop, self._ready = threading.Event(), threading.Event()
        self._there: set[int] = set()
        self._monitors: list[Any] = []
        self._count = [0] * len(addresses)
        self._failed: str | None = None
        self._stopped = 0.0
        self._thread = threading.Thread(target=self._run, name="agentx-kv-events", daemon=True)

    def start(self) -> None:
        """Subscribe; returns when the publishers are there, or CONNECT seconds have passed."""
        self._thread.start()
        self._ready.wait(CONNECT + 5)

    def stop(self) -> list[str]:
        """Take what is still on its way, and end. Returns what is to be said."""
        self._stopped = self._clock()
        self._stop.set()
        self._thread.join()
        notes = [f"KV events could not be written: {self._failed}"] if self._failed else []
        for index, (address, count) in enumerate(zip(self._addresses, self._count, strict=True)):
            if not count:
                what = "was not there" if index not in self._there else "published nothing"
                notes.append(f"no KV events: the publisher at {address} {what}")
        return notes

    def _run(self) -> None:
        zmq = _zmq()
        context = zmq.Context()
        try:
            with contextlib.closing(FrameWriter(self._path)) as file:
                file.write("kv-events", {"version": VERSION, "addresses": self._addresses})
                sockets = [self._subscribed(zmq, context, address) for address in self._addresses]
                self._wait_for(zmq)
                self._ready.set()
                self._take(zmq, sockets, file)
        except (WriteFailed, BadInput, OSError) as error:
            self._failed = str(error)
        finally:
            self._ready.set()
            context.destroy(linger=0)

    def _subscribed(self, zmq: Any, context: Any, address: str) -> Any:
        socket = context.socket(zmq.SUB)
        socket.set_hwm(WAITING)
        socket.subscribe(b"")
        self._monitors.append(socket.get_monitor_socket(zmq.EVENT_HANDSHAKE_SUCCEEDED))
        socket.connect(address)
        return socket

    def _wait_for(self, zmq: Any) -> None:
        deadline = self._clock() + CONNECT
        while len(self._there) < len(self._monitors) and self._clock() < deadline:
            self._look(zmq, 0.02)

    def _look(self, zmq: Any, seconds: float) -> None:
        """Which publishers are there by now."""
        for index, monitor in enumerate(self._monitors):
            if index not in self._there and monitor.poll(int(seconds * 1000)):
                zmq.utils.monitor.recv_monitor_message(monitor)
                self._there.add(index)

    def _take(self, zmq: Any, sockets: Sequence[Any], file: FrameWriter) -> None:
        poller, last = zmq.Poller(), -QUIET
        for socket in sockets:
            poller.register(socket, zmq.POLLIN)
        numbers = {socket: index for index, socket in enumerate(sockets)}
        while not self._stop.is_set() or self._clock() < max(last, self._stopped) + QUIET:
            ready = dict(poller.poll(int(POLL * 1000)))
            for socket in ready:
                for seq, payload in _messages(zmq, socket):
                    index, last = numbers[socket], self._clock()
                    self._count[index] += 1
                    body = {"at": last, "publisher": index, "seq": seq, "payload": payload}
                    file.write("batch", body)
            file.flush()
        self._look(zmq, 0.0)


def _messages(zmq: Any, socket: Any) -> Iterator[tuple[int, bytes]]:
    """(number, payload) of all messages that have come; one of another shape is passed over."""
    while True:
        try:
            parts = socket.recv_multipart(zmq.NOBLOCK)
        except zmq.Again:
            return
        if len(parts) == 3 and len(parts[1]) == 8:
            yield int.from_bytes(parts[1], "big"), parts[2]
