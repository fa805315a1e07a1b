"""The JSON of definitions and calls: what each API reads, and what the embedded engine makes of it."""

from __future__ import annotations

import json

import pytest
from making import linear

from agentx.core import Piece, Segment
from agentx.engine.tokenizer import calls_text as rendered
from agentx.engine.tokenizer import compact
from agentx.wire.messages import Call
from agentx.wire.tooltext import NAMES, bare_definition, calls_text, definition_closes, definition_opens, definitions

CALLS = (Call("call00003", "Read"), Call("call00004", "a_b"))


def definition(number: int, dialect: str, text: bytes = b" abc def") -> bytes:
    return definition_opens(number, dialect) + text + definition_closes(number, dialect)  # type: ignore[arg-type]


@pytest.mark.parametrize("number", [0, 1, 7, len(NAMES) - 1, len(NAMES), 3 * len(NAMES) + 2])
def test_the_engine_renders_what_the_accounting_says(number: int) -> None:
    tool = json.loads(definition(number, "chat"))["function"]
    assert compact(tool).encode() == definition(number, "words")
    other = json.loads(definition(number, "messages"))
    assert (other["name"], other["description"], other["input_schema"]) == tuple(tool.values())


def test_calls_are_rendered_alike() -> None:
    chat = json.loads(b"[" + calls_text(CALLS, "chat") + b"]")
    assert rendered(chat).encode() == b"[" + calls_text(CALLS, "words") + b"]"
    assert [call["id"] for call in chat] == [call.id for call in CALLS]
    used = json.loads(b"[" + calls_text(CALLS, "messages") + b"]")
    assert [(call["type"], call["id"], call["name"]) for call in used] == [("tool_use", *call) for call in CALLS]


def test_words_begin_at_whole_tokens_of_the_engine() -> None:
    text = b"["
    for number in range(2 * len(NAMES)):
        text += definition_opens(number, "words")
        assert len(text) % 4 == 0
        text += b" abc" * number + definition_closes(number, "words") + b","


def test_a_piece_is_one_definition_for_every_512_tokens() -> None:
    session = linear(1, shared={1: Segment(1, "tools", 2000), 2: Segment(2, "system", 25)})
    made = definitions(session, Piece(1, 100, 2000), 4)
    assert [one.number for one in made] == [4, 5, 6]
    assert sum(one.part.tokens for one in made) == 1900
    assert (made[0].part.start, made[-1].part.stop) == (100, 2000)
    assert json.loads(bare_definition("chat"))["function"]["description"]
