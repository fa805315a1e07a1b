"""The server's own counters, through the run: `GET /metrics`, summed into a few names that do not depend on its labels.

SGLang's exposition repeats itself, and a blind sum would count twice: every tensor-parallel rank may export the same
logical counts (only the lowest rank of each data-parallel one is taken), and with priority scheduling the totals stand
under `priority=""` with the priorities' own series beside them. A name that the server does not have is absent, which
means unknown. A server of a prefill or a decode pool is marked as one (`role`), by the target or by its own label,
since a request that passes both is counted by both. A server without `/metrics` is not an error. No health route is
polled: in SGLang it runs a prefill.
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


def read_counters(text: str) -> tuple[dict[str, float], dict[str, float]]:
    """(counters, gauges) by our names; absent where the server does not tell."""
    by_name: dict[str, list[metrics.Sample]] = {}
    for sample in metrics.parse_metrics(text):
        by_name.setdefault(sample.name, []).append(sample)
    return _named(COUNTERS, by_name), _named(GAUGES, by_name)


def _named(wanted: Mapping[str, Series], by_name: Mapping[str, list[metrics.Sample]]) -> dict[str, float]:
    found = {}
    for name, series in wanted.items():
        value = metrics.total(distinct(by_name.get(series.name, ())), series.name, **series.labels)
        if value is not None:
            found[name] = value
    return found


def distinct(samples: Iterable[metrics.Sample]) -> list[metrics.Sample]:
    """The series of one name that count different things."""
    kept = list(samples)
    if any(sample.labels.get("priority") == "" for sample in kept):
        kept = [sample for sample in kept if not sample.labels.get("priority")]
    lowest: dict[str, tuple[int, ...]] = {}
    for sample in kept:
        replica = sample.labels.get("dp_rank", "")
        lowest[replica] = min(lowest.get(replica, _ranks(sample)), _ranks(sample))
    return [sample for sample in kept if _ranks(sample) == lowest[sample.labels.get("dp_rank", "")]]


def _ranks(sample: metrics.Sample) -> tuple[int, ...]:
    return tuple(int(rank) if (rank := sample.labels.get(name, "0")).isdecimal() else 0 for name in _RANKS)


def role_of(text: str) -> str | None:
    """`prefill` or `decode`, where all series that say what their server does say that."""
    told = {sample.labels["engine_type"] for sample in metrics.parse_metrics(text) if "engine_type" in sample.labels}
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
