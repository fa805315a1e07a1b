"""Silence ends a request, and nothing else does; connections before, between and behind requests. More in tests/e2e."""

from __future__ import annotations

import asyncio
import errno
import itertools
import sys
import time
import types

import aiohttp
import pytest
from yarl import URL

from agentx.replayer.client import LONGEST, Silence, exchange_with, open_session, wait_of, warm
from agentx.replayer.exchange import Exchange

CASES = [
    # heard at, now, stall, given up
    (0.0, 99.0, 100.0, False),
    (0.0, 101.0, 100.0, True),
    (50.0, 149.0, 100.0, False),  # each byte begins it anew
]


@pytest.mark.parametrize(("heard", "now", "stall", "ends"), CASES)
async def test_silence(monkeypatch, heard, now, stall, ends):
    """One look, at a time that the test sets."""
    looks = 0

    async def sleep(seconds: float) -> None:
        nonlocal looks
        assert seconds == stall / Silence.LOOKS
        looks += 1
        if looks > 1:
            raise asyncio.CancelledError

    exchange = Exchange(heard=heard)
    task = asyncio.ensure_future(asyncio.Event().wait())
    monkeypatch.setattr("agentx.replayer.client.asyncio.sleep", sleep)
    with pytest.raises(asyncio.CancelledError):
        await Silence(stall, lambda: now).watch(lambda: [(task, exchange)])
    await asyncio.wait([task], timeout=0)
    assert task.cancelled() is ends
    assert (exchange.failure is not None and exchange.failure.kind == "stall") is ends
    task.cancel()


@pytest.mark.parametrize(
    ("told", "seconds"),
    [
        ("5", 5.0),
        ("0.2", 0.2),
        ("3600", LONGEST),
        (None, 0.0),  # it says nothing
        ("Wed, 21 Oct 2026 07:28:00 GMT", 0.0),  # of another clock
        ("-1", 0.0),
        ("nan", 0.0),
        ("inf", LONGEST),
    ],
)
def test_how_long_a_server_is_left_alone(told, seconds):
    assert wait_of(told) == seconds


class Closing(asyncio.Protocol):
    """Answers the first request of each connection; what comes later on it meets a connection that is being closed.

    This is what a server's keep-alive limit looks like to a client that uses the connection in that moment.
    """

    connections = 0
    requests = 0

    def connection_made(self, transport) -> None:
        Closing.connections += 1
        self._transport, self._answered = transport, 0

    def data_received(self, data: bytes) -> None:
        if b"\r\n\r\n" not in data:
            return
        if self._answered == LASTS:
            self._transport.abort()
            return
        self._answered += 1
        Closing.requests += 1
        body = b'data: {"choices":[{"delta":{},"finish_reason":"length"}]}\n\n'
        self._transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


LASTS = 1


@pytest.fixture
async def closing():
    Closing.connections = Closing.requests = 0
    server = await asyncio.get_running_loop().create_server(Closing, "127.0.0.1", 0)
    yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    server.close()
    await server.wait_closed()


async def ask(session, url) -> Exchange:
    exchange = Exchange()
    await exchange_with(session, URL(url), b"{}", {}, exchange, time.monotonic)
    return exchange


async def test_connections_that_the_server_was_just_closing_are_nobodys_failure(closing):
    """Twenty connections are idle when a tool's pause ends, and the server closes every one of them as it is used."""
    async with open_session() as session:
        first = await asyncio.gather(*(ask(session, closing) for _ in range(20)))
        again = [await ask(session, closing) for _ in range(5)]
    assert [one.failure for one in (*first, *again)] == [None] * 25
    assert [one.retries for one in first] == [0] * 20
    assert sum(one.retries for one in again) >= 20  # all that were stale were met, and a fresh one each time
    assert Closing.requests == 25


async def test_a_server_that_closes_later_had_the_request(closing, monkeypatch):
    now = itertools.count(0.0, 0.6)  # each look at the clock is that much later
    async with open_session() as session:
        await ask(session, closing)
        exchange = Exchange()
        await exchange_with(session, URL(closing), b"{}", {}, exchange, lambda: next(now))
    assert exchange.retries == 1  # closed after 0.6 s: a race
    monkeypatch.setattr("agentx.replayer.client.RACE", 0.5)
    async with open_session() as session:
        await ask(session, closing)
        exchange = Exchange()
        await exchange_with(session, URL(closing), b"{}", {}, exchange, lambda: next(now))
    assert (exchange.retries, exchange.failure and exchange.failure.kind) == (0, "closed")


async def test_warmed_connections_are_what_turns_go_out_on(closing, monkeypatch):
    monkeypatch.setattr(sys.modules[__name__], "LASTS", 2)
    async with open_session() as session:
        await warm(session, [closing], 8)
        assert Closing.connections == 8
        turns = await asyncio.gather(*(ask(session, closing) for _ in range(8)))
    assert Closing.connections == 8
    assert all(one.reused for one in turns)


async def test_a_server_that_is_not_there_is_left_to_the_run():
    async with open_session() as session:
        await warm(session, ["http://127.0.0.1:9"], 3)
        exchange = await ask(session, "http://127.0.0.1:9/x")
    assert exchange.failure.kind == "refused"


async def test_a_lack_of_files_is_the_clients_own_failure(monkeypatch):
    where = types.SimpleNamespace(host="127.0.0.1", port=9, ssl=True)

    async def none_left(*_, **__):
        raise aiohttp.ClientConnectorError(where, OSError(errno.EMFILE, "Too many open files"))

    async with open_session() as session:
        monkeypatch.setattr(session.connector, "connect", none_left)
        exchange = await ask(session, "http://127.0.0.1:9/x")
    assert exchange.failure.kind == "files"
