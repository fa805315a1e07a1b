"""The sockets of a replay: one pool of connections, one request at a time per turn, everything that fails is data.

There is no time-out on the whole of a request, only on silence; a request is ended by cancelling its task. A server
may close an idle connection in the moment in which it is used again; such a request never reached it, so it is sent
again, on another connection, and not counted against it. A server that takes no connection, or that refuses with the
time after which it may be asked again, is left alone for so long: the turn has failed, but its lane does not run
through the sessions. Connections are opened before the run, so that no turn waits for one.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any
from weakref import WeakSet

import aiohttp
from yarl import URL

from agentx.replayer.exchange import Exchange

READ_BUFFER = 1 << 20  # bytes that may wait unread before the socket is held back
KEEP_ALIVE = 75.0  # s that an unused connection is kept: longer than most tools run
CONNECT = 30.0  # s for a connection to come about
RACE = 1.0  # s; a server that closes later than this had the request
WARMED = 1024  # connections that are opened before a run, at most
REFUSED = 1.0  # s that a lane leaves a server alone which took no connection: it may be starting anew
BUSY = (429, 503)  # statuses with which a server may say `Retry-After`
LONGEST = 60.0  # s of such a wait that are kept at most

Clock = Callable[[], float]
_current: ContextVar[Exchange | None] = ContextVar("agentx_exchange", default=None)


class Connector(aiohttp.TCPConnector):
    """A pool without limit that notes on an exchange whether its connection had been used before.

    aiohttp's own way to learn this, a trace of the request, costs as much as a fifth of a request.
    """

    def __init__(self) -> None:
        super().__init__(limit=0, keepalive_timeout=KEEP_ALIVE)
        self._seen: WeakSet[object] = WeakSet()

    async def connect(self, req: Any, traces: Any, timeout: Any) -> Any:
        connection = await super().connect(req, traces, timeout)
        exchange = _current.get()
        if exchange is not None:
            exchange.reused = connection.protocol in self._seen
        self._seen.add(connection.protocol)
        return connection


def open_session(headers: Mapping[str, str] | None = None) -> aiohttp.ClientSession:
    """A session without limits on connections or time: `Silence` is what ends a request that stalls."""
    return aiohttp.ClientSession(
        connector=Connector(),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT),
        headers={"Content-Type": "application/json", "Accept-Encoding": "identity", **(headers or {})},
        cookie_jar=aiohttp.DummyCookieJar(),
        read_bufsize=READ_BUFFER,
    )


async def warm(session: aiohttp.ClientSession, bases: Sequence[str], count: int) -> None:
    """Open connections, so that no turn waits for one: `count` in all, shared among the addresses, WARMED at most.

    What a server answers is all the same, and so is that it does not.
    """

    async def one(url: str) -> None:
        with contextlib.suppress(aiohttp.ClientError, asyncio.TimeoutError):
            async with session.get(url, timeout=aiohttp.ClientTimeout(total=CONNECT)) as response:
                await response.read()

    urls = [f"{base}/v1/models" for base in bases]
    await asyncio.gather(*(one(urls[number % len(urls)]) for number in range(min(count, WARMED))))


class Silence:
    """Ends requests of which nothing was heard for `stall` seconds.

    One look at all of them now and then, instead of a timer that every chunk sets anew; so a stalled request may
    live longer than `stall` by a LOOKS-th of it.
    """

    LOOKS = 20

    def __init__(self, stall: float, clock: Clock) -> None:
        self._stall, self._clock = stall, clock

    async def watch(self, live: Callable[[], Iterable[tuple[asyncio.Task[None], Exchange]]]) -> None:
        """Look at `live()` for as long as this is awaited."""
        while True:
            await asyncio.sleep(self._stall / self.LOOKS)
            oldest = self._clock() - self._stall
            for task, exchange in live():
                if exchange.heard < oldest:
                    exchange.fail("stall", f"no byte came for {self._stall:g} s")
                    task.cancel()


async def exchange_with(
    session: aiohttp.ClientSession,
    url: URL,
    body: bytes,
    headers: Mapping[str, str],
    exchange: Exchange,
    clock: Clock,
) -> None:
    """Send one request and fill `exchange` with what comes of it; never raises for what a server or network does."""
    _current.set(exchange)
    try:
        while await _once(session, url, body, headers, exchange, clock):
            exchange.retries += 1
    finally:
        exchange.end = clock()
    if exchange.hold:
        await asyncio.sleep(exchange.hold)
        exchange.free = clock()


async def _once(
    session: aiohttp.ClientSession,
    url: URL,
    body: bytes,
    headers: Mapping[str, str],
    exchange: Exchange,
    clock: Clock,
) -> bool:
    """One request. Returns whether it is to be sent again."""
    exchange.sent = exchange.heard = clock()
    try:
        async with session.post(url, data=body, headers=headers) as response:
            exchange.first_byte = exchange.heard = clock()
            exchange.status = response.status
            if response.status in BUSY:
                exchange.hold = wait_of(response.headers.get("Retry-After"))
            content = response.content
            while data := await content.readany():
                if not exchange.receive(clock(), data):
                    break  # what is left open here is closed, not used again
    except (aiohttp.ClientConnectorError, aiohttp.ServerTimeoutError) as error:
        own = getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE)
        exchange.fail("files" if own else "refused", _words(error))
        exchange.hold = REFUSED
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, aiohttp.ClientPayloadError) as error:
        if exchange.reused and exchange.first_byte is None and clock() - exchange.sent < RACE:
            return True  # each time another connection, and a fresh one at last
        exchange.fail("closed", _words(error))
    except aiohttp.ClientError as error:
        exchange.fail("protocol", _words(error))
    return False


def wait_of(told: str | None) -> float:
    """Seconds of a `Retry-After`, LONGEST at most; 0 where it says none, or a date: that is of another clock."""
    try:
        seconds = float(told or "")
    except ValueError:
        return 0.0
    return min(seconds, LONGEST) if seconds > 0 else 0.0


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
