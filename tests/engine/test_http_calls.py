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
from agentx.engine.http_replies import openai_error
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
]  # fmt: skip
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats(allow_nan=False)
    | st.sampled_from(["user", "system", "text", "\ud800", "\0", "x" * 50]),
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
    ):
        error = refusal(read)
        if error is not None:
            assert json.loads(openai_error(error.status, error.message, error.kind))["message"]


MESSAGE = st.fixed_dictionaries({"role": st.sampled_from(["user", "tool", "x"]), "content": JSON})


@given(messages=st.lists(MESSAGE, max_size=3))
def test_any_messages_are_a_call_or_a_refusal(messages: list[object]) -> None:
    body = json.dumps({"messages": messages, "max_tokens": 1}).encode()
    error = refusal(lambda: chat_call(body, SETTINGS))
    assert error is None or error.message
