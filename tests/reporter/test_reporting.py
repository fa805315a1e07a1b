"""Runs that have next to nothing, in every form: unknown or n/a, never a crash or a 0 that nobody measured."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from agentx.cli.main import main
from agentx.replayer.slo import slo_of
from agentx.reporter.reporting import report
from agentx.results import ResultsWriter

SILENT = {"told": None, "prompt": None}


@pytest.fixture
def edges(attempt, play):
    """What each run holds: (attempts, plays, window)."""
    failed = [
        attempt("a", turn, sent=turn, chunks=[], failed="http", status=500, end=turn + 1, **SILENT) for turn in (0, 1)
    ]
    return {
        "empty": ([], [], None),
        "all_failed": (failed, [play("a", turns=2, completed=0, outcome="failed")], None),
        "one_turn": ([attempt("a", cached=40)], [play("a")], None),
        "one_token": ([attempt("a", turn, sent=turn, chunks=[(0.5, 1)], told=1, osl=1) for turn in (0, 1)], [], None),
        "unknown_cached": ([attempt("a", turn, sent=3 * turn) for turn in (0, 1)], [play("a", turns=2)], None),
        "nothing_told": ([attempt("a", chunks=[(1, None), (2, None)], **SILENT)], [play("a")], None),
        "no_time": ([attempt("a", chunks=[(0.0, 1)], told=1, osl=1)], [play("a", ended=0.0)], (0.0, 0.0)),
    }  # fmt: skip


@pytest.fixture
def folder(edges, tmp_path):
    def write(name: str, under: str = "") -> str:
        attempts, plays, window = edges[name]
        path = tmp_path / under / name
        path.mkdir(parents=True)
        settings = {"target": {"kind": "url", "name": "here", "gpus": 2, "price": {"gpu_hour": 3}}, "plan": {}}
        writer = ResultsWriter(path, settings, 1_700_000_000.0)
        for one in attempts:
            writer.attempt(one)
        for one in plays:
            writer.play(one)
        writer.end("done", 5.0, {} if window is None else {"window": list(window)})
        return str(path)

    return write


UNKNOWN = [
    # run, the places of the document that nothing is known of
    (
        "empty",
        "latency.ttft_seconds throughput.window throughput.emitted.output.tokens cost.dollars jobs.whole_per_hour",
    ),
    ("all_failed", "latency.ttft_seconds latency.tpot_seconds lengths.isl_tokens reuse.by_request.share"),
    ("all_failed", "throughput.completed.output.tokens_per_second cost.dollars_per_million_output_tokens"),
    ("one_token", "latency.tpot_seconds interactivity.streaming_tokens_per_second reuse.by_request.cached_tokens"),
    ("unknown_cached", "reuse.by_request.cached_tokens throughput.completed.input_computed.tokens losses.sum_tokens"),
    ("unknown_cached", "cost.dollars_per_million_uncached_input_tokens throughput.emitted.input_cached.tokens"),
    (
        "nothing_told",
        "lengths.osl_tokens latency.tpot_seconds throughput.completed.output.tokens cost.output_tokens_per_dollar",
    ),
    ("no_time", "throughput.emitted.output.tokens_per_second throughput.completed.output.tokens_per_second_per_gpu"),
    ("no_time", "jobs.equivalents_per_hour jobs.whole_per_hour run.requests_in_flight_mean"),
]


@pytest.mark.parametrize(("name", "places"), UNKNOWN)
def test_the_document_says_null(folder, capsys, name, places):
    assert main(["report", folder(name), "--json"]) == 0
    found = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    for place in places.split():
        value = found
        for key in place.split("."):
            value = value[key]
        assert value is None, place


NAMES = ("empty", "all_failed", "one_turn", "one_token", "unknown_cached", "nothing_told", "no_time")
WRONG = re.compile(r"\b(nan|inf|none|null)\b", re.IGNORECASE)


@pytest.mark.parametrize("name", NAMES)
def test_every_form_for_people_has_words_for_it(folder, capsys, tmp_path, name):
    run = folder(name)
    for words in ([], ["--full"], ["--markdown"], ["--full", "--markdown"]):
        assert main(["report", run, *words]) == 0
        text = capsys.readouterr().out
        own = text.replace("None of the", "")  # a finding's own words
        assert not WRONG.search(own), WRONG.search(own)
        assert "unknown" in text
        if name in ("all_failed", "empty", "one_token", "no_time"):
            assert "n/a" in text
    assert main(["report", run, "--html", str(tmp_path / "page.html"), "--slo", "ttft_p95=1h,tpot=1h"]) in (0, 3)
    page = (tmp_path / "page.html").read_text()
    shown = re.sub(r"<script.*?</script>|<style.*?</style>|<[^>]*>", " ", page, flags=re.DOTALL)
    assert not re.search(r"\b(nan|undefined|infinity)\b", shown, re.IGNORECASE)


@pytest.mark.parametrize("name", NAMES)
def test_it_can_be_compared_with_one_that_has_figures(folder, capsys, tmp_path, name):
    whole, other = folder("one_turn", "whole"), folder(name, "other")
    assert main(["compare", whole, other, "--json"]) == 0
    (pair,) = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["pairs"]
    ratios = {row["name"]: row["all_answered"] for row in pair["figures"]}
    assert all(row["interval_low"] is None for row in ratios.values())
    if name != "one_turn":
        assert ratios["reuse_share"]["ratio"] is None
    if name in ("empty", "all_failed"):
        assert ratios["ttft_p50_seconds"]["ratio"] is None
        assert not pair["comparable"]
    assert main(["compare", whole, other, "--html", str(tmp_path / "pair.html")]) == 0
    assert not WRONG.search(capsys.readouterr().out.replace("None of the", ""))
    assert Path(tmp_path / "pair.html").stat().st_size > 1000


def test_a_run_by_hand(attempt, play, sample, run):
    """Every figure of two sessions, the sums in the comments. The window is 0 to 10 s, on 2 GPUs at 3 dollars."""
    made = [
        attempt("a", 0, sent=0, chunks=[(1, 1), (3, 4)], told=5, osl=5, prompt=100, cached=0),
        attempt("a", 1, sent=4, due=3.5, chunks=[(2, 2), (4, 2)], told=4, osl=5, prompt=200, cached=100),
        attempt("b", 0, sent=1, chunks=[(4, 1), (6, 2)], told=3, osl=3, prompt=50, cached=0),
        attempt("b", 1, sent=8, chunks=[(1, 1), (4, 1)], told=2, osl=2, prompt=150, cached=50),  # ends at 12
        attempt("b", 2, sent=9, chunks=[], told=None, prompt=None, failed="http", status=503, end=10.0),
    ]
    plays = [
        play("a", turns=2, started=0.0, ended=8.0),
        play("b", turns=4, sent=3, completed=2, outcome="failed", ended=12.0),
    ]
    samples = [
        sample(-1, prefill_input=0, prefill_device_hit=0),
        sample(13, prefill_input=350, prefill_device_hit=150),
    ]
    settings = {"target": {"kind": "url", "gpus": 2, "price": {"gpu_hour": 3}}, "plan": {}}
    end = {"outcome": "done", "at": 13.0, "window": [0.0, 10.0]}
    found = report(run(made, plays, samples, settings=settings, end=end), slo=slo_of(["ttft=2s"])).document()

    ttft = found["latency"]["ttft_seconds"]  # 1, 1, 2, 4
    assert (ttft["n"], ttft["sessions"]) == (4, 2)
    assert [ttft[key] for key in ("p50", "p90", "p95", "mean", "min", "max")] == pytest.approx([1.5, 3.4, 3.7, 2, 1, 4])
    assert found["latency"]["ttft_from_due_seconds"]["mean"] == 8.5 / 4  # one was sent half a second late
    tpot = found["latency"]["tpot_seconds"]  # 2 / 4, 2 / 2, 2 / 2, 3 / 1: tokens of the first chunk left out
    assert [tpot[key] for key in ("p50", "mean")] == [1.0, 5.5 / 4]
    assert found["interactivity"]["streaming_tokens_per_second"]["mean"] == pytest.approx(4 / 5.5)
    latency = found["latency"]["latency_seconds"]  # 3, 4, 6, 4
    assert (latency["mean"], latency["p50"]) == (17 / 4, 4.0)
    rate = found["interactivity"]["end_to_end_tokens_per_second"]  # seconds a token: 3/5, 4/4, 6/3, 4/2
    assert rate["mean"] == pytest.approx(4 / (0.6 + 1 + 2 + 2))
    assert (found["lengths"]["shorter_than_asked"], found["lengths"]["missing_tokens"]) == (1, 1)

    emitted = found["throughput"]["emitted"]  # all but the token at 12 s
    assert (emitted["output"]["tokens"], emitted["output"]["tokens_per_second"]) == (13, 1.3)
    assert emitted["output"]["tokens_per_second_per_gpu"] == 0.65
    assert emitted["input_cached"]["tokens"] == 150  # every first token lies in the window: 100 + 50
    assert emitted["input_computed"]["tokens"] == 350
    completed = found["throughput"]["completed"]  # 14 tokens from 0 to 12 s
    assert completed["output"]["tokens_per_second"] == pytest.approx(14 / 12)
    assert found["throughput"]["drained_after_window"] == 1
    # under way in the window: 3 + 4 + 6 + 2 of the last, and 1 of the failed one's
    assert found["run"]["requests_in_flight_mean"] == pytest.approx(1.6)

    assert found["reuse"]["by_request"]["share"] == 150 / 500
    assert found["reuse"]["by_counters"]["share"] == 150 / 500
    assert found["reuse"]["by_counters"]["counters_less_requests_tokens"] == 0
    books = found["books"]
    assert [books[key] for key in ("plays", "done", "failed", "cut")] == [2, 1, 1, 0]
    assert [books[key] for key in ("turns", "completed", "turns_failed", "turns_unsent")] == [6, 4, 1, 1]
    # a is whole in the window; of b one of four turns is done in it
    assert (found["jobs"]["whole_in_window"], found["jobs"]["equivalents_in_window"]) == (1, 1.25)
    assert found["jobs"]["equivalents_per_hour"] == pytest.approx(1.25 * 360)
    cost = found["cost"]  # 2 GPUs x 10 s at 3 dollars: 1/60 of a dollar
    assert cost["dollars"] == pytest.approx(1 / 60)
    assert cost["dollars_per_million_output_tokens"] == pytest.approx(1e6 / 60 / 13)
    assert cost["dollars_per_million_uncached_input_tokens"] == pytest.approx(1e6 / 60 / 350)
    goodput = found["slo"]["goodput"]  # 1, 2 and 1 s are met, 4 s and the failed one are not
    assert (goodput["due_turns"], goodput["met_turns"], goodput["share"]) == (5, 3, 0.6)
