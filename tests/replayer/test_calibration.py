"""Constants that an engine had are found again in its run, as far as the times of held-out sessions tell."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from calibrating import agents, run_of

from agentx.errors import BadInput
from agentx.replayer.calibration import Calibration, Figure, calibrate

PLAIN = """cache: {pool: 60000}
timing:
  {request: 20ms, prefill_batch: 15ms, prefill_token: 60us, prefill_token_context: 1.5ns, decode_step: 9ms,
   decode_request: 1ms, decode_context: 10ns, speculation_step: 0ms, load_back_token: 0ns}
"""
HOSTED = """cache: {pool: 30000, host: {tokens: 200000, write: write_through}}
speculation: {algorithm: EAGLE, steps: 3, draft_tokens: 4, acceptance: {length: 2.6}}
timing:
  {request: 40ms, prefill_batch: 60ms, prefill_token: 100us, prefill_token_context: 3ns, decode_step: 15ms,
   decode_request: 2ms, decode_context: 40ns, speculation_step: 4ms, load_back_token: 5us}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("calibration")


@pytest.fixture(scope="module")
def trace(folder: Path) -> Path:
    return agents(folder, sessions=16, turns=8)


@pytest.fixture(scope="module")
def plain(folder: Path, trace: Path) -> Calibration:
    other = run_of(trace, folder / "plain-small", PLAIN.replace("60000", "24000"))
    return calibrate([run_of(trace, folder / "plain", PLAIN)], predict=other)


def error(figures: tuple[Figure, ...], name: str) -> float:
    return next(each.error for each in figures if each.name == name)


def test_medians_of_held_out_sessions_are_found_within_5_percent(plain: Calibration) -> None:
    assert plain.held_sessions == 4
    assert abs(error(plain.held_out, "TTFT median")) < 0.05
    assert abs(error(plain.held_out, "TPOT median")) < 0.05
    assert abs(error(plain.held_out, "prompt tokens reused")) < 0.01


def test_a_pool_that_the_fit_never_saw_is_predicted(plain: Calibration) -> None:
    assert plain.prediction is not None
    assert plain.prediction.changed == (("cache.pool", "60000", "24000"),)
    seen = {each.name: each for each in plain.prediction.figures}
    before = {each.name: each for each in plain.fitted}
    assert seen["prompt tokens reused"].observed < before["prompt tokens reused"].observed - 0.02  # it does change
    assert abs(seen["prompt tokens reused"].error) < 0.02
    assert abs(seen["TTFT median"].error) < 0.1
    assert abs(seen["TPOT median"].error) < 0.05


def test_with_a_host_tier_and_speculation_too(folder: Path) -> None:
    (folder / "longer").mkdir()
    trace = agents(folder / "longer", sessions=16, turns=8, seed=2, reply=40)
    found = calibrate([run_of(trace, folder / "hosted", HOSTED)])
    assert abs(error(found.held_out, "TTFT median")) < 0.05
    assert abs(error(found.held_out, "TPOT median")) < 0.05
    assert "load_back_token" in found.fit.fitted
    assert found.fit.timing.speculation_step == 0.0  # one run does not tell it from decode_step, and says so
    assert "it is in decode_step" in found.fit.fixed["speculation_step"]


def test_the_timing_that_stands_in_the_folder_is_not_looked_at(plain: Calibration) -> None:
    assert plain.fit.timing.load_back_token == pytest.approx(500e-9)  # of the default, and marked as not fitted
    assert plain.fit.fixed["load_back_token"] == "no request was told to be loaded back"


def test_an_error_of_a_share_is_in_points() -> None:
    figure = Figure("prompt tokens reused", "share", 3, 0.5, 0.6, 0.5, 0.7)
    assert figure.error == pytest.approx(0.1)
    assert replace(figure, unit="s").error == pytest.approx(0.2)


def test_one_session_cannot_be_held_out(tmp_path: Path) -> None:
    run = run_of(agents(tmp_path, sessions=1, turns=30), tmp_path / "run", PLAIN)
    with pytest.raises(BadInput, match=r"has one session.*--hold-out 0"):
        calibrate([run])


@pytest.mark.parametrize("share", [-0.1, 1.0])
def test_a_share_is_a_share(share: float, folder: Path, plain: Calibration) -> None:
    with pytest.raises(BadInput, match="hold-out should be a share"):
        calibrate([folder / "plain"], hold_out=share)
