"""The server as clients see it: the openai package, SGLang's own routes, refusals, disconnects, and the books."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest

from agentx.core import Cached
from agentx.engine.engine import EngineSettings
from agentx.engine.server import running
from agentx.engine.settings import LAPTOP, Cache, Scheduling
from agentx.engine.tokenizer import chat_ids, ids_to_list, text_ids
from agentx.errors import BadInput
from agentx.wire.metrics import parse_metrics, total
from agentx.wire.openai import parse_chat_stream
from agentx.wire.sglang import parse_generate_stream
from agentx.wire.sse import SseParser

FAST = LAPTOP.model_copy(update={"request": 0.0, "prefill_token": 1e-8, "decode_step": 2e-4, "decode_request": 0.0})
SLOW = FAST.model_copy(update={"decode_step": 0.02})
CHAT, GENERATE = "/v1/chat/completions", "/generate"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with running(EngineSettings(context=4096, timing=FAST)) as base:
        yield base


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


def words(count: int, first: str = "abc") -> str:
    """`count` tokens of text that nothing else in this file shares when `first` is its own."""
    return " " + first + " def" * (count - 1)


def messages(text: str) -> list[dict[str, Any]]:
    return [{"role": "user", "content": text}]


async def post(client: aiohttp.ClientSession, url: str, body: object) -> tuple[int, Any]:
    async with client.post(url, json=body) as response:
        return response.status, await response.json()


async def stream(client: aiohttp.ClientSession, url: str, body: object) -> tuple[int, list[bytes]]:
    """Status and the data of every event."""
    parser, events = SseParser(), []
    async with client.post(url, json=body) as response:
        async for data, _ in response.content.iter_chunks():
            events += [event.data for event in parser.feed(data)]
        assert response.status != 200 or not parser.close()
        return response.status, events


async def counter(client: aiohttp.ClientSession, url: str, name: str, **labels: str) -> float:
    async with client.get(url + "/metrics") as response:
        return total(parse_metrics(await response.text()), f"sglang:{name}", **labels) or 0.0


async def until(client: aiohttp.ClientSession, url: str, name: str, value: float) -> None:
    """Wait for a gauge; the test's own time-out ends a wait in vain."""
    async with asyncio.timeout(10) if hasattr(asyncio, "timeout") else contextlib.nullcontext():
        while await counter(client, url, name) != value:
            await asyncio.sleep(0.005)


# -- the openai package


def test_openai_whole(url: str) -> None:
    client = openai.OpenAI(base_url=url + "/v1", api_key="none")
    reply = client.chat.completions.create(model="any-name", messages=messages(words(50, "owh")), max_tokens=5)
    assert reply.model == "any-name"  # SGLang does not check it either
    assert reply.choices[0].finish_reason == "length"
    text = reply.choices[0].message.content or ""
    assert len(text) == 5 * 4
    assert text.isascii()
    assert reply.usage is not None
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (50 + 1 + 1, 5)
    again = client.chat.completions.create(model="m", messages=messages(words(50, "owh")), max_tokens=5)
    assert again.choices[0].message.content == text
    assert again.usage is not None
    assert again.usage.prompt_tokens_details is not None
    assert again.usage.prompt_tokens_details.cached_tokens == 51  # all but the last token


