"""A reverse proxy to one fixed upstream: bytes pass as they come, in both directions; a copy goes into a queue.

Nothing is decoded, parsed or waited for on the traffic's way. What ends on one side ends on the other: a client that
goes away closes the upstream's connection, an upstream that dies mid-stream closes the client's. The recorder itself
answers only where no upstream could (`answers.py`).
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from weakref import WeakKeyDictionary, WeakSet

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from agentx.errors import BadInput
from agentx.recorder.answers import refusal, unreachable
from agentx.recorder.copies import Copies, Copy, Opened
from agentx.recorder.headers import passed_on
from agentx.recorder.peers import half_closed

MAX_HEADERS = 1 << 20  # bytes of a header line or value: agents send metadata of tens of kilobytes
KEEP_ALIVE = 900.0  # s that a client's idle connection is kept: longer than most tools run
# s that an idle upstream connection is kept. Servers close theirs after 5 s (uvicorn) or more; a request that is
# sent into a connection which is being closed would fail, and its body is gone.
UPSTREAM_KEEP_ALIVE = 4.0
TAKE = 2.0  # s that a client gets to end its upload when there is no upstream, before it is told so
CONNECT = 30.0  # s for a connection to the upstream to come about
READ_BUFFER = 1 << 16  # bytes of one body that may wait in the proxy before its sender is held back (twice, at most)
TURN = 1 << 15  # bytes that one connection may read before the others have had their turn
GRACE = 5.0  # s that open exchanges get when the recorder is told to stop
_NOT_ADDED = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")  # headers that the client library invents
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_CLIENT_GONE = (ConnectionError, aiohttp.ClientConnectionResetError)


@dataclass(slots=True)
class Proxy:
    """Handles requests. `wires` maps the end of a path to its wire; the longest end that fits counts."""

    upstream: URL
    copies: Copies
    wires: Mapping[str, str]
    session: aiohttp.ClientSession
    stopping: bool = False
    _requests: dict[asyncio.BaseTransport, web.Request] = field(default_factory=dict)
    _silent: WeakSet[asyncio.BaseTransport] = field(default_factory=WeakSet)
    _connections: WeakKeyDictionary[asyncio.BaseTransport, int] = field(default_factory=WeakKeyDictionary)
    _numbers: Iterator[int] = field(default_factory=count)

    def wire(self, method: str, path: str) -> str | None:
        """The wire of a request whose bodies are to be kept; None for all others."""
        if method != "POST":
            return None
        ends = [end for end in self.wires if path.rstrip("/").endswith(end)]
        return self.wires[max(ends, key=len)] if ends else None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """One exchange."""
        refused = refusal(request)
        target = request.raw_path
        wire = None if refused else self.wire(request.method, target.partition("?")[0])
        opened = Opened(request.method, target, _pairs(request.raw_headers), wire, self._connection(request))
        copy = self.copies.open(opened)
        if refused is not None:
            copy.end("refused", f"answered {refused.status}")
            return refused
        transport = request.transport
        try:
            if transport is not None:
                self._requests[transport] = request
            return await self._exchange(request, copy)
        except asyncio.CancelledError:
            copy.end("recorder_stopped" if self.stopping else "client_abort")
            raise
        except _CLIENT_GONE as error:
            copy.end("client_abort", str(error))
            if transport is not None:
                transport.abort()
            return web.Response(status=499)  # nobody reads it
        finally:
            if transport is not None:
                self._requests.pop(transport, None)

    def stopped_writing(self, transport: asyncio.BaseTransport) -> bool:
        """A client has sent all that it ever will, and reads on. Returns whether that makes sense."""
        self._silent.add(transport)
        request = self._requests.get(transport)
        return request is None or request.content.is_eof()

    def _connection(self, request: web.Request) -> int:
        """A number for the client's connection: a client uses a kept one again."""
        transport = request.transport
        if transport is None:
            return -1
        if transport not in self._connections:
            self._connections[transport] = next(self._numbers)
        return self._connections[transport]

    async def _exchange(self, request: web.Request, copy: Copy) -> web.StreamResponse:
        if request.transport in self._silent and not request.content.is_eof():
            raise ConnectionResetError("the client stopped writing inside its request")
        url = URL(str(self.upstream).rstrip("/") + request.raw_path, encoded=True)
        upload = _Upload(request, copy)
        try:
            answer = await self.session.request(
                request.method,
                url,
                headers=_headers(request.raw_headers, skip=("host", "expect")),
                data=upload.body(),
                allow_redirects=False,
                skip_auto_headers=_NOT_ADDED,
            )
        except (aiohttp.ClientError, asyncio.TimeoutError, OSError) as error:
            if upload.broken or request.transport is None or request.transport.is_closing():
                raise ConnectionResetError("the client went away inside its request") from error
            await upload.take()
            return self._unreachable(error, copy)
        try:
            return await self._pass_back(request, answer, copy)
        finally:
            answer.close() if not (answer.content.is_eof() and upload.whole) else answer.release()
            if not upload.whole:
                await asyncio.sleep(0)  # lets the cancelled upload let go of the client's body

    def _unreachable(self, error: Exception, copy: Copy) -> web.StreamResponse:
        answer, why = unreachable(self.upstream, error)
        copy.end("upstream_unreachable", why)
        return answer

    async def _pass_back(self, request: web.Request, answer: aiohttp.ClientResponse, copy: Copy) -> web.StreamResponse:
        headers = _headers(answer.raw_headers)
        response = _Passed(status=answer.status, reason=answer.reason, headers=headers)
        response.upstream = frozenset(name.lower() for name in headers)
        copy.head(answer.status, _pairs(answer.raw_headers))
        if answer.connection is not None:
            _take_turns(answer.connection.transport)
        await response.prepare(request)
        while True:
            try:
                data = await answer.content.readany()
            except (aiohttp.ClientError, OSError) as error:
                copy.end("upstream_abort", " ".join(str(error).split()))
                _break_off(request)
                return response
            if not data:
                break
            copy.data(data)
            await response.write(data)
        await response.write_eof()
        copy.end("done")
        return response


