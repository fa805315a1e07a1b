from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import header, linear

from agentx.replayer.simulate import simulate
from agentx.reporter.losses import MODELLED, Losses, label, losses_document, pool_facts
from agentx.reporter.reporting import report
from agentx.trace import TraceWriter


@pytest.mark.parametrize(
    ("ideal", "cached", "computed", "held", "want"),
    [
        (100, 100, 100, 100, (0, 0, 0, 0)),
        (100, 120, 100, 100, (0, 0, 0, -20)),  # more than the ideal
        (100, 0, 60, None, (40, 0, 60, 0)),  # no pool: nothing is called evicted
        (100, 0, 60, 20, (40, 40, 20, 0)),
        (100, 30, 60, 20, (40, 30, 0, 0)),  # the server held more than the shadow
        (100, 70, 60, 20, (30, 0, 0, 0)),  # what it got was computed while it waited
        (100, 10, 100, 200, (0, 0, 90, 0)),  # the shadow held all of it
    ],
)
def test_label(ideal, cached, computed, held, want):
    assert label(ideal, cached, computed, held) == want


@given(*[st.integers(0, 30)] * 3, st.none() | st.integers(0, 30))
def test_the_labels_are_those_of_each_token(ideal, cached, computed, held):
    """The slow way: every token between what was got and the ideal has one label."""
    counts = [0, 0, 0]
    for token in range(cached, ideal):
        counts[0 if token >= computed else 1 if held is not None and token >= held else 2] += 1
    found = label(ideal, cached, computed, held)
    assert found[:3] == tuple(counts)
    assert sum(found) == ideal - cached


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five sessions that share tools and system, growing to some 900 tokens."""
    path = tmp_path_factory.mktemp("losses") / "a.trace"
    with TraceWriter(path, header("agents")) as file:
        for name in "abcde":
            file.session(linear(8, id=name, fresh=100))
    return path


RUNS = [  # overrides, whether something must have been evicted
    (["load.sessions=3"], False),
    (["load.sessions=3", "target.cache.pool=1500"], True),
    (["load.sessions=5", "target.cache.pool=2500"], True),
    (["load.sessions=3", "target.cache.pool=1504", "target.cache.page=16"], True),
    (["load.sessions=3", "target.cache.pool=1500", "target.cache.policy=lfu"], True),
    (["load.sessions=3", "target.cache.pool=1500", "target.cache.host.tokens=9000"], False),
    (["load.sessions=3", "target.cache.pool=1500", "wire=generate"], True),
    (["load.sessions=3", "target.cache.pool=1500", "salt=session"], True),
    (["load.sessions=2", "target.cache.pool=1500", "measure={sessions: 12}"], True),  # plays again
]


@pytest.mark.parametrize(("sets", "evicts"), RUNS)
def test_the_losses_sum_exactly_and_the_shadow_explains_them(trace, tmp_path, sets, evicts):
    found = report(simulate(trace, out=tmp_path / "run", sets=sets))
    losses, missing = found.losses, found.metrics.reuse.missing_to_ideal
    assert losses.missing is None
    assert losses.total == missing
    assert (losses.evicted > 0) is evicts
    lost = losses.in_flight + losses.evicted + losses.unexplained
    blurred = 0.2 if "target.cache.policy=lfu" in sets else 0.15  # hits are counted by prefill chunk, too
    assert losses.unexplained <= blurred * lost + 50
    assert losses.surplus <= 0
    shown = losses_document(losses)
    assert shown["sum_tokens"] == missing
    assert shown["evicted_source"] == MODELLED


def test_a_larger_pool_evicts_less(trace, tmp_path):
    evicted = [
        report(simulate(trace, out=tmp_path / str(pool), sets=["load.sessions=4", f"target.cache.pool={pool}"]))
        for pool in (1500, 2500, 9000)
    ]
    counts = [one.losses.evicted for one in evicted]
    assert counts[0] > counts[1] > counts[2] == 0


def test_the_report_shows_them(trace, tmp_path):
    text = report(simulate(trace, out=tmp_path / "run", sets=["target.cache.pool=1500", "load.sessions=3"])).text()
    part = text[text.index("Reuse that was lost, by cause") :]
    names = ["in flight", "evicted, modelled", "unexplained", "surplus above the ideal", "ideal less observed"]
    rows = [line.split() for line in part.splitlines() if line.strip().startswith(tuple(names))]
    values = [int(row[-1].replace(",", "")) for row in rows]
    assert sum(values[:4]) == values[4]


def test_without_an_ideal_there_is_no_split(run, attempt):
    found = report(run([attempt(cached=10)]))
    assert found.losses == Losses(missing="the run does not say what it replayed")
    assert found.losses.total is None
    assert "lost, by cause" not in found.text()


@pytest.mark.parametrize("limit", ["TURNS", "LIMIT"])
def test_a_run_that_is_too_long_says_so(trace, tmp_path, monkeypatch, limit):
    monkeypatch.setattr(f"agentx.reporter.losses.{limit}", 30)
    found = report(simulate(trace, out=tmp_path / "run"))
    assert "it takes too long" in found.losses.missing
    assert losses_document(found.losses)["sum_tokens"] is None


SERVER = {"max_total_num_tokens": 5000, "radix_eviction_policy": "lfu"}


@pytest.mark.parametrize(
    ("settings", "want"),
    [
        ({}, None),  # nothing is known
        ({"server": SERVER}, (5000, "lfu", 0, False)),
        ({"server": {**SERVER, "radix_eviction_policy": "slru-of-theirs"}}, None),  # rules that the shadow has not
        ({"server": {**SERVER, "enable_hierarchical_cache": True}}, None),  # a host tier of unknown size
        ({"server": {**SERVER, "speculative_algorithm": "EAGLE3"}}, (5000, "lfu", 0, True)),
        ({"target": {"cache": {"pool": 70, "policy": "fifo", "bigram": True}}}, (70, "fifo", 0, True)),
        ({"target": {"cache": {"pool": 70, "host": {"tokens": 90}}}}, (70, "lru", 90, False)),
    ],
)
def test_pool_facts(run, settings, want):
    found = pool_facts(run(settings=settings))
    if want is None:
        assert found is None
        return
    assert (found["tokens"], found["policy"], found["host"], found["bigram"]) == want


def test_the_host_tier_as_its_counters_show_it(run, sample):
    told = replace(sample(1.0), extra={"gauges": {"host_total": 800.0}})
    settings = {"server": {**SERVER, "enable_hierarchical_cache": True}}
    assert pool_facts(run(samples=[told], settings=settings))["host"] == 800
