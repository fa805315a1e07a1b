"""The sockets of a replay: one pool of connections, one request at a time per turn, everything that fails is data.

There is no time-out on the whole of a request, only on silence. A server may close an idle connection in the moment
in which it is used again; such a request never reached it, so it is sent once more and not counted against it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

import aiohttp

from agentx.replayer.exchange import Exchange

READ_BUFFER = 1 << 20  # bytes that may wait unread before the socket is held back
KEEP_ALIVE = 75.0  # s that an unused connection is kept: longer than most tools run
CONNECT = 30.0  # s for a connection to come about

Clock = Callable[[], float]


def open_session(*, stall: float, headers: Mapping[str, str] | None = None) -> aiohttp.ClientSession:
    """A session without limits on connections; `stall` is the longest silence in seconds."""
    trace = aiohttp.TraceConfig()
    trace.on_connection_reuseconn.append(_reused)
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=KEEP_ALIVE),
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT, sock_read=stall),
        headers={"Content-Type": "application/json", "Accept-Encoding": "identity", **(headers or {})},
        cookie_jar=aiohttp.DummyCookieJar(),
        read_bufsize=READ_BUFFER,
        trace_configs=[trace],
    )


async def _reused(_: aiohttp.ClientSession, context: SimpleNamespace, __: Any) -> None:
    exchange = context.trace_request_ctx
    if exchange is not None:
        exchange.reused = True


async def exchange_with(
    session: aiohttp.ClientSession,
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    exchange: Exchange,
    clock: Clock,
) -> None:
    """Send one request and fill `exchange` with what comes of it; never raises for what a server or network does."""
    try:
        while await _once(session, url, body, headers, exchange, clock):
            exchange.retries += 1
    except asyncio.CancelledError:
        exchange.fail("cut", "the run ended first")
        raise
    finally:
        exchange.end = clock()


async def _once(
    session: aiohttp.ClientSession,
    url: str,
    body: bytes,
    headers: Mapping[str, str],
    exchange: Exchange,
    clock: Clock,
) -> bool:
    """One request. Returns whether it is to be sent again."""
    exchange.reused = False
    exchange.sent = clock()
    try:
        async with session.post(url, data=body, headers=headers, trace_request_ctx=exchange) as response:
            exchange.first_byte = clock()
            exchange.status = response.status
            content = response.content
            while data := await content.readany():
                exchange.receive(clock(), data)
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        exchange.fail("refused", _words(error))
    except asyncio.TimeoutError:
        exchange.fail("stall", "no byte came within the stall time-out")
    except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError, aiohttp.ClientPayloadError) as error:
        if exchange.reused and exchange.first_byte is None and not exchange.retries:
            return True
        exchange.fail("closed", _words(error))
    except aiohttp.ClientError as error:
        exchange.fail("protocol", _words(error))
    return False


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