def test_openai_stream(url: str) -> None:
    client = openai.OpenAI(base_url=url + "/v1", api_key="none")
    chunks = list(
        client.chat.completions.create(
            model="m",
            messages=messages(words(50, "ost")),
            max_tokens=5,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    assert chunks[0].choices[0].delta.role == "assistant"
    assert chunks[0].choices[0].delta.content == ""
    contents = [chunk.choices[0].delta.content for chunk in chunks[1:6]]
    assert all(content is not None and len(content) == 4 for content in contents)
    assert chunks[6].choices[0].finish_reason == "length"
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 5
    assert all(chunk.usage is None for chunk in chunks[:-1])


async def test_openai_async_at_once(url: str) -> None:
    async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="none") as client:

        async def one(number: int) -> str:
            parts = []
            async for chunk in await client.chat.completions.create(
                model="m", messages=messages(words(20 + number, "oas")), max_tokens=8, stream=True
            ):
                parts.append(chunk.choices[0].delta.content or "")  # without include_usage every chunk has a choice
            return "".join(parts)

        replies = await asyncio.gather(*map(one, range(12)))
    assert {len(reply) for reply in replies} == {32}
    assert len(set(replies)) == 12


def test_openai_errors(url: str) -> None:
    client = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
    for stream in (False, True):  # refused before a stream begins
        with pytest.raises(openai.BadRequestError, match="longer than the model's context length"):
            client.chat.completions.create(model="m", messages=messages(words(5000)), max_tokens=5, stream=stream)


def test_openai_models(url: str) -> None:
    client = openai.OpenAI(base_url=url + "/v1", api_key="none")
    (model,) = client.models.list()
    assert model.model_dump()["max_model_len"] == 4096


# -- shapes


async def test_chat_stream_tells_counts_and_tiers(url: str, client: aiohttp.ClientSession) -> None:
    body = {
        "model": "m",
        "messages": messages(words(100, "cst")),
        "max_completion_tokens": 4,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True, "continuous_usage_stats": True},
        "return_cached_tokens_details": True,
        "cache_salt": "cst",  # else the role marker, one token, may be there from another test
    }
    for expected in (Cached(0, 0, 0, 0), Cached(101, 101, 0, None)):
        status, events = await stream(client, url + CHAT, body)
        reply = parse_chat_stream(events, text=True)
        assert status == 200
        assert [count for count in reply.token_counts if count is not None] == [1, 2, 3, 4, 4]
        assert reply.carries[:2] == (False, True)  # the role comes first, with the first token
        assert (reply.prompt_tokens, reply.completion_tokens, reply.cached) == (102, 4, expected)
        assert (reply.finish_reason, reply.error, reply.done) == ("length", None, True)


async def test_a_stream_without_usage_says_none(url: str, client: aiohttp.ClientSession) -> None:
    # continuous_usage_stats refines include_usage, it does not stand for it
    body = {"messages": messages(words(10, "nou")), "max_tokens": 3, "stream": True}
    _, events = await stream(client, url + CHAT, {**body, "stream_options": {"continuous_usage_stats": True}})
    reply = parse_chat_stream(events)
    assert (reply.completion_tokens, reply.cached, reply.done) == (None, None, True)


async def test_generate_stream_is_cumulative(url: str, client: aiohttp.ClientSession) -> None:
    body = {
        "text": words(60, "gst"),
        "sampling_params": {"max_new_tokens": 6, "ignore_eos": True},
        "stream": True,
        "rid": "gst-1",
    }
    _, events = await stream(client, url + GENERATE, body)
    assert events[-1] == b"[DONE]"
    told = [json.loads(event) for event in events[:-1]]
    assert [len(event["output_ids"]) for event in told] == [1, 2, 3, 4, 5, 6]
    assert all(ids_to_list(text_ids(event["text"])) == event["output_ids"] for event in told)
    assert {event["meta_info"]["id"] for event in told} == {"gst-1"}
    assert [event["meta_info"]["finish_reason"] for event in told[:-1]] == [None] * 5
    last = told[-1]["meta_info"]
    assert last["finish_reason"] == {"type": "length", "length": 6}
    assert (last["prompt_tokens"], last["completion_tokens"], last["cached_tokens"]) == (60, 6, 0)
    assert last["cached_tokens_details"] is None  # SGLang's word for a miss
    assert last["e2e_latency"] >= last["first_token_latency"] >= last["queue_time"] >= 0
    reply = parse_generate_stream(events, text=True)
    assert (reply.token_counts, reply.text) == ((1, 2, 3, 4, 5, 6, None), told[-1]["text"])


async def test_generate_by_ids_continues_what_it_made(url: str, client: aiohttp.ClientSession) -> None:
    prompt = ids_to_list(text_ids(words(40, "gid")))
    body = {"input_ids": prompt, "sampling_params": {"max_new_tokens": 8, "ignore_eos": True}}
    _, first = await post(client, url + GENERATE, body)
    longer = {**body, "input_ids": [*prompt, *first["output_ids"], 1, 2, 3]}
    _, second = await post(client, url + GENERATE, longer)
    # The last generated token has no KV yet.
    assert second["meta_info"]["cached_tokens"] == 40 + 8 - 1
    assert second["meta_info"]["cached_tokens_details"] == {"device": 47, "host": 0}


