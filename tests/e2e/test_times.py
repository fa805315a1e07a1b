"""Every time of an attempt, held against a server that keeps a log of what it did, on the same monotonic clock.

Only what must have come before what is asserted, never how long anything took.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import time

import pytest
from aiohttp import web

from agentx.core import Gap, Header, Output, Piece, Prompt, Segment, Session, Turn
from agentx.replayer.client import open_session
from agentx.replayer.plan import load_plan
from agentx.replayer.run import areplay
from agentx.reporter.turns import chunk_gaps, turn_times
from agentx.trace import TraceWriter

PAUSE = 0.01  # s between events: more than the time of one read


class Logging:
    """Answers with a head, a role, then tokens in events of `sizes`; `log` has the times of each request."""

    def __init__(self, *sizes: int) -> None:
        self.sizes, self.log = sizes, []

    async def chat(self, request: web.Request) -> web.StreamResponse:
        entry = {"read": time.monotonic(), "events": []}
        await request.read()
        self.log.append(entry)
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        entry["head"] = time.monotonic()
        await self._event(response, {"choices": [{"delta": {"role": "assistant", "content": ""}}]})
        done = 0
        for size in self.sizes:
            await asyncio.sleep(PAUSE)
            done += size
            entry["events"].append(time.monotonic())
            usage = {"prompt_tokens": 8, "completion_tokens": done}
            delta = {"delta": {"content": " Abc" * size}, "finish_reason": None}
            await self._event(response, {"choices": [delta], "usage": usage})
        await asyncio.sleep(PAUSE)
        entry["end"] = time.monotonic()
        await self._event(response, {"choices": [{"delta": {}, "finish_reason": "length"}]})
        usage = {"prompt_tokens": 8, "completion_tokens": done}
        await self._event(response, {"choices": [], "usage": usage})
        await response.write(b"data: [DONE]\n\n")
        return response

    async def _event(self, response: web.StreamResponse, body: dict) -> None:
        await response.write(b"data: " + json.dumps(body).encode() + b"\n\n")

    async def models(self, _: web.Request) -> web.Response:
        return web.json_response({"data": [{"id": "logging", "max_model_len": 4096}]})


@pytest.fixture
async def replayed(tmp_path):
    """A function that replays one session of two turns; gives its attempts, and the server's log."""

    async def play(*sizes: int):
        server = Logging(*sizes)
        app = web.Application()
        app.router.add_get("/v1/models", server.models)
        app.router.add_post("/v1/chat/completions", server.chat)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        tokens = sum(sizes)
        prompt = Prompt((Piece(1, 0, 8),))
        turns = (
            Turn(0, 0, prompt, 8, Output(tokens)),
            Turn(1, 0, prompt, 8, Output(tokens), (0,), Gap("tool", 0.05)),
        )
        path = tmp_path / "t.trace"
        with TraceWriter(path, Header(name="t", scope="t")) as writer:
            writer.session(Session("s", turns, segments={1: Segment(1, "user", 8)}))
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        run = await areplay(path, target=url, out=tmp_path / "run", sets=["gaps.scale=1"])
        await runner.cleanup()
        return run.attempts, server.log

    return play


async def test_every_time_lies_between_what_the_server_did_before_and_behind_it(replayed):
    attempts, log = await replayed(1, 1, 1)
    for attempt, entry in zip(attempts, log, strict=True):
        assert attempt.due <= attempt.sent < attempt.first_byte < attempt.first < attempt.last < attempt.end
        # differences of the client, held against differences of the server on the same clock:
        assert attempt.first - attempt.sent > entry["events"][0] - entry["read"] - 1e-6
        assert attempt.last - attempt.sent > entry["events"][-1] - entry["read"] - 1e-6
        assert attempt.end - attempt.sent > entry["end"] - entry["read"] - 1e-6
        assert attempt.first_byte - attempt.sent > entry["head"] - entry["read"] - PAUSE / 2
        assert [chunk.tokens for chunk in attempt.chunks] == [1, 1, 1]
        assert attempt.chunks[0].micros == round((attempt.first - attempt.sent) * 1e6)
        assert attempt.chunks[-1].micros == round((attempt.last - attempt.sent) * 1e6)
        (times,) = turn_times([attempt])
        assert times.ttft == attempt.first - attempt.sent
        assert times.ttft_from_due == attempt.first - attempt.due >= times.ttft


async def test_the_gap_begins_where_the_turn_before_ended(replayed):
    (first, second), _ = await replayed(1, 1)
    assert second.due == pytest.approx(first.end + 0.05)
    assert second.sent >= second.due


async def test_the_first_token_is_not_the_role(replayed):
    attempts, log = await replayed(2, 2)
    for attempt, entry in zip(attempts, log, strict=True):
        assert attempt.first - attempt.first_byte > entry["events"][0] - entry["head"] - PAUSE / 2


async def test_tokens_that_came_alone_have_inter_token_times(replayed):
    attempts, _ = await replayed(1, 1, 1, 1)
    for attempt in attempts:
        gaps = chunk_gaps([attempt])[1].values
        assert len(gaps) == 3
        (times,) = turn_times([attempt])
        assert (times.tpot, times.tpot_estimated) == (pytest.approx(sum(gaps) / 3, abs=1e-5), False)


async def test_tokens_that_came_together_have_none_and_tpot_is_by_their_counts(replayed):
    attempts, _ = await replayed(1, 3, 2)
    for attempt in attempts:
        assert len(chunk_gaps([attempt])[1].values) == 0
        (times,) = turn_times([attempt])
        assert (times.tpot, times.tpot_estimated) == (pytest.approx((attempt.last - attempt.first) / 5), False)
        assert [later.micros > earlier.micros for earlier, later in itertools.pairwise(attempt.chunks)] == [True] * 2


async def test_there_is_no_limit_on_the_whole_and_half_an_hour_of_silence_by_default():
    async with open_session() as session:
        assert session.timeout.total is None
        assert session.timeout.sock_read is None
    assert load_plan().timeouts.stall == 1800.0


async def test_the_servers_own_times_are_kept_where_it_tells_them(tmp_path):
    path = tmp_path / "t.trace"
    with TraceWriter(path, Header(name="t", scope="t")) as writer:
        turn = Turn(0, 0, Prompt((Piece(1, 0, 80),)), 80, Output(4))
        writer.session(Session("s", (turn,), segments={1: Segment(1, "user", 80)}))
    run = await areplay(path, out=tmp_path / "run", sets=["wire=generate"])  # the embedded engine, as SGLang has it
    (attempt,) = run.attempts
    assert 0 <= attempt.queue_seconds <= attempt.server_ttft
    assert attempt.server_ttft < attempt.first - attempt.sent
