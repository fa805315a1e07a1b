"""What is still linkable is counted; the coarse level blurs it and stays a trace."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import header, linear, sessions

from agentx.cli.trace_lint import lint
from agentx.core import Gap, GapParts, Opaque, OpaqueRun, Session, Tool
from agentx.recorder.privacy import Linkability, coarse, one_digit, power_of_two
from agentx.trace import TraceWriter


def even(name: str) -> float:
    """Chance that changes nothing."""
    return 0.5


def test_unique_runs_of_lengths() -> None:
    report = Linkability()
    report.add(linear(3, reply=5))
    report.add(linear(3, id="t", reply=5))
    report.add(linear(3, id="u", reply=7))
    assert report.unique(1) == 0.0  # 5 six times, 7 three times
    assert report.unique(3) == 1 / 3
    assert report.unique(5) is None
    assert report.lines()[1].endswith("0.0%")
    assert report.lines()[3].endswith("unknown")


@pytest.mark.parametrize(("value", "rounded"), [(0, 0), (1, 1), (2, 2), (3, 4), (5, 4), (6, 8), (23, 32), (1000, 1024)])
def test_powers_of_two(value: int, rounded: int) -> None:
    assert power_of_two(value) == rounded


@given(st.floats(0, 1e7))
def test_one_digit(seconds: float) -> None:
    rounded = one_digit(seconds)
    assert rounded == 0.0 or math.isclose(rounded, seconds, rel_tol=0.34)
    assert len(f"{rounded:.6f}".replace(".", "").strip("0")) <= 1


@given(sessions())
def test_coarse_sessions_keep_their_shape(session: Session) -> None:
    """Any session: as many turns and pieces, valid ones, lengths on powers of two."""
    rough = coarse(session, even)
    assert [turn.after for turn in rough.turns] == [turn.after for turn in session.turns]
    for turn in session.turns:
        before, after = session.pieces(turn.index), rough.pieces(turn.index)
        assert [piece.segment for piece in after] == [piece.segment for piece in before]
        assert all(0 <= piece.start < piece.stop <= rough.segment(piece.segment).tokens for piece in after)
    assert all(segment.tokens == power_of_two(segment.tokens) for segment in rough.segments.values())
    assert all(turn.output.tokens == power_of_two(turn.output.tokens) for turn in rough.turns)


def test_what_was_shared_stays_shared(tmp_path: Path) -> None:
    rough = coarse(linear(6, fresh=37, reply=23), even)
    assert [turn.prompt.keep for turn in rough.turns] == [turn.prompt.keep for turn in linear(6).turns]
    with TraceWriter(tmp_path / "a.trace", header()) as writer:
        writer.session(rough)
    assert lint(tmp_path / "a.trace").errors == 0


def test_times_are_blurred_by_a_chance_that_has_bounds() -> None:
    """The same session by the least and by the most chance: a time moves by a quarter, then to one digit."""
    session = linear(3)
    session = replace(session, arrival=100.0)
    least, most = coarse(session, lambda name: 0.0), coarse(session, lambda name: 1.0)
    assert (least.arrival, most.arrival) == (80.0, 100.0)  # 80 and 125, on one digit
    names: list[str] = []
    coarse(session, lambda name: names.append(name) or 0.5)
    assert len(set(names)) == len(names) == 4  # one for the arrival, one for each turn


def test_a_name_in_all_traces_stays_one(tmp_path: Path) -> None:
    """A coarse segment of known content keeps its first block, at its new length."""
    opaque = Opaque(16, (OpaqueRun(7 << 20, 0, 90),))
    session = linear(2)
    first = next(iter(session.segments.values()))
    session = replace(session, segments={**session.segments, first.id: replace(first, content=opaque)})
    rough = coarse(session, even).segments[first.id]
    assert rough.content == Opaque(16, (OpaqueRun(7 << 20, 0, rough.tokens),))


CUT = [
    # cut off at the end
    (Opaque(4, (OpaqueRun(1, 0, 8), OpaqueRun(9, 0, 3))), 8, (OpaqueRun(1, 0, 8),)),
    (Opaque(4, (OpaqueRun(1, 0, 4), OpaqueRun(9, 0, 5))), 8, (OpaqueRun(1, 0, 4), OpaqueRun(9, 0, 4))),
    # an id with room behind it: the content goes on there
    (Opaque(4, (OpaqueRun(3 << 20, 0, 7),)), 8, (OpaqueRun(3 << 20, 0, 8),)),
    # what is as long already
    (Opaque(4, (OpaqueRun(5, 1, 8),)), 8, (OpaqueRun(5, 1, 8),)),
]


def coarse_content(content: Opaque, tokens: int) -> Opaque:
    session = linear(1)
    id = next(iter(session.segments))
    segments = {**session.segments, id: replace(session.segments[id], tokens=tokens, content=content)}
    turn = replace(session.turns[0], prompt=replace(session.turns[0].prompt, append=()), reply=None)
    made = coarse(replace(session, segments=segments, turns=(turn,)), even).segments[id].content
    assert isinstance(made, Opaque)
    return made


@pytest.mark.parametrize(("content", "tokens", "runs"), CUT)
def test_opaque_content_is_cut_off(content: Opaque, tokens: int, runs: tuple[OpaqueRun, ...]) -> None:
    assert coarse_content(content, content.tokens).runs == runs
    assert sum(run.tokens for run in runs) == tokens


def test_opaque_content_is_lengthened_with_what_nothing_else_has() -> None:
    """Numbered blocks lie side by side: going on into the next number would be another content's."""
    runs = (OpaqueRun(1, 0, 8), OpaqueRun(9, 0, 5))
    made = [coarse_content(Opaque(4, each), 13).runs for each in (runs, runs)]
    assert made[0] == made[1]  # equal content has equal tokens behind it
    assert made[0][:2] == runs
    assert (made[0][2].tokens, made[0][2].block_id >= 1 << 63) == (3, True)


def test_coarse_times_of_tools_and_parts_are_blurred() -> None:
    session = linear(2)
    gap = Gap("tool", 12.345, parts=GapParts(3.21, 0.456))
    turn = replace(session.turns[1], gap=gap, tools=(Tool("Bash", 3.21, {"waited_for_user": 0.456, "x": 1}),))
    made = coarse(replace(session, turns=(session.turns[0], turn)), even).turns[1]
    assert made.gap == Gap("tool", 10.0, parts=GapParts(3.0, 0.5))
    assert made.tools == (Tool("Bash", 3.0, {"waited_for_user": 0.5}),)
