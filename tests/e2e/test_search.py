"""A search over HTTP that is killed, or interrupted, goes on where it was; a refused one leaves nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from agentx.cli.main import main
from agentx.core import Header
from agentx.results import RESULTS, read_results
from agentx.trace import TraceWriter
from tests.making import linear

ROOT = Path(__file__).parents[2]
WORDS = ["replay", "t.trace", "--set", "gaps.scale=0", "--set", "target.timing.decode_step=10ms"]
FIND = [*WORDS, "--find", "sessions 1..2: ttft_p95 <= 1h", "-o", "find"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("agentx.reporter.findings.BEHIND_SECONDS", 1e9)  # a busy machine is not what is tested
    with TraceWriter(tmp_path / "t.trace", Header(name="t", scope="scope")) as writer:
        for number in range(4):
            writer.session(linear(3, id=f"s{number}", fresh=30, reply=9))
    return tmp_path


def started(folder, words):
    """A process of its own group, as a shell starts it."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, "-m", "agentx", *words], cwd=folder, env=environment, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def wait_for(path, process):
    while not path.exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def test_a_search_that_was_killed_goes_on(folder, capsys):
    process = started(folder, FIND)
    first, second = (folder / f"find/sessions-{count}/run-1" for count in (1, 2))
    wait_for(second / RESULTS, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert read_results(first).complete
    before = (first / RESULTS).stat().st_mtime_ns
    assert read_results(second).end is None
    assert main(FIND) == 0
    assert (first / RESULTS).stat().st_mtime_ns == before
    assert read_results(second).complete
    assert (folder / "find/sessions-2/unfinished-run-1-1").exists()
    out, err = capsys.readouterr()
    assert "was not finished" in err
    assert "sessions 2 is met by its run, the highest that was tried" in out


def test_a_search_that_is_interrupted_says_so_and_keeps_its_books(folder, capsys):
    words = [
        *WORDS,
        "--set",
        "target.timing.decode_step=100ms",
        "--find",
        "sessions 1..2: ttft_p95 <= 1h",
        "-o",
        "find",
    ]
    process = started(folder, words)
    run = folder / "find/sessions-1/run-1"
    wait_for(run / RESULTS, process)
    time.sleep(0.3)  # until it listens for signals
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "the same command goes on from there" in err
    assert "Traceback" not in err
    assert read_results(run).books().balanced


def test_one_table_and_one_search_over_http(folder, capsys):
    assert main([*WORDS, "--sweep", "load.sessions=1,2", "-o", "sweep"]) == 0
    assert capsys.readouterr().out.startswith("agentx sweep: t, 2 replays")
    assert main([*WORDS, "--find", "rate 5..50 by 100%: failed <= 0%", "-o", "rate"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("agentx find: t, rate: failed <= 0%")
    assert "replayed" in out


def test_workers_share_each_run_as_far_as_it_can_be_split(folder, capsys):
    assert main([*FIND, "--workers", "2"]) == 0
    told = [read_results(folder / f"find/sessions-{count}/run-1").settings.get("workers") for count in (1, 2)]
    assert [workers and len(workers) for workers in told] == [None, 2]


def test_a_target_that_does_not_answer_is_one_line(folder, capsys):
    words = ["replay", "t.trace", "--target", "http://127.0.0.1:21199", "--find", "rate: ttft_p95 <= 1s", "-o", "find"]
    assert main(words) == 4
    assert len(capsys.readouterr().err.strip().splitlines()) <= 2
