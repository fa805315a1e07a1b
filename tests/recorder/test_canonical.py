"""Requests of every wire as items: what is equal is equal, what differs differs, and nothing that is sent breaks it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.recorder.canonical import ID_BLOCK, TEXT_BLOCK, Call, NotACall, argument_texts, tool_calls
from agentx.recorder.canonical import assistant as assistant_items
from agentx.recorder.canonical import read_call as read_parts
from agentx.recorder.memo import Memo
from agentx.recorder.parts import split

CALL = {"id": "t", "type": "function", "function": {"name": "f", "arguments": '{"a": "b"}'}}


def read_call(wire: str, body: bytes) -> Call:
    """The call of a body; as it is stored, in parts, it is the same."""
    whole = read_parts(wire, [body], Memo())
    assert read_parts(wire, split(body), Memo()) == whole
    return whole


def items(wire: str, request: dict[str, Any]) -> list[tuple[str, bytes]]:
    return [(item.layer, item.key) for item in read_call(wire, json.dumps(request).encode()).items]


def layers(wire: str, request: dict[str, Any]) -> list[str]:
    return [layer for layer, _ in items(wire, request)]


def messages(*content: Any) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": each} for each in content]}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (messages("a"), messages([{"type": "text", "text": "a"}])),
        (messages([{"type": "text", "text": "a"}]), messages([{"text": "a", "type": "text"}])),  # order of keys
        (
            messages([{"type": "text", "text": "a"}]),
            messages([{"type": "text", "text": "a", "cache_control": {"type": "e"}}]),
        ),
        (  # where agents put the marker: on the last result, on the last tool, on what is in a result
            messages([{"type": "tool_result", "tool_use_id": "t", "content": "a"}]),
            messages([{"type": "tool_result", "tool_use_id": "t", "content": "a", "cache_control": {"type": "e"}}]),
        ),
        (
            messages([{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "a"}]}]),
            messages(
                [
                    {
                        "type": "tool_result",
                        "tool_use_id": "t",
                        "content": [{"type": "text", "text": "a", "cache_control": {"type": "e"}}],
                    }
                ]
            ),
        ),
        (
            {"tools": [{"name": "t", "input_schema": {}}], **messages("a")},
            {"tools": [{"name": "t", "input_schema": {}, "cache_control": {"type": "e"}}], **messages("a")},
        ),
        (
            messages([{"type": "tool_result", "tool_use_id": "t", "content": "a"}]),
            messages([{"type": "tool_result", "tool_use_id": "t", "content": [{"type": "text", "text": "a"}]}]),
        ),
        (
            {"messages": [{"role": "assistant", "content": [{"type": "text", "text": "a"}]}]},
            {"messages": [{"role": "assistant", "content": "a", "refusal": None, "annotations": []}]},
        ),
        (
            {
                "messages": [
                    {
                        "role": "assistant",
                        "content": [
                            {"type": "thinking", "thinking": "x", "signature": "s"},
                            {"type": "text", "text": "a"},
                        ],
                    }
                ]
            },
            {
                "messages": [
                    {
                        "role": "assistant",
                        "content": [
                            {"type": "thinking", "thinking": "x", "signature": "t"},
                            {"type": "text", "text": "a"},
                        ],
                    }
                ]
            },
        ),
        (
            {"system": "x-anthropic-billing-header: v=1; cch=aaa;", **messages("a")},
            {"system": [{"type": "text", "text": "x-anthropic-billing-header: v=1; cch=bbb;"}], **messages("a")},
        ),
    ],
)
def test_what_does_not_count(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert items("messages", one) == items("messages", other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (messages("a"), messages("a ")),
        (messages("cch=a"), messages("cch=b")),  # only in the billing header
        (
            {"system": "x-anthropic-billing-header: v=1; cch=a", **messages("a")},
            {"system": "x-anthropic-billing-header: v=2; cch=a", **messages("a")},
        ),
        ({"messages": [{"role": "user", "content": "a"}]}, {"messages": [{"role": "assistant", "content": "a"}]}),
        ({"tools": [{"name": "a"}], **messages("a")}, {"tools": [{"name": "b"}], **messages("a")}),
        (
            messages([{"type": "image", "source": {"data": "AAAA"}}]),
            messages([{"type": "image", "source": {"data": "BBBB"}}]),
        ),
    ],
)
def test_what_counts(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert items("messages", one) != items("messages", other)


def test_layers_of_an_anthropic_prompt() -> None:
    request = {
        "tools": [{"name": "a"}, {"name": "b"}],
        "system": [{"type": "text", "text": "s"}, {"type": "text", "text": "t"}],
        "messages": [
            {"role": "user", "content": "q"},
            {
                "role": "assistant",
                "content": [{"type": "text", "text": "x"}, {"type": "tool_use", "id": "1", "name": "a", "input": {}}],
            },
            {
                "role": "user",
                "content": [
                    {"type": "tool_result", "tool_use_id": "1", "content": "r"},
                    {"type": "text", "text": "and"},
                ],
            },
        ],
    }
    assert layers("messages", request) == [
        "tools",
        "tools",
        "system",
        "system",
        "user",
        "assistant",
        "tool_result",
        "user",
    ]
    answered = [item.answers for item in read_call("messages", json.dumps(request).encode()).items]
    assert answered[6] == ("1",)


def test_layers_of_a_chat_prompt() -> None:
    request = {
        "messages": [
            {"role": "developer", "content": "s"},
            {"role": "user", "content": "q"},
            {"role": "assistant", "content": None, "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "t", "content": "r"},
            {"role": "system", "content": "in the middle"},
        ]
    }
    assert layers("chat", request) == ["system", "user", "assistant", "tool_result", "user"]


def _entry(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, **more}


SAID, CALLED = (
    _entry("message", role="assistant", content=[{"type": "output_text", "text": "a"}]),
    _entry("function_call", call_id="1", name="f", arguments="{}"),
)
ANSWER, THOUGHT = _entry("function_call_output", call_id="1", output="x"), _entry("reasoning", summary=[])


@pytest.mark.parametrize(
    ("entries", "glued"),
    [
        ([SAID, CALLED, CALLED], [False, True, True]),  # one message: what it says, and its calls
        ([CALLED, CALLED], [False, True]),
        ([SAID, SAID], [False, False]),  # a second message is another one
        ([THOUGHT, SAID, CALLED], [False, True]),  # reasoning is no item
        ([CALLED, THOUGHT, CALLED], [False, False]),  # and begins a message
        ([CALLED, ANSWER, CALLED], [False, False, False]),
        ([SAID, {"role": "user", "content": "b"}, CALLED], [False, False, False]),
        ([SAID, {"role": "developer", "content": "b"}, CALLED], [False, False, False]),
    ],
)
def test_which_entries_of_responses_are_one_message(entries: list[dict[str, Any]], glued: list[bool]) -> None:
    """A chat template frames messages, so that a recorded server's template can be left out of the parts."""
    call = read_call("responses", json.dumps({"input": entries}).encode())
    assert [item.glued for item in call.items] == glued


