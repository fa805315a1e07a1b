"""Several servers: what holds for a run, what each told, and where each lane's turns go."""

from __future__ import annotations

from collections import defaultdict
from contextlib import ExitStack

import pytest

from agentx.core import Header
from agentx.engine.server import running
from agentx.engine.settings import EngineSettings
from agentx.replayer.run import replay
from agentx.replayer.servers import merged
from agentx.reporter.losses import losses_of
from agentx.reporter.metrics import measure
from agentx.reporter.reporting import report
from agentx.trace import TraceWriter
from tests.making import linear

MERGED = [
    # (first, each, merged): the smallest limits, and what all agree on where the first says nothing
    ({"context": 9}, {}, {"context": 9}),
    (
        {"model": "m", "context": 9, "max_total_num_tokens": 50},
        {
            "a": {"model": "m", "context": 9, "max_total_num_tokens": 50},
            "b": {"model": "m", "context": 8, "max_total_num_tokens": 60},
        },
        {"model": "m", "context": 8, "max_total_num_tokens": 50},
    ),
    (  # a router that tells little, and two servers behind it
        {"model": "m"},
        {
            "a": {"page_size": 64, "dtype": "auto", "max_total_num_tokens": 10, "role": "prefill"},
            "b": {"page_size": 64, "dtype": "half", "max_total_num_tokens": 20, "role": "decode"},
        },
        {"model": "m", "page_size": 64, "max_total_num_tokens": 10},
    ),
    # one that did not answer: nothing is agreed on
    ({"model": "m"}, {"a": {"page_size": 64}, "b": {}}, {"model": "m"}),
]


@pytest.mark.parametrize(("first", "each", "found"), MERGED)
def test_what_holds_for_a_run(first, each, found):
    assert merged(first, each) == found


@pytest.fixture
def trace(tmp_path):
    with TraceWriter(tmp_path / "t.trace", Header(name="t", scope="scope")) as writer:
        for number in range(4):
            writer.session(linear(3, id=f"s{number}", fresh=20 + number))
    return tmp_path / "t.trace"


def settings(pool: int) -> EngineSettings:
    return EngineSettings.model_validate({"cache": {"pool": pool}})


def test_the_ideal_is_that_of_as_many_caches(trace, tmp_path):
    """Two lanes that begin alike: on one server the second finds what the first left, on two it does not."""
    found = []
    for many in (1, 2):
        with ExitStack() as stack:
            urls = [stack.enter_context(running(settings(8000))) for _ in range(many)]
            own = tmp_path / f"{many}.yaml"
            own.write_text(f"agentx: target/1\nkind: endpoint\nurls: [{', '.join(urls)}]\n")
            sets = ["gaps.scale=0.02", "load.sessions=2"]
            run = replay(trace, target=str(own), sets=sets, out=tmp_path / f"run-{many}")
        reuse = measure(run).reuse
        assert reuse.by_request.cached <= reuse.ideal.same_cached
        assert losses_of(run, measure(run)).of("evicted") == 0
        found.append(reuse.ideal)
    one, two = found
    assert (one.possible_less_ideal.servers, two.possible_less_ideal.servers > 0) == (0, True)
    assert two.cached == one.cached - two.possible_less_ideal.servers
    assert two.possible_less_ideal.total == two.possible_cached - two.cached


def test_a_session_stays_on_one_server_and_counters_are_summed(trace, tmp_path):
    with ExitStack() as stack:
        urls = [stack.enter_context(running(settings(pool))) for pool in (6000, 8000)]
        own = tmp_path / "two.yaml"
        own.write_text(f"agentx: target/1\nkind: endpoint\nurls: [{', '.join(urls)}]\n")
        sets = ["gaps.scale=0", "load.sessions=2", "wire=generate", "history=live-ids"]
        run = replay(trace, target=str(own), sets=sets, out=tmp_path / "run", cold=True)
    assert run.complete
    assert len(run.attempts) == 12
    by_lane = defaultdict(set)
    for attempt in run.attempts:
        by_lane[attempt.lane].add(attempt.session)
    assert set(by_lane) == {0, 1}
    # Each of both counted its lanes' requests, and the three of its own cold proof.
    last = {sample.endpoint: sample.values["requests"] for sample in run.samples}
    assert {url.removesuffix("/metrics") for url in last} == set(urls)
    assert sum(last.values()) == 12 + 2 * 3
    assert min(last.values()) > 3
    assert run.settings["server"]["max_total_num_tokens"] == 6000
    assert {url: told["max_total_num_tokens"] for url, told in run.settings["servers"].items()} == dict(
        zip(urls, (6000, 8000), strict=True)
    )
    found = report(run)
    told = {finding.kind: finding.text for finding in found.findings}
    assert told["servers_differ"].startswith("The servers differ in max_total_num_tokens: 6000 (http://")
    assert "dealt out to 2 servers" in told["several_servers"]
    assert "counters_differ" not in told
    assert sum(note.startswith("proved cold") for note in run.notes) == 2


def test_pools_are_asked_each_for_its_own_half(trace, tmp_path):
    """One engine answers; named as the prefill pool it tells prompts, and what was generated is the decode pool's."""
    with running(settings(8000)) as prefill, running(settings(5000)) as decode:
        own = tmp_path / "pools.yaml"
        pools = f"{{prefill: [{prefill}/metrics], decode: [{decode}/metrics]}}"
        own.write_text(f"agentx: target/1\nkind: endpoint\nurl: {prefill}\nmetrics: {pools}\n")
        run = replay(trace, target=str(own), sets=["gaps.scale=0"], out=tmp_path / "run")
    assert {sample.extra["role"] for sample in run.samples} == {"prefill", "decode"}
    assert [told["role"] for told in run.settings["servers"].values()] == ["decode"]
    reuse = measure(run).reuse
    assert (reuse.counters.prompt, reuse.counters.difference) == (reuse.by_request.prompt, 0)
    assert reuse.counters.pool == 8000
    assert (reuse.counters.generated, reuse.counters.requests) == (
        None,
        None,
    )  # it was never asked, so it tells nothing
