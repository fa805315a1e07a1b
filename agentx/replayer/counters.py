"""The server's own counters, through the run: `GET /metrics`, summed into a few names that do not depend on its labels.

SGLang's exposition repeats itself, and a blind sum would count twice: every tensor-parallel rank may export the same
logical counts (only the lowest rank of each data-parallel one is taken), and with priority scheduling the totals stand
under `priority=""` with the priorities' own series beside them. A name that the server does not have is absent, which
means unknown. A server of a prefill or a decode pool is marked as one (`role`), by the target or by its own label,
since a request that passes both is counted by both. A gauge may stand once for each process of the server (`pid`): of
those the highest is taken. Gauges that only tell of the last batch (`cache_hit_rate`, `spec_accept_length`) are not
read. A server without `/metrics` is not an error. No health route is polled: in SGLang it runs a prefill.

vLLM's names are read beside SGLang's. Its engines (data-parallel ones) are series of their own that add up; it counts
the tokens that it looks up in its prefix cache when a request is scheduled, and what it finds there, and what a
connector finds in the rest (host memory or further away: told as storage).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import aiohttp

from agentx.core import Sample
from agentx.wire import metrics

SCRAPE = 5.0  # s that a scrape may take
SETTLE = 2.0  # s that the last counts may take to come in: SGLang adds a request's when it has finished
_PID = "pid"
_RANKS = ("pp_rank", "tp_rank", "moe_ep_rank")


class Series(NamedTuple):
    """Where a name is found: a series, by some labels."""

    name: str
    labels: Mapping[str, str] = {}


COUNTERS: Mapping[str, Series] = {
    "prompt_tokens": Series("sglang:prompt_tokens_total"),
    "generation_tokens": Series("sglang:generation_tokens_total"),
    "requests": Series("sglang:num_requests_total"),
    "aborted": Series("sglang:num_aborted_requests_total"),
    "cached_device": Series("sglang:cached_tokens_total", {"cache_source": "device"}),
    "cached_host": Series("sglang:cached_tokens_total", {"cache_source": "host"}),
    "cached_storage": Series("sglang:cached_tokens_total", {"cache_source": "storage"}),
    "cached_total": Series("sglang:cached_tokens_total", {"cache_source": "total"}),
    "prefill_input": Series("sglang:prefill_effective_tokens_total", {"mode": "input"}),
    "prefill_device_hit": Series("sglang:prefill_effective_tokens_total", {"mode": "device_hit"}),
    "prefill_host_hit": Series("sglang:prefill_effective_tokens_total", {"mode": "host_hit"}),
    "prefill_storage_hit": Series("sglang:prefill_effective_tokens_total", {"mode": "storage_hit"}),
    "evicted": Series("sglang:evicted_tokens_total"),
    "load_back": Series("sglang:load_back_tokens_total"),
    "host_dropped": Series("sglang:hicache_dropped_tokens_total"),
    "retracted": Series("sglang:num_retracted_requests_total"),
    "spec_verify_calls": Series("sglang:spec_verify_calls_total"),
}
VLLM_COUNTERS: Mapping[str, Series] = {  # vLLM 0.10 and later (its engine "V1")
    "prompt_tokens": Series("vllm:prompt_tokens_total"),
    "generation_tokens": Series("vllm:generation_tokens_total"),
    "requests": Series("vllm:request_success_total"),
    "aborted": Series("vllm:request_success_total", {"finished_reason": "abort"}),
    "looked_up": Series("vllm:prefix_cache_queries_total"),
    "prefill_device_hit": Series("vllm:prefix_cache_hits_total"),
    "prefill_storage_hit": Series("vllm:external_prefix_cache_hits_total"),
    "retracted": Series("vllm:num_preemptions_total"),
    "spec_verify_calls": Series("vllm:spec_decode_num_drafts_total"),
    "spec_accepted": Series("vllm:spec_decode_num_accepted_tokens_total"),
}
GAUGES: Mapping[str, Series] = {
    "running": Series("sglang:num_running_reqs"),
    "queued": Series("sglang:num_queue_reqs"),
    "pool": Series("sglang:max_total_num_tokens"),
    "used": Series("sglang:num_used_tokens"),
    "evictable": Series("sglang:kv_evictable_tokens"),
    "available": Series("sglang:kv_available_tokens"),
    "host_used": Series("sglang:hicache_host_used_tokens"),
    "host_total": Series("sglang:hicache_host_total_tokens"),
}
VLLM_GAUGES: Mapping[str, Series] = {
    "running": Series("vllm:num_requests_running"),
    "queued": Series("vllm:num_requests_waiting"),
}
_VLLM_CONFIG = "vllm:cache_config_info"  # its labels are the engine's settings


def read_counters(text: str) -> tuple[dict[str, float], dict[str, float]]:
    """(counters, gauges) by our names; absent where the server does not tell."""
    return named(metrics.parse_metrics(text))


def named(samples: Iterable[metrics.Sample]) -> tuple[dict[str, float], dict[str, float]]:
    """The same of series that were read already."""
    by_name: dict[str, list[metrics.Sample]] = {}
    for sample in samples:
        by_name.setdefault(sample.name, []).append(sample)
    counters, gauges = _named(COUNTERS, by_name), _named(GAUGES, by_name)
    if not counters and not gauges:
        return _of_vllm(by_name)
    return counters, gauges


def _of_vllm(by_name: Mapping[str, list[metrics.Sample]]) -> tuple[dict[str, float], dict[str, float]]:
    counters, gauges = _named(VLLM_COUNTERS, by_name), _named(VLLM_GAUGES, by_name)
    looked_up, hit = counters.pop("looked_up", None), counters.get("prefill_device_hit")
    if looked_up is None or hit is None:
        counters.pop("prefill_device_hit", None)
        counters.pop("prefill_storage_hit", None)
    else:
        counters["prefill_input"] = looked_up - hit - counters.get("prefill_storage_hit", 0.0)
    pools = [_pool(config.labels) for config in by_name.get(_VLLM_CONFIG, ())]
    known = [pool for pool in pools if pool is not None]
    if known and len(known) == len(pools):
        gauges["pool"] = sum(known)
    return counters, gauges


def _pool(labels: Mapping[str, str]) -> float | None:
    """Tokens of one engine's cache, by what vLLM says of its settings."""
    blocks, size = labels.get("num_gpu_blocks", ""), labels.get("block_size", "")
    return float(int(blocks) * int(size)) if blocks.isdecimal() and size.isdecimal() else None


