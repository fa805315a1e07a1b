from __future__ import annotations

import pytest

from agentx.core import Play
from agentx.frames import Tear
from agentx.reporter.reporting import report


def kinds(run):
    return {one.kind for one in report(run).findings}


def text(run, kind):
    return next(one.text for one in report(run).findings if one.kind == kind)


@pytest.fixture
def clean(attempt, play, run, sample):
    """A run that nothing can be said against, but that it has no trace."""

    def make(**other):
        samples = [
            sample(-1, prefill_input=0, prefill_device_hit=0),
            sample(9, prefill_input=50, prefill_device_hit=50),
        ]
        return run([attempt(cached=50)], [play("a")], samples, **other)

    return make


def test_a_clean_run_has_only_what_is_always_said(clean):
    assert kinds(clean()) == {"recorded_history", "ideal_missing"}


@pytest.mark.parametrize("plan", [{"history": "live"}, {"history": "live-ids"}])
def test_live_history_does_not_claim_to_be_recorded(clean, plan):
    assert "recorded_history" not in kinds(clean(settings={"plan": plan}))


@pytest.mark.parametrize(
    ("other", "kind"),
    [
        ({"end": None}, "partial"),
        ({"end": {"outcome": "interrupted"}}, "interrupted"),
        ({"tear": Tear(100, 7, "cut short")}, "torn"),
        ({"notes": ("the loop lagged",)}, "note"),
        ({"end": {"outcome": "failed", "reason": "a turn failed"}}, "stopped"),
    ],
)
def test_what_the_run_says_of_itself(clean, other, kind):
    assert kind in kinds(clean(**other)) - kinds(clean())


@pytest.mark.parametrize(
    ("changes", "kind"),
    [
        ({"due": -0.1}, "client_lag"),  # 100 ms late
        ({"due": -0.3}, "fell_behind"),  # 300 ms late where the first token took a second
        ({"server_ttft": 0.8}, "client_server_ttft"),  # 200 ms between client and server
        ({"osl": 5}, "short_replies"),
        ({"osl": 1}, "long_replies"),
        ({"chunks": [(1, None), (2, None)], "told": None}, "tokens_unknown"),
        ({"chunks": [(1, None), (2, None)]}, "tpot_estimated"),
        ({"cached": 40}, "counters_differ"),  # the counters say 50
        ({"cached": None}, "cached_unknown"),
        ({"failed": "http"}, "all_failed"),
        ({"phase": "warmup"}, "nothing_measured"),
        ({"extra": {"moved": 30.0}}, "moved_turns"),
        ({"extra": {"reconnects": 1}}, "reconnects"),
        ({"play": 1}, "unsized_plays"),  # an attempt of a play that has no record
    ],
)
def test_what_attempts_show(clean, attempt, run, changes, kind):
    whole = clean()
    made = run([attempt(**{"cached": 50, **changes})], whole.plays, whole.samples)
    assert kind in kinds(made) - kinds(whole)


def test_what_invalidates_a_measurement(clean, attempt, run):
    late = run([attempt(cached=50, due=-0.3)], clean().plays, clean().samples)
    assert [one.kind for one in report(late).findings if one.invalidates] == ["fell_behind"]
    assert not any(one.invalidates for one in report(clean()).findings)
    patient = run([attempt(cached=50, due=-0.3, chunks=[(9.0, 1), (9.5, 1)])])  # 3 % of nine seconds
    assert not any(one.invalidates for one in report(patient).findings)


def test_small_lateness_is_no_finding(clean, attempt, run):
    whole = clean()
    made = run([attempt(cached=50, due=-0.04, server_ttft=0.96)], whole.plays, whole.samples)
    assert kinds(made) == kinds(whole)


@pytest.mark.parametrize(
    ("record", "kind"),
    [
        (Play("a", 0, 0, "done", 3, 1, 1, 0.0, 2.0), None),  # balanced: 1 completed and 2 unsent
        (Play("a", 0, 0, "done", 3, 2, 2, 0.0, 2.0), "books"),  # says that 2 were sent, 1 is there
        (Play("a", 0, 0, "cut", 1, 1, 1, 0.0, 2.0), "cut"),
        (Play("a", 0, 0, "done", 2, 1, 1, 0.0, 2.0, extra={"dropped": 1}), "dropped_turns"),
    ],
)
def test_what_plays_show(clean, run, record, kind):
    whole = clean()
    new = kinds(run(whole.attempts, [record], whole.samples)) - kinds(whole)
    assert new == ({kind} if kind else set())


def test_counters_that_are_not_there(attempt, run, sample):
    assert "counters_missing" in kinds(run([attempt()]))
    back = [sample(-1, prompt_tokens=9), sample(9, prompt_tokens=1)]
    assert "counters_went_back" in kinds(run([attempt()], samples=back))


def test_zeros_are_doubted_in_words(attempt, run):
    made = run([attempt("a", cached=0), attempt("b", cached=0)])
    assert "cached_doubtful" in kinds(made)
    assert "taken as unknown" in text(made, "cached_doubtful")


def test_partly_told_reuse_says_how_many(attempt, run):
    made = run([attempt("a", cached=5), attempt("b", cached=None), attempt("c", cached=None)])
    assert text(made, "cached_partly").startswith("2 of 3 replies")


def test_drained_responses_are_said(attempt, run):
    made = run([attempt(cached=1)], end={"outcome": "done", "window": [0.0, 1.5]})
    assert text(made, "drained").startswith("1 response ended")


def test_failures_and_cuts_are_told_apart(attempt, run):
    made = run([attempt("a"), attempt("b", failed="http"), attempt("c", failed="stream"), attempt("d", failed="cut")])
    assert text(made, "failures").startswith("2 of 4 requests failed (50.0 %)")
    assert text(made, "cut_requests").startswith("1 request in flight")
    assert "failures" not in kinds(run([attempt("a"), attempt("d", failed="cut")]))


def test_a_burst_at_the_start_is_said(attempt, run):
    """Four requests at once, then one: what a first token took in the burst is half of the figures."""
    made = [attempt(name, sent=0.0) for name in "abcd"] + [attempt("a", 1, sent=6.0)]
    burst = run(made, end={"outcome": "done", "window": [0.0, 10.0]})
    assert "from the first half of its window to the second, in flight x0.25" in text(burst, "not_stationary")
    assert "not_stationary" not in kinds(run(made))  # fixed work has no window to be steady in
