"""What a simulation writes of its engine is what a replay learns of a server with the same settings."""

from __future__ import annotations

import pytest

from agentx.engine.engine import Engine, Request
from agentx.engine.http_metrics import engine_families
from agentx.engine.server import running
from agentx.engine.settings import load_engine
from agentx.replayer.client import open_session
from agentx.replayer.counters import COUNTERS, GAUGES, read_counters
from agentx.replayer.embedded import counters_of, facts_of
from agentx.replayer.probe import server_facts
from agentx.wire.metrics import encode_metrics

SETTINGS = [
    (),  # as it ships
    ("cache.host.tokens=400", "cache.pool=800", "cache.page=4", "scheduler.queue=3"),
    ("speculation.algorithm=EAGLE", "speculation.steps=3", "speculation.acceptance.length=2.5"),
]


def settings_of(sets):
    return load_engine("t", text="agentx: target/1\nkind: engine\n", sets=sets)


@pytest.mark.parametrize("sets", SETTINGS)
async def test_the_facts_are_those_of_the_server(sets):
    with running(settings_of(sets)) as url:
        async with open_session() as session:
            assert await server_facts(session, url, None) == facts_of(settings_of(sets))


@pytest.mark.parametrize("sets", SETTINGS)
def test_the_counters_are_those_of_the_metrics(sets):
    engine = Engine(settings_of(sets))
    for number in range(6):
        engine.submit(Request(str(number), b"word" * (100 + number), 20, 20, True), float(number))
        engine.step(float(number))
    now = 6.0
    while (wake := engine.step(now)[1]) is not None:
        now = wake
    families = engine_families(engine.counters(), engine.settings, "agentx")
    rising, gauges = read_counters(encode_metrics(families).decode())
    ours, our_gauges = counters_of(engine.counters())
    assert gauges == our_gauges
    assert rising == {name: ours[name] for name in rising}
    assert set(ours) - set(rising) <= {"prompt_tokens", "generation_tokens", "requests", "aborted"} | {
        "cached_device",  # these five the HTTP side counts
        "cached_host",
    }
    assert set(ours) <= set(COUNTERS)
    assert set(our_gauges) <= set(GAUGES)
    assert ours["requests"] == 6
