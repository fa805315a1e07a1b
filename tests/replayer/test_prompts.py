"""The prompts of a simulation are what the engine's tokenizer makes of the bodies that a replay sends."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.content import Encoder, WordList, lexicon
from agentx.core import LEADING_LAYERS, Piece, Prompt, Segment, Session, Text
from agentx.engine.http_messages import _chat, _Messages, _tools
from agentx.engine.tokenizer import chat_ids, ids_from_list
from agentx.errors import BadInput
from agentx.replayer.bodies import Bodies, Wire
from agentx.replayer.moves import Key
from agentx.replayer.prompts import Prompts
from agentx.replayer.schedule import Send
from tests.making import linear, sessions, with_tools

ENCODER = Encoder(WordList(lexicon()))


def both(session, wire, policy, turns, play=0, keep_bytes=1 << 20, shape="plain"):
    """(ids by the simulation, ids that the server reads) of each turn; BadInput counts as an answer."""
    prompts = Prompts(ENCODER, chat=wire != "generate", policy=policy, salt="s", shape=shape, keep_bytes=keep_bytes)
    bodies = Bodies(ENCODER, Wire(wire, "m", shape=shape), policy=policy, salt="s")
    for turn in turns:
        send = Send(Key(3, turn), session, play, 0, 0.0, 0.0)
        yield answer(lambda send=send: prompts.ids(send)), answer(lambda send=send: read(bodies.body(send), wire))
    prompts.forget(3, session)
    assert prompts._held == 0


def answer(make):
    try:
        return make()
    except BadInput as error:
        return str(error)


def read(body, wire):
    asked = json.loads(body)
    if wire == "messages":  # the server refuses a prompt of nothing, and has no message for an empty system prompt
        chat, tools = _chat(_Messages.model_validate(asked)), _tools(_Messages.model_validate(asked))
        return chat_ids(chat, tools)
    return (
        chat_ids(asked["messages"], asked.get("tools") or ()) if wire == "chat" else ids_from_list(asked["input_ids"])
    )


WAYS = [("chat", "plain"), ("chat", "tools"), ("generate", "plain"), ("messages", "tools")]


@given(sessions(), st.sampled_from(WAYS), st.sampled_from(["run", "session", "none"]), st.data())
def test_they_are_the_tokens_of_the_body(session, way, policy, data):
    turns = [turn.index for turn in session.turns if way[0] != "messages" or says_something(session, turn.index)]
    turns = data.draw(st.lists(st.sampled_from(turns), max_size=8)) if turns else []
    play, keep = data.draw(st.integers(0, 2)), data.draw(st.sampled_from([0, 1 << 20]))
    for ours, theirs in both(session, way[0], policy, turns, play, keep, way[1]):
        assert ours == theirs


def says_something(session, turn):
    """Anthropic's API has no empty system prompt, and no prompt of nothing but one."""
    pieces = session.pieces(turn)
    texts = [session.segment(piece.segment).content for piece in pieces]
    layers = [session.segment(piece.segment).layer for piece in pieces]
    return all(not isinstance(text, Text) for text in texts) and not set(layers) <= LEADING_LAYERS


def test_tools_are_told_called_and_answered():
    session = with_tools(3)
    made = [ours for ours, theirs in both(session, "chat", "run", range(3), shape="tools") if ours == theirs]
    assert len(made) == 3
    assert all(later.startswith(earlier[:-4]) for earlier, later in pairwise(made))
    text = made[2].decode("ascii", "ignore")
    assert text.count('"description":"') == 1
    assert text.count('[{"name":"Read","arguments":{"path":"."}},{"name":"a_b","arguments":{"path":"."}}]') == 2


@pytest.mark.parametrize("wire", ["chat", "generate"])
def test_a_growing_context_keeps_its_beginning(wire):
    session = linear(6, fresh=500, reply=300)
    made = [ours for ours, theirs in both(session, wire, "run", range(6)) if ours == theirs]
    assert len(made) == 6
    end = 4 if wire == "chat" else 0  # the marker for the reply
    assert all(later.startswith(earlier[: len(earlier) - end]) for earlier, later in pairwise(made))


def test_text_is_unescaped_and_filled_up():
    text = 'say "é"\n\\'
    segments = {1: Segment(1, "system", 9, Text(text)), 2: Segment(2, "tools", 9, Text("ab")), 3: Segment(3, "user", 1)}
    turn = linear(1).turns[0]
    pieces = (Piece(1, 0, 9), Piece(2, 0, 9), Piece(3, 0, 1))
    session = Session("s", (type(turn)(0, 0, Prompt(pieces), 19, turn.output),), segments=segments, scope="x")
    ((ours, theirs),) = both(session, "chat", "none", [0])
    assert ours == theirs
    assert ours[4:16] == (text + "ab").encode().ljust(12)[:12]
