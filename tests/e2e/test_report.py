"""agentx report: from a run folder on disk to its three forms, whole or torn, and one line for what is not a run."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from making import header, linear

from agentx.cli.main import main
from agentx.core import Attempt, Cached, Chunk, Play, Sample
from agentx.replayer.run import replay
from agentx.reporter.reporting import report
from agentx.results import RESULTS, TRACE, ResultsWriter
from agentx.trace import TraceWriter

TURNS, SECOND = 4, 1_000_000


def write_run(folder: Path, *, ended: bool = True) -> Path:
    """Two sessions of four turns, one by one. Turn i has 75 + 15 i prompt tokens; all that was sent is reused."""
    folder.mkdir()
    with TraceWriter(folder / TRACE, header("hand-made")) as trace:
        for name in ("a", "b"):
            trace.session(linear(TURNS, id=name))
    settings: dict[str, Any] = {
        "plan": {"wire": "chat", "salt": "run", "history": "recorded", "load": {"sessions": 1}},
        "salt": "pepper",
        "seed": 3,
        "template": {"start": 0, "per_message": 0},
        "server": {"page_size": 1},
        "target": {"kind": "engine", "name": "laptop", "gpus": 1, "model": "embedded"},
        "trace": {"path": TRACE, "sha256": hashlib.sha256((folder / TRACE).read_bytes()).hexdigest()},
    }
    writer = ResultsWriter(folder, settings, wall=1_800_000_000.0)
    writer.sample(Sample(0.0, "laptop", {"prefill_input": 0, "prefill_device_hit": 0, "prefill_host_hit": 0}))
    at, cached, prompts = 1.0, 0, 0
    for name in ("a", "b"):
        for index in range(TURNS):
            prompt = 75 + 15 * index
            hit = prompt - 15 if index else (0 if name == "a" else 65)  # b shares tools and system with a
            writer.attempt(_attempt(name, index, at, prompt, hit))
            cached, prompts, at = cached + hit, prompts + prompt, at + 3.0
        writer.play(Play(name, 0, 0, "done", TURNS, TURNS, TURNS, at - 3.0 * TURNS, at - 1.0))
    counters = {"prefill_input": prompts - cached, "prefill_device_hit": cached, "prefill_host_hit": 0}
    writer.sample(Sample(at, "laptop", counters))
    if ended:
        writer.end("done", at)
    else:
        writer.close()
    return folder


def _attempt(session: str, turn: int, at: float, prompt: int, hit: int) -> Attempt:
    """Its first token after a second, three more after another."""
    return Attempt(
        session, 0, turn, 0, 0, at, at, prompt, 4,
        first=at + 1.0, last=at + 2.0, end=at + 2.0, chunks=(Chunk(SECOND, 1), Chunk(2 * SECOND, 3)),
        prompt_tokens=prompt, completion_tokens=4, cached=Cached(hit, device=hit, host=0), status=200, finish="length",
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_run(tmp_path / "run")


def test_json_is_one_document(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(folder), "--json"]) == 0
    out = capsys.readouterr()
    found = json.loads(out.out)
    assert out.err == ""
    # per session 75 + 90 + 105 + 120 = 390 prompt tokens; reused 0 (65 in b) + 75 + 90 + 105
    reuse = found["reuse"]
    assert (reuse["by_request"]["prompt_tokens"], reuse["by_request"]["cached_tokens"]) == (780, 605)
    assert (reuse["by_counters"]["cached_tokens"], reuse["by_counters"]["counters_less_requests_tokens"]) == (605, 0)
    assert (reuse["ideal"]["cached_tokens"], reuse["missing_to_ideal_tokens"]) == (605, 0)
    assert found["latency"]["tpot_seconds"]["p50"] == pytest.approx(1 / 3)
    assert found["interactivity"]["streaming_tokens_per_second"]["mean"] == pytest.approx(3.0)
    # 8 replies of 4 tokens between 1 s and 1 + 7 * 3 + 2 s
    assert found["throughput"]["completed"]["output"]["tokens_per_second"] == pytest.approx(32 / 23)
    assert found["run"]["state"] == "done"
    assert found["run"]["engine_rules"] == "SGLang 0.5.23"


def test_text_and_markdown(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(folder), "--full"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("agentx report: trace.trace on laptop\n  state   complete\n")
    assert "Counters and requests of the same time agree exactly." in text
    assert "Missing to the ideal: 0 tokens" in text
    assert main(["report", str(folder), "--full", "--markdown"]) == 0
    assert "| ideal, the same prompts | 605 | 780 | 77.6 % |" in capsys.readouterr().out


def test_without_more_words_it_is_a_screen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(folder)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("agentx report: trace.trace on laptop\n  state   complete\n")
    assert len(text.splitlines()) <= 40
    assert "ideal     77.6 %; possible" in text
    assert main(["report", str(folder), "--markdown"]) == 0
    assert "- **ideal**: 77.6 %; possible" in capsys.readouterr().out


def test_a_run_torn_in_the_middle_is_partial(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    size = (folder / RESULTS).stat().st_size
    os.truncate(folder / RESULTS, size // 2 - 7)
    assert main(["report", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["run"]["state"] == "partial"
    assert "torn at byte" in found["run"]["torn"]
    assert 0 < found["run"]["requests"] < 8
    assert found["books"]["balanced"]
    assert found["reuse"]["by_counters"] is None  # the second sample is lost
    assert main(["report", str(folder)]) == 0
    assert "PARTIAL" in capsys.readouterr().out.splitlines()[1]


def test_a_run_torn_anywhere_is_reported(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    size = (folder / RESULTS).stat().st_size
    for cut in range(size - 1, size // 20, -97):
        os.truncate(folder / RESULTS, cut)
        assert main(["report", str(folder), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["run"]["state"] == "partial"


def test_a_killed_run_is_partial(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(write_run(tmp_path / "run", ended=False)), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["run"]["state"], found["run"]["torn"]) == ("partial", None)
    assert "partial" in {one["kind"] for one in found["findings"]}


def test_it_lies_elsewhere_and_says_the_same(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["report", str(folder), "--json"])
    here = capsys.readouterr().out
    moved = folder.rename(folder.parent / "moved")
    main(["report", str(moved), "--json"])
    assert capsys.readouterr().out == here


@pytest.mark.parametrize("wire", ["chat", "generate"])
def test_requests_counters_and_ideal_agree_over_a_drained_run(tmp_path: Path, wire: str) -> None:
    """Two lanes against the embedded engine: what each reply told, what the server counted, what could be reused."""
    with TraceWriter(tmp_path / "t.trace", header("agree")) as trace:
        for name in "abc":
            trace.session(linear(5, id=name, fresh=40, reply=6))
    plan = [f"wire={wire}", "load.sessions=2", "gaps.scale=0"]
    found = report(replay(tmp_path / "t.trace", out=tmp_path / "run", sets=plan)).document()
    reuse, run = found["reuse"], found["run"]
    assert (run["state"], run["requests_completed"], run["engine_rules"]) == ("done", 15, "SGLang 0.5.23")
    assert reuse["by_request"]["told_responses"] == 15
    assert reuse["by_counters"]["source"] == "prefill"
    assert reuse["by_counters"]["counters_less_requests_tokens"] == 0
    assert reuse["by_counters"]["prompt_tokens"] == reuse["by_request"]["prompt_tokens"]
    assert reuse["by_request"]["cached_tokens"] > 0
    assert reuse["missing_to_ideal_tokens"] >= 0  # two sessions that begin at once compute what they share twice
    assert reuse["ideal"]["drift_tokens"] == 0
    assert found["lengths"]["shorter_than_asked"] == 0
    assert found["throughput"]["completed"]["output"]["tokens"] == 15 * 6


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: None, "no such run folder"),
        (lambda path: path.mkdir(), "not a run"),
        (lambda path: path.write_text("x"), "is a file, a run folder is needed"),
        (lambda path: (path.mkdir(), (path / "run.json").write_text("{")), "cannot be read"),
        (lambda path: (path.mkdir(), (path / "run.json").write_text("{}"), (path / RESULTS).write_bytes(b"")), "empty"),
    ],
)
def test_what_is_not_a_run_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], make: Any, words: str
) -> None:
    make(tmp_path / "run")
    assert main(["report", str(tmp_path / "run")]) == 2
    out = capsys.readouterr()
    assert out.out == ""
    assert len(out.err.splitlines()) == 1
    assert words in out.err


def test_one_form_at_a_time(folder: Path) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["report", str(folder), "--json", "--markdown"])
    assert stop.value.code == 2
