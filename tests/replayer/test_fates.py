"""Which turns are sent."""

from __future__ import annotations

import pytest

from agentx.core import Output, Piece, Prompt, Segment, Session, Turn
from agentx.replayer.fates import Fates
from agentx.reuse_template import Template


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
    assert Fates(**more).fits(session(isl, out), 0) is fits


def test_what_is_sent_counts_not_what_the_trace_says_it_was():
    assert Fates(context=100).fits(session(50, 10, told=500), 0)


@pytest.mark.parametrize(
    ("overflow", "fate", "refused"),
    [("drop_turn", "drop", "continue"), ("end_session", "end", "end_session"), ("fail", "stop", "stop")],
)
def test_policies(overflow, fate, refused):
    fates = Fates(overflow=overflow, context=100)
    assert fates(session(200, 1), 0) == fate
    assert fates(session(20, 1), 0) == "send"
    assert fates.when_refused == refused
    assert fates.plays(session(200, 1)) is (overflow == "fail")


def test_aborted_turns_may_be_skipped():
    assert Fates()(session(20, 0), 0) == "send"
    assert Fates(skip_aborted=True)(session(20, 0), 0) == "drop"
    assert Fates(skip_aborted=True)(session(20, 1), 0) == "send"
