"""All APIs over one engine: the same conversation is the same tokens, scripts answer all of them, clients can live."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import openai
import pytest

from agentx.engine.http_script import Rule, Script
from agentx.engine.server import running
from agentx.engine.settings import LAPTOP, Acceptance, EngineSettings, Scheduling, Speculation
from agentx.wire.sse import SseEvent, SseParser

FAST = LAPTOP.model_copy(update={"request": 0.0, "prefill_token": 1e-8, "decode_step": 2e-4, "decode_request": 0.0})
SLOW = FAST.model_copy(update={"decode_step": 0.02})
CHAT, COMPLETIONS, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses"

RULES = [
    {
        "contains": "start",
        "reasoning": " let me",
        "text": "I will look.",
        "calls": [{"name": "ls", "arguments": {"path": "a é"}}],
    },
    {"regex": "^file", "text": "Done."},
    {"contains": "twice", "times": 2, "text": "Counted."},
]
PARAMETERS = {"type": "object", "properties": {"path": {"type": "string"}}}
FUNCTION = {"name": "ls", "description": "list files", "parameters": PARAMETERS}


@pytest.fixture(scope="module")
def told() -> list[str]:
    return []


@pytest.fixture(scope="module")
def url(told: list[str]) -> Iterator[str]:
    script = Script(tuple(Rule.model_validate(rule) for rule in RULES), told.append)
    with running(EngineSettings(context=4096, timing=FAST), script=script) as base:
        yield base


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


async def post(client: aiohttp.ClientSession, url: str, body: object) -> tuple[int, Any]:
    async with client.post(url, json=body) as response:
        return response.status, await response.json()


async def stream(client: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> tuple[int, list[SseEvent]]:
    parser, events = SseParser(), []
    async with client.post(url, json={**body, "stream": True}) as response:
        async for data, _ in response.content.iter_chunks():
            events += parser.feed(data)
        assert not parser.close()
        return response.status, events


def conversation(tag: str) -> dict[str, dict[str, Any]]:
    """One conversation as each API says it: system, tools, a tool call and its result."""
    arguments = json.dumps({"path": tag})
    chat = [
        {"role": "system", "content": f"You are {tag}."},
        {"role": "user", "content": "go on"},
        {
            "role": "assistant",
            "content": "I look",
            "reasoning_content": "hm",
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "ls", "arguments": arguments}}],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "a b c"},
        {"role": "user", "content": "and?"},
    ]
    messages = [
        {"role": "user", "content": "go on"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": ""},
                {"type": "text", "text": "I look"},
                {"type": "tool_use", "id": "c1", "name": "ls", "input": {"path": tag}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "a b c"},
                {"type": "text", "text": "and?"},
            ],
        },
    ]
    items = [
        {"role": "user", "content": "go on"},
        {"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "I look"}]},
        {"type": "function_call", "call_id": "c1", "name": "ls", "arguments": arguments},
        {"type": "function_call_output", "call_id": "c1", "output": "a b c"},
        {"role": "user", "content": "and?"},
    ]
    return {
        CHAT: {"messages": chat, "tools": [{"type": "function", "function": FUNCTION}], "max_tokens": 4},
        MESSAGES: {
            "model": "m",
            "system": [{"type": "text", "text": f"You are {tag}."}],
            "messages": messages,
            "tools": [{"name": "ls", "description": "list files", "input_schema": PARAMETERS}],
            "max_tokens": 4,
        },
        RESPONSES: {
            "instructions": f"You are {tag}.",
            "input": items,
            "tools": [{"type": "function", **FUNCTION}],
            "max_output_tokens": 6,
        },
    }


def counts(path: str, body: Any) -> tuple[int, int]:
    """Prompt tokens and those of them that were cached."""
    usage = body["usage"]
    if path == MESSAGES:
        cached = usage.get("cache_read_input_tokens", 0)
        return usage["input_tokens"] + cached, cached
    if path == RESPONSES:
        return usage["input_tokens"], usage["input_tokens_details"]["cached_tokens"]
    return usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]


@pytest.mark.parametrize("first", [CHAT, MESSAGES, RESPONSES])
async def test_every_api_hits_what_another_has_cached(url: str, client: aiohttp.ClientSession, first: str) -> None:
    bodies = conversation(f"tag {first}")
    _, reply = await post(client, url + first, bodies[first])
    prompt, _ = counts(first, reply)
    for path, body in bodies.items():
        _, reply = await post(client, url + path, body)
        assert counts(path, reply) == (prompt, prompt - 1)  # all but the last token, as with the same API
    _, counted = await post(client, url + MESSAGES + "/count_tokens", bodies[MESSAGES])
    assert counted == {"input_tokens": prompt}


def test_an_openai_agent(url: str) -> None:
    """The agent sends back what it was told, and all that was generated is found in the cache."""
    client = openai.OpenAI(base_url=url + "/v1", api_key="none")
    tools: Any = [{"type": "function", "function": FUNCTION}]
    talk: Any = [{"role": "user", "content": "start the openai agent"}]
    first = client.chat.completions.create(model="m", messages=talk, tools=tools)
    choice = first.choices[0]
    assert choice.finish_reason == "tool_calls"
    assert choice.message.content == "I will look."
    (call,) = choice.message.tool_calls or []
    assert call.type == "function"
    assert (call.function.name, json.loads(call.function.arguments)) == ("ls", {"path": "a é"})
    message = choice.message.model_dump()
    talk += [
        {key: message[key] for key in ("role", "content", "reasoning_content", "tool_calls")},
        {"role": "tool", "tool_call_id": call.id, "content": "file a"},
    ]
    second = client.chat.completions.create(model="m", messages=talk, tools=tools)
    assert (second.choices[0].finish_reason, second.choices[0].message.content) == ("stop", "Done.")
    assert first.usage is not None
    assert second.usage is not None
    assert second.usage.prompt_tokens_details is not None
    # The last generated token has no KV yet.
    assert second.usage.prompt_tokens_details.cached_tokens == first.usage.total_tokens - 1


def test_an_openai_stream_of_a_call(url: str) -> None:
    client = openai.OpenAI(base_url=url + "/v1", api_key="none")
    tools: Any = [{"type": "function", "function": FUNCTION}]
    with client.chat.completions.stream(
        model="m", messages=[{"role": "user", "content": "start a stream"}], tools=tools
    ) as events:
        kinds = {event.type for event in events}
        choice = events.get_final_completion().choices[0]
    assert "tool_calls.function.arguments.delta" in kinds
    assert choice.finish_reason == "tool_calls"
    (call,) = choice.message.tool_calls or []
    assert json.loads(call.function.arguments) == {"path": "a é"}


def test_openai_responses(url: str) -> None:
    client = openai.OpenAI(base_url=url + "/v1", api_key="none")
    tools: Any = [{"type": "function", **FUNCTION}]
    talk: Any = [{"role": "user", "content": "start the responses"}]
    first = client.responses.create(model="m", input=talk, tools=tools)
    assert [item.type for item in first.output] == ["reasoning", "message", "function_call"]
    assert first.output_text == "I will look."
    talk += [item.model_dump(exclude_none=True) for item in first.output]
    talk += [{"type": "function_call_output", "call_id": talk[-1]["call_id"], "output": "file a"}]
    with client.responses.stream(model="m", input=talk, tools=tools) as events:
        second = list(events)[-1]
    assert second.type == "response.completed"
    assert second.response.output_text == "Done."
    assert first.usage is not None
    assert second.response.usage is not None
    assert second.response.usage.input_tokens_details.cached_tokens == first.usage.total_tokens - 1


def test_an_anthropic_agent(url: str) -> None:
    anthropic = pytest.importorskip("anthropic")
    client = anthropic.Anthropic(base_url=url, api_key="none")
    tools = [{"name": "ls", "description": "list files", "input_schema": PARAMETERS}]
    talk: list[dict[str, Any]] = [{"role": "user", "content": "start the anthropic agent"}]
    with client.messages.stream(model="m", max_tokens=500, messages=talk, tools=tools) as events:
        first = events.get_final_message()
    assert first.stop_reason == "tool_use"
    assert [block.type for block in first.content] == ["thinking", "text", "tool_use"]
    assert first.content[2].input == {"path": "a é"}
    talk += [
        {"role": "assistant", "content": [block.model_dump(exclude_none=True) for block in first.content]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": first.content[2].id, "content": "file a"}],
        },
    ]
    second = client.messages.create(model="m", max_tokens=500, messages=talk, tools=tools)
    assert (second.stop_reason, second.content[0].text) == ("end_turn", "Done.")
    told = first.usage.input_tokens + (first.usage.cache_read_input_tokens or 0) + first.usage.output_tokens
    assert second.usage.cache_read_input_tokens == told - 1
    counted = client.messages.count_tokens(model="m", messages=talk, tools=tools).input_tokens
    assert counted == second.usage.input_tokens + second.usage.cache_read_input_tokens
    with pytest.raises(anthropic.BadRequestError, match="too large"):
        client.messages.create(model="m", max_tokens=5000, messages=talk)


def test_openai_completions(url: str) -> None:
    client = openai.OpenAI(base_url=url + "/v1", api_key="none")
    whole = client.completions.create(model="m", prompt=" abc def")
    assert (len(whole.choices[0].text), whole.choices[0].finish_reason) == (16 * 4, "length")
    chunks = list(client.completions.create(model="m", prompt=" abc def", max_tokens=3, stream=True))
    assert [chunk.choices[0].finish_reason for chunk in chunks] == [None, None, "length"]
    assert whole.choices[0].text.startswith("".join(chunk.choices[0].text for chunk in chunks))
    scripted = client.completions.create(model="m", prompt="file", max_tokens=9)
    assert (scripted.choices[0].text, scripted.choices[0].finish_reason) == ("Done.", "stop")


async def test_calls_are_text_for_who_has_no_tools(url: str, client: aiohttp.ClientSession) -> None:
    body = {"messages": [{"role": "user", "content": "start"}], "max_tokens": 200}
    _, reply = await post(client, url + CHAT, body)
    choice = reply["choices"][0]
    assert choice["message"]["content"] == 'I will look.[{"name":"ls","arguments":{"path":"a é"}}]'
    assert (choice["finish_reason"], "tool_calls" in choice["message"]) == ("stop", False)
    _, raw = await post(client, url + "/generate", {"text": "start"})
    assert raw["text"] == "<think> let me</think>" + choice["message"]["content"]
    _, events = await stream(client, url + "/generate", {"text": "start"})
    assert json.loads(events[-2].data)["text"] == raw["text"]


async def test_a_count_runs_out_and_that_is_said_once(url: str, client: aiohttp.ClientSession, told: list[str]) -> None:
    body = {"messages": [{"role": "user", "content": "twice"}], "max_tokens": 2}
    refused = {**body, "max_tokens": 5000}
    assert (await post(client, url + CHAT, refused))[0] == 400  # what was refused has not been answered
    texts = [(await post(client, url + CHAT, body))[1]["choices"][0]["message"]["content"] for _ in range(4)]
    assert texts[:2] == ["Counted."[:8]] * 2
    assert texts[2] == texts[3] != texts[0]
    assert len(told) == 1


async def test_simulated_acceptance_does_not_overwrite_a_script(client: aiohttp.ClientSession) -> None:
    speculation = Speculation(algorithm="NGRAM", draft_tokens=4, acceptance=Acceptance(length=3.0))
    rule = Rule.model_validate({"text": "as it was written, word by word"})
    with running(
        EngineSettings(context=4096, timing=FAST, speculation=speculation), script=Script((rule,), pytest.fail)
    ) as url:
        _, events = await stream(client, url + "/generate", {"text": "hi"})
    reply = json.loads(events[-2].data)
    assert reply["text"] == rule.text
    assert reply["meta_info"]["finish_reason"]["type"] == "stop"
    assert reply["meta_info"]["spec_verify_ct"] == 3  # 8 tokens: one of the prefill, then three a step


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
