"""Bodies in, calls out: defaults as SGLang has them, and nothing that JSON can say is more than a refusal."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.engine.http_calls import (
    GENERATE_TOKENS,
    Call,
    Rejected,
    chat_call,
    check_context,
    detokenize_call,
    generate_call,
    tokenize_call,
)
from agentx.engine.http_completions import completion_call
from agentx.engine.http_messages import count_tokens, messages_call
from agentx.engine.http_replies import openai_error
from agentx.engine.http_responses import responses_call
from agentx.engine.settings import EngineSettings

SETTINGS = EngineSettings(context=1000)
USER = {"messages": [{"role": "user", "content": " abc"}]}


def chat(**more: Any) -> Call:
    return chat_call(json.dumps({**USER, **more}).encode(), SETTINGS)


def generate(**more: Any) -> Call:
    return generate_call(json.dumps({"text": " abc", **more}).encode(), SETTINGS)


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({}, 1000 - 3 - 1),  # no limit: what the context leaves
        ({"max_tokens": 7}, 7),
        ({"max_tokens": 7, "max_completion_tokens": 8}, 8),  # the newer name wins
        ({"max_tokens": 7, "max_completion_tokens": 0}, 0),  # even with 0
        ({"max_tokens": None}, 996),
    ],
)
def test_chat_limits(more: dict[str, Any], expected: int) -> None:
    assert chat(**more).max_new == expected


def test_generate_limits() -> None:
    assert generate().max_new == GENERATE_TOKENS == 128
    assert generate(sampling_params={"max_new_tokens": None}).max_new == 1000 - 1 - 1


def test_defaults() -> None:
    call = chat()
    assert (call.model, call.min_new, call.ignore_eos, call.stream, call.namespace) == ("default", 0, False, False, "")
    assert call.rid != chat().rid
    assert not chat(stream=True, stream_options={"continuous_usage_stats": True}).continuous_usage
    assert chat(temperature=0.5, unknown=[1]).prompt_tokens == 3  # what the engine does not model is passed over


def test_namespaces_keep_salt_and_key_apart() -> None:
    names = {chat(**more).namespace for more in ({}, {"cache_salt": "a"}, {"extra_key": "a"})}
    assert len(names) == 3
    assert chat(cache_salt="ab").namespace != chat(cache_salt="a", extra_key="b").namespace
    assert chat(cache_salt="").namespace == ""  # empty is none
    assert generate(cache_salt="a").namespace == chat(cache_salt="a").namespace


def test_the_context_holds_prompt_and_reply() -> None:
    assert chat(max_tokens=997).max_new == 997
    with pytest.raises(Rejected, match="a total of 1001 tokens: 3 tokens from the input messages and 998 tokens"):
        chat(max_tokens=998)
    check_context(generate(sampling_params={"max_new_tokens": 999}), SETTINGS)
    with pytest.raises(Rejected, match="context length"):
        check_context(generate(sampling_params={"max_new_tokens": 1000}), SETTINGS)


def test_a_refusal_names_the_field() -> None:
    with pytest.raises(Rejected, match=r"^stream_options\.include_usage: .*boolean") as caught:
        chat(stream_options={"include_usage": "perhaps"})
    assert (caught.value.status, caught.value.kind) == (400, "Bad Request")


KEYS = [
    "messages", "role", "content", "type", "text", "input_ids", "sampling_params", "max_tokens", "max_new_tokens",
    "min_tokens", "stream", "stream_options", "tools", "tool_calls", "n", "rid", "cache_salt", "prompt", "tokens",
    "model", "system", "input", "instructions", "function", "arguments", "name", "output", "summary", "tool_choice",
]  # fmt: skip
KINDS = [
    "assistant", "tool_use", "tool_result", "thinking", "function_call", "function_call_output", "reasoning", "message",
    "custom_tool_call", "function", "none", "output_text",
]  # fmt: skip
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False)
    | st.sampled_from(["user", "system", "text", "\ud800", "\0", "x" * 50, "[" * 5000, "[" * 950 + "]" * 950, *KINDS]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=15,
)


def refusal(read: Callable[[], object]) -> Rejected | None:
    try:
        read()
    except Rejected as error:
        return error
    return None


@given(body=st.binary(max_size=40) | JSON.map(lambda value: json.dumps(value).encode()))
def test_anything_is_a_call_or_a_refusal(body: bytes) -> None:
    for read in (
        lambda: chat_call(body, SETTINGS),
        lambda: check_context(generate_call(body, SETTINGS), SETTINGS),
        lambda: tokenize_call(body),
        lambda: detokenize_call(body),
        lambda: completion_call(body, SETTINGS),
        lambda: messages_call(body, SETTINGS),
        lambda: count_tokens(body),
        lambda: responses_call(body, SETTINGS),
    ):
        error = refusal(read)
        if error is not None:
            assert json.loads(openai_error(error.status, error.message, error.kind))["message"]


MESSAGE = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "tool", "assistant", "x"]), "content": JSON},
    optional={"tool_calls": JSON, "reasoning_content": JSON, "type": st.sampled_from(KINDS), "arguments": JSON},
)
BLOCK = st.fixed_dictionaries(
    {"type": st.sampled_from([*KINDS, "text"])},
    optional=dict.fromkeys(["text", "thinking", "input", "content", "name", "arguments", "output", "summary"], JSON),
)


@given(messages=st.lists(MESSAGE, max_size=3), blocks=st.lists(BLOCK, max_size=4), tools=st.lists(JSON, max_size=2))
def test_any_messages_are_a_call_or_a_refusal(messages: list[Any], blocks: list[Any], tools: list[Any]) -> None:
    more = {"model": "m", "max_tokens": 1, "tools": tools}
    made: list[Any] = [{"role": role, "content": blocks} for role in ("user", "assistant")]
    for body in (
        {"messages": messages},
        {"messages": [*made, *messages], "system": blocks},
        {"input": messages},
        {"input": [*blocks, *made]},
    ):
        data = json.dumps({**body, **more}).encode()
        for read in (chat_call, messages_call, responses_call):
            error = refusal(lambda: read(data, SETTINGS))  # noqa: B023
            assert error is None or error.message


def test_arguments_nested_too_deeply_are_refused_or_text() -> None:
    for depth in (10, 400, 900, 990, 5000, 100_000):
        call = {"function": {"name": "f", "arguments": "[" * depth + "]" * depth}}
        body = {"messages": [{"role": "assistant", "content": "", "tool_calls": [call]}], "max_tokens": 1}
        error = refusal(lambda: chat_call(json.dumps(body).encode(), EngineSettings(context=10**6)))  # noqa: B023
        assert error is None or "deeply" in error.message
