"""A session is a pure function of (spec, seed, index), and has the shape that the spec asks for."""

from __future__ import annotations

import hashlib
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from specs import EVERYTHING, made

from agentx.core import Session
from agentx.errors import BadInput
from agentx.generator import line
from agentx.generator.sessions import scope_of, sessions
from agentx.generator.shared import shared_layers
from agentx.generator.spec import WorkloadSpec, load_spec
from agentx.trace import session_frames, to_line

SMALL = """\
agentx: workload/1
context_limit: 5000
layers: {tools: 100, system: 50, repos: {count: 3, tokens: {uniform: {low: 200, high: 400}}, zipf: 1}}
turns: {user: 3, loop: {geometric: {mean: 3}}, parallel: {geometric: {mean: 1.5}}}
tokens:
  first_message: 80
  message: 20
  tool_result: {lognormal: {median: 60, sigma: 1}}
  reply: {lognormal: {median: 30, sigma: 0.5}}
  reasoning: {uniform: {low: 0, high: 10}}
gaps:
  human: {lognormal: {median: 30s, sigma: 1}}
  tools:
    shell: {weight: 0.7, time: {lognormal: {median: 400ms, sigma: 2}, max: 1m}}
    read: {weight: 0.3, time: 30ms}
"""

GOLDEN = "23787654e65b4338c9095302069621a6873110550a5b5eddd8349c59afda169e"  # sha256


GOLDEN_OF_EVERYTHING = "befcacfb87b5c89b026d77407026a5c85769dfe370000a13e344f2446760c334"


def small(*sets: str) -> WorkloadSpec:
    return load_spec("small.yaml", text=SMALL, sets=sets)


def lines(session: Session) -> list[bytes]:
    return [to_line(kind, body) for kind, body in session_frames(session)]


def layers(session: Session, index: int) -> list[str]:
    return [session.segment(piece.segment).layer for piece in session.pieces(index)]


def test_sessions_are_golden() -> None:
    # A change here means that equal (spec, seed) no longer give equal traces: it needs a new spec version.
    for spec, count, golden in ((small(), 5, GOLDEN), (made(EVERYTHING), 12, GOLDEN_OF_EVERYTHING)):
        frames = b"".join(line for session in sessions(spec, 7, count) for line in lines(session))
        assert hashlib.sha256(frames).hexdigest() == golden


@given(seed=st.integers(0, 2**40), first=st.integers(0, 1000), count=st.integers(1, 4))
@settings(max_examples=20, deadline=None)
def test_any_slice_is_the_same_as_in_the_whole(seed: int, first: int, count: int) -> None:
    spec = small()
    together = [lines(session) for session in sessions(spec, seed, count, first=first)]
    apart = [lines(next(sessions(spec, seed, 1, first=first + number))) for number in range(count)]
    assert together == apart


def test_seeds_and_specs_differ_in_content_and_shape() -> None:
    scopes = {scope_of(small(), 0), scope_of(small(), 1), scope_of(small("context_limit=6000"), 0)}
    assert len(scopes) == 3
    assert scope_of(small("sessions=9", "about=text"), 0) == scope_of(small(), 0)  # what changes no session
    assert [len(session.turns) for session in sessions(small(), 0, 9)] != [
        len(session.turns) for session in sessions(small(), 1, 9)
    ]


def test_one_more_draw_of_a_quantity_moves_no_other() -> None:
    spec, more = small("turns.loop=3", "turns.parallel=1"), small("turns.loop=3", "turns.parallel=1", "tokens.reply=5")
    one, other = next(sessions(spec, 3, 1)), next(sessions(more, 3, 1))
    assert [turn.gap for turn in one.turns] == [turn.gap for turn in other.turns]
    assert [turn.output.reasoning for turn in one.turns] == [turn.output.reasoning for turn in other.turns]