async def test_generate_without_a_limit_makes_at_most_128(url: str, client: aiohttp.ClientSession) -> None:
    _, reply = await post(client, url + GENERATE, {"text": words(5, "lim"), "sampling_params": {"ignore_eos": True}})
    assert reply["meta_info"]["completion_tokens"] == 128


async def test_chat_by_ids_is_the_same_prompt(url: str, client: aiohttp.ClientSession) -> None:
    text = messages(words(30, "cid"))
    await post(client, url + CHAT, {"messages": text, "max_tokens": 1})
    body = {"messages": messages("ignored"), "input_ids": ids_to_list(chat_ids(text)), "max_tokens": 1}
    _, reply = await post(client, url + CHAT, body)
    assert reply["usage"]["prompt_tokens_details"]["cached_tokens"] == 31


@pytest.mark.parametrize("field", ["cache_salt", "extra_key"])
async def test_salted_prompts_never_share(url: str, client: aiohttp.ClientSession, field: str) -> None:
    async def cached(**more: str) -> int:
        _, reply = await post(client, url + CHAT, {"messages": messages(words(30, field[:3])), "max_tokens": 1, **more})
        hit = reply["usage"]["prompt_tokens_details"]["cached_tokens"]
        return int(hit)

    assert await cached() <= 1  # a role marker from another test
    assert await cached(**{field: "a"}) == 0
    assert await cached(**{field: "b"}) == 0
    assert await cached(**{field: "a"}) == 31
    assert await cached() == 31


async def test_min_tokens_hold_off_the_end(url: str, client: aiohttp.ClientSession) -> None:
    body = {"messages": messages(words(10, "min")), "max_tokens": 3000}
    _, free = await post(client, url + CHAT, body)
    assert free["choices"][0]["finish_reason"] == "stop"
    tokens = free["usage"]["completion_tokens"]
    _, held = await post(client, url + CHAT, {**body, "min_tokens": tokens + 50})
    assert held["usage"]["completion_tokens"] >= tokens + 50
    _, exact = await post(client, url + CHAT, {**body, "max_tokens": tokens + 99, "ignore_eos": True})
    assert exact["usage"]["completion_tokens"] == tokens + 99


async def test_tokenize_agrees_with_usage(url: str, client: aiohttp.ClientSession) -> None:
    talk = [{"role": "system", "content": words(7)}, {"role": "user", "content": "hi"}]
    _, told = await post(client, url + "/tokenize", {"messages": talk})
    _, reply = await post(client, url + CHAT, {"messages": talk, "max_tokens": 1})
    assert told["count"] == len(told["tokens"]) == reply["usage"]["prompt_tokens"] == 7 + 1 + 2 + 1
    assert told["max_model_len"] == 4096
    _, text = await post(client, url + "/tokenize", {"prompt": " abc def"})
    assert (text["count"], text["tokens"]) == (2, ids_to_list(b" abc def"))
    _, both = await post(client, url + "/tokenize", {"prompt": [" abc", ""]})
    assert both["count"] == [1, 0]
    _, back = await post(client, url + "/detokenize", {"tokens": told["tokens"]})
    assert back == {"text": words(7) + "hi  "}


@pytest.mark.parametrize("path", ["/ready", "/health", "/health_generate", "/server_info", "/get_server_info"])
async def test_health_and_info(url: str, client: aiohttp.ClientSession, path: str) -> None:
    async with client.get(url + path) as response:
        assert response.status == 200
        if "info" in path:
            info = await response.json()
            assert (info["page_size"], info["max_total_num_tokens"], info["context_length"]) == (1, 200_000, 4096)
            assert "SGLang 0.5.23" in info["engine_rules"]


# -- refusals


OVER = "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of "


