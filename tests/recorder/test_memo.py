"""A body in parts is the body, whatever the parts; what is made of an object that occurs again is made once."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.recorder import memo as module
from agentx.recorder.memo import Memo
from agentx.recorder.parts import split

LONG = "a text that is long enough to be worth a name, and more " * 2
TEXTS = st.sampled_from([LONG, "},{", '"},{"a":1},{"', "\\", '\\"', "x", "{}", "\u2028"])
VALUES = st.recursive(
    TEXTS | st.none() | st.integers(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=20,
)


@given(st.lists(VALUES, max_size=4), st.sampled_from([None, (",", ":"), (", ", ": ")]))
def test_a_body_in_parts_is_the_body(values: list[Any], separators: tuple[str, str] | None) -> None:
    memo: Memo[Any] = Memo()
    for value in (values, {"messages": values}, values):  # what was remembered is used again
        body = json.dumps(value, separators=separators).encode()
        assert memo.load(split(body)) == value


@given(st.binary(max_size=80), st.integers(1, 9))
def test_what_is_no_json_stays_none(data: bytes, size: int) -> None:
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    try:
        value = json.loads(data)
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            Memo[Any]().load(parts)
    else:
        assert Memo[Any]().load(parts) == value


def test_made_once() -> None:
    memo: Memo[list[int]] = Memo()
    calls: list[dict[str, Any]] = []
    messages = [{"content": f"{LONG} {number}"} for number in range(3)]

    def make(value: dict[str, Any]) -> list[int]:
        calls.append(value)
        return [len(calls)]

    for turn in range(1, 4):
        body = json.dumps({"messages": [{"a": 1}, *messages[:turn], {"b": 1}]}).encode()
        made = [memo.made(message, make) for message in memo.load(split(body))["messages"][1:-1]]
    assert made == [[1], [2], [3]]
    assert len(calls) == 3


def test_it_forgets_rather_than_fill_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 1000)
    memo: Memo[Any] = Memo()
    for number in range(50):
        assert memo.load([b"[1", b',{"n":%d,"text":"%b"}' % (number, LONG.encode()), b"]"])[1]["n"] == number
    assert len(memo._short) < 20
