"""Four bytes a token, one marker a message: counts are exact, and ids are the text itself."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.engine.tokenizer import (
    MARKERS,
    chat_ids,
    ids_from_list,
    ids_to_list,
    ids_to_text,
    message_text,
    text_ids,
)

SYSTEM, USER, ASSISTANT, TOOL = (MARKERS[role] for role in ("system", "user", "assistant", "tool"))


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([], ASSISTANT),  # only the request for a reply
        ([{"role": "user", "content": " abc def"}], USER + b" abc def" + ASSISTANT),
        ([{"role": "user", "content": "abcde"}], USER + b"abcde   " + ASSISTANT),  # padded with spaces
        ([{"role": "user", "content": ""}], USER + ASSISTANT),
        ([{"role": "assistant", "content": None}], ASSISTANT + ASSISTANT),  # null is empty
        ([{"role": "assistant"}], ASSISTANT + ASSISTANT),
        ([{"role": "developer", "content": " abc"}], SYSTEM + b" abc" + ASSISTANT),
        (
            [{"role": "tool", "content": [{"type": "text", "text": " ab"}, {"type": "text", "text": "c"}]}],
            TOOL + b" abc" + ASSISTANT,
        ),
        ([{"role": "user", "content": "é"}], USER + b"\xc3\xa9  " + ASSISTANT),  # bytes count, not characters
        ([{"role": "user", "content": "\ud800"}], USER + b"\xed\xa0\x80 " + ASSISTANT),
        ([{"role": "system", "content": "a"}, {"role": "user", "content": "b"}], b"\1\0\0\0a   \2\0\0\0b   \3\0\0\0"),
    ],
)
def test_chat_ids(messages: list[dict[str, Any]], expected: bytes) -> None:
    assert chat_ids(messages) == expected


def call(arguments: object, **more: object) -> dict[str, Any]:
    return {**more, "type": "function", "function": {"name": "f", "arguments": arguments}}


@pytest.mark.parametrize(
    ("message", "text"),
    [
        ({"content": None, "tool_calls": [call("{}", id="1")]}, '[{"name":"f","arguments":{}}]'),  # ids do not count
        ({"content": "a", "tool_calls": [call('{"b": 1,\n"a": "é"}')]}, 'a[{"name":"f","arguments":{"b":1,"a":"é"}}]'),
        ({"content": "a", "tool_calls": [call("{cut")]}, 'a[{"name":"f","arguments":"{cut"}]'),  # as it came
        ({"content": "a", "tool_calls": ["x"]}, 'a["x"]'),
        ({"content": "a", "tool_calls": []}, "a"),
        ({"content": "a", "reasoning_content": "hm"}, "<think>hm</think>a"),
        ({"content": "a", "reasoning_content": ""}, "a"),
        ({"content": "a", "reasoning_content": None}, "a"),
    ],
)
def test_what_an_assistant_said(message: dict[str, Any], text: str) -> None:
    assert message_text(message) == text


def test_tools_are_part_of_the_prompt() -> None:
    function = {"name": "f", "description": "", "parameters": {"type": "object"}, "strict": False}
    assert chat_ids([], [{"type": "function", "function": function}]) == (
        SYSTEM + text_ids('[{"name":"f","parameters":{"type":"object"}}]') + ASSISTANT
    )
    assert chat_ids([], [{"type": "function"}]) == SYSTEM + b'[{"type":"function"}]   ' + ASSISTANT


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ({"content": "a"}, "role must be one of"),
        ({"role": "robot", "content": "a"}, "'robot'"),
        ({"role": ["user"], "content": "a"}, "role must be"),
        ({"role": "user", "content": 7}, "got int"),
        ({"role": "user", "content": {"text": "a"}}, "got dict"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": {}}]}, "'image_url'"),
        ({"role": "user", "content": [7]}, "content parts"),
        ({"role": "user", "content": [{"type": "text"}]}, "content parts"),
    ],
)
def test_what_is_no_message_is_refused(message: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        chat_ids([message])


@given(st.lists(st.tuples(st.sampled_from(sorted(MARKERS)), st.text(max_size=20)), max_size=5))
def test_length_is_exact(messages: list[tuple[str, str]]) -> None:
    ids = chat_ids([{"role": role, "content": text} for role, text in messages])
    words = sum(-(-len(text.encode("utf-8", "surrogatepass")) // 4) for _, text in messages)
    assert len(ids) == 4 * (words + len(messages) + 1)


@given(st.lists(st.integers(0, 2**32 - 1), max_size=20))
def test_numbers_round_trip(numbers: list[int]) -> None:
    assert ids_to_list(ids_from_list(numbers)) == numbers


def test_an_id_is_the_little_endian_number_of_its_word() -> None:
    assert ids_to_list(text_ids(" abc")) == [int.from_bytes(b" abc", "little")]


@pytest.mark.parametrize("ids", [[-1], [2**32], [1.5], ["1"], [None], [[1]]])
def test_numbers_that_are_no_ids(ids: list[object]) -> None:
    with pytest.raises(ValueError, match="whole numbers"):
        ids_from_list(ids)


def test_text_comes_back_without_markers() -> None:
    assert ids_to_text(chat_ids([{"role": "user", "content": " abc def"}])) == " abc def"
    assert ids_to_text(b"\xc3\xa9  ") == "é  "
    assert ids_to_text(b"\xff\xff\xff\xff") == "\ufffd" * 4
