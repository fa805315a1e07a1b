"""Scores: inside or outside, what was not foretold, and the history by target."""

from __future__ import annotations

import pytest

from agentx.errors import BadInput
from agentx.replayer.simulate import simulate
from agentx.reporter.forecasts import as_yaml, make_forecast
from agentx.reporter.reporting import report
from agentx.reporter.scored import FORECAST, ledger, ledger_text, scored_of
from agentx.trace import TraceWriter
from tests.making import header, linear


@pytest.fixture
def trace(tmp_path):
    with TraceWriter(tmp_path / "t.trace", header()) as writer:
        for number in range(3):
            writer.session(linear(5, id=f"s{number}", fresh=60))
    return tmp_path / "t.trace"


@pytest.fixture
def forecast(trace):
    return make_forecast(trace, target="laptop", draws=8)


def played(trace, name: str, forecast, *sets: str):
    run = simulate(trace, target="laptop", out=trace.parent / "runs" / name, sets=sets)
    (run.folder / FORECAST).write_text(as_yaml(forecast))
    return run


def test_the_run_that_was_foretold_is_inside(trace, forecast):
    found = scored_of(played(trace, "a", forecast))
    assert found is not None
    assert found.differs == ()
    assert len(found.told) == len(forecast.figures) == 7
    assert found.inside >= 5
    assert all(each.ratio == pytest.approx(1, abs=0.2) for each in found.scores)


def test_a_slower_server_is_outside(trace, forecast):
    found = scored_of(played(trace, "a", forecast, "target.timing.prefill_batch=1s"))
    assert found is not None
    scores = {each.name: each for each in found.scores}
    assert scores["ttft_p50_seconds"].inside is False
    assert (scores["ttft_p50_seconds"].ratio or 0) > 10
    assert scores["reuse_share"].inside is True


def test_a_run_that_was_another_one_says_so(trace, forecast):
    run = played(trace, "a", forecast.model_copy(update={"trace_sha256": "00"}), "load.sessions=2")
    found = scored_of(run)
    assert found is not None
    assert found.differs == ("another trace was replayed", "2 sessions at a time, not 1")


def test_the_report_holds_the_score_and_a_run_without_forecast_none(trace, forecast):
    found = report(played(trace, "a", forecast))
    assert "Forecast" in found.text()
    assert found.document()["forecast"]["told"] == len(forecast.figures)
    plain = report(simulate(trace, target="laptop", out=trace.parent / "plain"))
    assert "Forecast" not in plain.text()
    assert plain.document()["forecast"] is None


def test_the_history_goes_by_target(trace, forecast):
    played(trace, "a", forecast)
    played(trace, "b", forecast.model_copy(update={"target": "other"}))
    played(trace, "c", forecast.model_copy(update={"trace_sha256": "00"}))
    text = ledger_text(ledger(trace.parent / "runs"))
    assert "forecasts made with laptop" in text
    assert "forecasts made with other" in text
    assert " of 7 figures of 1 runs inside" in text
    assert "1 are not what was foretold" in text


def test_a_folder_without_forecasts_and_one_that_is_none(tmp_path):
    assert ledger_text(ledger(tmp_path)) == "no run here holds a forecast\n"
    with pytest.raises(BadInput, match="is no folder of runs"):
        ledger(tmp_path / "nowhere")
