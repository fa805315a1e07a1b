"""Whatever befalls a context: every prompt adds up, turns are in order, and a trace of it is read back."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from specs import EVERYTHING, made, one

from agentx import reuse
from agentx.cli.trace_lint import lint
from agentx.core import Gap, Output, Piece, Thread
from agentx.generator import line
from agentx.generator.line import Draft, Line
from agentx.generator.sessions import sessions
from agentx.generator.write import generate
from agentx.trace import read_trace

SPEC = made(EVERYTHING)


@given(seed=st.integers(0, 2**40))
@settings(max_examples=40, deadline=None)
def test_every_turn_of_everything_adds_up(seed: int) -> None:
    for session in sessions(SPEC, seed, 2):
        assert session.turns
        last: dict[int, int] = {}
        for number, turn in enumerate(session.turns):
            pieces = session.pieces(turn.index)
            assert turn.index == number
            assert turn.isl == sum(piece.tokens for piece in pieces)
            assert all(0 <= piece.start < piece.stop <= session.segment(piece.segment).tokens for piece in pieces)
            assert turn.isl + turn.output.tokens <= SPEC.context_limit
            assert all(before < turn.index for before in turn.after)
            if turn.thread in last:  # a thread goes on after its own latest turn
                assert last[turn.thread] in turn.after
            last[turn.thread] = turn.index
            assert (turn.reply is None) == (turn.output.tokens == 0)
        assert {turn.thread for turn in session.turns} == {thread.id for thread in session.threads}
        assert session.threads[0] == Thread(0)
        used = {piece.segment for turn in session.turns for piece in turn.prompt.append}
        replies = {turn.reply for turn in session.turns if turn.reply is not None}
        assert set(session.segments) == (used | replies) - set(session.shared)


def test_a_trace_of_everything_is_read_back_without_findings_that_make_numbers_wrong(tmp_path: Path) -> None:
    path = generate(SPEC, seed=1, sessions=30, out=tmp_path / "a.trace")
    assert lint(path).errors == 0
    for found, want in zip(read_trace(path), sessions(SPEC, 1, 30), strict=True):
        assert (found.turns, found.threads, dict(found.segments), found.arrival) == (
            want.turns,
            want.threads,
            want.segments,
            want.arrival,
        )


def test_everything_happens() -> None:
    events, kinds, types = set(), set(), set()
    for session in sessions(SPEC, 0, 60):
        events |= {turn.event.kind for turn in session.turns if turn.event}
        kinds |= {thread.kind for thread in session.threads}
        types |= {thread.type for thread in session.threads}
    assert events == {"compaction", "reset", "think_strip", "abort", "model_switch"}
    assert kinds == {"main", "subagent", "side"}
    assert types == {None, "Explore", "general", "title", "topic", "summary"}


def test_reuse_counts_what_is_kept() -> None:
    share = reuse.possible(sessions(SPEC, 0, 30)).share
    assert share is not None
    assert 0.5 < share < 0.95


def drawn() -> Line:
    made_of = Line(Draft(0, 0, 10, {}), 1000)
    made_of.append("user", 100)
    assert made_of.call(Output(20), Gap())
    return made_of


EDITS = [
    # (place that is replaced, by what, pieces that the next prompt keeps, its length)
    (2, [], 1, 120),  # nothing
    (1, [], 1, 100),  # the reply
    (0, [], 0, 0),  # everything: no base at all
    (0, [Piece(10, 0, 40)], 0, 40),
]


@pytest.mark.parametrize(("at", "pieces", "kept", "isl"), EDITS)
def test_an_edit_moves_the_mark_of_what_is_kept(at: int, pieces: list[Piece], kept: int, isl: int) -> None:
    edited = drawn()
    edited.replace(at, list(pieces))
    assert edited.isl == isl
    prompt = edited.prompt()
    assert (prompt.base, prompt.keep) == ((0, kept) if kept else (None, 0))


def test_a_reply_that_does_not_fit_is_no_turn() -> None:
    full = drawn()
    assert not full.call(Output(881), Gap())
    assert len(full.draft.turns) == 1
    assert full.call(Output(880), Gap())


def test_a_chance_of_nothing_draws_nothing() -> None:
    quiet = drawn()
    assert not quiet.chance("never", 0)
    assert "never" not in quiet.draft.streams
    assert quiet.chance("always", 1)


def test_endless_sessions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line, "MAX_TURNS", 50)
    with pytest.raises(Exception, match="session 0 has more than 50 turns"):
        one("turns.user=100")


def test_sessions_stream() -> None:
    assert [each.id for each in itertools.islice(sessions(SPEC, 0, 10**12), 3)] == ["s0", "s1", "s2"]
