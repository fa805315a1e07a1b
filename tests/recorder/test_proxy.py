"""Everything passes as it came, whatever it is; what ends on one side ends on the other."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import gzip
import hashlib
import json
import socket
import struct
import zlib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientResponse, web
from aiohttp.client_proto import ResponseHandler
from proxying import Handler, Proxied, Reader, StreamWriter, body_of, head_of, post, recorder

from agentx.recorder import proxy as proxy_module

EVENTS = (
    b'event: message_start\ndata: {"type":"message_start"}\n\n',
    b": ping\n\n",
    'data: {"t":"a\u0085b\u2028c\U0001f600"}\r\n\r\n'.encode(),
    b"data:no-space\n\n\n",
    b"data: 1\r\r",
    b"data: [DONE]\n\n",
)
STREAM = b"".join(EVENTS)


def answering(*writes: bytes, head: bytes = b"", pause: float = 0.0) -> Handler:
    """An upstream that reads each request whole and answers with the same writes."""

    async def handler(reader: Reader, writer: StreamWriter) -> None:
        while True:
            await body_of(reader, await head_of(reader))
            for data in (head, *writes) if head else writes:
                writer.write(data)
                await writer.drain()
                await asyncio.sleep(pause)

    return handler


def with_length(body: bytes, *headers: str) -> bytes:
    lines = ["HTTP/1.1 200 OK", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def chunked(parts: Sequence[bytes]) -> list[bytes]:
    return [b"%x\r\n%b\r\n" % (len(part), part) for part in parts] + [b"0\r\n\r\n"]


def cut(data: bytes, size: int) -> list[bytes]:
    return [data[i : i + size] for i in range(0, len(data), size)]


# STREAM and REQUEST as `brotli` 1.2.1 and `zstandard` 0.25.0 compress them: nothing here decodes them.
STREAM_BR = bytes.fromhex(
    "1b8100009c09f186672ca004a60bbc96e5addff6a55c17d44b5530040ddd6c8ad0355581b8559770a689c3ebe4c0e1f66fb7a4a2d4520f"
    "21701bf27baa0ba2e30a6c48a68813fdc8e4593645e0c305c8d02ad813c5f4e4f62fbfbbb90ca6dadd56c6447b33c3f024710200"
)
STREAM_ZSTD = bytes.fromhex(
    "28b52ffd20824d030074056576656e743a206d6573736167655f73746172740a646174613a207b2274797065223a22227d0a0a3a207069"
    "6e670a223a2261c28562e280a863f09f9880227d0d0a0d6e6f2d73706163650a310d0d5b444f4e455d0a0a05002c6344458ea0065b6af3"
    "04877a02"
)
REQUEST = b'{"messages":[{"a":1},{"b":2}]}' * 20
REQUEST_BR = bytes.fromhex("1b5702e82d0eece6cc6f4485c2cdf7e2154b91b9bd0a130b9deceb62e91899ad3d550985a5d1628e3e0db4b4")
REQUEST_ZSTD = bytes.fromhex(
    "28b52ffd605801350100f07b226d65737361676573223a5b7b2261223a317d2c7b2262223a327d5d7d0100de08957202"
)
STREAMS = {
    "identity": STREAM,
    "gzip": gzip.compress(STREAM),
    "deflate": zlib.compress(STREAM),
    "br": STREAM_BR,
    "zstd": STREAM_ZSTD,
    "unknown": bytes(byte ^ 0x5A for byte in STREAM),
}
REQUESTS = {
    "identity": REQUEST,
    "gzip": gzip.compress(REQUEST),
    "deflate": zlib.compress(REQUEST),
    "br": REQUEST_BR,
    "zstd": REQUEST_ZSTD,
}


@pytest.mark.parametrize("coding", STREAMS)
@pytest.mark.parametrize("size", [1, 2, 3, 7, 1 << 20])
@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
async def test_a_stream_arrives_byte_by_byte_as_it_was_sent(
    proxied: Proxied, coding: str, size: int, framing: str
) -> None:
    """R3, R4: blank lines and event names too."""
    body = STREAMS[coding]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: %b\r\n" % coding.encode()
    parts = cut(body, size)
    if framing == "chunked":
        head, parts = head + b"Transfer-Encoding: chunked\r\n\r\n", chunked(parts)
    elif framing == "length":
        head += b"Content-Length: %d\r\n\r\n" % len(body)
    else:
        head += b"Connection: close\r\n\r\n"

    async def handler(reader: Reader, writer: StreamWriter) -> None:
        await body_of(reader, await head_of(reader))
        writer.write(head)
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0)

    async with proxied(handler) as rig:
        got_head, got = await rig.ask(post("/v1/messages", b'{"model":"m"}'))
        assert hashlib.sha256(got).digest() == hashlib.sha256(body).digest()
        assert f"content-encoding: {coding}".encode() in got_head.lower()
        (exchange,) = await rig.exchanges()
    assert exchange.reply == body
    assert (exchange.cause, exchange.why, exchange.status) == ("done", "", 200)
    assert sum(chunk.bytes for chunk in exchange.chunks) == len(body)


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
@pytest.mark.parametrize("coding", REQUESTS)
async def test_a_request_arrives_as_it_was_sent(proxied: Proxied, size: int, coding: str) -> None:
    """R2's kind: chunked or not, compressed or not, it is neither decoded nor joined."""
    body = REQUESTS[coding]
    seen: list[bytes] = []

    async def handler(reader: Reader, writer: StreamWriter) -> None:
        head = await head_of(reader)
        seen.extend([head, await body_of(reader, head)])
        writer.write(with_length(b"{}"))

    async with proxied(handler) as rig:
        head = b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Encoding: %b\r\n" % coding.encode()
        await rig.ask(head + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(chunked(cut(body, size))))
        (exchange,) = await rig.exchanges()
    assert seen[1] == body
    assert f"content-encoding: {coding}".encode() in seen[0].lower()
    assert exchange.body == body


