"""Several processes play one plan, over sockets."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentx.core import Gap, Header, Output, Piece, Prompt, Segment, Session, Turn
from agentx.errors import BadInput
from agentx.replayer.run import areplay
from agentx.reporter.reporting import report
from agentx.results import part_path, read_results
from agentx.trace import TraceWriter

_spec = importlib.util.spec_from_file_location("faulty_server", Path(__file__).with_name("faulty_server.py"))
faulty = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(faulty)
FaultyServer, serving = faulty.FaultyServer, faulty.serving

SHARED = {1: Segment(1, "tools", 60), 2: Segment(2, "system", 40)}


def session(name: str, turns: int, gap: float = 0.0) -> Session:
    own, made = {}, []
    for index in range(turns):
        own[100 + index] = Segment(100 + index, "user", 10)
        prompt = Prompt((Piece(1, 0, 60), Piece(2, 0, 40), Piece(100 + index, 0, 10)))
        made.append(Turn(index, 0, prompt, 110, Output(3), (index - 1,) if index else (), Gap("tool", gap)))
    return Session(name, tuple(made), segments=own, shared=SHARED)


@pytest.fixture
def trace(tmp_path):
    def write(*sessions: Session) -> Path:
        path = tmp_path / "t.trace"
        with TraceWriter(path, Header(name="test", scope="test")) as writer:
            for each in sessions:
                writer.session(each)
        return path

    return write


async def test_the_same_content_is_sent_as_with_one_worker(trace, tmp_path):
    path = trace(*(session(f"s{number}", 2 + number % 3) for number in range(5)))
    sets, sent = ["gaps.scale=0", "load.sessions=4", "measure={sessions: 11}"], []
    for workers in (1, 3):
        server = FaultyServer()
        async with serving(server) as url:
            out = tmp_path / f"run{workers}"
            run = await areplay(path, target=url, out=out, sets=sets, salt="x", workers=workers)
        assert run.complete
        assert run.books().balanced
        assert run.books().plays == 11
        sent.append(sorted(json.dumps(body) for body in server.bodies))
    assert sent[0] == sent[1]
    keys = {(attempt.session, attempt.play, attempt.turn) for attempt in run.attempts}
    assert keys == {(one.session, one.play, one.turn) for one in read_results(tmp_path / "run1").attempts}
    assert {attempt.worker for attempt in run.attempts} == {0, 1, 2}
    assert [attempt.end for attempt in run.attempts] == sorted(attempt.end for attempt in run.attempts)
    assert "load.sessions 4 over 3 workers: 2+1+1" in run.notes
    assert len(run.ends) == 3


async def test_a_warm_up_is_handed_over_together_and_counters_are_sampled_once(trace, tmp_path):
    path = trace(*(session(f"s{number}", 8) for number in range(4)))
    sets = ["gaps.scale=0", "load.sessions=4", "warmup.turns=2", "measure={turns: 3}", "gaps.system_idle_cap=1s"]
    run = await areplay(path, out=tmp_path / "run", sets=sets, workers=2)
    assert run.complete
    warmup = [attempt for attempt in run.attempts if attempt.phase == "warmup"]
    measured = [attempt for attempt in run.attempts if attempt.phase == "measure"]
    assert (len(warmup), len(measured)) == (8, 12)
    assert max(attempt.sent for attempt in warmup) < min(attempt.sent for attempt in measured)
    assert run.samples[-1].values["requests"] - run.samples[0].values.get("requests", 0) == 20
    assert report(run).metrics.client.workers == 2


async def test_a_load_that_cannot_be_split_is_refused_before_anything_is_written(trace, tmp_path):
    with pytest.raises(BadInput, match="cannot be split over 3 workers"):
        await areplay(trace(session("a", 1)), out=tmp_path / "run", sets=["load.sessions=2"], workers=3)
    assert not (tmp_path / "run").exists()


@contextlib.contextmanager
def server():
    """The URL of an embedded engine in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    words = [sys.executable, "-m", "agentx", "serve", "laptop", "--port", "0", "--set", "scheduler.max_running=600"]
    process = subprocess.Popen(words, env=environment, text=True, stderr=subprocess.PIPE)
    try:
        yield re.search(r"http://\S+", process.stderr.readline())[0]
    finally:
        process.terminate()
        process.communicate(timeout=30)


