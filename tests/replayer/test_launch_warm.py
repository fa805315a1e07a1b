"""The shapes of a warm-up follow from what the server says of its chunks, and nothing of it stays in the cache."""

from __future__ import annotations

import pytest

from agentx.content import WordList, lexicon
from agentx.engine.server import running
from agentx.engine.settings import EngineSettings
from agentx.errors import Unreachable
from agentx.replayer.client import open_session
from agentx.replayer.counters import Scraper
from agentx.replayer.launch_warm import lengths, warm_up
from agentx.replayer.wires import Wire

CASES = [
    # a chunk and a half, the same again, then halves
    ({"chunked_prefill_size": 256}, [384, 384, 128, 64, 32]),
    ({}, [12288, 12288, 4096, 2048, 1024, 512, 256, 128, 64, 32]),
    ({"chunked_prefill_size": -1}, [12288, 12288, 4096, 2048, 1024, 512, 256, 128, 64, 32]),
    # never more than context and pool hold
    ({"chunked_prefill_size": 4096, "context": 2256}, [2000, 2000, 1024, 512, 256, 128, 64, 32]),
    ({"chunked_prefill_size": 256, "context": 4096, "max_total_num_tokens": 400}, [144, 144, 128, 64, 32]),
    ({"chunked_prefill_size": 256, "context": 100}, [32, 32]),
]


@pytest.mark.parametrize(("server", "tokens"), CASES)
def test_lengths(server, tokens):
    assert lengths(server) == tokens


@pytest.mark.parametrize("kind", ["chat", "generate"])
async def test_a_warm_up(kind):
    settings = EngineSettings.model_validate({"scheduler": {"chunk": 256}})
    with running(settings) as base:
        async with open_session() as session:
            words = WordList(lexicon())
            said = await warm_up(session, base, Wire(kind, "m"), words, {"chunked_prefill_size": 256}, lanes=3)
            (sample,) = await Scraper(session, [f"{base}/metrics"], lambda: 0.0).sample()
    assert said.startswith("warmed up with 8 requests of 1,088 prompt tokens, the longest 384")
    assert said.endswith("then the cache was emptied")
    assert sample.values["requests"] == 8
    assert sample.values["cached_device"] >= 383  # the repetition hit
    assert sample.extra["gauges"]["evictable"] == 0


async def test_a_server_that_fails_a_warm_up():
    with running(EngineSettings(context=100)) as base:
        async with open_session() as session:
            words = WordList(lexicon())
            with pytest.raises(Unreachable, match="a warm-up prompt of 384 tokens failed by overflow"):
                await warm_up(session, base, Wire("chat", "m"), words, {"chunked_prefill_size": 256}, lanes=1)
