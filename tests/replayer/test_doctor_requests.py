"""What a few requests show of a server that answers otherwise than it should."""

from __future__ import annotations

import asyncio
import time

import aiohttp
import pytest
from aiohttp import web

from agentx.content import WordList, lexicon
from agentx.core import Attempt, Cached, Chunk
from agentx.engine.server import running
from agentx.engine.settings import EngineSettings
from agentx.replayer import doctor_requests
from agentx.replayer.asides import Asides
from agentx.replayer.client import open_session
from agentx.replayer.doctor_requests import asked_checks, clock_check, keep_alive_check
from agentx.replayer.wires import Wire


class Told(Asides):
    """Answers from a list instead of a server."""

    def __init__(self, answers):
        self._answers = iter(answers)

    async def ask(self, tokens, *, segment=0, reply=1):
        told = {"prompt_tokens": tokens + 3, "cached": Cached(0), "completion_tokens": reply, "chunks": (Chunk(1, 1),)}
        return Attempt("s", 0, 0, 0, 0, 0.0, 0.0, tokens, reply, **{**told, **next(self._answers)})


GOOD = [{}, {"cached": Cached(256)}, {}]
CASES = [
    # what the three answers say otherwise, the check, its verdict, some words
    (GOOD, "cache report", "ok", "met 0 and 256 cached tokens"),
    ([{}, {"cached": None}, {}], "cache report", "problem", "no cached tokens"),
    ([{}, {"cached": Cached(0)}, {}], "cache report", "problem", "met 0 and 0"),
    (GOOD, "tokens", "ok", "a word is a token; 3 more are put around a prompt"),
    ([{}, {}, {"prompt_tokens": 530}], "tokens", "warning", "257 more words were 270 more tokens"),
    ([{"prompt_tokens": None}, {}, {}], "tokens", "problem", "no usage"),
    (GOOD, "chunks", "ok", "24 tokens came in 1 reads"),
    ([{}, {}, {"chunks": ()}], "chunks", "warning", "in one piece"),
    ([{}, {}, {"completion_tokens": 5}], "chunks", "warning", "5 of 24 tokens"),
]


@pytest.mark.parametrize(("answers", "name", "verdict", "says"), CASES)
async def test_each_check(answers, name, verdict, says):
    found = {check.name: check for check in await asked_checks(Told(answers), None, 1)}
    assert (found[name].verdict, says in found[name].said) == (verdict, True), found[name]
    assert found["words"].verdict == "unknown"


async def test_a_server_that_refuses():
    with running(EngineSettings.model_validate({"context": 100})) as base:
        async with open_session() as session:
            words = WordList(lexicon())
            asides = Asides(session, base, Wire("chat", "m"), words, time.monotonic)
            (check,) = await asked_checks(asides, words, 1)
    assert check.verdict == "problem"
    assert "failed by overflow" in check.said


async def closing(reader, writer):
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
    await writer.drain()
    await asyncio.sleep(0.05)
    writer.close()


async def test_a_server_that_closes_idle_connections():
    server = await asyncio.start_server(closing, "127.0.0.1", 0)
    check = await keep_alive_check(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", idle=20)
    server.close()
    assert check.verdict == "warning"
    assert "SGLANG_TIMEOUT_KEEP_ALIVE" in check.mend


async def test_a_server_that_keeps_them():
    with running(EngineSettings()) as base:
        assert (await keep_alive_check(base, idle=0.2)).verdict == "ok"
    assert (await keep_alive_check("http://127.0.0.1:9")).verdict == "unknown"
    assert (await keep_alive_check("https://127.0.0.1:9")).verdict == "unknown"


CLOCKS = [
    ("Mon, 30 Nov 2026 12:00:00 GMT", "ok"),
    ("Mon, 30 Nov 2026 12:00:30 GMT", "warning"),
    ("Mon, 30 Nov 2026 11:59:30 GMT", "warning"),
    ("yesterday", "unknown"),
]


@pytest.mark.parametrize(("told", "verdict"), CLOCKS)
async def test_clocks(told, verdict, monkeypatch):
    monkeypatch.setattr(doctor_requests.time, "time", lambda: 1796040000.5)  # half a second past 12:00:00

    async def models(_):
        return web.json_response({}, headers={"Date": told})

    app = web.Application()
    app.router.add_get("/v1/models", models)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        async with aiohttp.ClientSession() as session:
            check = await clock_check(session, f"http://127.0.0.1:{runner.addresses[0][1]}")
    finally:
        await runner.cleanup()
    assert check.verdict == verdict
