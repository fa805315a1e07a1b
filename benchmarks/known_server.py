"""A server of chat completions whose times are known: it says when it does what, and keeps a log of what it did.

    python benchmarks/known_server.py --port P [--first S] [--each S]

A reply of n tokens is n events: the first `first` seconds after the request was read whole, each later one `each`
seconds after the one before. With both 0 the whole reply is one write. Times are `time.monotonic`, which on Linux is
the same clock in every process. `GET /log` gives what was done since the last look, as JSON: for each request when it
was read, when its first and its last event were written, how many bytes it had, and how many were in flight then.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import heapq
import json
import multiprocessing
import re
import socket
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

TOKENS = re.compile(rb'"max_(?:completion_)?tokens": ?(\d+)')
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"


class Served(NamedTuple):
    """What the server did with one request: seconds on the monotonic clock; `live`: requests in flight, it included."""

    read: float
    first: float
    last: float
    tokens: int
    bytes: int
    live: int


def event(value: dict[str, object]) -> bytes:
    told = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "known", **value}
    line = b"data: " + json.dumps(told, separators=(",", ":")).encode() + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(line), line)


def token(count: int, prompt: int) -> bytes:
    choice = {"index": 0, "delta": {"content": " Abc"}, "finish_reason": None}
    return event({"choices": [choice], "usage": usage(count, prompt)})


def end(count: int, prompt: int) -> bytes:
    finish = event({"choices": [{"index": 0, "delta": {}, "finish_reason": "length"}]})
    return finish + event({"choices": [], "usage": usage(count, prompt)}) + b"e\r\ndata: [DONE]\n\n\r\n0\r\n\r\n"


def usage(count: int, prompt: int) -> dict[str, int]:
    return {"prompt_tokens": prompt, "completion_tokens": count, "total_tokens": prompt + count}


@dataclass
class Known:
    """What all connections share. One timer at a time, for the event that is due first: cheaper than one for each."""

    first: float
    each: float
    port: int = 0

    def __post_init__(self) -> None:
        self.log: list[Served] = []
        self.live = 0
        self._due: list[tuple[float, int, Connection]] = []
        self._count = 0
        self._timer: asyncio.TimerHandle | None = None

    def at(self, when: float, connection: Connection) -> None:
        """Let the connection write its next event at `when`."""
        self._count += 1
        heapq.heappush(self._due, (when, self._count, connection))
        if self._due[0][1] == self._count:
            self._arm()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(self._due[0][0], self._run) if self._due else None

    def _run(self) -> None:
        now = time.monotonic()
        while self._due and self._due[0][0] <= now:
            _, _, connection = heapq.heappop(self._due)
            connection.write_next()
            now = time.monotonic()
        self._arm()


class Connection(asyncio.Protocol):
    """Reads requests by their length and answers one at a time."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self._held, self._parts, self._missing = b"", list[bytes](), 0
        self._tokens = self._sent = self._prompt = self._bytes = self._live = 0
        self._read = self._first = self._next = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: asyncio.Transport = transport  # type: ignore[assignment]
        self._transport.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._sent < self._tokens:
            self.known.live -= 1
            self._tokens = 0

    def data_received(self, data: bytes) -> None:
        if self._missing:
            self._parts.append(data)
            self._missing -= len(data)
        else:
            self._held += data
            at = self._held.find(b"\r\n\r\n")
            if at < 0:
                return
            head, self._held = self._held[: at + 4], self._held[at + 4 :]
            if head.startswith(b"GET"):
                self._get(head.split(b" ")[1].decode())
                return
            found = re.search(rb"(?i)content-length: *(\d+)", head)
            length = int(found[1]) if found else 0
            self._parts, self._held, self._missing = [self._held], b"", length - len(self._held)
        if not self._missing:
            self._begin(b"".join(self._parts))

    def _begin(self, body: bytes) -> None:
        known, found = self.known, TOKENS.search(body, max(0, len(body) - 4096)) or TOKENS.search(body)
        self._read, self._sent, self._bytes = time.monotonic(), 0, len(body)
        self._tokens, self._prompt = max(1, int(found[1])) if found else 16, max(1, len(body) // 4)
        known.live += 1
        self._live = known.live
        if known.first or known.each:
            self._next = self._read + known.first
            known.at(self._next, self)
            return
        self._first = time.monotonic()
        tokens = b"".join(token(count, self._prompt) for count in range(1, self._tokens + 1))
        self._transport.write(HEAD + tokens + end(self._tokens, self._prompt))
        self._sent = self._tokens
        self._done()

    def write_next(self) -> None:
        """The next event, which is due."""
        if not self._tokens:
            return  # the client has gone
        self._sent += 1
        data = token(self._sent, self._prompt)
        if self._sent == 1:
            self._first = time.monotonic()
            data = HEAD + data
        if self._sent == self._tokens:
            data += end(self._sent, self._prompt)
        self._transport.write(data)
        if self._sent == self._tokens:
            self._done()
        else:
            self._next += self.known.each
            self.known.at(self._next, self)

    def _done(self) -> None:
        self.known.live -= 1
        self.known.log.append(Served(self._read, self._first, time.monotonic(), self._tokens, self._bytes, self._live))

    def _get(self, path: str) -> None:
        if path == "/v1/models":
            body = json.dumps({"object": "list", "data": [{"id": "known", "object": "model"}]}).encode()
        elif path == "/log":
            body = json.dumps(self.known.log).encode()
            self.known.log.clear()
        else:
            self._transport.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            return
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        self._transport.write(head % len(body) + body)


async def serve(known: Known, ready: object = None) -> None:
    """Serve until the process ends; `ready` is a pipe that is told the port."""
    server = await asyncio.get_running_loop().create_server(
        lambda: Connection(known), "127.0.0.1", known.port, backlog=4096
    )
    port = server.sockets[0].getsockname()[1]
    if ready is None:
        print(f"http://127.0.0.1:{port}", flush=True)
    else:
        ready.send(port)  # type: ignore[attr-defined]
    await server.serve_forever()


def _process(ready: object, first: float, each: float, port: int) -> None:
    asyncio.run(serve(Known(first, each, port), ready))


@contextlib.contextmanager
def serving(first: float = 0.0, each: float = 0.0, port: int = 0) -> Iterator[str]:
    """The URL of a server in a process of its own, for as long as the context lasts."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_process, args=(there, first, each, port), daemon=True
    )
    process.start()
    try:
        yield f"http://127.0.0.1:{here.recv()}"
    finally:
        process.terminate()
        process.join()


def served(url: str) -> list[Served]:
    """What the server has done since the last look."""
    with urllib.request.urlopen(f"{url}/log") as answer:
        return [Served(*row) for row in json.load(answer)]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--first", type=float, default=0.0)
    parser.add_argument("--each", type=float, default=0.0)
    args = parser.parse_args()
    asyncio.run(serve(Known(args.first, args.each, args.port)))


if __name__ == "__main__":
    main()
