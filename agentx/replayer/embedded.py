"""What the embedded engine says of itself, without HTTP: the same facts and counters that `/server_info` and `/metrics`
give to a replay, under the same names."""

from __future__ import annotations

from typing import Any

from agentx import __version__
from agentx.engine.messages import Counters
from agentx.engine.settings import EngineSettings

MODEL, RULES = "agentx", "SGLang 0.5.23"
ENDPOINT = "engine"  # the name under which its counters are kept


def facts_of(settings: EngineSettings) -> dict[str, Any]:
    """What `probe.server_facts` would learn of a server with these settings."""
    facts = {
        "model": MODEL,
        "context": settings.context,
        "version": f"agentx {__version__}",
        "engine_rules": RULES,
        "page_size": settings.cache.page,
        "context_length": settings.context,
        "max_total_num_tokens": settings.cache.pool,
        "max_running_requests": settings.scheduler.max_running,
        "max_queued_requests": settings.scheduler.queue,
        "chunked_prefill_size": settings.scheduler.chunk,
        "schedule_policy": settings.scheduler.policy,
        "radix_eviction_policy": settings.cache.policy,
        "enable_hierarchical_cache": settings.cache.host.tokens > 0,
        "hicache_write_policy": settings.cache.host.write,
        "speculative_algorithm": settings.speculation.algorithm,
        "speculative_num_steps": settings.speculation.steps,
        "speculative_num_draft_tokens": settings.speculation.draft_tokens,
        "enable_cache_report": True,
        "model_path": MODEL,
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


def counters_of(counters: Counters) -> tuple[dict[str, float], dict[str, float]]:
    """(counters, gauges) by the names of `replayer/counters.py`."""
    totals = counters.totals
    rising: dict[str, float] = {
        "prompt_tokens": totals.prompt_tokens,
        "generation_tokens": totals.generation_tokens,
        "requests": totals.requests,
        "aborted": totals.aborted,
        "cached_device": totals.cached_device,
        "cached_host": totals.cached_host,
        "prefill_input": totals.prefill_input,
        "prefill_device_hit": totals.prefill_device_hit,
        "prefill_host_hit": totals.prefill_host_hit,
        "prefill_storage_hit": 0,
        "evicted": counters.evicted,
        "retracted": totals.retracted_requests,
    }
    gauges: dict[str, float] = {
        "running": counters.running,
        "queued": counters.queued,
        "pool": counters.pool,
        "used": counters.used,
        "evictable": counters.evictable,
        "available": counters.available,
    }
    if counters.accept_length is not None or totals.verify_calls:
        rising["spec_verify_calls"] = totals.verify_calls
    if counters.host_total:
        rising |= {
            "load_back": counters.loaded_back,
            "host_dropped": counters.dropped_host_pressure + counters.dropped_unbacked,
        }
        gauges |= {"host_used": counters.host_used, "host_total": counters.host_total}
    return rising, gauges
