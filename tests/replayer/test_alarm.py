"""The timer, where timers are files and where they are not."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from agentx.replayer import alarm
from agentx.replayer.alarm import Alarm


@pytest.fixture(params=["file", "asyncio"])
def rings(request, monkeypatch):
    """A list that gets the loop's time at each ring, and the alarm that does it."""
    if request.param == "asyncio":
        monkeypatch.setattr(alarm, "_timer_file", lambda: None)
    elif alarm._timer_file() is None:
        pytest.skip("no timer files on this system")
    rung, heard = [], asyncio.Event()

    def make():
        def ring():
            rung.append(asyncio.get_running_loop().time())
            heard.set()

        return Alarm(ring)

    return rung, heard, make


async def test_it_rings_once_and_never_early(rings):
    rung, heard, make = rings
    with contextlib.closing(make()) as one:
        when = asyncio.get_running_loop().time() + 0.01
        one.at(when)
        await heard.wait()
        await asyncio.sleep(0.01)
    assert len(rung) == 1
    assert rung[0] >= when - 1e-6


async def test_a_time_that_has_passed_rings_at_once(rings):
    _, heard, make = rings
    with contextlib.closing(make()) as one:
        one.at(-5.0)
        await heard.wait()


async def test_only_the_last_time_counts_and_off_is_off(rings):
    rung, heard, make = rings
    with contextlib.closing(make()) as one:
        now = asyncio.get_running_loop().time()
        one.at(now + 0.005)
        one.at(now + 60.0)
        await asyncio.sleep(0.02)
        assert rung == []
        one.at(now + 0.03)
        await heard.wait()
        one.at(asyncio.get_running_loop().time() + 0.005)
        one.off()
        await asyncio.sleep(0.02)
    assert len(rung) == 1