async def test_events_are_passed_on_when_they_come(proxied: Proxied) -> None:
    """R1, R24: the client has an event before the upstream sends the next; nothing waits for the end."""
    gate = asyncio.Semaphore(0)

    async def handler(reader: Reader, writer: StreamWriter) -> None:
        await body_of(reader, await head_of(reader))
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for event in chunked(EVENTS):
            writer.write(event)
            await writer.drain()
            await gate.acquire()

    async with proxied(handler) as rig:
        reader, writer = await rig.connect()
        writer.write(post("/v1/messages", b"{}"))
        await head_of(reader)
        for event in EVENTS:
            size = int(await reader.readline(), 16)
            assert await reader.readexactly(size + 2) == event + b"\r\n"
            gate.release()
        gate.release()
        writer.close()
        (exchange,) = await rig.exchanges()
    assert exchange.reply == STREAM
    assert len(exchange.chunks) == len(EVENTS)


async def test_the_upload_goes_up_before_the_client_has_sent_all_of_it(proxied: Proxied) -> None:
    """R2: 8 MB; the upstream has the first half while the client still holds the second."""
    half = b"x" * (4 << 20)
    got_half = asyncio.Event()

    async def handler(reader: Reader, writer: StreamWriter) -> None:
        await head_of(reader)
        await reader.readexactly(len(half) - 100_000)
        got_half.set()
        await reader.readexactly(len(half) + 100_000)
        writer.write(with_length(b"{}"))

    async with proxied(handler) as rig:
        reader, writer = await rig.connect()
        writer.write(b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % (2 * len(half)))
        writer.write(half)
        await asyncio.wait_for(got_half.wait(), 5)
        writer.write(half)
        assert b"200 OK" in await head_of(reader)
        writer.close()
        (exchange,) = await rig.exchanges()
    assert exchange.body == half + half


async def test_100_continue_is_answered_at_once_and_not_passed_on(proxied: Proxied) -> None:
    """R23."""
    seen: list[bytes] = []

    async def handler(reader: Reader, writer: StreamWriter) -> None:
        head = await head_of(reader)
        seen.extend([head, await body_of(reader, head)])
        writer.write(with_length(b"{}"))

    async with proxied(handler) as rig:
        reader, writer = await rig.connect()
        body = b"y" * (2 << 20)
        request = post("/v1/messages", body, "Expect: 100-continue")
        writer.write(request[: -len(body)])
        assert (await head_of(reader)).startswith(b"HTTP/1.1 100")
        writer.write(body)
        assert (await head_of(reader)).startswith(b"HTTP/1.1 200")
        writer.close()
    assert seen[1] == body
    assert b"expect" not in seen[0].lower()


