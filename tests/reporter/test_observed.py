from __future__ import annotations

import pytest
from making import header, linear

from agentx.core import Cached
from agentx.reporter.observed import by_request, reuse
from agentx.reporter.server_counters import counters_of
from agentx.results import TRACE
from agentx.trace import TraceWriter


@pytest.fixture
def folder(tmp_path):
    """Two sessions of two turns: 75 tokens of tools, system and user, then 15 more (see making.linear)."""
    with TraceWriter(tmp_path / TRACE, header()) as trace:
        for name in ("a", "b"):
            trace.session(linear(2, id=name))
    return tmp_path


SETTINGS = {
    "plan": {"wire": "chat", "salt": "run"},
    "salt": "x",
    "template": {"start": 0, "per_message": 0},
    "server": {"page_size": 1},
}


def replayed(run, folder, attempts, **other):
    return run(attempts, settings=SETTINGS, folder=folder, **other)


@pytest.mark.parametrize(
    ("cached", "missing"),
    [
        ((0, 60), 15),  # turn 1 of a could reuse the 75 tokens of turn 0
        ((0, 75), 0),  # all that an unbounded cache gives
        ((0, 80), -5),  # more than the ideal: a surplus, never clipped
    ],
)
def test_observed_is_held_against_the_ideal(attempt, run, folder, cached, missing):
    made = replayed(
        run,
        folder,
        [attempt("a", 0, prompt=75, cached=cached[0]), attempt("a", 1, sent=3.0, prompt=90, cached=cached[1])],
    )
    found = reuse(made, made.attempts, None)
    assert (found.ideal.cached, found.ideal.prompt, found.ideal.drift) == (75, 165, 0)
    assert found.missing_to_ideal == missing
    assert found.by_request.share == pytest.approx(cached[1] / 165)


def test_only_replies_that_told_are_held_against_the_ideal(attempt, run, folder):
    # a's second turn told nothing; b's first shares tools and system (65) with a, and got 60
    made = replayed(
        run,
        folder,
        [
            attempt("a", 0, prompt=75, cached=0),
            attempt("a", 1, sent=3.0, prompt=90, cached=None),
            attempt("b", 0, sent=6.0, prompt=75, cached=60),
        ],
    )
    found = reuse(made, made.attempts, None)
    assert (found.by_request.told, found.by_request.of) == (2, 3)
    assert found.ideal.cached == 75 + 65
    assert (found.ideal.same_cached, found.ideal.same_prompt, found.missing_to_ideal) == (65, 150, 5)


def test_no_trace_no_ideal(attempt, run, tmp_path):
    made = run([attempt(cached=5)], settings={**SETTINGS, "trace": {"path": "gone.trace"}}, folder=tmp_path)
    found = reuse(made, made.attempts, None)
    assert found.ideal is None
    assert "gone.trace" in found.ideal_missing
    assert found.missing_to_ideal is None


@pytest.mark.parametrize(
    ("settings", "attempts", "why"),
    [({}, 1, "does not say what it replayed"), (SETTINGS, 0, "no response completed")],
)
def test_why_there_is_no_ideal(attempt, run, settings, attempts, why):
    made = run([attempt()] * attempts, settings=settings)
    assert why in reuse(made, made.attempts, None).ideal_missing


@pytest.mark.parametrize(
    ("cached", "device", "host"),
    [
        ([Cached(10, device=8, host=2), Cached(5, device=5, host=0)], 13, 2),  # both tiers told by all
        ([Cached(10, device=8, host=2), Cached(5)], None, None),  # a tier that one does not tell is unknown
        ([Cached(0), Cached(1)], None, None),
    ],
)
def test_tiers(attempt, cached, device, host):
    found = by_request([attempt(cached=one) for one in cached], None, None)
    assert (found.device, found.host, found.storage) == (device, host, None)


def test_zeros_that_nothing_confirms_are_unknown(attempt, run, folder):
    # two prompts that share 75 tokens, and the server says 0 both times
    made = replayed(run, folder, [attempt("a", 0, prompt=75, cached=0), attempt("a", 1, sent=3.0, prompt=90, cached=0)])
    found = reuse(made, made.attempts, None)
    assert found.by_request.doubtful
    assert found.by_request.share is None
    assert found.missing_to_ideal is None


def test_zeros_that_a_counter_confirms_are_zeros(attempt, run, sample):
    samples = [sample(-1, prefill_input=0, prefill_device_hit=0), sample(9, prefill_input=200, prefill_device_hit=0)]
    made = run([attempt("a", cached=0), attempt("b", cached=0)], samples=samples)
    found = reuse(made, made.attempts, counters_of(made, made.attempts)).by_request
    assert not found.doubtful
    assert found.share == 0.0


def test_zeros_where_nothing_could_be_reused_are_zeros(attempt, run, folder):
    # a policy of one salt a session, two sessions: nothing in common
    settings = {**SETTINGS, "plan": {"wire": "chat", "salt": "session"}}
    made = run([attempt("a", prompt=75, cached=0), attempt("b", prompt=75, cached=0)], settings=settings, folder=folder)
    found = reuse(made, made.attempts, None).by_request
    assert not found.doubtful
    assert found.share == 0.0


def test_no_replies(run):
    found = by_request([], None, None)
    assert (found.told, found.of, found.prompt, found.cached, found.share) == (0, 0, None, None, None)
