"""Resolved prompts and token identities, held to a plain token-by-token reference."""

from __future__ import annotations

import pytest
from hypothesis import given
from making import linear, sessions, token_identities

from agentx.core import Attempt, Failure, Opaque, OpaqueRun, Output, Piece, Prompt, Segment, Session, Turn


def expand(session: Session, index: int) -> list[Piece]:
    prompt = session.turns[index].prompt
    kept = expand(session, prompt.base)[: prompt.keep] if prompt.base is not None else []
    return [*kept, *prompt.append]


@given(sessions())
def test_pieces_are_the_kept_ones_then_the_appended(session: Session) -> None:
    for index in range(len(session.turns)):
        assert session.pieces(index) == expand(session, index)


@given(sessions())
def test_runs_name_every_token_once_and_in_order(session: Session) -> None:
    for index in range(len(session.turns)):
        runs = session.runs(index)
        tokens = [(run.stream, position) for run in runs for position in range(run.start, run.stop)]
        assert tokens == token_identities(session, session.pieces(index))


def test_a_deep_chain_of_kept_prompts_is_resolved_without_recursion() -> None:
    turns = [Turn(0, 0, Prompt((Piece(1, 0, 1),)), 1, Output(1))]
    turns += [Turn(n, 0, Prompt((Piece(1, 0, 1),), n - 1, n), n + 1, Output(1)) for n in range(1, 3000)]
    session = Session("deep", tuple(turns), segments={1: Segment(1, "user", 1)})
    assert len(session.pieces(2999)) == 3000


def test_blocks_of_one_scope_are_one_stream() -> None:
    """[block 5, its tokens 3..] and the blocks after it are one run of positions."""
    segment = Segment(9, "user", 20, Opaque(8, (OpaqueRun(5, 3, 20),)))
    session = Session("s", (), segments={9: segment}, scope="f", blocks_scope="f/s")
    (run,) = session.piece_runs(Piece(9, 2, 18))
    assert (run.stream.scope, run.start, run.stop) == ("f/s", 5 * 8 + 3 + 2, 5 * 8 + 3 + 18)


def test_own_and_shared_segments_of_one_id_are_different_streams() -> None:
    shared = Session("s", (), shared={1: Segment(1, "user", 5)}, scope="f")
    own = Session("s", (), segments={1: Segment(1, "user", 5)}, scope="f")
    assert shared.stream(shared.segment(1)) != own.stream(own.segment(1))


def test_reply_runs_are_the_first_output_tokens_of_the_reply_segment() -> None:
    session = linear(2, reply=5)
    (run,) = session.reply_runs(0)
    assert (run.stream.id, run.start, run.stop) == (200, 0, 5)


def test_an_unknown_segment_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        linear(1).segment(4711)


def test_derived_values_of_an_attempt() -> None:
    attempt = Attempt("s", 0, 0, 0, 0, due=1.0, sent=1.25, isl=1, osl=1)
    assert attempt.ok
    assert attempt.lag == 0.25
    assert not Attempt("s", 0, 0, 0, 0, due=1.0, sent=1.0, isl=1, osl=1, failure=Failure("http")).ok


def test_sessions_of_a_joined_file_have_different_keys() -> None:
    assert [linear(1, part=part).key for part in (0, 2)] == ["s", "s@2"]
