"""Trie rows become sessions of lengths."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from importing import Json, layers, write

from agentx.core import Gap
from agentx.errors import BadInput
from agentx.recorder.imports.running import import_files
from agentx.recorder.imports.trie import convert, make_format
from agentx.trace import read_trace


def row(prompt: int, replies: list[int], results: list[int], waits: list[float], final: int, **more: object) -> Json:
    return {
        "num_turns": len(replies),
        "input_prompt_length": prompt,
        "assistant_response_length": replies,
        "tool_call_output_length": results,
        "tool_call_latency": waits,
        "final_assistant_response_length": final,
        **more,
    }


def test_a_row_is_a_tool_loop(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", row(100, [10, 5], [30, 0], [0.25, 4.0], 7), row(28, [], [], [], 3))
    books = import_files(make_format(), [source], tmp_path / "out.trace")
    loop, single = read_trace(tmp_path / "out.trace")
    assert [turn.isl for turn in loop.turns] == [100, 140, 145]
    assert [turn.output.tokens for turn in loop.turns] == [10, 5, 7]
    assert [turn.gap for turn in loop.turns[1:]] == [Gap("tool", 0.25), Gap("tool", 4.0)]
    assert layers(loop, 2) == [("user", 100), ("assistant", 10), ("tool_result", 30), ("assistant", 5)]
    assert [turn.isl for turn in single.turns] == [28]
    assert (books.rows.read, books.rows.used, books.sessions.used) == (2, 2, 2)


@given(st.data())
def test_lengths_are_kept(data: st.DataObject) -> None:
    count = data.draw(st.integers(0, 6))
    sizes = st.lists(st.integers(0, 50), min_size=count, max_size=count)
    prompt, replies, results = data.draw(st.integers(0, 99)), data.draw(sizes), data.draw(sizes)
    session = convert(row(prompt, replies, results, [0.0] * count, 4), "s")
    assert [turn.output.tokens for turn in session.turns] == [*replies, 4]
    isl = [prompt + sum(replies[:n]) + sum(results[:n]) for n in range(count + 1)]
    assert [turn.isl for turn in session.turns] == isl
    assert [sum(piece.tokens for piece in session.pieces(n)) for n in range(count + 1)] == isl


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_turns": 3}, "assistant_response_length has 1 values, num_turns is 3"),
        ({"tool_call_latency": [-1]}, r"tool_call_latency\[0\]: -1.0 is not"),
        ({"tool_call_latency": [None]}, r"tool_call_latency\[0\]: None is not"),
        ({"assistant_response_length": [1.5]}, r"assistant_response_length\[0\]: 1.5 is not a whole number"),
        ({"tool_call_output_length": 7}, "tool_call_output_length: 7 is not a list"),
        ({"input_prompt_length": "9"}, "input_prompt_length: '9' is not a whole number"),
    ],
)
def test_a_bad_row_is_refused_with_its_place(tmp_path: Path, change: Json, message: str) -> None:
    source = write(tmp_path / "in.jsonl", row(1, [1], [1], [0.1], 1), {**row(1, [1], [1], [0.1], 1), **change})
    with pytest.raises(BadInput, match=r"in\.jsonl:2: " + message):
        import_files(make_format(), [source], tmp_path / "out.trace")


def test_an_unknown_key_is_counted(tmp_path: Path) -> None:
    source = write(tmp_path / "in.jsonl", row(1, [], [], [], 0, tag="x"))
    books = import_files(make_format(), [source], tmp_path / "out.trace")
    assert books.notes == {"key 'tag' is not part of the format: left out": 1, "reply of no tokens": 1}