@pytest.mark.parametrize(
    ("tokens", "asked", "says"),
    [
        (4095, 1, "The input (4097 tokens) is longer than the model's context length (4096 tokens)."),
        (4000, 500, OVER + "4502 tokens: 4002 tokens from the input messages and 500 tokens for the completion."),
    ],
)
async def test_overflow(url: str, client: aiohttp.ClientSession, tokens: int, asked: int, says: str) -> None:
    body = {"messages": messages(words(tokens)), "max_tokens": asked}
    for streamed in (False, True):
        status, error = await post(client, url + CHAT, {**body, "stream": streamed})
        assert status == 400
        assert error["message"].startswith(says)
        assert (error["object"], error["type"], error["code"]) == ("error", "BadRequestError", 400)
    ids = ids_to_list(chat_ids(messages(words(tokens))))
    native = {"input_ids": ids, "sampling_params": {"max_new_tokens": asked}}
    status, error = await post(client, url + GENERATE, native)
    assert status == 400
    assert error["error"]["message"].startswith(says)
    status, events = await stream(client, url + GENERATE, {**native, "stream": True})
    reply = parse_generate_stream(events)
    assert (status, reply.done) == (200, True)  # /generate has sent its 200 by then
    assert reply.error is not None
    assert reply.error.code == 400
    assert reply.error.message.startswith(says)


async def test_longer_than_the_pool(client: aiohttp.ClientSession) -> None:
    with running(EngineSettings(context=4096, cache=Cache(pool=500), timing=FAST)) as url:
        status, error = await post(client, url + CHAT, {"messages": messages(words(600)), "max_tokens": 1})
        assert status == 400
        assert "exceeds the maximum allowed length" in error["message"]


@pytest.mark.parametrize("path", [CHAT, GENERATE, "/tokenize", "/detokenize"])
@pytest.mark.parametrize(
    "data", [b"", b"{", b"[]", b"null", b"7", b"\xff\xfe", b"{}", b'{"messages":"x"}', b"[" * 9999]
)
async def test_what_is_no_request(url: str, client: aiohttp.ClientSession, path: str, data: bytes) -> None:
    async with client.post(url + path, data=data, headers={"Content-Type": "application/json"}) as response:
        assert response.status == 400
        assert (await response.json())["object"] == "error"


@pytest.mark.parametrize(
    ("path", "body"),
    [
        (CHAT, {"messages": []}),
        (CHAT, {"messages": [{"role": "robot", "content": "x"}]}),
        (CHAT, {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}),
        (CHAT, {"messages": messages("x"), "max_tokens": "many"}),
        (CHAT, {"messages": messages("x"), "max_tokens": -1}),
        (CHAT, {"messages": messages("x"), "max_tokens": 2, "min_tokens": 3}),
        (CHAT, {"messages": messages("x"), "min_tokens": -1}),
        (CHAT, {"messages": messages("x"), "n": 2}),
        (CHAT, {"messages": messages("x"), "input_ids": [-1]}),
        (CHAT, {"messages": messages("x"), "input_ids": []}),
        (CHAT, {"messages": messages("x"), "stream_options": 3}),
        (GENERATE, {"text": "x", "input_ids": [1]}),
        (GENERATE, {"text": ""}),
        (GENERATE, {"input_ids": [2**32]}),
        (GENERATE, {"input_ids": [[1]]}),
        (GENERATE, {"text": "x", "sampling_params": []}),
    ],
)
async def test_what_cannot_run(url: str, client: aiohttp.ClientSession, path: str, body: dict[str, Any]) -> None:
    status, error = await post(client, url + path, body)
    assert status == 400
    assert error.get("message") or error["error"]["message"]


async def test_routes_that_are_not_there(url: str, client: aiohttp.ClientSession) -> None:
    assert await post(client, url + "/v1/nothing", {}) == (404, {"detail": "Not Found"})
    async with client.get(url + CHAT) as response:
        assert (response.status, await response.json()) == (405, {"detail": "Method Not Allowed"})
    async with client.post(url + CHAT, data=b"{}", headers={"Content-Type": "text/plain"}) as response:
        assert response.status == 400
    async with client.get(url + "/flush_cache?timeout=soon") as response:
        assert response.status == 400


# -- load, disconnects, books


@contextlib.contextmanager
def one_at_a_time(log: Path) -> Iterator[str]:
    settings = EngineSettings(scheduler=Scheduling(max_running=1, queue=1), timing=SLOW)
    with running(settings, log=log) as url:
        yield url


def lines(log: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in log.read_text().splitlines()]


LONG = {"messages": messages(words(20, "lon")), "max_tokens": 5000, "ignore_eos": True, "stream": True}


