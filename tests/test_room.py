"""Which turns fit a target, and what of a prompt goes when it does not."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import linear, sessions

from agentx.core import Output, Piece, Prompt, Segment, Session, Turn
from agentx.reuse_template import Template
from agentx.room import LOST, Room, room_of_run
from agentx.wire.messages import leading_pieces


def session(isl: int, out: int, pieces: int = 3, *, told: int | None = None) -> Session:
    """One turn of `pieces` messages of `isl` tokens in all; `told` is what the trace says it was."""
    each = isl // pieces
    own = {id: Segment(id, "user", isl) for id in range(pieces)}
    sizes = [each] * (pieces - 1) + [isl - each * (pieces - 1)]
    append = tuple(Piece(id, 0, size) for id, size in enumerate(sizes))
    return Session("s", (Turn(0, 0, Prompt(append), isl if told is None else told, Output(out)),), segments=own)


CASES = [
    # prompt, reply, fates, fits
    (80, 20, {"context": 100}, True),
    (80, 21, {"context": 100}, False),  # prompt and reply are more than the context
    (93, 1, {"context": 100}, True),
    (94, 1, {"context": 100}, False),  # six tokens stay free
    (80, 16, {"context": 100, "template": Template(1, 1)}, True),  # three messages: 84 + 16
    (80, 17, {"context": 100, "template": Template(1, 1)}, False),
    (80, 500, {"pool": 100}, True),  # a reply that does not fit the pool is cut short, not refused
    (94, 1, {"pool": 100}, False),
    (90, 1, {"pool": 100, "page": 16}, False),  # a page stays free
    (10**9, 10**9, {}, True),  # nothing is known of the target
    (93, 0, {"context": 100}, True),  # an aborted turn asks for one token
]


@pytest.mark.parametrize(("isl", "out", "more", "fits"), CASES)
def test_what_fits(isl, out, more, fits):
    assert Room(**more).fits(session(isl, out), 0) is fits


def test_what_is_sent_counts_not_what_the_trace_says_it_was():
    assert Room(context=100).fits(session(50, 10, told=500), 0)


def test_the_oldest_history_goes_and_stays_gone():
    """The first prompt has 75 tokens, and each later turn brings 15 more; six have to stay free."""
    made = Room(context=125).shortened(linear(8))
    lost = [turn.extra.get(LOST, 0) for turn in made.turns]
    assert lost == sorted(lost)
    assert lost[:3] == [0, 0, 0]
    assert len(set(lost)) > 3
    assert all(Room(context=125).fits(made, turn.index) for turn in made.turns)
    assert [turn.isl + gone for turn, gone in zip(made.turns, lost, strict=True)] == [75 + 15 * n for n in range(8)]
    assert [len(made.pieces(index)) for index in range(5)] == [3, 5, 7, 8, 8]
    assert made.pieces(7)[:2] == linear(8).pieces(7)[:2]
    assert made.pieces(7)[-4:] == linear(8).pieces(7)[-4:]


def test_what_is_kept_is_kept_by_reference():
    """A turn that has to drop no more than its base goes on from it."""
    made = Room(context=200).shortened(linear(12))
    bases = [turn.prompt.base for turn in made.turns]
    again = [turn.index for turn in made.turns if turn.index and turn.prompt.base is None]
    assert again, "some turn has to drop more than the one before it"
    assert all(made.turns[index].extra[LOST] > made.turns[index - 1].extra.get(LOST, 0) for index in again)
    assert [base for base in bases if base is not None] == [n - 1 for n in range(1, 12) if n not in again]


def test_nothing_is_changed_that_fits():
    plain = linear(5)
    assert Room(context=10_000).shortened(plain) is plain
    assert Room().shortened(plain) is plain


def test_what_no_cut_makes_fit_stays_as_it_is():
    made = Room(context=100).shortened(session(300, 1, told=300))
    big = linear(2, fresh=200)
    assert made.turns[0].prompt == Prompt((Piece(0, 0, 100), Piece(1, 0, 100), Piece(2, 0, 100)))
    assert Room(context=150).shortened(big).turns[1].prompt == big.turns[1].prompt


@given(sessions(), st.integers(20, 200), st.sampled_from(["plain", "tools"]))
def test_shortened_sessions(made: Session, context: int, shape: str):
    """What leads and the last piece stay, what is left is in its order, and every turn fits if it can at all."""
    room = Room(context=context, template=Template(1, 1, words=True), shape=shape)
    short = room.shortened(made)
    assert len(short.turns) == len(made.turns)
    for before, after in zip(made.turns, short.turns, strict=True):
        was, now = made.pieces(before.index), short.pieces(after.index)
        leading = leading_pieces(made, was)
        gone = len(was) - len(now)
        assert now == [*was[:leading], *was[leading + gone :]]
        assert after.extra.get(LOST, 0) == sum(piece.tokens for piece in was[leading : leading + gone])
        if not room.fits(short, after.index):
            history = was[leading:]
            kept = (*was[:leading], *history[-1:])
            alone = Turn(0, 0, Prompt(kept), sum(piece.tokens for piece in kept), before.output)
            lonely = Session("s", (alone,), segments=made.segments, shared=made.shared)
            assert not room.fits(lonely, 0) or not history or shape == "tools"


def test_the_room_of_a_run_is_in_its_folder():
    settings = {
        "server": {"context": 500, "max_total_num_tokens": 900, "page_size": 16},
        "plan": {"messages": "tools"},
        "template": {"start": 1, "per_message": 1},
    }
    assert room_of_run(settings) == Room(500, 900, 16, Template(1, 1, words=True), "tools")
    assert room_of_run({"plan": {}}) == Room()
