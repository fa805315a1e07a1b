"""What the embedded engine says of itself, without HTTP: the same facts and counters that `/server_info` and `/metrics`
give to a replay, under the same names."""

from __future__ import annotations

from typing import Any

from agentx.engine.facts import told
from agentx.engine.messages import Counters
from agentx.engine.settings import EngineSettings

MODEL = "agentx"
ENDPOINT = "engine"  # the name under which its counters are kept


def facts_of(settings: EngineSettings) -> dict[str, Any]:
    """What `probe.server_facts` would learn of a server with these settings."""
    facts = {
        "model": MODEL,
        "context": settings.context,
        **told(settings),
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
