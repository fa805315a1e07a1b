"""A proxy between two raw sockets: what went over the wire is compared byte by byte, and what was recorded is read."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from agentx.recorder.capture import recording
from agentx.recorder.capture_reader import CaptureReader, Exchange
from agentx.recorder.copies import LIMIT, Copies
from agentx.recorder.proxy import serve
from agentx.recorder.segments import Segments
from agentx.recorder.writer import Writer

WIRES = {"/chat/completions": "chat", "/v1/messages": "messages", "/responses": "responses"}
Reader, StreamWriter = asyncio.StreamReader, asyncio.StreamWriter
Handler = Callable[[Reader, StreamWriter], Awaitable[None]]


async def head_of(reader: Reader) -> bytes:
    """A request's or response's head, with its blank line."""
    return await reader.readuntil(b"\r\n\r\n")


async def body_of(reader: Reader, head: bytes) -> bytes:
    """A body by its Content-Length or chunks; chunks are joined."""
    lower = head.lower()
    if b"transfer-encoding: chunked" in lower:
        parts = []
        while size := int((await reader.readline()).split(b";")[0], 16):
            parts.append(await reader.readexactly(size))
            await reader.readline()
        await reader.readline()
        return b"".join(parts)
    if b"content-length:" in lower:
        return await reader.readexactly(int(lower.split(b"content-length:")[1].split(b"\r\n")[0]))
    return b""


@dataclass
class Rig:
    """A running recorder: its port, and the capture's folder."""

    folder: Path
    copies: Copies
    writer: Writer
    port: int = 0
    warnings: list[str] = field(default_factory=list)
    _end: Callable[[], Awaitable[None]] | None = None

    async def connect(self) -> tuple[Reader, StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 26)

    async def ask(self, request: bytes) -> tuple[bytes, bytes]:
        """(head, body) of the answer to one request on a connection of its own."""
        reader, writer = await self.connect()
        writer.write(request)
        head = await head_of(reader)
        body = await body_of(reader, head)
        writer.close()
        return head, body

    async def exchanges(self) -> list[Exchange]:
        """End the recording, and read it."""
        if self._end is not None:
            await self._end()
            self._end = None
        return list(CaptureReader(self.folder))


def post(path: str, body: bytes, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "Host: x", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


@contextlib.asynccontextmanager
async def upstream_of(handler: Handler) -> AsyncIterator[int]:
    """A raw server; its port."""
    tasks: set[asyncio.Task[None]] = set()

    async def run(reader: Reader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await handler(reader, writer)
        tasks.discard(task)
        writer.close()

    server = await asyncio.start_server(run, "127.0.0.1", 0, limit=1 << 26)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.asynccontextmanager
async def recorder(folder: Path, upstream: int | str, limit: int = LIMIT) -> AsyncIterator[Rig]:
    """A proxy to an upstream's port, recording into `folder`."""
    url = upstream if isinstance(upstream, str) else f"http://127.0.0.1:{upstream}"
    with recording(folder / "cap", {"profile": "test"}, folder / "test.key") as capture:
        copies, warnings = Copies(limit), []
        segments = Segments(capture.folder, {"capture": capture.id, "run": capture.run}, "second")
        writer = Writer(copies, segments, capture.key, ["x-mine"], warnings.append)
        rig = Rig(capture.folder, copies, writer, warnings=warnings)
        stop, started = asyncio.Event(), asyncio.get_running_loop().create_future()
        serving = asyncio.ensure_future(
            serve(url, copies, WIRES, host="127.0.0.1", port=0, ready=started.set_result, stop=stop)
        )
        writer.start()
        rig.port = int((await started).rsplit(":", 1)[1])

        async def end() -> None:
            stop.set()
            await serving
            writer.stop()

        rig._end = end
        try:
            yield rig
        finally:
            if rig._end is not None:
                await rig._end()


@dataclass
class Proxied:
    """An upstream with a raw handler behind a recorder, made in one line: `async with proxied(handler) as rig`."""

    folder: Path

    @contextlib.asynccontextmanager
    async def __call__(self, handler: Handler, limit: int = LIMIT) -> AsyncIterator[Rig]:
        async with upstream_of(handler) as port, recorder(self.folder, port, limit) as rig:
            yield rig
