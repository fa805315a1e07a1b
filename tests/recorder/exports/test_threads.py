"""Lines, stretches and times of a session; runs of token identities against a plain reference."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

from exporting import everything, tokens
from hypothesis import given
from hypothesis import strategies as st

from agentx.core import Gap, Observed, Output, Prompt, Run, Session, Stream, Thread, Turn
from agentx.recorder.exports.threads import begins, cut, joined, length, lines, name, shared, stretches
from agentx.recorder.imports.books import Books

RUNS = st.lists(
    st.builds(
        lambda id, start, size: Run(Stream("s", "segment", id), start, start + size, "user"),
        st.integers(0, 1),
        st.integers(0, 3),
        st.integers(0, 4),
    ),
    max_size=6,
)


def flat(runs: list[Run]) -> list[tuple[Stream, int]]:
    return [(run.stream, at) for run in runs for at in range(run.start, run.stop)]


@given(RUNS, RUNS, st.integers(0, 9), st.integers(0, 9))
def test_runs_are_lists_of_tokens(one: list[Run], other: list[Run], start: int, stop: int) -> None:
    left, right = joined(one), joined(other)
    assert flat(left) == flat(one)
    assert length(left) == len(flat(one))
    want = next((n for n, (a, b) in enumerate(zip(flat(one), flat(other), strict=False)) if a != b), None)
    assert shared(left, right) == (min(len(flat(one)), len(flat(other))) if want is None else want)
    assert flat(cut(left, start, stop)) == flat(one)[start:stop]
    assert flat(cut(left, start)) == flat(one)[start:]


def turn(index: int, *after: int, gap: float = 0.0, took: float | None = None, thread: int = 0) -> Turn:
    seen = None if took is None else Observed(start=5.0, end=5.0 + took)
    return Turn(index, thread, Prompt(()), 0, Output(1), after, Gap("tool", gap), observed=seen)


def test_starts_follow_from_waits_gaps_and_durations() -> None:
    turns = turn(0, took=2.0), turn(1, 0, gap=1.0, took=4.0), turn(2, 0, gap=0.5), turn(3, 1, 2, gap=10.0)
    assert begins(Session("s", turns)) == [0.0, 3.0, 2.5, 17.0]


def test_stretches_go_on_from_prompt_and_reply(tmp_path: Path) -> None:
    broken = 0
    for session in everything(tmp_path):
        for line in lines(session, Books()):
            parts = list(stretches(line))
            assert [call for part in parts for call in part] == list(line.calls)
            for part in parts:
                for before, call in pairwise(part):
                    old = tokens(session, before.turn.index)
                    assert tokens(session, call.turn.index)[: len(old)] == old
                    assert call.fresh == call.turn.isl - before.turn.isl - before.turn.output.tokens >= 0
            broken += len(parts) - 1
    assert broken > 0  # compactions and edits are in it


def test_names() -> None:
    session = Session("s", ())
    assert [name(session, Thread(0)), name(session, Thread(3), 0), name(session, Thread(0), 2)] == ["s", "s/3", "s#3"]


def test_tokens_of_no_piece_are_counted_and_nobody_elses() -> None:
    books = Books()
    session = Session("s", (Turn(0, 0, Prompt(()), 7, Output(1)), Turn(1, 0, Prompt(()), 7, Output(1))), scope="x")
    (line,) = lines(session, books)
    assert [length(call.runs) for call in line.calls] == [7, 7]
    assert line.calls[1].kept == 0
    assert books.notes["prompt with tokens that no piece accounts for: they get an identity of their own"] == 2
