from __future__ import annotations

import pytest

from agentx.core import Sample
from agentx.reporter.server_counters import counters_of


def counted(run):
    return counters_of(run, [one for one in run.attempts if one.phase == "measure"])


@pytest.mark.parametrize(
    ("before", "after", "source", "prompt", "cached", "tiers"),
    [
        # admissions, the best: 120 computed + 60 device + 20 host
        (
            {"prefill_input": 10, "prefill_device_hit": 0, "prefill_host_hit": 5},
            {"prefill_input": 130, "prefill_device_hit": 60, "prefill_host_hit": 25},
            ("prefill"), 200, 80, (60, 20, None),
        ),
        # admissions stand above finished requests where both are there
        (
            {"prefill_input": 0, "prefill_device_hit": 0, "prompt_tokens": 0},
            {"prefill_input": 50, "prefill_device_hit": 50, "prompt_tokens": 90, "cached_device": 40},
            "prefill", 100, 50, (50, None, None),
        ),
        # finished requests; a tier that had no series before its first token started at 0
        ({"prompt_tokens": 100}, {"prompt_tokens": 300, "cached_device": 50}, "finished", 200, 50, (50, 0, 0)),
        # no cached series at all: unknown, not 0
        ({"prompt_tokens": 100}, {"prompt_tokens": 300}, None, 200, None, (None, None, None)),
        # neither
        ({"running": 1}, {"running": 0}, None, None, None, (None, None, None)),
    ],
)  # fmt: skip
def test_reuse_by_the_best_counters(attempt, run, sample, before, after, source, prompt, cached, tiers):
    found = counted(run([attempt()], samples=[sample(-1, **before), sample(5, **after)]))
    assert (found.source, found.prompt, found.cached) == (source, prompt, cached)
    assert (found.device, found.host, found.storage) == tiers
    assert found.share == (None if cached is None else cached / prompt)


def test_agreement_with_the_requests_of_the_same_time(attempt, run, sample):
    # counters hold a warm-up request as well; requests that ended between the samples are summed likewise
    warm = attempt("w", phase="warmup", sent=-8.0, cached=30)
    samples = [
        sample(-10, prefill_input=0, prefill_device_hit=0),
        sample(9, prefill_input=120, prefill_device_hit=80),
    ]
    found = counted(run([warm, attempt(cached=50)], samples=samples))
    assert (found.requests_prompt, found.requests_cached, found.difference) == (200, 80, 0)
    assert found.requests_untold == 0


def test_from_the_last_sample_before_to_the_settled_one(attempt, run, sample):
    # measured from 10 to 12: from the sample at 9 to the last one, for which the driver waited
    samples = [sample(at, prefill_input=at * 10, prefill_device_hit=0) for at in (0, 9, 11, 12.5, 13)]
    found = counted(run([attempt(sent=10.0)], samples=samples))
    assert (found.start, found.stop, found.prompt) == (9, 13, 40)


def test_endpoints_are_summed(attempt, run, sample):
    samples = [
        sample(-1, "one", prompt_tokens=5, cached_device=1),
        sample(-1, "two", prompt_tokens=0),  # no hits on this one
        sample(9, "one", prompt_tokens=105, cached_device=41),
        sample(9, "two", prompt_tokens=100),
    ]
    found = counted(run([attempt()], samples=samples))
    assert (found.prompt, found.cached) == (200, 40)


def test_an_endpoint_that_lacks_a_counter_makes_it_unknown(attempt, run, sample):
    samples = [sample(-1, "one", evicted=0), sample(-1, "two"), sample(9, "one", evicted=7), sample(9, "two")]
    assert counted(run([attempt()], samples=samples)).evicted is None


def test_a_restarted_server_makes_all_unknown(attempt, run, sample):
    samples = [sample(-1, prompt_tokens=900, generation_tokens=1), sample(9, prompt_tokens=20, generation_tokens=5)]
    found = counted(run([attempt(cached=3)], samples=samples))
    assert found.went_back
    assert (found.prompt, found.generated, found.difference) == (None, None, None)


def test_a_restart_is_noticed_after_the_counts_have_passed_their_first_values(attempt, run, sample):
    samples = [sample(-1, prompt_tokens=50), sample(3, prompt_tokens=900), sample(6, prompt_tokens=10)]
    found = counted(run([attempt(cached=3)], samples=[*samples, sample(9, prompt_tokens=700)]))
    assert (found.went_back, found.prompt) == (True, None)
    earlier = [sample(-9, prompt_tokens=5000), sample(-1, prompt_tokens=50), sample(9, prompt_tokens=70)]
    assert not counted(run([attempt(cached=3)], samples=earlier)).went_back  # before the window: none of its business


def test_gauges_may_fall(attempt, run, sample):
    samples = [sample(-1, running=4, prompt_tokens=0), sample(9, running=0, prompt_tokens=100, cached_device=1)]
    found = counted(run([attempt()], samples=samples))
    assert not found.went_back
    assert found.prompt == 100


@pytest.mark.parametrize("times", [[], [-1], [9]])
def test_one_sample_tells_nothing(attempt, run, sample, times):
    assert counted(run([attempt()], samples=[sample(at, prompt_tokens=1) for at in times])) is None


def test_requests_that_told_nothing_are_counted(attempt, run, sample):
    samples = [sample(-1, prefill_input=0, prefill_device_hit=0), sample(9, prefill_input=150, prefill_device_hit=50)]
    found = counted(run([attempt("a", cached=50), attempt("b", cached=None)], samples=samples))
    assert (found.requests_prompt, found.requests_untold) == (100, 1)


def test_the_pool_is_a_gauge_at_the_end(attempt, run):
    def made(at, endpoint, **gauges):
        return Sample(at, endpoint, {"prompt_tokens": at}, {"gauges": gauges} if gauges else {})

    both = [made(-1, "one"), made(-1, "two"), made(9, "one", pool=8000, host_total=100), made(9, "two", pool=8000)]
    found = counted(run([attempt()], samples=both))
    assert (found.pool, found.host_pool) == (16000, None)  # the host tier of one endpoint is not known


def test_of_pools_each_is_asked_for_its_half(attempt, run):
    """Both count a request that passes both; a sum of the two would be twice the prompts."""

    def made(at, endpoint, role, **values):
        return Sample(at, endpoint, values, {"role": role, "gauges": {"pool": 1000 if role == "prefill" else 7000}})

    prefill = {"prompt_tokens": 100.0, "cached_device": 40.0, "requests": 2.0, "generation_tokens": 2.0}
    decode = {"prompt_tokens": 100.0, "cached_device": 0.0, "requests": 2.0, "generation_tokens": 50.0}
    zero = dict.fromkeys(prefill, 0.0)
    samples = [
        made(0.0, "p", "prefill", **zero), made(9.0, "p", "prefill", **prefill),
        made(0.0, "d", "decode", **zero), made(9.0, "d", "decode", **decode),
    ]  # fmt: skip
    found = counters_of(run(samples=samples), [attempt(sent=1.0)])
    assert (found.prompt, found.cached, found.requests, found.generated, found.pool) == (100, 40, 2, 50, 1000)
    # of the decode pool alone, what was cached is not known
    found = counters_of(run(samples=samples[2:]), [attempt(sent=1.0)])
    assert (found.prompt, found.cached, found.generated) == (None, None, 50)
