"""Goodput and verdicts on runs made by hand, the sums in the comments."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.replayer.slo import Slo, slo_of
from agentx.reporter.goodput import judge, slo_in, statistic
from agentx.reporter.goodput_text import slo_blocks, slo_document
from agentx.reporter.metrics import measure
from agentx.reporter.reporting import report
from agentx.reporter.spread import percentile
from agentx.reporter.table import as_text

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"
FAST, SLOW = ((0.5, 1), (1.0, 1)), ((3.0, 1), (4.0, 1))  # TTFT 0.5 s and 3 s; TPOT 0.5 s and 1 s


def judged(run, *texts):
    return judge(run, measure(run), slo_of(texts))


@pytest.fixture
def mixed(attempt, play, run):
    """Three sessions. a: two good turns. b: one good, one slow. c: one failed, one cut, one never sent."""
    made = [
        attempt("a", 0, chunks=FAST),
        attempt("a", 1, sent=2.0, chunks=FAST),
        attempt("b", 0, chunks=FAST),
        attempt("b", 1, sent=5.0, chunks=SLOW),
        attempt("c", 0, chunks=(), failed="http"),
        attempt("c", 1, chunks=(), failed="cut"),
        attempt("a", 9, phase="warmup", chunks=SLOW),
    ]
    plays = [play("a", turns=2), play("b", turns=2), play("c", turns=4, outcome="cut", extra={"overdue": 1})]
    return run(made, plays, end={"outcome": "done", "at": 20.0, "window": [0.0, 10.0]})


def test_goodput_by_turn_and_by_session(mixed):
    found = judged(mixed, "ttft=1s,tpot=0.75s").goodput
    assert (found.due, found.met, found.missed, found.unknown) == (7, 3, 4, 0)  # 4 answered, 1 failed, 1 cut, 1 unsent
    assert (found.failed, found.cut, found.unsent) == (1, 1, 1)
    assert found.missed_by == {"ttft": 1, "tpot": 1}  # b's second turn missed both
    assert (found.share, found.per_second) == (3 / 7, 0.3)
    assert (found.plays, found.plays_met, found.session_share, found.sessions_per_hour) == (3, 1, 1 / 3, 360)


def test_verdicts_of_a_run(mixed):
    asked = {
        # objective: (value, endless, met)
        "ttft_p50=1s": (3.0, False, False),  # 0.5 0.5 0.5 3 - - -: the fourth of seven
        "ttft_p95=9s": (None, True, False),  # three of seven had no answer
        "ttft_max=9s": (None, True, False),
        "ttft_mean=2s": (4.5 / 4, False, True),  # of the answered
        "goodput=40%": (4 / 7, False, True),  # no objective of turns: those that were answered
        "failed=50%": (3 / 7, False, True),
        "session_goodput=90%": (2 / 3, False, False),
        "interactivity_p50=1": (1.0, False, True),  # TPOT 0.5 0.5 0.5 1 - - -
        "interactivity_p95=1": (0.0, False, False),
        "output_per_gpu=1": (None, False, None),  # GPUs unknown
        "reuse=1%": (None, False, None),
        "output_per_second=1": (1.0, False, True),  # 10 tokens in 10 s, two of the warm-up
        "job_latency_p50=3s": (2.0, False, True),
    }
    for text, (value, endless, met) in asked.items():
        (one,) = judged(mixed, text).verdicts
        assert (one.value, one.endless, one.met) == (value, endless, met), text
    both = judged(mixed, "ttft_mean=2s,output_per_gpu=1")
    assert [one.objective.name for one in both.missed] == ["output_per_gpu"]  # what cannot be told is not met


def test_what_the_server_did_not_tell_is_neither(attempt, run):
    bare = ((1.0, None), (2.0, None))
    made = [
        attempt("a", 0, chunks=bare, told=None),  # no count: no TPOT
        attempt("b", 0, chunks=((1.0, 2),)),  # all tokens at once: nothing to wait for
        attempt("c", 0, chunks=bare, told=None, first=None),  # answered without a token
    ]
    found = judged(run(made), "tpot=10s").goodput
    assert (found.due, found.met, found.unknown, found.share, found.plays_unknown) == (3, 1, 2, 1.0, 2)
    assert judged(run(made), "ttft=10s").goodput.unknown == 1


def test_a_run_of_nothing(run):
    found = judged(run(), "ttft=1s,ttft_p95=1s,goodput=1%")
    assert (found.goodput.share, found.goodput.per_second) == (None, None)
    assert [one.met for one in found.verdicts] == [None, None]
    assert "UNKNOWN" in as_text(slo_blocks(found))


@given(st.lists(st.floats(0, 1e6), min_size=0, max_size=30), st.integers(0, 8), st.sampled_from([0, 50, 90, 95, 100]))
def test_a_percentile_with_endless_ones_is_that_of_numbers_above_all(values, endless, percent):
    ordered = sorted(values)
    found = statistic(ordered, endless, percent)
    if not ordered and not endless:
        assert found is None
        return
    slow = percentile([*ordered, *[1e9] * endless], percent)
    rank = percent / 100 * (len(ordered) + endless - 1)
    if math.ceil(rank) >= len(ordered):
        assert found == math.inf
    else:
        assert found == pytest.approx(slow)


def test_the_forms(mixed):
    found = judged(mixed, "ttft=1s,ttft_p95=9s,ttft_mean=2s")
    text = as_text(slo_blocks(found))
    assert re.search(r"ttft_p95 <= 9s +no answer +MISSED", text)
    assert re.search(r"ttft_mean <= 2s +1.13 s +met", text) or "1.12 s" in text
    assert "4 turns missed: 1 by ttft, 1 failed, 1 cut, 1 due and never sent." in text
    document = json.loads(json.dumps(slo_document(found), allow_nan=False))
    documented = set(re.findall(r"`([a-z0-9_]+)`", REFERENCE.read_text()))
    keys = {*document, *document["goodput"], *document["objectives"][0], *document["goodput"]["turn_objectives"][0]}
    assert sorted(keys - documented) == []
    assert document["goodput"]["missed_turns"] == 4


def test_nothing_is_said_where_nothing_was_asked(mixed):
    assert report(mixed).document()["slo"] is None
    assert "Objectives" not in report(mixed).text()


def test_the_plans_own_objectives_are_judged(mixed, run):
    settings = {"plan": {"slo": {"turn": {"ttft": "1s"}, "run": {"ttft_p50": "1s"}}}}
    asked = run(mixed.attempts, mixed.plays, settings=settings)
    assert [one.met for one in report(asked).judged.verdicts] == [False]
    assert [one.met for one in report(asked, slo=slo_of(["ttft_p50=9s"])).judged.verdicts] == [True]
    assert "Objectives" in report(asked).text()
    assert slo_in(run(settings={"plan": {"slo": {"run": {"of_another_day": 3}}}})) == Slo()
