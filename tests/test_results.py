"""The run folder: what was recorded is read, partial runs are readable, and the books are recounted."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.core import Attempt, Cached, Chunk, Failure, Play, Sample
from agentx.errors import BadInput
from agentx.frames import FrameWriter, encode
from agentx.results import RESULTS, Records, ResultsWriter, RunResults, part_path, read_results

DATA = Path(__file__).parent / "data"
SETTINGS = {"plan": {"wire": "chat"}, "salt": "s", "trace": {"path": "a.trace", "sha256": "0"}}

times = st.floats(0, 1e6, allow_nan=False)
counts = st.none() | st.integers(0, 1 << 40)
attempts = st.builds(
    Attempt,
    session=st.text(max_size=4),
    play=st.integers(0, 3),
    turn=st.integers(0, 9),
    thread=st.integers(0, 3),
    lane=st.integers(0, 3),
    due=times,
    sent=times,
    isl=st.integers(0, 1 << 30),
    osl=st.integers(0, 1 << 30),
    first=st.none() | times,
    chunks=st.lists(st.builds(Chunk, st.integers(0, 1 << 40), st.none() | st.integers(0, 9)), max_size=4).map(tuple),
    prompt_tokens=counts,
    cached=st.none() | st.builds(Cached, total=counts, device=counts, host=counts, storage=counts),
    failure=st.none() | st.builds(Failure, st.sampled_from(["http", "stall"]), st.text(max_size=9)),
    status=st.none() | st.integers(100, 599),
    extra=st.sampled_from([{}, {"future": [1, {"a": 2}]}]),
)


def attempt(turn: int = 0, *, play: int = 0, ok: bool = True, n: int = 0) -> Attempt:
    failure = None if ok else Failure("http", "500")
    return Attempt("s", play, turn, 0, 0, due=0.0, sent=0.0, isl=5, osl=1, failure=failure, attempt=n)


@given(st.lists(attempts, max_size=4))
def test_records_come_back_as_they_were(tmp_path_factory: pytest.TempPathFactory, made: list[Attempt]) -> None:
    folder = tmp_path_factory.mktemp("run")
    writer = ResultsWriter(folder, SETTINGS, wall=1.5)
    play = Play("s", 0, 1, "done", 3, 3, 3, 0.0, 2.0, {"future": 1})
    sample = Sample(1.0, "http://x", {"running": 2.0})
    for record in made:
        writer.attempt(record)
    writer.play(play)
    writer.sample(sample)
    writer.note("cold")
    writer.end("done", 9.0, {"loop_lag": 0.001})
    run = read_results(folder)
    assert (run.attempts, run.plays, run.samples, run.notes) == (tuple(made), (play,), (sample,), ("cold",))
    assert (run.wall, run.settings, run.complete, run.tear) == (1.5, SETTINGS, True, None)
    assert run.end == {"outcome": "done", "at": 9.0, "loop_lag": 0.001}


def test_the_golden_run_of_version_1_reads_as_it_always_did() -> None:
    """Never regenerate."""
    run = read_results(DATA / "run-v1")
    expected = json.loads((DATA / "run-v1.json").read_text())
    assert json.loads(json.dumps([repr(record) for record in (*run.attempts, *run.plays, *run.samples)])) == expected
    assert run.unknown == (("future", {"a": 1}),)
    assert run.complete


def test_a_killed_run_is_readable(tmp_path: Path) -> None:
    """No end frame, and the last record torn."""
    writer = ResultsWriter(tmp_path, SETTINGS, 0.0)
    writer.attempt(attempt(0))
    writer.attempt(attempt(1))
    path = tmp_path / RESULTS
    path.write_bytes(path.read_bytes()[:-3])
    run = read_results(tmp_path)
    assert [record.turn for record in run.attempts] == [0]
    assert run.tear is not None
    assert not run.complete
    books = run.books()
    assert books.balanced
    assert (books.plays, books.cut, books.turns, books.completed) == (1, 1, 1, 1)


def run_of(attempts: list[Attempt], plays: list[Play]) -> RunResults:
    return RunResults(Path("."), SETTINGS, 0.0, tuple(attempts), tuple(plays), ())


def play(outcome: str, turns: int, sent: int, completed: int, number: int = 0) -> Play:
    return Play("s", number, 0, outcome, turns, sent, completed, 0.0, 1.0)


@pytest.mark.parametrize(
    ("attempts", "plays", "expected"),
    [
        ([], [], (0, 0, 0, 0, 0, 0, 0, 0)),  # nothing happened
        ([attempt(0), attempt(1)], [play("done", 2, 2, 2)], (1, 1, 0, 0, 2, 2, 0, 0)),  # whole
        (
            [attempt(0), attempt(1, ok=False)],
            [play("failed", 3, 2, 1)],
            (1, 0, 1, 0, 3, 1, 1, 1),
        ),  # one failed, one left
        ([attempt(0)], [play("cut", 3, 1, 1)], (1, 0, 0, 1, 3, 1, 0, 2)),  # cut by the end of the run
        (
            [attempt(0, ok=False), attempt(0, n=1)],
            [play("done", 1, 1, 1)],
            (1, 1, 0, 0, 1, 1, 0, 0),
        ),  # a retry is one turn
        ([attempt(0)], [play("done", 1, 1, 1), play("done", 0, 0, 0, 1)], (2, 2, 0, 0, 1, 1, 0, 0)),  # an empty session
    ],
)
def test_books(attempts: list[Attempt], plays: list[Play], expected: tuple[int, ...]) -> None:
    books = run_of(attempts, plays).books()
    assert tuple(getattr(books, name) for name in books.__slots__) == expected
    assert books.balanced


def test_a_lost_record_unbalances_the_books() -> None:
    assert not run_of([attempt(0)], [play("done", 2, 2, 2)]).books().balanced


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda f: None, "no such run folder"),
        (lambda f: f.write_text("a trace"), "is a file, a run folder is needed"),
        (lambda f: f.mkdir(), "this folder is not a run: it has no run.json"),
        (lambda f: (f.mkdir(), (f / "run.json").write_text("{")), "cannot be read"),
        (lambda f: (f.mkdir(), (f / "run.json").write_text("[]")), "is not a JSON object"),
        (lambda f: (f.mkdir(), (f / "run.json").write_text("{}")), "no such file"),
        (lambda f: _with_results(f, b"hello there"), "not a results file"),
        (lambda f: _with_results(f, encode("header", {})), "not a results file"),
        (lambda f: _with_results(f, encode("results", {"version": 2})), "results version 2 is not the 1"),
        (lambda f: _with_results(f, encode("results", {"version": 1}) + encode("attempt", {"turn": 1})), "not whole"),
        (lambda f: _with_results(f, encode("results", {"version": 1}) + encode("attempt", {"due": "x"})), "due: 'x'"),
    ],
)
def test_folders_that_are_no_runs(tmp_path: Path, make: object, message: str) -> None:
    make(tmp_path / "run")  # type: ignore[operator]
    with pytest.raises(BadInput, match=message):
        read_results(tmp_path / "run")


def _with_results(folder: Path, content: bytes) -> None:
    folder.mkdir()
    (folder / "run.json").write_text("{}")
    (folder / RESULTS).write_bytes(content)


def test_a_run_is_never_overwritten(tmp_path: Path) -> None:
    ResultsWriter(tmp_path, SETTINGS, 0.0).close()
    with pytest.raises(BadInput, match="holds a run already"):
        ResultsWriter(tmp_path, SETTINGS, 0.0)


def test_the_folders_own_copy_of_the_trace_comes_first(tmp_path: Path) -> None:
    ResultsWriter(tmp_path, SETTINGS, 0.0).close()
    assert read_results(tmp_path).trace_path == Path("a.trace")
    (tmp_path / "trace.trace").write_bytes(b"")
    assert read_results(tmp_path).trace_path == tmp_path / "trace.trace"


def test_a_play_whose_end_is_not_recorded_is_cut_with_its_turns(tmp_path):
    writer = ResultsWriter(tmp_path, {}, 0.0)
    writer.begun("a", 0, 2, 5, 1.5)
    writer.begun("b", 0, 3, 4, 1.5)
    writer.attempt(replace(attempt(0), session="a", end=2.0))
    writer.attempt(replace(attempt(1, ok=False), session="a", end=4.0))
    writer.attempt(replace(attempt(0), session="b", end=3.0))
    writer.play(Play("b", 0, 3, "done", 1, 1, 1, 1.5, 3.0))
    writer.close()
    run = read_results(tmp_path)
    known, cut = run.plays
    assert (known.session, known.outcome) == ("b", "done")
    assert (cut.session, cut.lane, cut.outcome, cut.turns, cut.sent, cut.completed) == ("a", 2, "cut", 5, 2, 1)
    assert (cut.started, cut.ended) == (1.5, 4.0)
    assert run.books().balanced
    assert run.books().turns_unsent == 3


def test_the_files_of_workers_are_read_as_one(tmp_path):
    writer = ResultsWriter(tmp_path, {"workers": [{"pid": 1}, {"pid": 2}, {"pid": 3}]}, 5.0)
    for number, (name, end) in enumerate((("a", 3.0), ("b", 2.0))):
        part = Records(FrameWriter(part_path(tmp_path, number)), {"worker": number})
        part.begun(name, 0, number, 2, 0.0)
        part.attempt(replace(attempt(), session=name, worker=number, end=end))
        if name == "b":
            part.play(Play("b", 0, 1, "done", 1, 1, 1, 0.0, end))
            part.end("done", end, {"cpu_seconds": 1.0})
        part.close()
    writer.end("partial", 9.0, {"lost": [[0, 3.5], [2, 0.0]]})
    run = read_results(tmp_path)
    assert [one.session for one in run.attempts] == ["b", "a"]  # in the order of their ends
    assert [(play.session, play.outcome) for play in run.plays] == [("b", "done"), ("a", "cut")]
    assert [end and end["outcome"] for end in run.workers] == [None, "done", None]
    assert run.ends == [{"cpu_seconds": 1.0, "outcome": "done", "at": 2.0}]
    assert not run.complete
    assert run.wall == 5.0
    assert run.books().balanced
