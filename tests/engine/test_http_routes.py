"""The routes as clients meet them: refusals, full queues, aborts, loads, streams that begin before their reply."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import pytest
from asking import CHAT, COMPLETIONS, FAST, MESSAGES, RESPONSES, SLOW, post, stream

from agentx.engine.server import running
from agentx.engine.settings import EngineSettings, Scheduling


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(EngineSettings(context=4096, timing=FAST)) as base:
        yield base


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


BIG = [{"role": "user", "content": "a" * 20_000}]


async def test_refusals_in_each_api(url: str, client: aiohttp.ClientSession) -> None:
    status, error = await post(client, url + COMPLETIONS, {"prompt": ""})
    assert (status, error["object"], error["message"]) == (400, "error", "Prompt cannot be empty")
    status, error = await post(client, url + MESSAGES, {"model": "m", "max_tokens": 1, "messages": []})
    assert (status, error["type"], error["error"]["type"]) == (400, "error", "invalid_request_error")
    status, error = await post(client, url + MESSAGES + "/count_tokens", {"model": "m"})
    assert (status, error["type"]) == (400, "error")
    status, error = await post(client, url + RESPONSES, {"input": "a", "previous_response_id": "resp_1"})
    assert (status, error["error"]["code"]) == (400, 400)
    for path, body in ((MESSAGES, {"model": "m", "max_tokens": 1, "messages": BIG}), (RESPONSES, {"input": BIG})):
        status, error = await post(client, url + path, body)
        assert status == 400
        assert "longer than the model's context length" in error["error"]["message"]


@pytest.mark.parametrize(
    ("path", "body", "last"),
    [
        (MESSAGES, {"model": "m", "max_tokens": 1, "messages": BIG}, ["message_start", "error", "message_stop"]),
        (RESPONSES, {"input": BIG}, ["response.created", "response.in_progress", "response.failed"]),
    ],
)
async def test_a_stream_has_begun_when_its_prompt_is_too_long(
    url: str, client: aiohttp.ClientSession, path: str, body: dict[str, Any], last: list[str]
) -> None:
    status, events = await stream(client, url + path, body)
    assert (status, [event.event for event in events]) == (200, last)
    assert any(b"longer than the model's context length" in event.data for event in events)


FOREVER: dict[str, dict[str, Any]] = {
    CHAT: {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3000, "ignore_eos": True},
    COMPLETIONS: {"prompt": "hi", "max_tokens": 3000, "ignore_eos": True},
    MESSAGES: {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 3000},
    RESPONSES: {"input": "hi"},
    "/generate": {"text": "hi", "sampling_params": {"max_new_tokens": 3000, "ignore_eos": True}},
}


async def test_abort_and_loads(client: aiohttp.ClientSession) -> None:
    settings = EngineSettings(context=4096, timing=SLOW, scheduler=Scheduling(max_running=4, queue=9))
    with running(settings) as url:
        tasks = {path: asyncio.ensure_future(post(client, url + path, body)) for path, body in FOREVER.items()}
        mine = asyncio.ensure_future(post(client, url + CHAT, {**FOREVER[CHAT], "rid": "mine"}))
        while (load := await _load(client, url))["num_running_reqs"] + load["num_waiting_reqs"] < 6:
            await asyncio.sleep(0.005)
        assert (load["max_running_requests"], load["max_total_num_tokens"]) == (4, 200_000)
        assert load["queues"] == {"waiting": load["num_waiting_reqs"]}
        for body in ({"rid": "nobody"}, {}):  # neither ends anything
            async with client.post(url + "/abort_request", json=body) as response:
                assert (response.status, await response.read()) == (200, b"")
        assert not mine.done()
        await client.post(url + "/abort_request", json={"rid": "mine"})
        _, reply = await mine
        assert (reply["id"], reply["choices"][0]["finish_reason"]) == ("mine", "abort")
        assert not any(task.done() for task in tasks.values())
        await client.post(url + "/abort_request", json={"abort_all": True})
        replies = {path: (await task)[1] for path, task in tasks.items()}
        assert replies[CHAT]["choices"][0]["finish_reason"] == "abort"
        assert replies[COMPLETIONS]["choices"][0]["finish_reason"] == "abort"
        assert replies[MESSAGES]["stop_reason"] == "end_turn"
        assert (replies[RESPONSES]["status"], replies[RESPONSES]["error"]["message"]) == ("failed", "Aborted")
        assert replies["/generate"]["meta_info"]["finish_reason"]["message"] == "Aborted"
        load = await _load(client, url)
        assert (load["num_running_reqs"], load["num_waiting_reqs"], load["num_waiting_uncached_tokens"]) == (0, 0, 0)
        assert "memory" not in await _load(client, url, "?include=core")
        async with client.get(url + "/v1/loads?dp_rank=1") as response:
            assert (await response.json())["loads"] == []
        async with client.get(url + "/v1/loads?format=prometheus") as response:
            assert response.status == 400


async def _load(client: aiohttp.ClientSession, url: str, query: str = "") -> dict[str, Any]:
    async with client.get(url + "/v1/loads" + query) as response:
        (load,) = (await response.json())["loads"]
        return dict(load)


@pytest.mark.parametrize("path", [COMPLETIONS, MESSAGES, RESPONSES])
async def test_a_full_queue_answers_a_stream_with_an_event(client: aiohttp.ClientSession, path: str) -> None:
    settings = EngineSettings(context=4096, timing=SLOW, scheduler=Scheduling(max_running=1, queue=1))
    with running(settings) as url:
        held = []
        for running_reqs, waiting in ((1, 0), (1, 1)):
            held.append(asyncio.ensure_future(post(client, url + CHAT, FOREVER[CHAT])))
            while (load := await _load(client, url))["num_running_reqs"] != running_reqs or (
                load["num_waiting_reqs"] != waiting
            ):
                await asyncio.sleep(0.005)
        status, events = await stream(client, url + path, FOREVER[path])
        assert status == 200
        assert any(b"The request queue is full." in event.data for event in events)
        status, error = await post(client, url + path, FOREVER[path])
        assert (status, "queue is full" in json.dumps(error)) == (503, True)
        await client.post(url + "/abort_request", json={"abort_all": True})
        await asyncio.gather(*held)


@pytest.mark.parametrize("path", [MESSAGES, RESPONSES])
async def test_headers_of_some_streams_go_out_at_once(client: aiohttp.ClientSession, path: str) -> None:
    slow = FAST.model_copy(update={"request": 60.0})
    with running(EngineSettings(context=4096, timing=slow)) as url:
        async with client.post(url + path, json={**FOREVER[path], "stream": True}) as response:
            assert response.status == 200  # a minute before its first token


@pytest.mark.parametrize("path", [COMPLETIONS, MESSAGES, MESSAGES + "/count_tokens", RESPONSES, "/abort_request"])
@pytest.mark.parametrize("data", [b"", b"{", b"[]", b"null", b"7", b"\xff", b'{"messages":"x"}', b"[" * 9999])
async def test_what_is_no_request(url: str, client: aiohttp.ClientSession, path: str, data: bytes) -> None:
    async with client.post(url + path, data=data, headers={"Content-Type": "application/json"}) as response:
        if path == "/abort_request" and data.startswith(b"{") and data != b"{":
            assert response.status == 200
        else:
            assert response.status == 400
            assert "message" in json.dumps(await response.json())