async def test_head_options_and_get_on_one_connection(proxied: Proxied) -> None:
    """R22: a HEAD's gzip header has no body behind it; the connection goes on."""
    seen: list[bytes] = []

    async def handler(reader: Reader, writer: StreamWriter) -> None:
        while True:
            head = await head_of(reader)
            seen.append(head)
            if head.startswith(b"HEAD"):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 999\r\n\r\n")
            elif head.startswith(b"OPTIONS"):
                writer.write(b"HTTP/1.1 204 No Content\r\nAllow: GET\r\n\r\n")
            else:
                writer.write(with_length(b"hello"))

    async with proxied(handler) as rig:
        reader, writer = await rig.connect()
        writer.write(b"HEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
        head = await head_of(reader)
        assert b"content-encoding: gzip" in head.lower()
        assert b"content-length: 999" in head.lower()
        writer.write(b"OPTIONS /v1/models HTTP/1.1\r\nHost: x\r\n\r\n")
        assert (await head_of(reader)).startswith(b"HTTP/1.1 204")
        writer.write(b"GET /v1/models?a=%2F&b HTTP/1.1\r\nHost: x\r\n\r\n")
        assert await body_of(reader, await head_of(reader)) == b"hello"
        writer.close()
        exchanges = await rig.exchanges()
    assert seen[2].startswith(b"GET /v1/models?a=%2F&b HTTP/1.1")
    assert [(e.method, e.wire, e.body, e.reply) for e in exchanges] == [
        ("HEAD", None, None, b""),
        ("OPTIONS", None, None, b""),
        ("GET", None, None, b""),  # no model call: noted, its bodies not kept
    ]
    assert len({exchange.connection for exchange in exchanges}) == 1


async def test_headers_pass_with_order_case_and_duplicates(proxied: Proxied) -> None:
    """R11, R26: nothing invented, nothing joined, 32 KB of one value; only the connection's own are dropped."""
    long = "z" * (32 << 10)
    seen: list[bytes] = []

    async def handler(reader: Reader, writer: StreamWriter) -> None:
        seen.append(await head_of(reader))
        lines = ["HTTP/1.1 299 Odd", "X-B: 1", "x-a: 2", "X-B: 3", f"X-Long: {long}", "Set-Cookie: a", "set-cookie: b"]
        writer.write("\r\n".join([*lines, "Keep-Alive: timeout=1", "Content-Length: 2", "", "ok"]).encode())

    async with proxied(handler) as rig:
        lines = ["GET /x HTTP/1.1", "Host: client", "X-B: 1", "x-a: 2", "x-b: 3", f"Cookie: {long}"]
        lines += ["Connection: keep-alive, X-Hop", "X-Hop: 1", "TE: trailers"]
        head, _ = await rig.ask("\r\n".join([*lines, "", ""]).encode())
    up = seen[0].decode().split("\r\n")
    assert up[1] == f"Host: 127.0.0.1:{up[1].rsplit(':', 1)[1]}"
    assert up[2:-2] == ["X-B: 1", "x-a: 2", "X-B: 3", f"Cookie: {long}"]  # spelled as at first, and none is lost
    assert head.decode().split("\r\n")[:-2] == [
        "HTTP/1.1 299 Odd", "X-B: 1", "x-a: 2", "X-B: 3", f"X-Long: {long}", "Set-Cookie: a", "Set-Cookie: b",
        "Content-Length: 2",
    ]  # fmt: skip


async def test_a_body_without_a_content_type_keeps_none(proxied: Proxied) -> None:
    """R11."""
    async with proxied(answering(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\ndata: 1\n\n")) as rig:
        head, body = await rig.ask(post("/v1/messages", b"{}"))
    assert body == b"data: 1\n\n"
    assert b"content-type" not in head.lower()
    assert b"server" not in head.lower()


async def test_an_unknown_path_is_passed_verbatim(proxied: Proxied) -> None:
    """R32: random bytes to a path that is no model call."""
    seen: list[bytes] = []

    async def handler(reader: Reader, writer: StreamWriter) -> None:
        head = await head_of(reader)
        seen.extend([head, await body_of(reader, head)])
        writer.write(with_length(bytes(range(256))))

    async with proxied(handler) as rig:
        _, body = await rig.ask(post("/some%2Fthing//..//x?q=%00", bytes(range(255, -1, -1))))
        (exchange,) = await rig.exchanges()
    assert seen[0].startswith(b"POST /some%2Fthing//..//x?q=%00 HTTP/1.1")
    assert seen[1] == bytes(range(255, -1, -1))
    assert body == bytes(range(256))
    assert (exchange.wire, exchange.body, exchange.reply) == (None, None, b"")


async def test_websocket_is_answered_426_and_http_goes_on(proxied: Proxied) -> None:
    """R27."""
    async with proxied(answering(with_length(b"{}"))) as rig:
        upgrade = b"GET /v1/responses HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
        head, _ = await rig.ask(upgrade)
        assert head.startswith(b"HTTP/1.1 426 ")
        head, _ = await rig.ask(post("/v1/responses", b"{}"))
        assert head.startswith(b"HTTP/1.1 200 ")
        exchanges = await rig.exchanges()
    assert [exchange.cause for exchange in exchanges] == ["refused", "done"]


@pytest.mark.parametrize("line", [b"GET http://elsewhere/x HTTP/1.1", b"CONNECT elsewhere:443 HTTP/1.1"])
async def test_it_is_no_forward_proxy(proxied: Proxied, line: bytes) -> None:
    async with proxied(answering(with_length(b"must not be seen"))) as rig:
        head, body = await rig.ask(line + b"\r\nHost: elsewhere\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"must not" not in body


async def test_an_upstream_that_is_down(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    async with recorder(tmp_path, port) as rig:
        head, body = await rig.ask(post("/v1/messages", b'{"n":1}'))
        (exchange,) = await rig.exchanges()
    assert head.startswith(b"HTTP/1.1 502 ")
    assert (exchange.body, exchange.why) == (b'{"n":1}', "")  # what a retry repeats
    assert b"X-Agentx-Recorder: upstream-unreachable" in head
    message = json.loads(body)["error"]["message"]
    assert message.startswith(f"agentx record: the upstream http://127.0.0.1:{port} did not answer")
    assert (exchange.cause, exchange.status) == ("upstream_unreachable", None)


async def test_an_upload_that_does_not_end_is_told_of_an_upstream_that_is_down(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agentx.recorder.proxy.TAKE", 0.05)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    async with recorder(tmp_path, port) as rig:
        reader, writer = await rig.connect()
        writer.write(b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf")
        assert (await head_of(reader)).startswith(b"HTTP/1.1 502 ")
        writer.close()
        (exchange,) = await rig.exchanges()
    assert (exchange.cause, exchange.body, exchange.why) == ("upstream_unreachable", b"half", "the request was cut")


def reset(writer: StreamWriter) -> None:
    """Close with a reset instead of a FIN."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("framing", ["chunked", "length"])
async def test_an_upstream_that_dies_mid_stream(proxied: Proxied, how: str, framing: str) -> None:
    """R12: the client sees a broken body, not a clean end; the record has what came."""
    came = asyncio.Event()

    async def handler(reader: Reader, writer: StreamWriter) -> None:
        await body_of(reader, await head_of(reader))
        length = b"Transfer-Encoding: chunked" if framing == "chunked" else b"Content-Length: 999"
        writer.write(b"HTTP/1.1 200 OK\r\n" + length + b"\r\n\r\n")
        writer.write(chunked([b"data: 1\n\n"])[0] if framing == "chunked" else b"data: 1\n\n")
        await writer.drain()
        await came.wait()
        reset(writer) if how == "reset" else writer.close()

    async with proxied(handler) as rig:
        reader, writer = await rig.connect()
        writer.write(post("/v1/messages", b"{}"))
        await head_of(reader)
        got = await reader.readuntil(b"\n\n")
        came.set()
        rest = await reader.read()
        writer.close()
        (exchange,) = await rig.exchanges()
    assert got.endswith(b"data: 1\n\n")
    assert rest in (b"", b"\r\n")  # the end of the chunk, and no last chunk
    assert (exchange.cause, exchange.reply) == ("upstream_abort", b"data: 1\n\n")


class Steps:
    """Counts a loop's steps: two numbers that are n apart have n steps between them, however long one takes."""

    def __init__(self) -> None:
        self.now = 0
        self._task = asyncio.ensure_future(self._count())

    async def _count(self) -> None:
        while True:
            await asyncio.sleep(0)
            self.now += 1

    def stop(self) -> None:
        self._task.cancel()


@pytest.mark.parametrize("when", ["uploading", "before the first byte", "after three events"])
@pytest.mark.parametrize("how", ["close", "reset"])
async def test_a_client_that_goes_away_cancels_the_upstream(
    proxied: Proxied, monkeypatch: pytest.MonkeyPatch, when: str, how: str
) -> None:
    """R13, R15: the upstream's connection is closed in the loop's next steps: there is no timer and nothing between."""
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    gone: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    steps, lost = Steps(), dict[str, int]()
    for name, protocol in (("client", proxy_module._Connection), ("upstream", ResponseHandler)):

        def connection_lost(
            self: Any, error: BaseException | None, name: str = name, known: Any = protocol.connection_lost
        ) -> None:
            lost.setdefault(name, steps.now)
            known(self, error)

        monkeypatch.setattr(protocol, "connection_lost", connection_lost)

    async def handler(reader: Reader, writer: StreamWriter) -> None:
        head = await head_of(reader)
        if when == "uploading":
            await reader.readexactly(10)
        else:
            await body_of(reader, head)
        if when == "after three events":
            writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + b"".join(chunked(EVENTS[:3])[:3]))
        ready.set_result(None)
        with contextlib.suppress(ConnectionError):
            await reader.read()
        gone.set_result(None)

    async with proxied(handler) as rig:
        reader, writer = await rig.connect()
        request = post("/v1/messages", b"0123456789" * 2)
        writer.write(request[:-10] if when == "uploading" else request)
        await ready
        if when == "after three events":
            await reader.readuntil(b"\r\n\r\n\r\n")
        reset(writer) if how == "reset" else writer.close()
        await asyncio.wait_for(gone, 5)
        steps.stop()
        (exchange,) = await rig.exchanges()
    assert 0 <= lost["upstream"] - lost["client"] <= 5
    assert exchange.cause == "client_abort"
    assert exchange.reply == (b"".join(EVENTS[:3]) if when == "after three events" else b"")
    assert exchange.body == b"0123456789" * (1 if when == "uploading" else 2)
    assert exchange.why == ("the request was cut" if when == "uploading" else "")


async def test_a_client_that_stops_writing_still_gets_its_answer(proxied: Proxied) -> None:
    """A half-close is legal: only the writing has ended."""
    go = asyncio.Event()

    async def handler(reader: Reader, writer: StreamWriter) -> None:
        await body_of(reader, await head_of(reader))
        await go.wait()
        writer.write(with_length(b"late"))

    async with proxied(handler) as rig:
        reader, writer = await rig.connect()
        writer.write(post("/v1/messages", b"{}"))
        writer.write_eof()
        await asyncio.sleep(0.1)
        go.set()
        assert await body_of(reader, await head_of(reader)) == b"late"
        assert await reader.read() == b""  # there can be no further request: the connection is closed
        writer.close()
        (exchange,) = await rig.exchanges()
    assert exchange.cause == "done"


async def test_an_answer_before_the_end_of_the_upload(proxied: Proxied) -> None:
    """A 413 while the client still sends reaches it."""

    async def handler(reader: Reader, writer: StreamWriter) -> None:
        await head_of(reader)
        writer.write(b"HTTP/1.1 413 Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig")
        await writer.drain()
        await reader.read(1 << 20)

    async with proxied(handler) as rig:
        reader, writer = await rig.connect()
        writer.write(b"POST /v1/messages HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 1000)
        head = await head_of(reader)
        assert head.startswith(b"HTTP/1.1 413 ")
        assert await body_of(reader, head) == b"big"
        writer.close()
        (exchange,) = await rig.exchanges()
    assert (exchange.cause, exchange.status, exchange.body) == ("done", 413, b"x" * 1000)
    assert exchange.why == "the request was cut"


async def test_many_clients_that_vanish_leave_the_loop_free(proxied: Proxied, monkeypatch: pytest.MonkeyPatch) -> None:
    """R14: a plain request among 30 streams as fast as they go, dropped at once: each drop is on record.

    What bounds its wait: no stream is read more than a little of before the others, and it, have had their turn.
    """
    reads: dict[int, list[int]] = {}
    known = ResponseHandler.data_received

    def data_received(self: ResponseHandler, data: bytes) -> None:
        if data:  # else the parser goes on with what it had
            reads.setdefault(id(self), []).append(len(data))
        known(self, data)

    monkeypatch.setattr(ResponseHandler, "data_received", data_received)

    async def handler(reader: Reader, writer: StreamWriter) -> None:
        head = await head_of(reader)
        await body_of(reader, head)
        if head.startswith(b"GET"):
            writer.write(with_length(b"fine"))
            return
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(chunked([b"x" * 600_000])[0])
            await writer.drain()

    async def vanish(reader: Reader, writer: StreamWriter) -> None:
        await reader.readexactly(2_000_000)
        reset(writer)

    async with proxied(handler) as rig:
        clients = [await asyncio.open_connection("127.0.0.1", rig.port, limit=1 << 16) for _ in range(30)]
        for _, writer in clients:
            writer.write(post("/v1/messages", b"{}"))
        for reader, _ in clients:
            await reader.readexactly(200_000)
        for made in reads.values():
            made.clear()
        vanishing = [asyncio.ensure_future(vanish(*client)) for client in clients]
        _, body = await rig.ask(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
        meanwhile = [list(made) for made in reads.values() if made]
        await asyncio.gather(*vanishing)
        exchanges = await rig.exchanges()
    assert body == b"fine"
    assert len(meanwhile) > 1
    assert max(map(max, meanwhile)) <= proxy_module.TURN
    assert max(map(len, meanwhile)) <= 40  # turns of a stream while the request was connected, sent and answered
    causes = [exchange.cause for exchange in exchanges]
    assert sorted(causes) == ["client_abort"] * 30 + ["done"]


@pytest.fixture
def proxies(monkeypatch: pytest.MonkeyPatch) -> list[proxy_module.Proxy]:
    """The proxies that the test starts."""
    made: list[proxy_module.Proxy] = []
    known = proxy_module._app

    def app(proxy: proxy_module.Proxy) -> web.Application:
        made.append(proxy)
        return known(proxy)

    monkeypatch.setattr(proxy_module, "_app", app)
    return made


async def test_a_client_that_does_not_read_fills_no_memory(proxied: Proxied, monkeypatch: pytest.MonkeyPatch) -> None:
    """R25: an endless stream is held back once the client's and the proxy's buffers are full; the proxy's are small."""
    ends: list[tuple[web.Request, ClientResponse]] = []
    known = proxy_module.Proxy._pass_back
    began = asyncio.Event()
    sent = [0]

    async def pass_back(self: Any, request: web.Request, answer: ClientResponse, copy: Any) -> Any:
        ends.append((request, answer))
        return await known(self, request, answer, copy)

    async def handler(reader: Reader, writer: StreamWriter) -> None:
        await body_of(reader, await head_of(reader))
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            writer.write(chunked([b"x" * 60_000])[0])
            sent[0] += 60_000
            began.set()
            await writer.drain()

    monkeypatch.setattr(proxy_module.Proxy, "_pass_back", pass_back)
    async with proxied(handler) as rig:
        _, writer = await rig.connect()
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        writer.write(post("/v1/messages", b"{}"))
        await began.wait()
        before = -1
        while sent[0] != before:  # until nothing moves any more
            before = sent[0]
            for _ in range(500):
                await asyncio.sleep(0)
        ((request, answer),) = ends
        waiting, unsent = answer.content._size, request.transport.get_write_buffer_size()  # type: ignore[union-attr]
        writer.transport.abort()
        while not rig.copies.tally.ends:
            await asyncio.sleep(0)
        (exchange,) = await rig.exchanges()
    assert 0 < waiting <= 2 * proxy_module.READ_BUFFER + proxy_module.TURN
    assert 0 < unsent <= 4 * proxy_module.TURN
    assert exchange.cause == "client_abort"


async def test_nothing_is_left_of_exchanges_that_ended(proxied: Proxied, proxies: list[proxy_module.Proxy]) -> None:
    """R25: whole, refused, given up by the client inside the request and inside the answer."""

    async def handler(reader: Reader, writer: StreamWriter) -> None:
        while True:
            head = await head_of(reader)
            await body_of(reader, head)
            if head.startswith(b"POST"):
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            else:
                writer.write(with_length(b"fine"))

    async with proxied(handler) as rig:
        for _ in range(20):
            await rig.ask(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            await rig.ask(b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
            for request in (post("/v1/messages", b"0123456789")[:-5], post("/v1/messages", b"{}")):
                reader, writer = await rig.connect()
                writer.write(request)
                if request.endswith(b"{}"):
                    await reader.readuntil(b"half")
                reset(writer)
        exchanges = await rig.exchanges()
        (proxy,) = proxies
        gc.collect()
        assert (len(proxy._requests), len(proxy._connections), len(proxy._silent)) == (0, 0, 0)
        assert (rig.writer._live, rig.writer._frames, rig.copies.waiting) == ({}, [], 0)
    causes = Counter(exchange.cause for exchange in exchanges)
    assert (causes["done"], causes["refused"], causes["client_abort"] >= 20) == (20, 20, True)