def command(path, out, *more, before=None):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    words = [sys.executable, "-m", "agentx", "replay", str(path), "-o", str(out), "--set", "gaps.scale=1", *more]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(words, env=environment, text=True, preexec_fn=before, **pipes)


def four_sessions(trace, out, *, turns):
    """Four sessions at a time by two workers, with pauses of half a second."""
    path = trace(*(session(f"s{number}", turns, 0.5) for number in range(4)))
    return command(path, out, "--sessions", "4", "--workers", "2")


def started(out, workers):
    """Wait until all workers have recorded something."""
    for _ in range(1200):
        if all(part_path(out, number).exists() for number in range(workers)):
            seen = {attempt.worker for attempt in read_results(out).attempts}
            if len(seen) == workers:
                return
        time.sleep(0.05)
    raise AssertionError("the run did not start")


def pids(out) -> list[int]:
    return [worker["pid"] for worker in json.loads((out / "run.json").read_text())["workers"]]


def test_a_worker_that_is_killed_takes_only_its_own_plays(trace, tmp_path):
    out = tmp_path / "run"
    process = command(
        trace(*(session(f"s{number}", 6, 0.5) for number in range(4))), out, "--sessions", "4", "--workers", "2"
    )
    started(out, 2)
    os.kill(pids(out)[1], signal.SIGKILL)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 5, stderr
    assert re.search(r"Lost: worker 1 at \d+\.\d s", stdout)
    assert "PARTIAL, a worker was lost" in stdout
    run = read_results(out)
    books = run.books()
    assert (books.plays, books.done, books.cut, books.balanced) == (4, 2, 2, True)
    assert (books.turns, books.completed) == (24, 24 - books.turns_unsent)
    assert not run.complete
    assert {play.session for play in run.plays if play.outcome == "done"} == {"s0", "s2"}


def test_an_interruption_ends_all_and_every_book_is_written(trace, tmp_path):
    out = tmp_path / "run"
    process = command(
        trace(*(session(f"s{number}", 40, 0.5) for number in range(4))), out, "--sessions", "4", "--workers", "2"
    )
    started(out, 2)
    process.send_signal(signal.SIGINT)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    run = read_results(out)
    assert run.end["outcome"] == "interrupted"
    assert [end["outcome"] for end in run.ends] == ["interrupted"] * 2
    books = run.books()
    assert (books.cut, books.balanced) == (books.plays, True)
    assert books.plays >= 2  # one of each worker was seen; its other one may not have begun yet


def test_workers_whose_coordinator_is_killed_end_with_their_books(trace, tmp_path):
    out = tmp_path / "run"
    process = command(
        trace(*(session(f"s{number}", 40, 0.5) for number in range(4))), out, "--sessions", "4", "--workers", "2"
    )
    started(out, 2)
    process.kill()
    process.communicate(timeout=60)
    for _ in range(600):
        run = read_results(out)
        if len(run.ends) == 2:
            break
        time.sleep(0.05)
    assert run.end is None
    assert [end["outcome"] for end in run.ends] == ["interrupted"] * 2
    books = run.books()
    assert (books.cut, books.balanced) == (books.plays, True)
    assert books.plays >= 2  # one of each worker was seen; its other one may not have begun yet


def test_many_live_sessions_under_a_low_limit_of_open_files(trace, tmp_path):
    """The server is a process of its own; the client may open 256 files at first, and 4,096 when it asks."""

    def few_files() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 4096))

    path, out = trace(*(session(f"s{number}", 1) for number in range(600))), tmp_path / "run"
    with server() as url:
        process = command(path, out, "--target", url, "--sessions", "500", before=few_files)
        stdout, stderr = process.communicate(timeout=120)
    run = read_results(out)
    books = run.books()
    assert (books.plays, books.done, books.completed) == (600, 600, 600), stderr
    assert process.returncode in (0, 5), stderr  # on a busy machine the client may well be the bottleneck
    assert min(end["files"]["limit"] for end in run.ends) >= 500
    assert "client" in stdout


def test_a_limit_of_open_files_that_is_too_low_is_said_before_anything_is_written(trace, tmp_path):
    def few_files() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))

    out = tmp_path / "run"
    process = command(trace(session("a", 1)), out, "--sessions", "500", before=few_files)
    _, stderr = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "500 requests in flight need about 1,064 open files, and this process may open 256" in stderr
    assert not out.exists()
