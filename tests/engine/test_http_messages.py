"""Bodies of `/v1/messages`: the same ids as the chat that says the same, and a clear refusal of what is not read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentx.engine.http_calls import Call, Rejected
from agentx.engine.http_messages import count_tokens, messages_call
from agentx.engine.settings import EngineSettings
from agentx.engine.tokenizer import chat_ids

SETTINGS = EngineSettings(context=1000)
USER = [{"role": "user", "content": "hi"}]
SCHEMA = {"type": "object", "properties": {}}


def call(**body: Any) -> Call:
    return messages_call(json.dumps({"model": "m", "max_tokens": 9, "messages": USER, **body}).encode(), SETTINGS)


def text(value: str) -> dict[str, str]:
    return {"type": "text", "text": value}


USE = {"type": "tool_use", "id": "toolu_1", "name": "get", "input": {"a": 1}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}
CALLS = [{"function": {"name": "get", "arguments": '{"a": 1}'}}]


@pytest.mark.parametrize(
    ("body", "chat"),
    [
        ({}, USER),
        ({"system": "be brief"}, [{"role": "system", "content": "be brief"}, *USER]),
        (
            {"system": [text("be "), {**text("brief"), "cache_control": {"type": "ephemeral"}}]},
            [{"role": "system", "content": "be brief"}, *USER],
        ),
        ({"system": ""}, USER),
        ({"messages": [{"role": "user", "content": [text("h"), text("i")]}]}, USER),
        (  # a tool result is a message of its own, in its place
            {"messages": [*USER, {"role": "user", "content": [text("a"), RESULT, {**RESULT}, text("b"), text("c")]}]},
            [
                *USER,
                {"role": "user", "content": "a"},
                {"role": "tool", "content": "ok"},
                {"role": "tool", "content": "ok"},
                {"role": "user", "content": "bc"},
            ],
        ),
        (  # a result of blocks, one of nothing
            {"messages": [{"role": "user", "content": [{**RESULT, "content": [text("o"), text("k")]}]}]},
            [{"role": "tool", "content": "ok"}],
        ),
        (
            {"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "x"}]}]},
            [{"role": "tool", "content": ""}],
        ),
        (  # thinking, text and calls are one message; signatures do not count
            {
                "messages": [
                    {
                        "role": "assistant",
                        "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, text("I go"), USE],
                    }
                ]
            },
            [{"role": "assistant", "content": "I go", "reasoning_content": "hm", "tool_calls": CALLS}],
        ),
        *(
            ({"messages": [*USER, {"role": role, "content": "so"}]}, [*USER, {"role": role, "content": "so"}])
            for role in ("user", "assistant", "system")
        ),
    ],
)  # fmt: skip
def test_a_conversation_is_its_chat(body: dict[str, Any], chat: list[dict[str, Any]]) -> None:
    assert call(**body).prompt == chat_ids(chat)


def test_tools_are_those_of_chat() -> None:
    function = {"name": "get", "description": "d", "parameters": SCHEMA}
    tools = [
        {"name": "get", "description": "d", "input_schema": SCHEMA},
        {"type": "web_search_20250305", "name": "web_search"},  # runs at Anthropic
    ]
    made = call(tools=tools)
    assert made.prompt == chat_ids(USER, [{"type": "function", "function": function}])
    assert made.tools
    none = call(tools=tools, tool_choice={"type": "none"})
    assert (none.prompt, none.tools) == (chat_ids(USER), False)


def test_what_a_call_is() -> None:
    made = call(stream=True, messages=[*USER, {"role": "user", "content": [RESULT]}])
    assert (made.max_new, made.stream, made.model, made.last, made.parsed) == (9, True, "m", "ok", True)
    assert made.rid.startswith("msg_")


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 1001}, "max_completion_tokens is too large: 1001"),
        ({"model": None}, "model"),
        ({"messages": []}, "Messages cannot be empty"),
        ({"messages": [{"role": "user", "content": []}]}, "Messages cannot be empty"),
        ({"messages": [{"role": "robot", "content": "a"}]}, r"messages\.0\.role"),
        ({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}, r"messages\.0: .*'image'"),
        ({"messages": [{"role": "user", "content": [{**RESULT, "content": [{"type": "image"}]}]}]}, "'image'"),
        ({"messages": [{"role": "user", "content": [{**RESULT, "content": 7}]}]}, r"messages\.0"),
        ({"messages": [{"role": "assistant", "content": [{"type": "redacted_thinking", "data": ""}]}]}, "redacted_th"),
        ({"messages": [{"role": "assistant", "content": [{"type": "text"}]}]}, "'text'"),
        ({"system": [{"type": "image"}]}, "system: .*'image'"),
        ({"tool_choice": {"type": "any"}}, "at least one custom tool"),
    ],
)
def test_refusals(body: dict[str, Any], says: str) -> None:
    with pytest.raises(Rejected, match=says) as caught:
        call(**body)
    assert caught.value.status == 400


def test_the_context_is_looked_at_later() -> None:
    # SGLang has sent the 200 of a stream by then; a reply that no context holds is refused before.
    assert call(max_tokens=1000).max_new == 1000


def test_counting_needs_no_limit() -> None:
    body = {"model": "m", "messages": USER, "system": "be brief", "tools": [{"name": "f", "input_schema": SCHEMA}]}
    assert count_tokens(json.dumps(body).encode()) == call(**body).prompt_tokens
    with pytest.raises(Rejected, match="messages"):
        count_tokens(b'{"model": "m"}')