@given(seed=st.integers(0, 2**40))
@settings(max_examples=30, deadline=None)
def test_every_turn_adds_up(seed: int) -> None:
    for session in sessions(small(), seed, 2):
        assert session.turns
        for turn in session.turns:
            pieces = session.pieces(turn.index)
            assert turn.isl == sum(piece.tokens for piece in pieces)
            assert all(piece.start == 0 and piece.tokens == session.segment(piece.segment).tokens for piece in pieces)
            assert turn.isl + turn.output.tokens <= 5000
            assert turn.after == (() if turn.index == 0 else (turn.index - 1,))
            assert turn.reply is not None
            assert session.segment(turn.reply).tokens == turn.output.tokens >= 1
            assert turn.observed is None
            if turn.tools:
                assert turn.gap.seconds == max(tool.seconds or 0.0 for tool in turn.tools)


def test_a_turn_continues_the_one_before() -> None:
    session = next(sessions(small("turns.user=2", "turns.loop=2", "turns.parallel=2"), 0, 1))
    opening = ["tools", "system", "shared", "user"]
    results = ["assistant", "tool_result", "tool_result"]
    assert [layers(session, index) for index in range(4)] == [
        opening,
        [*opening, *results],
        [*opening, *results, "assistant", "user"],
        [*opening, *results, "assistant", "user", *results],
    ]
    assert [turn.gap.kind for turn in session.turns] == ["unknown", "tool", "human", "tool"]
    assert [len(turn.tools) for turn in session.turns] == [0, 2, 0, 2]
    assert {turn.gap.provenance for turn in session.turns} == {"drawn"}


def test_shared_segments_belong_to_the_file_and_own_ones_to_the_session() -> None:
    for session in sessions(small(), 0, 5):
        assert min(session.segments) >= 5  # tools, system, three repositories come first
        assert set(session.shared) == {0, 1, 2, 3, 4}
        used = {piece.segment for turn in session.turns for piece in turn.prompt.append}
        assert {0, 1} < used
        assert len(used & {2, 3, 4}) == 1
        assert used | {turn.reply for turn in session.turns} == set(session.segments) | (used & set(session.shared))


def test_popularity_follows_zipf() -> None:
    chosen = [session.pieces(0)[2].segment - 2 for session in sessions(small("turns.user=1"), 0, 1500)]
    shares = [chosen.count(rank) / len(chosen) for rank in range(3)]
    assert shares == pytest.approx([6 / 11, 3 / 11, 2 / 11], abs=0.04)


def test_layers_of_no_tokens_leave_no_pieces() -> None:
    session = next(sessions(small("layers={}", "turns.user=1"), 0, 1))
    assert layers(session, 0) == ["user"]


def test_the_opening_is_cut_to_what_fits() -> None:
    spec = small("context_limit=700", "tokens.first_message=9000", "tokens.reply=9000", "tokens.reasoning=9000")
    for session in sessions(spec, 0, 5):
        assert len(session.turns) == 1
        assert session.turns[0].isl == 699
        assert session.turns[0].output.tokens == 1


def test_a_full_context_ends_the_session() -> None:
    spec = small("turns.user=1000000000")
    for session in sessions(spec, 0, 3):
        last = session.turns[-1]
        assert 3000 < last.isl + last.output.tokens <= 5000


def test_endless_sessions_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(line, "MAX_TURNS", 50)
    with pytest.raises(BadInput, match="session 0 has more than 50 turns"):
        list(sessions(small("turns.user=100", "context_limit=1000000"), 0, 1))


def test_absurdly_many_parallel_tools_are_refused() -> None:
    with pytest.raises(BadInput, match="a reply calls 1000000 tools, the limit is 1024"):
        list(sessions(small("turns.parallel=1000000", "turns.loop=2"), 0, 1))


def test_sessions_stream() -> None:
    endless = sessions(small(), 0, 10**12)
    assert [session.id for session in itertools.islice(endless, 3)] == ["s0", "s1", "s2"]


def test_repository_sizes_are_drawn_once_and_do_not_depend_on_how_many_there_are() -> None:
    three, four = shared_layers(small(), 1), shared_layers(small("layers.repos.count=4"), 1)
    assert [three.segments[id].tokens for id in range(5)] == [four.segments[id].tokens for id in range(5)]
    assert len({segment.tokens for segment in three.segments.values()}) == 5
