"""The search moves constants only where that brings times together."""

from __future__ import annotations

from pathlib import Path

import pytest
from calibrating import agents, run_of

from agentx.engine.settings import LAPTOP
from agentx.replayer.calibration_fit import fit
from agentx.replayer.calibration_run import load_calibration_run

ALONE = """timing:
  {request: 0ms, prefill_batch: 10ms, prefill_token: 100us, prefill_token_context: 2ns, decode_step: 20ms,
   decode_request: 0ms, decode_context: 50ns, speculation_step: 0ms, load_back_token: 0ns}
"""


def test_one_lane_shows_most_constants_exactly(tmp_path: Path) -> None:
    run = load_calibration_run(
        run_of(agents(tmp_path, sessions=2, turns=10, reply=10), tmp_path / "run", ALONE, lanes=1)
    )
    told: list[str] = []
    found = fit([run], [set(range(len(run.sent)))], LAPTOP, told.append)
    assert found.timing.prefill_token == pytest.approx(100e-6, rel=0.02)
    assert found.timing.prefill_token_context == pytest.approx(2e-9, rel=0.05)
    assert found.timing.request + found.timing.prefill_batch == pytest.approx(10e-3, rel=0.05)
    assert found.timing.decode_step + found.timing.decode_request == pytest.approx(20e-3, rel=0.02)
    assert found.fixed["decode_request"] == "replies never overlapped: it is in decode_step"
    assert told[0].startswith("round 1: typical error")
