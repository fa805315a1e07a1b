"""A cut trace: what is dropped, what is numbered anew, and that what is left is the same content."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import making
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentx.core import Output, Piece, Prompt, Segment, Session, Thread, Turn
from agentx.cutting import CutReport, Limits, cut, cut_session
from agentx.errors import BadInput
from agentx.trace import TraceWriter, Unknown, read_trace


def write(path: Path, *sessions: Session) -> Path:
    with TraceWriter(path, making.header()) as writer:
        for session in sessions:
            writer.session(session)
    return path


def tree() -> Session:
    """Main 0-1-5-6; subagent 2-3 spawned by 1 and joined by 5; a side turn 4 that branches from 1's prompt."""
    segments = {id: Segment(id, "user", 10) for id in range(7)}
    two = (Thread(0), Thread(1, 0, "subagent"), Thread(2, 0, "side"))

    def turn(index: int, thread: int, after: Sequence[int], base: int | None, isl: int) -> Turn:
        keep = 0 if base is None else 1
        return Turn(index, thread, Prompt((Piece(index, 0, 10),), base, keep), isl, Output(1), tuple(after))

    turns = (
        turn(0, 0, (), None, 10),
        turn(1, 0, (0,), 0, 20),
        turn(2, 1, (1,), None, 10),
        turn(3, 1, (2,), 2, 90),
        turn(4, 2, (0,), 1, 20),
        turn(5, 0, (1, 3), 1, 30),
        turn(6, 0, (5,), 5, 40),
    )
    return Session("tree", turns, two, segments)


@pytest.mark.parametrize(
    ("limits", "kept", "threads"),
    [
        (Limits(turns=7), [0, 1, 2, 3, 4, 5, 6], [0, 1, 2]),
        (Limits(turns=3), [0, 1, 2], [0, 1]),
        (Limits(max_context=41), [0, 1, 2, 4], [0, 1, 2]),  # 3 is too long; 5 waits for it, 6 for 5
        (Limits(max_context=91), [0, 1, 2, 3, 4, 5, 6], [0, 1, 2]),  # exactly as long as the limit
        (Limits(max_context=20), [0], [0]),  # 1 is too long, 2 waits for it; 4 has 21 tokens with its reply
        (Limits(turns=6, max_context=41), [0, 1, 2, 4], [0, 1, 2]),
        (Limits(max_context=9), [], []),
    ],
)
def test_what_depends_on_a_dropped_turn_goes_with_it(limits: Limits, kept: list[int], threads: list[int]) -> None:
    report = CutReport()
    left = cut_session(tree(), limits, report)
    turns, found = ((), ()) if left is None else (left.turns, left.threads)
    assert [left.pieces(turn.index) for turn in turns if left] == [tree().pieces(index) for index in kept]
    assert [thread.id for thread in found] == threads
    dropped = sum(count for reason, count in report.dropped.items() if reason.startswith("turns"))
    assert report.turns_read == 7 == report.turns + dropped


def test_turns_are_numbered_anew_and_unused_segments_left_out() -> None:
    left = cut_session(tree(), Limits(max_context=41), CutReport())
    assert left is not None
    assert [turn.index for turn in left.turns] == [0, 1, 2, 3]
    assert [turn.after for turn in left.turns] == [(), (0,), (1,), (0,)]
    assert [turn.prompt.base for turn in left.turns] == [None, 0, None, 1]
    assert sorted(left.segments) == [0, 1, 2, 4]


def test_a_prompt_that_branched_from_a_dropped_turn_is_written_out() -> None:
    session = tree()
    side = replace(session.turns[4], isl=15, after=(0,))  # shares its prompt with 1, does not wait for it
    turns = (*session.turns[:4], side, *session.turns[5:])
    left = cut_session(replace(session, turns=turns), Limits(max_context=20), CutReport())
    assert left is not None
    assert [turn.prompt for turn in left.turns] == [
        Prompt((Piece(0, 0, 10),)),
        Prompt((Piece(0, 0, 10), Piece(4, 0, 10))),
    ]


def test_a_parent_without_turns_stays_for_its_child() -> None:
    session = tree()
    only = replace(
        session, turns=(replace(session.turns[2], index=0, after=()), replace(session.turns[3], index=1, after=(0,)))
    )
    only = replace(only, turns=(only.turns[0], replace(only.turns[1], prompt=Prompt((Piece(3, 0, 10),), 0, 1))))
    left = cut_session(only, Limits(turns=1), CutReport())
    assert left is not None
    assert [thread.id for thread in left.threads] == [0, 1]


def test_the_first_sessions_are_kept_and_the_scope_stays(tmp_path: Path) -> None:
    source = write(tmp_path / "a.trace", *(making.linear(id=f"s{n}") for n in range(4)))
    report = cut(source, tmp_path / "b.trace", Limits(sessions=2))
    reader = read_trace(tmp_path / "b.trace")
    assert list(reader) == list(read_trace(source))[:2]
    assert (reader.header.scope, reader.header.provenance) == ("scope", {"cut": [{"sessions": 2}]})
    assert report.lines() == [
        "sessions  2 read = 2 kept + 0 dropped; those behind were not read",
        "turns     6 read = 6 kept + 0 dropped",
    ]


def test_a_cut_of_a_cut_says_both(tmp_path: Path) -> None:
    source = write(tmp_path / "a.trace", making.linear(4))
    cut(source, tmp_path / "b.jsonl", Limits(turns=3))
    cut(tmp_path / "b.jsonl", tmp_path / "c.trace", Limits(turns=2, max_context=1000))
    reader = read_trace(tmp_path / "c.trace")
    assert [len(session.turns) for session in reader] == [2]
    assert reader.header.provenance == {"cut": [{"turns": 3}, {"turns": 2, "max_context": 1000}]}


