from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from making import header, linear

from agentx.replayer.simulate import simulate
from agentx.reporter.losses import CAUSES, MODELLED, Losses, label, losses_document, pool_facts
from agentx.reporter.losses_shadow import Found
from agentx.reporter.reporting import report
from agentx.trace import TraceWriter


@pytest.mark.parametrize(
    ("ideal", "cached", "found", "want"),
    [
        (100, 100, Found(100, 100, 100), (0, 0, 0, 0, 0)),
        (100, 120, Found(100, 100, 100), (0, 0, 0, 0, -20)),  # more than the ideal
        (100, 0, Found(60), (40, 0, 0, 60, 0)),  # no pool: nothing is called evicted
        (100, 0, Found(60, 20, 20), (40, 40, 0, 20, 0)),
        (100, 0, Found(60, 20, 15), (40, 40, 5, 15, 0)),  # five were on the host and not loaded back
        (100, 18, Found(60, 20, 15), (40, 40, 2, 0, 0)),
        (100, 30, Found(60, 20, 20), (40, 30, 0, 0, 0)),  # the server held more than the shadow
        (100, 70, Found(60, 20, 20), (30, 0, 0, 0, 0)),  # what it got was computed while it waited
        (100, 10, Found(100, 200, 200), (0, 0, 0, 90, 0)),  # the shadow held all of it
    ],
)
def test_label(ideal, cached, found, want):
    assert label(ideal, cached, found) == want


@given(*[st.integers(0, 30)] * 3, st.none() | st.tuples(st.integers(0, 30), st.integers(0, 30)))
def test_the_labels_are_those_of_each_token(ideal, cached, computed, shadow):
    """The slow way: every token between what was got and the ideal has one label."""
    held, given = (None, None) if shadow is None else (max(shadow), min(shadow))
    counts = [0, 0, 0, 0]
    for token in range(cached, ideal):
        gone = held is not None and token >= held
        refused = given is not None and token >= given
        counts[0 if token >= computed else 1 if gone else 2 if refused else 3] += 1
    found = label(ideal, cached, Found(computed, held, given))
    assert found[:4] == tuple(counts)
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
    assert (losses.of("evicted") > 0) is evicts
    lost = losses.total - losses.of("surplus")
    blurred = 0.2 if "target.cache.policy=lfu" in sets else 0.15  # hits are counted by prefill chunk, too
    assert losses.of("unexplained") <= blurred * lost + 50
    assert losses.of("surplus") <= 0
    assert all(turn.total == sum(losses_of_turn(turn)) for turn in losses.turns)
    shown = losses_document(losses)
    assert shown["sum_tokens"] == missing
    assert shown["evicted_source"] == "modelled"
    assert shown["evicted_source_text"] == f"Modelled: {MODELLED}"


def losses_of_turn(turn):
    return [getattr(turn, cause) or 0 for cause in CAUSES]


HOSTS = [  # the host tier's settings, the causes that must show
    ("cache.host={tokens: 2500, write: write_through}", ["host_dropped"]),
    ("cache.host={tokens: 2500, write: write_back}", ["host_dropped"]),
    ("cache.host={tokens: 9000, write: write_through_selective}", ["not_backed_up"]),
    ("cache.host={tokens: 90000, write: write_through}", []),  # it holds everything
]


@pytest.mark.parametrize(("host", "causes"), HOSTS, ids=[host for host, _ in HOSTS])
def test_a_host_tier_has_causes_of_its_own(trace, tmp_path, host, causes):
    sets = ["load.sessions=5", "target.cache.pool=2500", f"target.{host}"]
    found = report(simulate(trace, out=tmp_path / "run", sets=sets))
    losses = found.losses
    assert losses.total == found.metrics.reuse.missing_to_ideal
    assert [cause for cause in ("not_backed_up", "host_dropped") if losses.of(cause)] == causes
    assert losses.of("evicted") <= 0.1 * losses.total  # nearly every one has its cause


def test_what_was_evicted_says_for_whom(trace, tmp_path):
    """Every grave is older than the turn that misses it, and another request's doing."""
    found = report(simulate(trace, out=tmp_path / "run", sets=["load.sessions=5", "target.cache.pool=2500"]))
    graves = [(turn, grave) for turn in found.losses.turns for grave in turn.graves]
    assert sum(grave.tokens for _, grave in graves) >= 0.9 * found.losses.of("evicted")
    for turn, grave in graves:
        assert grave.at <= (turn.attempt.first or 0)
        assert found.losses.sent[grave.by] is not turn.attempt


def test_a_larger_pool_evicts_less(trace, tmp_path):
    evicted = [
        report(simulate(trace, out=tmp_path / str(pool), sets=["load.sessions=4", f"target.cache.pool={pool}"]))
        for pool in (1500, 2500, 9000)
    ]
    counts = [one.losses.of("evicted") for one in evicted]
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
