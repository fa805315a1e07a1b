"""Runs that something goes wrong in: the books balance each time, and what is left can be reported as what it is."""

from __future__ import annotations

import asyncio
import errno
import importlib.util
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentx.core import Gap, Header, Output, Piece, Prompt, Segment, Session, Turn
from agentx.frames import FrameWriter, WriteFailed
from agentx.replayer.run import areplay
from agentx.reporter.reporting import report
from agentx.results import RESULTS, read_results
from agentx.trace import TraceWriter

_spec = importlib.util.spec_from_file_location("faulty_server", Path(__file__).with_name("faulty_server.py"))
faulty = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(faulty)
FaultyServer, Restarting, serving = faulty.FaultyServer, faulty.Restarting, faulty.serving

QUICK = ("gaps.scale=0", "timeouts.stall=300ms")


def session(name: str, turns: int = 3, *, gap: float = 0.0) -> Session:
    own = {index: Segment(index, "user", 10) for index in range(1, turns + 1)}
    made = [Turn(0, 0, Prompt((Piece(1, 0, 10),)), 10, Output(4))]
    for index in range(1, turns):
        prompt = Prompt((Piece(index + 1, 0, 10),), index - 1, index)
        made.append(Turn(index, 0, prompt, 10 * (index + 1), Output(4), (index - 1,), Gap("tool", gap)))
    return Session(name, tuple(made), segments=own)


@pytest.fixture
def trace(tmp_path):
    """A function that writes sessions to a trace file."""

    def write(*sessions: Session) -> Path:
        path = tmp_path / "t.trace"
        with TraceWriter(path, Header(name="test", scope="test")) as writer:
            for each in sessions:
                writer.session(each)
        return path

    return write


def told(run) -> str:
    """The report's text; whatever befell the run, it is made."""
    assert run.books().balanced
    found = report(run)
    json.dumps(found.document(), allow_nan=False)
    return found.text()


FAULTS = [
    # fault of the second of three turns, kind of its failure, words of its message
    ("reset", "closed", ""),  # RST in the middle of a stream
    ("closed", "closed", ""),  # the connection ends in the middle of a chunk
    ("error_in_200", "stream", "503: The request queue is full."),
    ("busy", "http", "429: slow down"),
    ("busy_without_a_time", "http", "429: slow down"),
    ("html", "http", "502"),  # a proxy's page in place of JSON
    ("stall", "stall", "no byte came for 0.3 s"),
    ("endless", "endless", "of a reply of at most 4 tokens"),
    ("unbroken", "endless", "of a reply of at most 4 tokens"),
    ("garbage", "stream", ""),
    ("no_http", "protocol", ""),
]


@pytest.mark.parametrize(("fault", "kind", "words"), FAULTS)
async def test_what_one_request_meets_is_data(trace, tmp_path, fault, kind, words):
    faults = FaultyServer(lambda n: fault if n == 1 else "ok")
    async with serving(faults) as url:
        run = await areplay(trace(session("a")), target=url, out=tmp_path / "run", sets=[*QUICK, "on_failure=continue"])
    assert run.complete
    assert [attempt.failure and attempt.failure.kind for attempt in run.attempts] == [None, kind, None]
    assert words in run.attempts[1].failure.message
    books = run.books()
    assert (books.turns, books.completed, books.turns_failed, books.turns_unsent) == (3, 2, 1, 0)
    assert "2 of 3 requests answered" in told(run)


async def test_garbage_between_tokens_is_told_and_no_token_is_lost(trace, tmp_path):
    faults = FaultyServer(lambda n: "garbage_behind_a_token")
    async with serving(faults) as url:
        run = await areplay(trace(session("a", 1)), target=url, out=tmp_path / "run", sets=QUICK)
    (attempt,) = run.attempts
    assert attempt.failure.kind == "stream"
    assert attempt.completion_tokens == 1
    told(run)


async def test_a_server_that_says_when_is_left_alone_until_then(trace, tmp_path):
    """The turn has failed; the lane's next session waits, instead of failing too."""
    faults = FaultyServer(lambda n: "busy" if n == 0 else "ok")
    async with serving(faults) as url:
        run = await areplay(trace(session("a"), session("b")), target=url, out=tmp_path / "run", sets=QUICK)
    first, second = run.attempts[:2]
    assert (first.session, second.session) == ("a", "b")
    assert first.extra["held"] == 0.2
    assert first.end - first.sent < 0.2 <= second.due - first.end  # it is over when it is answered
    assert [play.outcome for play in run.plays] == ["failed", "done"]
    told(run)


async def test_a_server_that_restarts_fails_what_was_in_flight_and_little_else(trace, tmp_path):
    """Without a pause between connections that are refused, hundreds of sessions would fail in that second."""
    server = Restarting(at=5, away=0.5)
    url = await server.start()
    try:
        sets = [*QUICK, "load.sessions=2", "measure={sessions: 12}", "timeouts.stall=20s"]
        run = await areplay(trace(session("a"), session("b")), target=url, out=tmp_path / "run", sets=sets)
    finally:
        await server.stop()
    assert server.starts == 2
    kinds = [attempt.failure.kind for attempt in run.attempts if attempt.failure]
    assert set(kinds) <= {"closed", "refused"}
    assert 1 <= len(kinds) <= 4
    assert run.books().done >= 8
    assert f"{len(kinds)} of {len(run.attempts)} requests failed" in told(run)


async def test_a_server_that_goes_away_for_good_ends_the_run_with_its_books(trace, tmp_path):
    server = Restarting(at=2, away=3600.0)
    url = await server.start()
    sets = [*QUICK, "measure=1s", "drain=1s"]
    run = await areplay(trace(session("a")), target=url, out=tmp_path / "run", sets=sets)
    assert [attempt.failure and attempt.failure.kind for attempt in run.attempts][:2] == [None, None]
    assert {attempt.failure.kind for attempt in run.attempts[2:]} <= {"closed", "refused"}
    assert len(run.attempts) < 10
    told(run)


