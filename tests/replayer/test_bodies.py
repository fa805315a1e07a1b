"""Bodies joined from kept parts are the bodies made in one go."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentx.content import Encoder, WordList, lexicon
from agentx.core import Output, Piece, Prompt, Segment, Session, Thread, Turn
from agentx.replayer.bodies import Bodies, Wire
from agentx.replayer.moves import Key
from agentx.replayer.schedule import Send
from agentx.wire.messages import messages
from agentx.wire.openai import chat_request
from agentx.wire.salting import salting
from agentx.wire.sglang import generate_request

WORDS = WordList(lexicon())
LAYERS = ("tools", "system", "shared", "user", "assistant", "tool_result", "summary")
SHARED = {id: Segment(id, layer, 30) for id, layer in enumerate(LAYERS)}


def whole(session: Session, turn: int, wire: Wire, play: int = 0) -> bytes:
    """The reference: everything made anew by the wire's own functions."""
    encoder, salts = Encoder(WORDS), salting("run", "x", session.key, play)
    tokens = max(1, session.turns[turn].output.tokens)
    fewest = tokens if wire.exact else None
    pieces = session.pieces(turn)
    if wire.kind == "generate":
        runs = [b"".join(encoder.piece_ids(session, piece, salts)).rstrip(b",") for piece in pieces]
        return b"".join(generate_request(runs, max_new_tokens=tokens, min_new_tokens=fewest, ignore_eos=True))
    made = [
        (role, [part for piece in own for part in encoder.piece_text(session, piece, salts)])
        for role, own in messages(session, pieces)
    ]
    return b"".join(chat_request(made, model=wire.model, max_tokens=tokens, min_tokens=fewest, ignore_eos=True))


def send(session: Session, turn: int, serial: int = 0, play: int = 0) -> Send:
    return Send(Key(serial, turn), session, play, 0, 0.0, 0.0)


def bodies(wire: Wire, **more: int) -> Bodies:
    return Bodies(Encoder(WORDS), wire, policy="run", salt="x", **more)


pieces = st.builds(
    lambda segment, start, tokens: Piece(segment, start, start + tokens),
    st.sampled_from(sorted(SHARED)),
    st.integers(0, 10),
    st.integers(1, 20),
)


@st.composite
def sessions(draw: st.DrawFn) -> Session:
    """Prompts that grow, are cut, go back to an earlier turn or begin anew, in two threads."""
    turns: list[Turn] = []
    sizes: list[int] = []
    for index in range(draw(st.integers(1, 8))):
        base = draw(st.none() | st.integers(0, index - 1)) if index else None
        keep = draw(st.integers(0, sizes[base])) if base is not None else 0
        append = tuple(draw(st.lists(pieces, min_size=1, max_size=4)))
        sizes.append(keep + len(append))
        turns.append(
            Turn(index, draw(st.integers(0, 1)), Prompt(append, base, keep), 100, Output(draw(st.integers(0, 9))))
        )
    return Session("s", tuple(turns), (Thread(0), Thread(1, 0)), shared=SHARED)


@given(sessions(), st.sampled_from(["chat", "generate"]), st.booleans(), st.sampled_from([1, 1 << 20]))
@settings(max_examples=150, deadline=None)
def test_kept_parts_give_the_same_bytes(session, kind, exact, keep_bytes):
    wire = Wire(kind, "m", exact)
    made = bodies(wire, keep_bytes=keep_bytes)
    for turn in range(len(session.turns)):
        assert made.body(send(session, turn)) == whole(session, turn, wire)


def growing() -> Session:
    first = Turn(0, 0, Prompt((Piece(0, 0, 30), Piece(1, 0, 30), Piece(3, 0, 30))), 90, Output(5))
    second = Turn(1, 0, Prompt((Piece(4, 0, 5), Piece(5, 0, 9)), 0, 3), 104, Output(5), (0,))
    return Session("s", (first, second), shared=SHARED)


def test_leading_pieces_are_one_system_message():
    body = json.loads(bodies(Wire("chat", "m")).body(send(growing(), 1)))
    assert [message["role"] for message in body["messages"]] == ["system", "user", "assistant", "user"]
    assert [len(message["content"]) for message in body["messages"]] == [240, 120, 20, 36]


def test_ids_are_those_of_the_words():
    body = json.loads(bodies(Wire("generate", "m")).body(send(growing(), 1), rid="r-1"))
    assert len(body["input_ids"]) == 104
    assert set(body["input_ids"]) <= set(WORDS.token_ids)
    assert body["rid"] == "r-1"


def test_plays_do_not_mix():
    session, made = growing(), bodies(Wire("chat", "m"))
    for turn in (0, 1):
        for serial, play in ((0, 0), (1, 1)):
            assert made.body(send(session, turn, serial, play)) == whole(session, turn, Wire("chat", "m"), play)


def test_what_is_kept_is_bounded_and_forgotten():
    session, made = growing(), bodies(Wire("chat", "m"), keep_bytes=1000)
    for serial in range(5):
        made.body(send(session, 0, serial))
        made.body(send(session, 1, serial))
    assert made._held == sum(kept.size for kept in made._kept.values()) <= 1000
    for serial in range(5):
        made.forget(serial, session)
    assert (made._held, len(made._kept)) == (0, 0)


@pytest.mark.parametrize(("kind", "path"), [("chat", "/v1/chat/completions"), ("generate", "/generate")])
def test_paths(kind, path):
    assert Wire(kind, "m").path == path