async def test_queue_full(client: aiohttp.ClientSession, tmp_path: Path) -> None:
    with one_at_a_time(tmp_path / "log") as url:
        async with client.post(url + CHAT, json={**LONG, "rid": "runs"}) as first:
            await first.content.readany()
            waiting = asyncio.ensure_future(post(client, url + CHAT, {"messages": messages("x"), "max_tokens": 1}))
            await until(client, url, "num_queue_reqs", 1)
            short = {"messages": messages("y"), "max_tokens": 1}
            assert await post(client, url + CHAT, short) == (
                503,
                {"object": "error", "message": "The request queue is full.", "type": "503", "param": None, "code": 503},
            )
            asked = {**short, "stream": True, "stream_options": {"include_usage": True}}
            status, events = await stream(client, url + CHAT, asked)
            assert (status, events[-1]) == (200, b"[DONE]")
            assert json.loads(events[1])["usage"]["prompt_tokens"] == 0  # so does SGLang
            assert json.loads(events[0])["error"] == {
                "object": "error",
                "message": "The request queue is full.",
                "type": "SERVICE_UNAVAILABLE",
                "param": None,
                "code": 503,
            }
            native = {"text": "y", "stream": True}
            status, events = await stream(client, url + GENERATE, native)
            reply = parse_generate_stream(events)
            assert (status, reply.finish_reason, reply.done) == (200, "abort", True)
            assert reply.error is not None
            assert reply.error.code == 503
            assert (await post(client, url + GENERATE, {"text": "y"}))[0] == 503
        status, reply_body = await waiting  # the first client went away, so the second's turn came
        assert (status, reply_body["usage"]["completion_tokens"]) == (200, 1)


