"""What an engine says of itself, to those who ask over HTTP and to those who simulate it."""

from __future__ import annotations

from agentx import __version__
from agentx.engine.settings import EngineSettings

RULES = "SGLang 0.5.23"  # whose rules the engine follows


def told(settings: EngineSettings) -> dict[str, object]:
    """What `/server_info` tells of an engine with these settings, under SGLang's names."""
    return {
        "version": f"agentx {__version__}",
        "engine_rules": RULES,
        "context_length": settings.context,
        "page_size": settings.cache.page,
        "max_total_num_tokens": settings.cache.pool,
        "max_running_requests": settings.scheduler.max_running,
        "max_queued_requests": settings.scheduler.queue,
        "chunked_prefill_size": settings.scheduler.chunk,
        "max_prefill_tokens": settings.scheduler.max_prefill,
        "schedule_policy": settings.scheduler.policy,
        "radix_eviction_policy": settings.cache.policy,
        "enable_hierarchical_cache": settings.cache.host.tokens > 0,
        "hicache_write_policy": settings.cache.host.write,
        "speculative_algorithm": settings.speculation.algorithm,
        "speculative_num_steps": settings.speculation.steps,
        "speculative_num_draft_tokens": settings.speculation.draft_tokens,
        "enable_cache_report": True,
        "stream_interval": 1,
    }
