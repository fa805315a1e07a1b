"""Agents on the public clients: the same conversation is the same tokens in every API, scripts answer in all of them,
and what was generated and is sent back is found in the cache."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import openai
import pytest
from asking import CHAT, FAST, MESSAGES, RESPONSES, post, stream

from agentx.engine.http_script import Rule, Script
from agentx.engine.server import running
from agentx.engine.settings import Acceptance, EngineSettings, Speculation

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
