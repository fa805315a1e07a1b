"""What a calibration reads of a run folder, and which folders it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from calibrating import agents, run_of

from agentx.core import Attempt, Cached
from agentx.engine.settings import LAPTOP
from agentx.errors import BadInput
from agentx.replayer.calibration_play import play
from agentx.replayer.calibration_run import load_calibration_run
from agentx.results import ResultsWriter, RunResults, read_results

TARGET = """cache: {pool: 40000}
timing:
  {request: 2ms, prefill_batch: 5ms, prefill_token: 20us, prefill_token_context: 1ns, decode_step: 9ms,
   decode_request: 1ms, decode_context: 10ns, speculation_step: 0ms, load_back_token: 0ns}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> RunResults:
    folder = tmp_path_factory.mktemp("run")
    return read_results(run_of(agents(folder, sessions=6, turns=6), folder / "made", TARGET))


def copied(run: RunResults, folder: Path, *, settings: dict[str, Any] | None = None, **changes: Any) -> Path:
    """The run with every attempt changed, in a folder of its own."""
    kept = {**run.settings, "trace": {"path": str(run.trace_path.resolve())}, **(settings or {})}
    writer = ResultsWriter(folder, kept, 0.0)
    for attempt in run.attempts:
        writer.attempt(replace(attempt, **changes))
    writer.end("done", 1.0)
    return folder


def test_the_same_timing_gives_the_same_run(run: RunResults) -> None:
    found = load_calibration_run(run.folder)
    timing = LAPTOP.model_validate(run.settings["target"]["timing"])
    seen: list[Attempt] = sorted(run.attempts, key=lambda each: (each.sent, each.session))
    assert found.settings.timing == LAPTOP  # not the run's own
    for attempt, sent, played in zip(seen, found.sent, play(found, timing), strict=True):
        assert (sent.session, sent.turn, sent.measured) == (attempt.session, attempt.turn, True)
        assert played.prompt == attempt.prompt_tokens  # the prompt was made again, token by token
        assert attempt.cached is not None
        assert played.cached == attempt.cached.total
        assert played.ttft == pytest.approx(sent.ttft, rel=1e-6)
        assert played.tpot == pytest.approx(sent.tpot, rel=1e-6)


def test_each_turn_waits_for_what_the_trace_says_or_for_its_lane(run: RunResults) -> None:
    sent = load_calibration_run(run.folder).sent
    first = [each for each in sent if not each.after]
    assert len(first) == 2  # one for each lane
    assert all(each.pause >= 0 for each in sent)
    assert all(sent[place].sent < each.sent for each in sent for place in each.after)


def test_a_run_without_usage_is_refused(run: RunResults, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"told no token counts \(usage\), so what a token takes cannot be known"):
        load_calibration_run(copied(run, tmp_path / "mute", prompt_tokens=None, completion_tokens=None, chunks=()))


def test_a_run_without_cached_tokens_says_what_cannot_be_known(run: RunResults, tmp_path: Path) -> None:
    found = load_calibration_run(copied(run, tmp_path / "mute", cached=None))
    assert any("did not tell cached tokens" in note and "cannot be known" in note for note in found.notes)
    untiered = load_calibration_run(copied(run, tmp_path / "one", cached=Cached(total=5)))
    assert any("not split by tier" in note for note in untiered.notes)


def test_replies_in_one_chunk_show_no_decode_step(run: RunResults, tmp_path: Path) -> None:
    whole = [replace(each, last=each.first, chunks=()) for each in run.attempts]
    writer = ResultsWriter(tmp_path / "whole", {**run.settings, "trace": {"path": str(run.trace_path)}}, 0.0)
    for each in whole:
        writer.attempt(each)
    writer.end("done", 1.0)
    notes = load_calibration_run(tmp_path / "whole").notes
    assert any("what a decode step takes cannot be known" in note for note in notes)


def test_a_short_run_is_refused(tmp_path: Path) -> None:
    short = run_of(agents(tmp_path, sessions=2, turns=2), tmp_path / "short", TARGET)
    with pytest.raises(BadInput, match="4 turns were answered, 16 or more are needed"):
        load_calibration_run(short)


def test_a_folder_that_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"not a run: it has no run\.json"):
        load_calibration_run(tmp_path)
    with pytest.raises(BadInput, match="no such run folder"):
        load_calibration_run(tmp_path / "gone")


def test_a_run_against_several_servers_is_refused(run: RunResults, tmp_path: Path) -> None:
    target = {"kind": "endpoint", "urls": ["http://a:1", "http://b:1"]}
    with pytest.raises(BadInput, match="was played against 2 servers"):
        load_calibration_run(copied(run, tmp_path / "two", settings={"target": target}))
