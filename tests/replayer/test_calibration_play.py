"""A run is played as its agents would have sent it under another timing."""

from __future__ import annotations

import pytest
from calibrating import agents, run_of

from agentx.engine.settings import LAPTOP
from agentx.replayer.calibration_play import MOST, play, plays
from agentx.replayer.calibration_run import CalibrationRun, load_calibration_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> CalibrationRun:
    folder = tmp_path_factory.mktemp("play")
    return load_calibration_run(run_of(agents(folder, sessions=6, turns=5), folder / "run", ""))


def test_a_slower_engine_is_sent_later_turns_later(run: CalibrationRun) -> None:
    fast, slow = play(run, LAPTOP), play(run, LAPTOP.model_copy(update={"decode_step": 0.1}))
    later = [index for index, each in enumerate(run.sent) if each.after]
    assert all(slow[index].sent > fast[index].sent for index in later)
    assert all(each.tpot is not None and each.tpot >= 0.1 for each in slow)


def test_pauses_before_a_turn_are_kept(run: CalibrationRun) -> None:
    played = play(run, LAPTOP.model_copy(update={"decode_step": 0.1}))
    for index, each in enumerate(run.sent):
        if len(each.after) == 1:
            before = played[each.after[0]]
            assert before.ttft is not None
            assert before.tpot is not None
            end = before.sent + before.ttft + before.tpot * (run.sent[each.after[0]].reply - 1)
            assert played[index].sent - end == pytest.approx(each.pause, abs=1e-6)


def test_a_short_run_is_played_several_times_and_each_time_the_same(run: CalibrationRun) -> None:
    first, again = plays(run, LAPTOP), plays(run, LAPTOP)
    assert len(first) == MOST
    assert [[each.ttft for each in one] for one in first] == [[each.ttft for each in one] for one in again]
    assert [each.sent for each in first[0]] != [each.sent for each in first[1]]