async def test_a_client_that_goes_away_ends_its_request(client: aiohttp.ClientSession, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with one_at_a_time(log) as url:
        # while it streams
        async with client.post(url + CHAT, json={**LONG, "rid": "streams"}) as response:
            await response.content.readany()
            # while it waits in the queue
            queued = asyncio.ensure_future(post(client, url + GENERATE, {"text": "x", "rid": "waits"}))
            await until(client, url, "num_queue_reqs", 1)
            queued.cancel()
            await until(client, url, "num_queue_reqs", 0)
            assert await counter(client, url, "num_running_reqs") == 1
        await until(client, url, "num_running_reqs", 0)
        # while nothing was written yet, because it is not streamed
        whole = asyncio.ensure_future(post(client, url + CHAT, {**LONG, "rid": "whole", "stream": False}))
        await until(client, url, "num_running_reqs", 1)
        whole.cancel()
        await until(client, url, "num_running_reqs", 0)
        assert await counter(client, url, "num_aborted_requests_total") == 3
        assert await counter(client, url, "num_requests_total") == 0
    ends = {line["rid"]: line for line in lines(log)}
    assert {rid: line["finish_reason"] for rid, line in ends.items()} == dict.fromkeys(
        ("waits", "streams", "whole"), "abort"
    )
    assert ends["waits"]["cached_tokens"] is None  # never admitted: unknown, not 0
    assert ends["waits"]["first_token_seconds"] is None
    assert 0 < ends["streams"]["completion_tokens"] < 5000


async def test_an_id_in_use_is_refused(client: aiohttp.ClientSession, tmp_path: Path) -> None:
    with one_at_a_time(tmp_path / "log") as url:
        async with client.post(url + CHAT, json={**LONG, "rid": "same"}) as response:
            await response.content.readany()
            status, error = await post(client, url + CHAT, {**LONG, "rid": "same"})
            assert status == 400
            assert "same" in error["message"]
            async with client.post(url + "/flush_cache") as busy:
                assert busy.status == 400


async def test_the_books_agree(client: aiohttp.ClientSession, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with running(EngineSettings(cache=Cache(pool=900), timing=FAST), log=log) as url:

        async def turn(number: int) -> dict[str, Any]:
            # a shared start and an end of its own; the small pool makes some of it leave again
            text = words(200, "shr") + words(10 + 37 * (number % 7), f"n{number % 7:02d}")
            body = {"messages": messages(text), "max_tokens": 5, "rid": f"r{number}", "stream": number % 2 == 0}
            if not body["stream"]:
                _, reply = await post(client, url + CHAT, body)
                return dict(reply["usage"])
            _, events = await stream(client, url + CHAT, {**body, "stream_options": {"include_usage": True}})
            return dict(json.loads(events[-2])["usage"])

        usages = [
            usage for start in range(0, 40, 4) for usage in await asyncio.gather(*map(turn, range(start, start + 4)))
        ]
        cached = sum(usage["prompt_tokens_details"]["cached_tokens"] for usage in usages)
        prompt = sum(usage["prompt_tokens"] for usage in usages)
        assert 0 < cached < prompt
        assert await counter(client, url, "prompt_tokens_total") == prompt
        assert await counter(client, url, "prompt_tokens_total", is_streaming="true") < prompt
        assert await counter(client, url, "cached_tokens_total", cache_source="device") == cached
        assert await counter(client, url, "prefill_effective_tokens_total", mode="device_hit") == cached
        assert await counter(client, url, "prefill_effective_tokens_total", mode="input") == prompt - cached
        assert await counter(client, url, "generation_tokens_total") == 40 * 5
        assert await counter(client, url, "num_requests_total") == 40
        assert await counter(client, url, "evicted_tokens_total") > 0
        assert await counter(client, url, "time_to_first_token_seconds_count") == 40
        assert await counter(client, url, "e2e_request_latency_seconds_bucket", le="+Inf") == 40
    told = {line["rid"]: line for line in lines(log)}
    for number, usage in enumerate(usages):
        line = told[f"r{number}"]
        assert line["cached_tokens"] == {"device": usage["prompt_tokens_details"]["cached_tokens"], "host": 0}
        assert (line["prompt_tokens"], line["completion_tokens"]) == (usage["prompt_tokens"], 5)
        assert 0 <= line["queue_seconds"] <= line["first_token_seconds"] <= line["end_seconds"]


async def test_flush_forgets(client: aiohttp.ClientSession) -> None:
    with running(EngineSettings(timing=FAST)) as url:
        body = {"messages": messages(words(30)), "max_tokens": 1}

        async def cached() -> int:
            _, reply = await post(client, url + CHAT, body)
            return int(reply["usage"]["prompt_tokens_details"]["cached_tokens"])

        assert [await cached(), await cached()] == [0, 31]
        for flush in (client.post, client.get):
            async with flush(url + "/flush_cache?timeout=1") as response:
                assert response.status == 200
                assert (await response.text()).startswith("Cache flushed")
            assert await cached() == 0


async def test_a_long_prompt_is_taken(client: aiohttp.ClientSession) -> None:
    settings = EngineSettings(context=600_000, cache=Cache(pool=600_000), timing=FAST)
    with running(settings) as url:
        _, reply = await post(client, url + CHAT, {"messages": messages(words(500_000)), "max_tokens": 1})
        assert reply["usage"]["prompt_tokens"] == 500_002


# -- the life of a server


def test_a_port_that_is_taken(url: str) -> None:
    port = int(url.rsplit(":", 1)[1])
    with pytest.raises(BadInput, match=f"port {port}.*--port 0"), running(EngineSettings(), port=port):
        pass


def test_a_log_that_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be written"), running(EngineSettings(), log=tmp_path / "no" / "log"):
        pass


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_under_the_log_ends_the_server() -> None:
    def ask(url: str) -> None:
        client = openai.OpenAI(base_url=url + "/v1", api_key="none", max_retries=0)
        with pytest.raises(openai.APIConnectionError):
            client.chat.completions.create(model="m", messages=messages("x"), max_tokens=1)

    with (
        pytest.raises(BadInput, match="log cannot be written"),
        running(EngineSettings(), log=Path("/dev/full")) as url,
    ):
        ask(url)


async def test_a_stop_ends_open_replies_and_records_them(client: aiohttp.ClientSession, tmp_path: Path) -> None:
    with one_at_a_time(tmp_path / "log") as url:
        response = await client.post(url + CHAT, json={**LONG, "rid": "cut"})
        await response.content.readany()
    with pytest.raises(aiohttp.ClientError):
        await response.read()
    (line,) = lines(tmp_path / "log")
    assert (line["rid"], line["finish_reason"]) == ("cut", "abort")
