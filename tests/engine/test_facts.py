"""The engine's own facts are those of its settings, under SGLang's names."""

from __future__ import annotations

from agentx import catalog
from agentx.engine.facts import RULES, told
from agentx.engine.settings import load_engine


def test_what_is_told_follows_the_settings() -> None:
    facts = told(
        load_engine(
            catalog.resolve("targets", "laptop"), sets=["cache.pool=6400", "cache.page=64", "scheduler.chunk=512"]
        )
    )
    assert (facts["max_total_num_tokens"], facts["page_size"], facts["chunked_prefill_size"]) == (6400, 64, 512)
    assert facts["enable_hierarchical_cache"] is False
    assert facts["engine_rules"] == RULES
