"""Conversations with text: vLLM's multi-turn files and ShareGPT."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from importing import layers

from agentx.core import Session, Text
from agentx.errors import BadInput
from agentx.recorder.imports.books import Books
from agentx.recorder.imports.chats import make_format
from agentx.recorder.imports.running import import_files
from agentx.trace import read_trace


def imported(tmp_path: Path, value: Any) -> tuple[list[Session], Books]:
    (tmp_path / "in.json").write_text(json.dumps(value))
    books = import_files(make_format(), [tmp_path / "in.json"], tmp_path / "out.trace")
    return list(read_trace(tmp_path / "out.trace")), books


def said(*pairs: tuple[str, str]) -> list[dict[str, str]]:
    return [{"role": role, "content": text} for role, text in pairs]


def test_each_assistant_message_is_a_turn_with_its_text(tmp_path: Path) -> None:
    talk = said(
        ("system", "be brief"), ("user", "hi there"), ("assistant", "hello"), ("user", "bye"), ("assistant", "ok")
    )
    (session,), books = imported(tmp_path, [{"id": "x", "messages": [*talk, *said(("user", "late"))]}])
    assert session.id == "x"
    assert [(turn.isl, turn.output.tokens) for turn in session.turns] == [(4, 2), (7, 1)]
    assert layers(session, 1) == [("system", 2), ("user", 2), ("assistant", 2), ("user", 1)]
    assert session.segment(session.turns[0].reply or 0).content == Text("hello")
    assert books.rows.dropped == {"behind the last assistant message: no call has it": 1}
    assert (books.rows.read, books.rows.used) == (6, 5)
    assert read_trace(tmp_path / "out.trace").header.content == "text"


def test_sharegpt_has_other_names_for_the_same(tmp_path: Path) -> None:
    talk = [{"from": "human", "value": "hi"}, {"from": "gpt", "value": "hello"}]
    sessions, books = imported(tmp_path, [{"conversations": talk}, {"conversations": talk[:1]}])
    assert [(session.id, session.turns[0].isl) for session in sessions] == [("row-1", 1)]
    assert books.sessions.dropped == {"no assistant message: it makes no call": 1}


def test_conversations_that_begin_alike_share_their_tokens(tmp_path: Path) -> None:
    talk = said(("system", "be brief"), ("user", "hi"), ("assistant", "hello"))
    first, second = imported(tmp_path, [{"messages": talk}, {"messages": talk}])[0]
    assert first.runs(0) == second.runs(0)


def test_a_recipe_is_refused_with_the_way_out(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"in\.json: this is a recipe .*write a workload spec"):
        imported(tmp_path, {"filetype": "generate_conversations", "num_conversations": 24})


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": 1}, "not a list of conversations: this looks like an object with the keys a"),
        ([{"a": 1}], "conversation 1: not a conversation"),
        ([{"messages": said(("robot", "x"))}], "conversation 1: message 1: role: 'robot' is not one of"),
        (
            [{"messages": [{"role": "user", "content": [1]}]}],
            r"conversation 1: message 1: content: \[1\] is not a text",
        ),
        ([{"messages": 5}], "conversation 1: messages: 5 is not a list"),
    ],
)
def test_what_is_no_conversation_is_refused_with_its_place(tmp_path: Path, value: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        imported(tmp_path, value)


def test_a_name_that_no_utf8_holds_is_refused_with_its_file(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"in\.json: session '\\ud800': a session frame holds a value that cannot be"):
        imported(tmp_path, [{"id": "\ud800", "messages": said(("user", "a"), ("assistant", "b"))}])


def test_one_conversation_on_its_own_is_a_file_too(tmp_path: Path) -> None:
    (session,), _ = imported(tmp_path, {"id": "x", "messages": said(("user", "a"), ("assistant", "b"))})
    assert session.id == "x"