async def test_the_wall_clock_does_not_matter(trace, tmp_path, monkeypatch):
    """It jumps by hours, back and forth, at every look: only the anchor in the header is of it."""
    jumping, real = random.Random(1), time.time
    monkeypatch.setattr(time, "time", lambda: real() + jumping.uniform(-7200, 7200))
    monkeypatch.setattr(time, "time_ns", lambda: int(time.time() * 1e9))
    sets = ["gaps.scale=1", "load.sessions=2"]
    run = await areplay(trace(session("a", gap=0.05), session("b", gap=0.05)), out=tmp_path / "run", sets=sets)
    assert run.complete
    for attempt in run.attempts:
        assert (
            0 <= attempt.due <= attempt.sent <= attempt.first_byte <= attempt.first <= attempt.last <= attempt.end < 60
        )
        assert all(chunk.micros >= 0 for chunk in attempt.chunks)
    by_turn = {(attempt.session, attempt.turn): attempt for attempt in run.attempts}
    for name, turn in ((name, turn) for name in "ab" for turn in (1, 2)):
        gap = by_turn[name, turn].due - by_turn[name, turn - 1].end
        assert gap == pytest.approx(0.05, abs=1e-6)
    told(run)


@pytest.mark.parametrize("record", [2, 5, 9])
async def test_a_disk_that_fills_up(trace, tmp_path, monkeypatch, record):
    """The run stops at the first record that cannot be written; those before it are a partial run."""
    written, write = [], FrameWriter.flush

    def flush(self):
        written.append(self)
        if len(written) > record:
            raise WriteFailed(self.path, OSError(errno.ENOSPC, "No space left on device"))
        write(self)

    path = trace(session("a"), session("b"))
    monkeypatch.setattr(FrameWriter, "flush", flush)
    async with serving(FaultyServer()) as url:
        with pytest.raises(WriteFailed, match="the disk is full; what was written before is readable"):
            await areplay(path, target=url, out=tmp_path / "run", sets=QUICK)
    monkeypatch.undo()
    run = read_results(tmp_path / "run")
    assert run.end is None
    assert "PARTIAL" in told(run)


def command(*words: object, script: str | None = None) -> subprocess.Popen[str]:
    run = [sys.executable, "-m", "agentx"] if script is None else [sys.executable, "-c", script]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([*run, *map(str, words)], env=environment, text=True, **pipes)


def has_recorded(out: Path) -> None:
    for _ in range(600):
        if (out / RESULTS).exists() and read_results(out).attempts:
            return
        time.sleep(0.05)
    raise AssertionError("the run did not start")


ENDS = [
    # what it is sent, its exit code, the run's state in a report
    ((signal.SIGINT,), 130, "INTERRUPTED"),
    ((signal.SIGTERM,), 130, "INTERRUPTED"),
    ((signal.SIGKILL,), -signal.SIGKILL, "PARTIAL"),
]


@pytest.mark.parametrize(("signals", "code", "state"), ENDS)
def test_a_run_that_is_ended_from_outside(trace, tmp_path, signals, code, state):
    out = tmp_path / "run"
    process = command("replay", trace(session("a", 60, gap=0.1)), "-o", out, "--set", "gaps.scale=1")
    has_recorded(out)
    for each in signals:
        process.send_signal(each)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == code, stderr
    assert "Traceback" not in stderr
    run = read_results(out)
    assert run.attempts
    assert f"state   {state}" in told(run)


def test_an_interruption_before_the_run_has_begun_leaves_nothing(trace, tmp_path):
    """A server that takes connections and says nothing, asked for its model."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        process = command("replay", trace(session("a")), "-o", tmp_path / "run", "--target", url)
        silent.settimeout(30)
        connection, _ = silent.accept()
        connection.recv(1)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=30)
        connection.close()
    assert process.returncode == 130
    assert stderr.splitlines()[-1] == "agentx replay: interrupted"
    assert "Traceback" not in stderr
    assert not (tmp_path / "run").exists()


SLOW_END = """
import asyncio, sys
from agentx.replayer import counters
async def never(self):
    if self._clock() > 0.5:
        print("waiting", file=sys.stderr, flush=True)
        await asyncio.sleep(3600)
    return []
counters.Scraper.sample = never
from agentx.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


def test_a_second_interruption_does_not_wait_for_the_servers_counters(trace, tmp_path):
    out = tmp_path / "run"
    process = command("replay", trace(session("a", 200, gap=0.1)), "-o", out, "--set", "gaps.scale=1", script=SLOW_END)
    has_recorded(out)
    time.sleep(0.7)
    process.send_signal(signal.SIGINT)
    for line in process.stderr:
        if "waiting" in line:
            break
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=30)
    assert process.returncode == 130, stderr
    assert "Traceback" not in stderr
    run = read_results(out)
    assert run.end is None
    assert "PARTIAL" in told(run)


async def test_a_reply_that_trickles_for_ever_does_not_outlive_the_window(trace, tmp_path):
    """It is never silent, and too slow to be found endless: the drain cuts it."""
    async with serving(FaultyServer(lambda n: "trickle")) as url:
        sets = [*QUICK, "measure=200ms", "drain=500ms"]
        run = await asyncio.wait_for(areplay(trace(session("a")), target=url, out=tmp_path / "run", sets=sets), 20)
    (attempt,) = run.attempts
    assert attempt.failure.kind == "cut"
    assert len(attempt.chunks) > 4  # more than were asked for
    assert "the run ended first" in told(run)
