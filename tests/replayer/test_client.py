"""Silence ends a request, and nothing else does. The rest of the client is tested over sockets, in tests/e2e."""

from __future__ import annotations

import asyncio

import pytest

from agentx.replayer.client import LONGEST, Silence, wait_of
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
