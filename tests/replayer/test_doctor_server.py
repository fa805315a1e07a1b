"""What the doctor makes of a server's own words, line by line."""

from __future__ import annotations

import resource

import pytest

from agentx.core import Sample
from agentx.replayer.acceptance import Acceptance
from agentx.replayer.doctor_server import metrics_check, told_checks

GOOD = {
    "version": "0.5.19.post1", "context": 8192, "page_size": 16, "max_total_num_tokens": 16000,
    "chunked_prefill_size": 4096, "stream_interval": 1, "speculative_algorithm": None,
}  # fmt: skip
SPECULATING = {"speculative_algorithm": "EAGLE", "speculative_num_steps": 3}


def checks(facts, acceptance=None, sessions=4):
    return {check.name: check for check in told_checks(facts, acceptance, sessions)}


def test_a_good_server():
    found = checks(GOOD)
    assert {check.verdict for check in found.values()} == {"ok"}
    assert found["pool"].said == "16,000 tokens, 4,000 for each of 4 at a time"


CASES = [
    # what is told otherwise, the check, its verdict, some words, some of how to mend it
    ({"version": None}, "version", "unknown", "may be another one", ""),
    ({"version": "0.4.9"}, "version", "warning", "0.5.16 to 0.5.23", ""),
    ({"engine_rules": "SGLang 0.5.23"}, "version", "ok", "embedded engine", ""),
    ({"context": None}, "context", "unknown", "not told", "overflow"),
    ({"page_size": None}, "page", "unknown", "pages of 1 token", ""),
    ({"page_size": 128}, "page", "warning", "up to 127 tokens", "--page-size"),
    ({"max_total_num_tokens": None}, "pool", "unknown", "cannot be explained", ""),
    ({"max_total_num_tokens": 5000}, "pool", "warning", "less than one full context of 8,192", ""),
    ({"disable_radix_cache": True}, "pool", "problem", "is off", "--disable-radix-cache"),
    ({"enable_hierarchical_cache": True}, "pool", "ok", "a host tier is on", ""),
    ({"chunked_prefill_size": -1}, "chunk", "warning", "not chunked", "--chunked-prefill-size"),
    ({"chunked_prefill_size": 1000}, "chunk", "warning", "no whole number of pages", ""),
    ({"chunked_prefill_size": None}, "chunk", "unknown", "not told", ""),
    ({"stream_interval": 8}, "stream interval", "warning", "8 at a time", "--stream-interval 1"),
    ({"stream_interval": None}, "stream interval", "unknown", "not told", ""),
    (SPECULATING, "acceptance", "warning", "at most 4 tokens a step; the plan states no acceptance", "(--plan)"),
]


@pytest.mark.parametrize(("told", "name", "verdict", "says", "mend"), CASES)
def test_each_check(told, name, verdict, says, mend):
    check = checks({**GOOD, **told})[name]
    assert check.verdict == verdict
    assert says in check.said
    assert mend in (check.mend or "")


ACCEPTANCE = [
    (SPECULATING, 2.99, "ok", "2.99 tokens a step fit EAGLE"),
    (SPECULATING, 4.5, "problem", "above the 4 tokens"),
    ({}, 2.99, "problem", "decodes without speculation"),
    ({}, 1.0, "ok", "fit no speculation"),
    ({"version": None}, 2.99, "problem", "without speculation"),
]


@pytest.mark.parametrize(("told", "length", "verdict", "says"), ACCEPTANCE)
def test_the_plans_acceptance(told, length, verdict, says):
    check = checks({**GOOD, **told}, Acceptance(length=length))["acceptance"]
    assert (check.verdict, says in check.said) == (verdict, True), check


def test_acceptance_of_a_server_that_tells_nothing():
    assert checks({"model": "m"}, Acceptance(length=2.0))["acceptance"].verdict == "unknown"


def test_the_file_limit(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    assert checks(GOOD, sessions=900)["file limit"].verdict == "ok"
    check = checks(GOOD, sessions=1000)["file limit"]
    assert (check.verdict, check.said) == ("ok", "1,024, which a replay raises to the 1,064 that are needed")
    assert checks(GOOD, sessions=5000)["file limit"].mend == "ulimit -n 5064, which root must allow"
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert checks(GOOD, sessions=10**6)["file limit"].said.startswith("unlimited")


METRICS = [
    ([Sample(0, "a", {"prefill_input": 1.0})], "ok", "counters of 1 server"),
    ([Sample(0, "a", {"prompt_tokens": 1.0})], "ok", "of finished requests alone"),
    ([], "problem", "no counters at a"),
    ([Sample(0, "a", {"requests": 1.0}, {"role": "decode"})], "warning", "these are decode servers"),
    ([Sample(0, "a", {"requests": 1.0})], "warning", "no counter tells prompt tokens"),
]


@pytest.mark.parametrize(("samples", "verdict", "says"), METRICS)
def test_metrics(samples, verdict, says):
    check = metrics_check(["a"], samples)
    assert (check.verdict, says in check.said) == (verdict, True), check
