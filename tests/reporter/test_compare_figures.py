from __future__ import annotations

import pytest

from agentx.core import Cached
from agentx.reporter.compare_figures import FIGURES, RUN_FIGURES, measured


def figures(one, keys=None):
    turns = [turn for key, turn in one.turns.items() if keys is None or key in keys]
    return {figure.name: figure.of(turns, one.about.gpus) for figure in FIGURES}


@pytest.fixture
def two(attempt, run):
    made = [
        attempt("a", 0, cached=10),  # ttft 1, tpot 1, latency 2
        attempt("a", 1, sent=2.0, chunks=[(3, 1), (5, 1)], cached=50),  # ttft 3, tpot 2, latency 5
        attempt("a", 2, sent=7.0, failed="http"),
        attempt("a", 0, phase="warmup"),
    ]
    return measured(run(made, settings={"target": {"gpus": 2}}))


def test_by_hand(two):
    assert set(two.turns) == {("a", 0, 0), ("a", 0, 1)}
    found = figures(two)
    assert (found["ttft_p50_seconds"], found["ttft_mean_seconds"]) == (2, 2)
    assert found["ttft_p90_seconds"] == pytest.approx(1 + 0.9 * 2)
    assert found["tpot_p50_seconds"] == 1.5
    assert found["latency_mean_seconds"] == 3.5
    assert found["reuse_share"] == pytest.approx(60 / 200)
    assert found["output_tokens_per_second"] == pytest.approx(4 / 7)  # from 0 to 7 s
    assert found["output_tokens_per_second_per_gpu"] == pytest.approx(2 / 7)


def test_of_some_turns_alone(two):
    found = figures(two, {("a", 0, 1)})
    assert found["output_tokens_per_second"] == pytest.approx(2 / 5)  # from 2 to 7 s
    assert found["reuse_share"] == 0.5


def test_they_are_the_reports_own(two):
    found, metrics = figures(two), two.metrics
    assert found["ttft_p90_seconds"] == metrics.latency.ttft.at(90)
    assert found["tpot_mean_seconds"] == metrics.latency.tpot.mean
    assert found["latency_p50_seconds"] == metrics.latency.latency.at(50)
    assert found["reuse_share"] == metrics.reuse.by_request.share
    flow = metrics.throughput.completed
    assert found["output_tokens_per_second"] == flow.per_second(flow.output)


def test_unknown_stays_unknown(attempt, run):
    silent = measured(run([attempt(told=None, chunks=[(1, None)], prompt=None)]))
    found = figures(silent)
    assert found["ttft_p50_seconds"] == 1
    others = ["tpot_p50_seconds", "reuse_share", "output_tokens_per_second", "output_tokens_per_second_per_gpu"]
    assert [found[name] for name in others] == [None] * 4
    assert figures(measured(run())) == dict.fromkeys(found)
    assert [figure.of(measured(run())) for figure in RUN_FIGURES] == [None] * len(RUN_FIGURES)


def test_zeros_that_nothing_confirms_are_no_reuse(attempt, run):
    doubtful = measured(run([attempt("a", turn, cached=Cached(total=0)) for turn in range(3)]))
    assert figures(doubtful)["reuse_share"] is None