class _Passed(web.StreamResponse):
    """A response of the upstream's; `upstream` are its header names in lower case."""

    upstream: frozenset[str] = frozenset()


class _Upload:
    """The client's body on its way up: it starts before the client has sent all of it."""

    def __init__(self, request: web.Request, copy: Copy) -> None:
        self._request, self._copy = request, copy
        self._begun = False
        self.whole = False
        self.broken = False  # the client went away before it had sent all

    def body(self) -> AsyncIterator[bytes] | None:
        if self._request.body_exists:
            return self._pieces()
        self._asked()
        return None

    async def _pieces(self) -> AsyncIterator[bytes]:
        self._begun = True
        content = self._request.content
        while True:
            try:
                data = await content.readany()
            except (aiohttp.ClientError, web.RequestPayloadError, OSError):
                self.broken = True
                raise
            if not data:
                break
            self._copy.request(data)
            yield data
        self._asked()

    async def take(self) -> None:
        """Copy a body that there was no upstream to send to: the call is a failed attempt of the one that repeats it.

        Raises ConnectionResetError when the client goes away meanwhile.
        """
        if self._begun or self.whole:
            return
        try:
            await asyncio.wait_for(self._rest(), TAKE)
        except asyncio.TimeoutError:
            return
        except (aiohttp.ClientError, web.RequestPayloadError, OSError) as error:
            raise ConnectionResetError("the client went away inside its request") from error

    async def _rest(self) -> None:
        async for _ in self._pieces():
            pass

    def _asked(self) -> None:
        self.whole = True
        self._copy.asked()


def _take_turns(transport: asyncio.BaseTransport | None) -> None:
    """Let a connection read no more than `TURN` before the others have had theirs."""
    if transport is not None and hasattr(transport, "max_size"):
        transport.max_size = TURN


def _break_off(request: web.Request) -> None:
    """Close the client's connection without ending the body: what the upstream did."""
    transport = request.transport
    if transport is None:
        return
    if request.version < aiohttp.HttpVersion11:
        transport.abort()  # an HTTP/1.0 body ends with its connection: only a reset says that something is missing
    else:
        transport.close()


def _pairs(raw: tuple[tuple[bytes, bytes], ...]) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("utf-8", "surrogateescape")) for name, value in raw]