def _named(wanted: Mapping[str, Series], by_name: Mapping[str, list[metrics.Sample]]) -> dict[str, float]:
    found = {}
    for name, series in wanted.items():
        value = metrics.total(distinct(by_name.get(series.name, ())), series.name, **series.labels)
        if value is not None:
            found[name] = value
    return found


def distinct(samples: Iterable[metrics.Sample]) -> list[metrics.Sample]:
    """The series of one name that count different things."""
    kept = _once_a_process(samples)
    if any(sample.labels.get("priority") == "" for sample in kept):
        kept = [sample for sample in kept if not sample.labels.get("priority")]
    lowest: dict[str, tuple[int, ...]] = {}
    for sample in kept:
        replica = sample.labels.get("dp_rank", "")
        lowest[replica] = min(lowest.get(replica, _ranks(sample)), _ranks(sample))
    return [sample for sample in kept if _ranks(sample) == lowest[sample.labels.get("dp_rank", "")]]


def _once_a_process(samples: Iterable[metrics.Sample]) -> list[metrics.Sample]:
    """Series that differ by nothing but the process that tells them say the same thing: the highest is taken."""
    highest: dict[object, metrics.Sample] = {}
    for number, sample in enumerate(samples):
        others = frozenset((name, value) for name, value in sample.labels.items() if name != _PID)
        key = others if _PID in sample.labels else number
        if key not in highest or highest[key].value < sample.value:
            highest[key] = sample
    return list(highest.values())


def _ranks(sample: metrics.Sample) -> tuple[int, ...]:
    return tuple(int(rank) if (rank := sample.labels.get(name, "0")).isdecimal() else 0 for name in _RANKS)


def role_of(text: str) -> str | None:
    """`prefill` or `decode`, where all series that say what their server does say that."""
    return role_in(metrics.parse_metrics(text))


def role_in(samples: Iterable[metrics.Sample]) -> str | None:
    """The same of series that were read already."""
    told = {sample.labels["engine_type"] for sample in samples if "engine_type" in sample.labels}
    only = told.pop() if len(told) == 1 else None
    return only if only in ("prefill", "decode") else None


class Scraper:
    """Takes samples of every endpoint. `clock` is the run's, `roles` are those that the target states."""

    def __init__(
        self,
        session: aiohttp.ClientSession,
        urls: Iterable[str],
        clock: Callable[[], float],
        roles: Mapping[str, str] | None = None,
    ) -> None:
        self._session, self._clock = session, clock
        self._urls, self._roles = list(urls), dict(roles or {})

    async def sample(self) -> list[Sample]:
        """One sample of each endpoint that answers with counters."""
        found = await asyncio.gather(*(self._one(url) for url in self._urls))
        return [sample for sample in found if sample is not None]

    async def settled(self) -> list[Sample]:
        """Samples that two scrapes in a row agree on, or the last ones after SETTLE seconds."""
        stop = self._clock() + SETTLE
        before = await self.sample()
        while before:
            await asyncio.sleep(0.1)
            after = await self.sample()
            same = [sample.values for sample in after] == [sample.values for sample in before]
            if same or self._clock() >= stop:
                return after
            before = after
        return before

    async def _one(self, url: str) -> Sample | None:
        timeout = aiohttp.ClientTimeout(total=SCRAPE)
        try:
            async with self._session.get(url, timeout=timeout) as response:
                if response.status != 200:
                    return None
                text = await response.text(errors="replace")
        except (aiohttp.ClientError, asyncio.TimeoutError):
            return None
        counters, gauges = read_counters(text)
        if not counters and not gauges:
            return None
        role = self._roles.get(url) or role_of(text)
        return Sample(self._clock(), url, counters, {"gauges": gauges} | ({"role": role} if role else {}))
