"""Which turns are sent."""

from __future__ import annotations

import pytest

from agentx.core import Output, Piece, Prompt, Segment, Session, Turn
from agentx.replayer.fates import Fates
from agentx.room import Room


def session(isl: int, out: int, pieces: int = 3, *, told: int | None = None) -> Session:
    """One turn of `pieces` messages of `isl` tokens in all; `told` is what the trace says it was."""
    each = isl // pieces
    own = {id: Segment(id, "user", isl) for id in range(pieces)}
    sizes = [each] * (pieces - 1) + [isl - each * (pieces - 1)]
    append = tuple(Piece(id, 0, size) for id, size in enumerate(sizes))
    return Session("s", (Turn(0, 0, Prompt(append), isl if told is None else told, Output(out)),), segments=own)


@pytest.mark.parametrize(
    ("overflow", "fate", "refused"),
    [
        ("drop_turn", "drop", "continue"),
        ("end_session", "end", "end_session"),
        ("truncate", "drop", "continue"),
        ("fail", "stop", "stop"),
    ],
)
def test_policies(overflow, fate, refused):
    fates = Fates(overflow=overflow, room=Room(context=100))
    assert fates(session(200, 1), 0) == fate
    assert fates(session(20, 1), 0) == "send"
    assert fates.when_refused == refused
    assert fates.plays(session(200, 1)) is (overflow == "fail")


def test_aborted_turns_may_be_skipped():
    assert Fates()(session(20, 0), 0) == "send"
    assert Fates(skip_aborted=True)(session(20, 0), 0) == "drop"
    assert Fates(skip_aborted=True)(session(20, 1), 0) == "send"


def test_a_session_is_skipped_for_any_turn_that_does_not_fit():
    fates = Fates(overflow="skip_session", room=Room(context=100))
    assert fates.skips(session(200, 1))
    assert not fates.skips(session(20, 1))
    assert not Fates(room=Room(context=100)).skips(session(200, 1))
    assert not Fates("skip_session", skip_aborted=True, room=Room(context=100)).skips(session(200, 0))
