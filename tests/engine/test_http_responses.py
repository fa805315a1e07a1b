"""Bodies of `/v1/responses`: items become the chat that says the same; what needs a store is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentx.engine.http_calls import Call, Rejected
from agentx.engine.http_responses import responses_call
from agentx.engine.settings import EngineSettings
from agentx.engine.tokenizer import chat_ids

SETTINGS = EngineSettings(context=1000)
USER = {"role": "user", "content": "hi"}


def call(**body: Any) -> Call:
    return responses_call(json.dumps({"input": "hi", **body}).encode(), SETTINGS)


def said(text: str, kind: str = "output_text") -> list[dict[str, str]]:
    return [{"type": kind, "text": text}]


THINK = {"type": "reasoning", "summary": [], "content": said("hm", "reasoning_text")}
SAY = {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": said("I go")}
DO = {"type": "function_call", "call_id": "c1", "name": "get", "arguments": '{"a": 1}'}
DONE = {"type": "function_call_output", "call_id": "c1", "output": "ok"}
CALL = {"function": {"name": "get", "arguments": '{"a":1}'}}


def turn(**more: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": "", **more}


@pytest.mark.parametrize(
    ("items", "chat"),
    [
        ([USER], [USER]),
        ([{"role": "user", "content": said("hi", "input_text")}], [USER]),
        ([{"role": "developer", "content": "r"}, USER], [{"role": "system", "content": "r"}, USER]),
        (  # what an assistant did in one turn is one message
            [USER, THINK, SAY, DO, DO, DONE, DONE],
            [
                USER,
                turn(content="I go", reasoning_content="hm", tool_calls=[CALL, CALL]),
                {"role": "tool", "content": "ok"},
                {"role": "tool", "content": "ok"},
            ],
        ),
        ([USER, DO], [USER, turn(tool_calls=[CALL])]),
        ([USER, THINK, DO], [USER, turn(reasoning_content="hm", tool_calls=[CALL])]),
        ([SAY, SAY], [turn(content="I go"), turn(content="I go")]),  # two messages are two
        ([DO, SAY], [turn(tool_calls=[CALL]), turn(content="I go")]),
        ([DO, THINK], [turn(tool_calls=[CALL]), turn(reasoning_content="hm")]),
        ([THINK, THINK], [turn(reasoning_content="hm"), turn(reasoning_content="hm")]),
        ([{**THINK, "summary": said("short", "summary_text")}], [turn(reasoning_content="short")]),
        ([USER, {"type": "reasoning", "summary": [], "encrypted_content": "x"}], [USER]),  # says nothing
        ([{**DONE, "output": said("ok", "input_text")}], [{"role": "tool", "content": "ok"}]),
        (
            [{"type": "custom_tool_call", "name": "patch", "input": "x"}],
            [turn(tool_calls=[{"function": {"name": "patch", "arguments": '{"input":"x"}'}}])],
        ),
        ([{"type": "custom_tool_call_output", "output": "ok"}], [{"role": "tool", "content": "ok"}]),
    ],
)
def test_items_are_their_chat(items: list[dict[str, Any]], chat: list[dict[str, Any]]) -> None:
    assert call(input=items).prompt == chat_ids(chat)


def test_instructions_and_text() -> None:
    made = call(instructions="be brief")
    assert made.prompt == chat_ids([{"role": "system", "content": "be brief"}, USER])
    assert (made.last, made.parsed, made.tools, made.stream) == ("hi", True, False, False)
    assert made.rid.startswith("resp_")


def test_tools_are_those_of_chat() -> None:
    function = {"name": "get", "description": "d", "parameters": {"type": "object"}}
    tools = [{"type": "function", "strict": True, **function}, {"type": "web_search"}]
    made = call(tools=tools)
    assert made.prompt == chat_ids([USER], [{"type": "function", "function": function}])
    assert made.tools
    assert made.told["tools"] == tools  # a response repeats them all
    assert call(tools=tools, tool_choice="none").prompt == chat_ids([USER])


def test_limits() -> None:
    assert call(max_output_tokens=50).max_new == 48  # SGLang keeps two
    assert call().max_new == 1000 - 3 - 1
    assert call(max_output_tokens=5000).max_new == 4998  # refused later: SGLang has sent the 200 of a stream by then


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"input": None}, "input"),
        ({"input": []}, "Messages cannot be empty"),
        ({"input": [{"type": "web_search_call"}]}, r"input\.0: .*'web_search_call'"),
        ({"input": [{"role": "user", "content": [{"type": "input_image"}]}]}, r"input\.0: .*'input_image'"),
        ({"input": [{"role": "user"}]}, r"input\.0: content"),
        ({"input": [{"role": "robot", "content": "a"}]}, "'robot'"),
        ({"input": [{"type": "reasoning", "content": [{}]}]}, r"input\.0\.content"),
        ({"input": [7]}, "input"),
        ({"previous_response_id": "resp_1"}, "previous_response_id: this engine stores no responses"),
        ({"background": True}, "background: this engine stores no responses"),
    ],
)
def test_refusals(body: dict[str, Any], says: str) -> None:
    with pytest.raises(Rejected, match=says) as caught:
        call(**body)
    assert caught.value.status == 400