def test_unused_file_scoped_segments_are_left_out(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "a.trace", making.header()) as writer:
        writer.segment(Segment(9, "shared", 500))
        writer.session(making.linear())
        writer.unknown(Unknown("weather", {"sun": True}))
    cut(tmp_path / "a.trace", tmp_path / "b.trace", Limits(turns=1))
    items = list(read_trace(tmp_path / "b.trace").items())
    assert [item.id for item in items if isinstance(item, Segment)] == [1, 2]
    assert [item for item in items if isinstance(item, Unknown)] == [Unknown("weather", {"sun": True})]


def test_files_that_were_put_together_keep_their_headers(tmp_path: Path) -> None:
    one = write(tmp_path / "a.trace", making.linear()).read_bytes()
    (tmp_path / "two.trace").write_bytes(one + one)
    cut(tmp_path / "two.trace", tmp_path / "b.trace", Limits(sessions=2, turns=1))
    assert [session.key for session in read_trace(tmp_path / "b.trace")] == ["s", "s@1"]
    cut(tmp_path / "two.trace", tmp_path / "c.trace", Limits(sessions=1))  # no header without a session behind it
    reader = read_trace(tmp_path / "c.trace")
    assert [session.key for session in reader] == ["s"]
    assert len(reader.headers) == 1


def test_a_header_that_lost_its_sessions_still_counts(tmp_path: Path) -> None:
    """Otherwise what stands behind it would become other content under another key."""
    long, short = making.linear(fresh=5000), making.linear(turns=1)
    parts = [write(tmp_path / name, session).read_bytes() for name, session in (("l", long), ("s", short))]
    (tmp_path / "two.trace").write_bytes(b"".join(parts))
    cut(tmp_path / "two.trace", tmp_path / "b.trace", Limits(max_context=1000))
    before, after = list(read_trace(tmp_path / "two.trace"))[-1], next(iter(read_trace(tmp_path / "b.trace")))
    assert (after.key, after.scope) == (before.key, before.scope) == ("s@1", "scope#2")


def test_frames_of_unknown_types_are_kept(tmp_path: Path) -> None:
    source = tmp_path / "a.trace"
    with TraceWriter(source, making.header()) as trace:
        trace.unknown(Unknown("early", {}))
        trace.session(replace(making.linear(turns=3), unknown=((1, "inside", {}),), end_extra={"x": 1}))
        trace.unknown(Unknown("late", {}))
    cut(source, tmp_path / "b.trace", Limits(turns=1))
    items = list(read_trace(tmp_path / "b.trace").items())
    assert [item.kind for item in items if isinstance(item, Unknown)] == ["early", "late"]
    (session,) = (item for item in items if isinstance(item, Session))
    assert (session.unknown, session.end_extra) == (((1, "inside", {}),), {"x": 1})


def test_nothing_left_is_refused_and_writes_nothing(tmp_path: Path) -> None:
    source = write(tmp_path / "a.trace", making.linear())
    with pytest.raises(BadInput, match="nothing is left of this trace: 1 sessions without a turn left, 1 turns above"):
        cut(source, tmp_path / "b.trace", Limits(max_context=3))
    assert not (tmp_path / "b.trace").exists()


def test_a_broken_source_leaves_nothing_behind(tmp_path: Path) -> None:
    source = write(tmp_path / "a.jsonl", making.linear(id="s"), making.linear(id="t"))
    lines = source.read_bytes().splitlines(keepends=True)
    source.write_bytes(b"".join([*lines[:-2], b"nonsense\n", lines[-1]]))
    with pytest.raises(BadInput, match=r"a\.jsonl:\d+: this line is not JSON"):
        cut(source, tmp_path / "b.trace", Limits(turns=2))
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


def test_a_torn_source_is_cut_as_far_as_it_goes(tmp_path: Path) -> None:
    source = write(tmp_path / "a.trace", making.linear(id="s"), making.linear(id="t"))
    source.write_bytes(source.read_bytes()[:-20])
    report = cut(source, tmp_path / "b.trace", Limits(turns=2))
    assert [(session.id, session.complete) for session in read_trace(tmp_path / "b.trace")] == [
        ("s", True),
        ("t", False),
    ]
    assert "torn at byte" in report.lines()[-1]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(making.sessions(), st.integers(1, 7), st.integers(0, 500))
def test_what_is_left_is_the_same_content(tmp_path: Path, session: Session, turns: int, context: int) -> None:
    report = CutReport()
    left = cut_session(session, Limits(turns=turns, max_context=context), report)
    if left is None:
        assert report.turns == 0
        return
    old = iter(session.turns)
    for turn in left.turns:
        before = next(each for each in old if same(session, each, left, turn))
        assert {left.turns[index].isl for index in turn.after} == {session.turns[index].isl for index in before.after}
        assert turn.isl + turn.output.tokens <= context
    write(tmp_path / "a.trace", left)
    assert [len(session.turns) for session in read_trace(tmp_path / "a.trace")] == [len(left.turns)]


def same(old: Session, before: Turn, new: Session, after: Turn) -> bool:
    """Whether a turn is what it was, by the identity of every token and all that is not a number of a turn."""
    if before.index >= len(old.turns) or old.runs(before.index) != new.runs(after.index):
        return False
    blank = replace(before, index=0, after=(), prompt=Prompt(()))
    return blank == replace(after, index=0, after=(), prompt=Prompt(()))
