"""Forecasts: several simulations of one run; the file reads back; what is none is refused."""

from __future__ import annotations

import pytest

from agentx.errors import BadInput
from agentx.reporter.forecasts import as_yaml, load_forecast, make_forecast
from agentx.trace import TraceWriter
from tests.making import header, linear


@pytest.fixture
def trace(tmp_path):
    with TraceWriter(tmp_path / "t.trace", header()) as writer:
        for number in range(3):
            writer.session(linear(5, id=f"s{number}", fresh=60))
    return tmp_path / "t.trace"


def test_a_forecast_reads_back_as_it_was(trace, tmp_path):
    made = make_forecast(trace, target="laptop", sets=["load.sessions=2"], draws=3)
    (tmp_path / "f.yaml").write_text(as_yaml(made))
    assert load_forecast(tmp_path / "f.yaml") == made
    assert (made.target, made.trace, made.sessions, made.draws) == ("laptop", "t", 2, 3)


def test_times_have_an_interval_and_what_hangs_on_none_has_the_least_one(trace):
    made = make_forecast(trace, target="laptop", draws=4)
    ttft = made.figures["ttft_p50_seconds"]
    assert ttft.high - ttft.low > 0.03 * ttft.median
    reuse = made.figures["reuse_share"]  # one session at a time: the order is always the same
    assert reuse.low == pytest.approx(0.99 * reuse.median, rel=1e-4)
    assert reuse.high == pytest.approx(1.01 * reuse.median, rel=1e-4)


def test_the_same_arguments_give_the_same_forecast(trace):
    assert make_forecast(trace, target="laptop", draws=2) == make_forecast(trace, target="laptop", draws=2)


def test_an_address_cannot_be_foretold(trace):
    with pytest.raises(BadInput, match="only an engine can be simulated"):
        make_forecast(trace, target="http://127.0.0.1:9")


GOOD = """agentx: forecast/1
target: t
plan: p
trace: t
trace_sha256: "00"
rules: SGLang 0.5.23
draws: 3
figures:
  ttft_p50_seconds: {low: 1, median: 2, high: 3}
"""


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("ttft_p50_seconds", "ttft_p51_seconds", "ttft_p51_seconds is no figure of agentx"),
        ("low: 1", "low: 4", "should have low <= median <= high"),
        ("draws: 3", "draws: 0", "draws"),
        ("forecast/1", "target/1", "forecast/1"),
    ],
)
def test_what_is_no_forecast_is_refused(tmp_path, old, new, message):
    path = tmp_path / "f.yaml"
    path.write_text(GOOD)
    load_forecast(path)
    path.write_text(GOOD.replace(old, new))
    with pytest.raises(BadInput, match=message):
        load_forecast(path)
