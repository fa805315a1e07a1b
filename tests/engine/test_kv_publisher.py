"""Events of nodes become events of blocks: what is told to be cached is what the tree holds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.engine.engine import Engine, EngineSettings
from agentx.engine.kv_publisher import KvBlocks, KvPublisher
from agentx.engine.messages import Request
from agentx.engine.tokenizer import ids_from_list
from agentx.errors import BadInput


def settings(page: int, pool: int, host: int) -> EngineSettings:
    cache = {"pool": pool, "page": page, "host": {"tokens": host, "write": "write_through"}}
    return EngineSettings.model_validate({"kind": "engine", "context": 4096, "cache": cache})


def follow(held: dict[str, dict[int, int]], told: list[dict[str, Any]]) -> None:
    """Apply events to (medium -> block -> tokens), as a router that listens would."""
    for event in told:
        if event["type"] == "AllBlocksCleared":
            held.clear()
            continue
        tier = held.setdefault(event["medium"], {})
        if event["type"] == "BlockStored":
            assert len(event["token_ids"]) == len(event["block_hashes"]) * event["block_size"]
            tier.update(dict.fromkeys(event["block_hashes"], event["block_size"]))
        else:
            for block in event["block_hashes"]:
                del tier[block]  # it was there


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(8, 60)), min_size=1, max_size=12),
    st.sampled_from([1, 4]),
    st.sampled_from([0, 256]),
)
def test_a_listener_knows_what_is_cached(asked: list[tuple[int, int]], page: int, host: int) -> None:
    blocks, held, now = KvBlocks(page), dict[str, dict[int, int]](), 0.0
    engine = Engine(settings(page, 128, host), blocks.heard)
    for number, (prefix, length) in enumerate(asked):
        prompt = ids_from_list([prefix] * (length // 2) + [1000 + number] * (length - length // 2))
        engine.submit(Request(str(number), prompt, 3, ignore_eos=True), now)
        while True:
            _, wake = engine.step(now)
            if wake is None:
                break
            now = max(now, wake)
        follow(held, blocks.take())
        counters = engine.counters()
        assert sum(held.get("GPU", {}).values()) == counters.evictable
        assert sum(held.get("CPU_PINNED", {}).values()) == counters.host_used
    assert engine.flush()
    blocks.cleared()
    follow(held, blocks.take())
    assert held == {}


def test_blocks_follow_each_other() -> None:
    blocks = KvBlocks(4)
    engine, now = Engine(settings(4, 400, 0), blocks.heard), 0.0
    for rid, tokens in (("a", list(range(16))), ("b", [*range(8), *range(90, 98)])):
        engine.submit(Request(rid, ids_from_list(tokens), 1, ignore_eos=True), now)
        while (wake := engine.step(now)[1]) is not None:
            now = max(now, wake)
    first, second = (event for event in blocks.take() if event["type"] == "BlockStored")
    assert (first["parent_block_hash"], len(first["block_hashes"])) == (None, 4)
    assert second["parent_block_hash"] == first["block_hashes"][1]  # they share two pages
    assert second["token_ids"] == list(range(90, 98))


def test_an_address_that_cannot_be_used() -> None:
    pytest.importorskip("zmq")
    with pytest.raises(BadInput, match="--kv-events: nowhere cannot be used"):
        KvPublisher("nowhere", 1)