def test_layers_of_a_responses_prompt() -> None:
    request = {
        "instructions": "s",
        "input": [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "q"}]},
            {"type": "reasoning", "encrypted_content": "zzz"},
            {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "1", "output": "r"},
        ],
    }
    assert layers("responses", request) == ["system", "user", "assistant", "tool_result"]
    assert items("responses", {"input": "q"}) == items("responses", {"input": request["input"][:1]})


def test_prompts_without_messages() -> None:
    text = read_call("completions", json.dumps({"prompt": "x" * (2 * TEXT_BLOCK + 1)}).encode()).items
    assert [(item.weight, item.glued) for item in text] == [(TEXT_BLOCK, False), (TEXT_BLOCK, True), (1, True)]
    ids = read_call("generate", json.dumps({"input_ids": list(range(ID_BLOCK + 3))}).encode()).items
    assert [item.tokens for item in ids] == [ID_BLOCK, 3]


@pytest.mark.parametrize(
    ("request_", "name", "value"),
    [
        ({"metadata": {"user_id": '{"device_id": "d", "session_id": "s-1"}'}}, "metadata.user_id", "s-1"),
        ({"metadata": {"user_id": "user_ab_account_cd_session_0123abcd-ef"}}, "metadata.user_id", "0123abcd-ef"),
        ({"prompt_cache_key": "k"}, "prompt_cache_key", "k"),
        ({"conversation": {"id": "c"}}, "conversation", "c"),
        ({"conversation": "c"}, "conversation", "c"),
    ],
)
def test_ids_in_the_body(request_: dict[str, Any], name: str, value: str) -> None:
    assert read_call("chat", json.dumps({**request_, **messages("a")}).encode()).ids[0] == (name, value)


@pytest.mark.parametrize(
    ("body", "says"),
    [(b"", "not JSON"), (b"[1]", "not a JSON object"), (b"\xff", "not JSON"), (b'{"a":1}', "no prompt")],
)
def test_what_is_no_call(body: bytes, says: str) -> None:
    with pytest.raises(NotACall, match=says):
        read_call("chat", body)


def test_tool_calls_and_their_texts() -> None:
    message = {"content": [{"type": "tool_use", "id": "1", "name": "Task", "input": {"prompt": "p", "n": [1, "q"]}}]}
    (call,) = tool_calls(message)
    assert (call.id, call.name, call.texts) == ("1", "Task", ("p", "q"))
    assert tool_calls({"tool_calls": [CALL]})[0].texts == ("b",)
    assert argument_texts("{broken") == argument_texts(None) == ()


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.sampled_from(["text", "tool_use", "tool_result", "assistant", "user", "tool", "thinking", "image", "message"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "role", "content", "text", "tool_calls", "function", "arguments", "input", "id", "output"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(
    st.sampled_from(["chat", "messages", "responses", "completions", "generate"]),
    st.dictionaries(
        st.sampled_from(
            ["model", "messages", "system", "tools", "input", "instructions", "prompt", "metadata", "text"]
        ),
        JSON,
    ),
)
def test_no_json_breaks_it(wire: str, request_: dict[str, Any]) -> None:
    """Whatever JSON holds is read or refused."""
    try:
        call = read_call(wire, json.dumps(request_).encode())
    except NotACall:
        return
    assert all(item.weight > 0 for item in call.items)


@given(JSON)
def test_no_message_breaks_it(content: Any) -> None:
    message = {"content": content, "tool_calls": content}
    assert list(assistant_items(message)) == list(assistant_items(message))
    assert tool_calls(message) == tool_calls(message)
