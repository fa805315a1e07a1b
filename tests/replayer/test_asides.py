"""Requests that are no part of a run: their words are their own, and two of one segment begin alike."""

from __future__ import annotations

import time

import pytest

from agentx.content import WordList, lexicon
from agentx.engine.server import running
from agentx.engine.settings import EngineSettings
from agentx.replayer.asides import Asides
from agentx.replayer.client import open_session
from agentx.replayer.wires import Wire


@pytest.fixture
async def asides():
    with running(EngineSettings()) as base:
        async with open_session() as session:
            yield Asides(session, base, Wire("generate", "m"), WordList(lexicon()), time.monotonic)


async def test_prompts_of_one_segment_begin_alike(asides):
    first = await asides.ask(100, reply=3)
    assert (first.isl, first.completion_tokens, first.cached.total) == (100, 3, 0)
    assert (await asides.ask(150)).cached.total == 100
    assert (await asides.ask(150, segment=1)).cached.total == 0
    assert await asides.flush() is None
    assert (await asides.ask(150)).cached.total == 0


async def test_two_of_them_share_nothing(asides):
    await asides.ask(100)
    other = Asides(asides.session, asides.base, asides.wire, asides.words, time.monotonic)
    assert (await other.ask(100)).cached.total == 0


async def test_what_cannot_be_flushed_is_said(asides):
    asides.base = "http://127.0.0.1:9"
    assert "does not answer" in await asides.flush()
    assert (await asides.ask(10)).failure.kind == "refused"
