"""agentx calibrate: the report on stdout, the target in the file."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest
from calibrating import agents, run_of

from agentx.cli import calibrate
from agentx.engine.settings import EngineSettings, load_engine
from agentx.errors import BadInput
from agentx.replayer.calibration import Calibration, Figure
from agentx.replayer.calibration_fit import Fit
from agentx.reporter.table import as_text

TARGET = """cache: {pool: 40000}
timing:
  {request: 20ms, prefill_batch: 5ms, prefill_token: 60us, prefill_token_context: 1ns, decode_step: 9ms,
   decode_request: 1ms, decode_context: 10ns, speculation_step: 0ms, load_back_token: 0ns}
"""


def arguments(*words: object) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    calibrate.add_arguments(parser)
    return parser.parse_args([str(word) for word in words])


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cli")
    return run_of(agents(folder, sessions=4, turns=5, reply=10), folder / "run", TARGET, lanes=2)


def test_report_and_target(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "new" / "node.yaml"
    assert calibrate.run(arguments(run, "-o", out, "--predict", run)) == 0
    said = capsys.readouterr()
    assert "held-out sessions, which the fit never saw" in said.out
    assert "TTFT median, ms" in said.out
    assert "Changed: nothing." in said.out
    assert f"target written to {out}" in said.err
    assert load_engine(out).cache.pool == 40_000


def test_a_target_is_not_overwritten(tmp_path: Path) -> None:
    out = tmp_path / "node.yaml"
    out.write_text("mine")
    with pytest.raises(BadInput, match="exists already"):
        calibrate.run(arguments(tmp_path, "-o", out))
    assert out.read_text() == "mine"


def test_a_folder_that_is_no_run_writes_nothing(tmp_path: Path) -> None:
    out = tmp_path / "node.yaml"
    with pytest.raises(BadInput, match="not a run"):
        calibrate.run(arguments(tmp_path, "-o", out))
    assert not out.exists()


def test_nothing_held_out_is_said() -> None:
    timing = EngineSettings().timing
    figure = Figure("prompt tokens reused", "share", 9, 0.5, 0.51, 0.5, 0.52)
    fit = Fit(timing, tuple(type(timing).model_fields), {})
    found = Calibration((Path("run"),), EngineSettings(), fit, 3, 0, (figure,), (), None, ("a note",))
    text = as_text(calibrate.blocks(found))
    assert "no test" in text
    assert "held-out" not in text
    assert "+1.0 points" in text
    assert "- a note" in text