def _headers(raw: tuple[tuple[bytes, bytes], ...], skip: tuple[str, ...] = ()) -> CIMultiDict[str]:
    """The headers to pass on. A value that is not UTF-8 is passed as if it were Latin-1, the only way left.

    A name that occurs again is spelled as at first: of two spellings the client library sends the last alone.
    """
    pairs = [(name.decode("latin-1"), _text(value)) for name, value in raw]
    kept = [(name, value) for name, value in passed_on(pairs) if name.lower() not in skip]
    spelled = {name.lower(): name for name, _ in reversed(kept)}
    return CIMultiDict((spelled[name.lower()], value) for name, value in kept)


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return value.decode("latin-1")


async def _as_upstream(_: web.Request, response: web.StreamResponse) -> None:
    """Take out again what the server library adds to a passed response of its own accord."""
    if isinstance(response, _Passed):
        for name in ("Content-Type", "Date", "Server"):
            if name.lower() not in response.upstream:
                response.headers.pop(name, None)


class _Connection(web.RequestHandler):
    """A client's connection. A FIN ends it, unless the client is only done writing and waits for its answer."""

    __slots__ = ("proxy",)

    def __init__(self, proxy: Proxy, server: web.Server, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(
            server,
            loop=loop,
            keepalive_timeout=KEEP_ALIVE,
            access_log=None,  # type: ignore[arg-type]  # None is how it is switched off
            max_line_size=MAX_HEADERS,
            max_field_size=MAX_HEADERS,
            read_bufsize=READ_BUFFER,
            auto_decompress=False,
        )
        self.proxy = proxy

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        _take_turns(transport)
        super().connection_made(transport)

    def eof_received(self) -> bool | None:  # type: ignore[override]  # asyncio's own contract has the bool
        transport = self.transport
        if transport is None:
            return None
        own, peer = transport.get_extra_info("sockname"), transport.get_extra_info("peername")
        if not own or not peer or not half_closed(own[:2], peer[:2]) or not self.proxy.stopped_writing(transport):
            return None
        self.close()  # after this answer; there cannot be another request
        return True


async def serve(
    upstream: str,
    copies: Copies,
    wires: Mapping[str, str],
    *,
    host: str,
    port: int,
    ready: Callable[[str], None],
    stop: asyncio.Event,
) -> None:
    """Pass traffic on until `stop` is set; `ready` is told the base URL. Port 0 takes a free one.

    Raises BadInput for an address that cannot be listened on.
    """
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=UPSTREAM_KEEP_ALIVE),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        max_line_size=MAX_HEADERS,
        max_field_size=MAX_HEADERS,
        read_bufsize=READ_BUFFER,
    ) as session:
        proxy = Proxy(URL(upstream), copies, wires, session)
        runner = web.AppRunner(_app(proxy), handler_cancellation=True, shutdown_timeout=GRACE, access_log=None)
        await runner.setup()
        try:
            server = await _listen(runner, proxy, host, port)
            name = f"[{host}]" if ":" in host else host
            ready(f"http://{name}:{server.sockets[0].getsockname()[1]}")
            await stop.wait()
            proxy.stopping = True
            server.close()
        finally:
            await runner.cleanup()


def _app(proxy: Proxy) -> web.Application:
    """Every request goes to the proxy, whatever its method and path: a middleware comes before all routing."""

    @web.middleware
    async def everything(request: web.Request, handler: Handler) -> web.StreamResponse:
        return await proxy.handle(request)

    app = web.Application(middlewares=[everything])
    app.on_response_prepare.append(_as_upstream)
    return app


async def _listen(runner: web.AppRunner, proxy: Proxy, host: str, port: int) -> asyncio.Server:
    loop, handlers = asyncio.get_running_loop(), runner.server
    if handlers is None:
        raise RuntimeError("the runner is not set up")
    try:
        return await loop.create_server(lambda: _Connection(proxy, handlers, loop), host, port, backlog=1024)
    except OSError as error:
        raise _no_place(host, port, error) from None


def check_place(host: str, port: int) -> None:
    """Whether it can be listened on, before anything is made for a recording. Raises BadInput."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        socket.create_server((host, port), family=family).close()
    except OSError as error:
        raise _no_place(host, port, error) from None


def _no_place(host: str, port: int, error: OSError) -> BadInput:
    number = error.errno or 0
    what = os.strerror(number) if number > 0 else str(error.strerror or error).partition(" (while")[0]
    hint = (
        "--port 0 takes a free port"
        if number in (errno.EADDRINUSE, errno.EACCES)
        else "--host is an address of this machine"
    )
    return BadInput(f"cannot listen on {host} port {port}: {what}", hint=hint)
