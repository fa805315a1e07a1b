from __future__ import annotations

import pytest

from agentx.reporter.jobs import jobs_of
from agentx.reporter.throughput import Window


def jobs(run, window=(0.0, 3600.0)):
    return jobs_of(run, run.attempts, window and Window(*window, "plan"))


def test_whole_jobs_and_job_equivalents(attempt, play, run):
    # a: both of its 2 turns; b: 1 of 4 turns, then it failed. An hour's window.
    attempts = [attempt("a", 0), attempt("a", 1, sent=3.0), attempt("b", 0), attempt("b", 1, failed="http")]
    plays = [play("a", turns=2, ended=5.0), play("b", turns=4, outcome="failed", sent=2, completed=1)]
    found = jobs(run(attempts, plays))
    assert (found.plays, found.whole, found.equivalents, found.unsized) == (2, 1, 1.25, 0)
    assert (found.whole_per_hour, found.equivalents_per_hour) == (1.0, 1.25)
    assert (found.latency.n, found.latency.mean) == (1, 5.0)  # failed ones have no latency


def test_a_job_that_ends_after_the_window_is_not_whole_in_it(attempt, play, run):
    found = jobs(
        run([attempt("a", 0), attempt("a", 1, sent=9.0)], [play("a", turns=2, ended=11.0)]), window=(0.0, 10.0)
    )
    assert (found.whole, found.equivalents) == (0, 0.5)
    assert found.latency.n == 1  # but how long it took is known


def test_a_job_that_warmed_the_server_or_began_in_the_middle_has_no_latency(attempt, play, run):
    attempts = [attempt("a", 0, phase="warmup"), attempt("a", 1, sent=3.0), attempt("b", 1), attempt("c", 0)]
    skipped = play("b", turns=2, sent=1, completed=1, extra={"skipped": 1})
    found = jobs(run(attempts, [play("a", turns=2), skipped, play("c", ended=7.0)]))
    assert (found.latency.n, found.latency.mean) == (1, 7.0)


def test_plays_of_one_session_are_jobs_of_their_own(attempt, play, run):
    attempts = [attempt("a"), attempt("a", sent=3.0, play=1)]
    found = jobs(run(attempts, [play("a"), play("a", play=1, started=3.0, ended=5.0)]))
    assert (found.plays, found.whole, found.latency.n, found.latency.sessions) == (2, 2, 2, 1)


def test_a_play_without_record_has_no_size(attempt, run):
    found = jobs(run([attempt("a")], []))
    assert (found.plays, found.whole, found.equivalents, found.unsized) == (1, None, None, 1)  # not 0: nobody knows


def test_a_play_without_turns_is_no_job(play, run):
    found = jobs(run([], [play("a", turns=0, ended=0.0)]))
    assert (found.whole, found.latency) == (0, None)


@pytest.mark.parametrize("window", [None, (5.0, 5.0)])
def test_no_window_no_rate(play, run, window):
    found = jobs(run([], [play("a")]), window=window)
    assert (found.whole_per_hour, found.equivalents_per_hour) == (None, None)
