"""SGLang's metrics for those that the embedded engine has: names, labels and meaning as in SGLang 0.5.23.

Token counts of requests are added when a request finishes, so they lag behind work in flight; a source of cached
tokens has no series before its first token. What the scheduler counts comes from `Engine.counters`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence

from agentx.engine.http_replies import Progress
from agentx.engine.messages import Counters
from agentx.engine.settings import EngineSettings
from agentx.wire.metrics import Family, Sample

_LATENCY = (0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8, 10, 20, 40, 60, 80, 100, 200, 400, 600, 1200, 1800, 2400)
_TOKEN_TIME = (
    0.002, 0.004, 0.006, 0.008, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.06, 0.08,
    0.1, 0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8,
)  # fmt: skip
_QUEUE = (0.001, 0.01, 0.1, 0.2, 0.5, 1, 2, 3, 4, 5, 10, 20, 50, 100, 200, 300, 600, 1200)

Labels = tuple[tuple[str, str], ...]


class Histogram:
    """Cumulative buckets, sum and count, by labels."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts: dict[Labels, list[int]] = {}
        self._sums: Counter[Labels] = Counter()

    def observe(self, labels: Labels, value: float) -> None:
        counts = self._counts.setdefault(labels, [0] * (len(self._bounds) + 1))
        counts[bisect_left(self._bounds, value)] += 1
        self._sums[labels] += value  # type: ignore[assignment]  # a Counter adds floats as well

    def family(self, name: str, about: str) -> Family:
        samples = []
        for labels, counts in self._counts.items():
            so_far = 0
            bounds = [*map(str, map(float, self._bounds)), "+Inf"]
            for bound, count in zip(bounds, counts, strict=True):
                so_far += count
                samples.append(Sample(f"{name}_bucket", so_far, {**dict(labels), "le": bound}))
            samples.append(Sample(f"{name}_sum", self._sums[labels], dict(labels)))
            samples.append(Sample(f"{name}_count", so_far, dict(labels)))
        return Family(name, "histogram", about, samples)


class RequestMetrics:
    """What the HTTP side counts about requests."""

    def __init__(self, model: str) -> None:
        self._labels: Labels = (("model_name", model), ("engine_type", "unified"))
        self._prompt: Counter[Labels] = Counter()
        self._generated: Counter[Labels] = Counter()
        self._requests: Counter[Labels] = Counter()
        self._cached: Counter[Labels] = Counter()
        self._aborted = 0
        self._first = Histogram(_LATENCY[:18])
        self._latency = Histogram(_LATENCY)
        self._per_token = Histogram(_TOKEN_TIME)
        self._queue = Histogram(_QUEUE)

    def aborted(self) -> None:
        """A client went away before its reply ended: SGLang counts that, and nothing else about the request."""
        self._aborted += 1

    def finished(self, progress: Progress, tokens: int) -> None:
        """A reply of `tokens` came to its end."""
        labels = (*self._labels, ("is_streaming", "true" if progress.call.stream else "false"))
        self._prompt[labels] += progress.call.prompt_tokens
        self._generated[labels] += tokens
        self._requests[labels] += 1
        for source, cached in (("device", progress.cached_device), ("host", progress.cached_host)):
            if cached:
                key = (*self._labels, ("cache_source", source))
                self._cached[key] += cached
        if progress.queued is not None:
            self._queue.observe(self._labels, progress.queued)
        if progress.first is not None:
            self._first.observe(labels, progress.first - progress.received)
        if progress.end is not None:
            self._latency.observe(labels, progress.end - progress.received)
            if progress.first is not None and tokens > 1 and progress.end > progress.first:
                seconds = (progress.end - progress.first) / (tokens - 1)
                self._per_token.observe(labels, seconds)

    def families(self) -> list[Family]:
        """Everything counted so far."""
        aborted = Counter({self._labels: self._aborted})
        return [
            _counter("prompt_tokens_total", "Prompt tokens of finished requests.", self._prompt),
            _counter("generation_tokens_total", "Generated tokens of finished requests.", self._generated),
            _counter("num_requests_total", "Finished requests.", self._requests),
            _counter("cached_tokens_total", "Cached prompt tokens of finished requests, by source.", self._cached),
            _counter("num_aborted_requests_total", "Requests whose client went away.", aborted),
            self._queue.family("sglang:queue_time_seconds", "Time from arrival to first admission."),
            self._first.family("sglang:time_to_first_token_seconds", "Time from arrival to the first token."),
            self._latency.family("sglang:e2e_request_latency_seconds", "Time from arrival to the last token."),
            self._per_token.family(
                "sglang:request_time_per_output_token_seconds", "Decode time over the tokens after the first."
            ),
        ]


def engine_families(counters: Counters, settings: EngineSettings, model: str) -> list[Family]:
    """What the scheduler and the cache count, and the constants of the engine."""
    served: Labels = (("model_name", model), ("engine_type", "unified"))
    labels: Labels = (*served, ("tp_rank", "0"), ("pp_rank", "0"), ("moe_ep_rank", "0"))
    families = [*_token_families(counters, labels), *_gauge_families(counters, settings, labels)]
    if settings.speculation.algorithm is not None:
        calls = {served: counters.totals.verify_calls}
        families.append(_counter("spec_verify_calls_total", "Verification steps of finished requests.", calls))
        speculation = settings.speculation
        families.append(_gauge("spec_num_steps", "Draft steps.", labels, speculation.steps))
        families.append(_gauge("spec_num_draft_tokens", "Draft tokens of a step.", labels, speculation.draft_tokens))
        if counters.accept_length is not None:
            rate = (counters.accept_length - 1) / (speculation.bound - 1) if speculation.bound > 1 else 0.0
            families.append(_gauge("spec_accept_length", "Mean of the last steps.", labels, counters.accept_length))
            families.append(_gauge("spec_accept_rate", "Accepted over proposed drafts, the same steps.", labels, rate))
    if counters.host_total:
        families += _host_families(counters, labels)
    return families


_TREE: Labels = (("cache_type", "UnifiedRadixCache"), ("tp_rank", "0"), ("pp_rank", "0"), ("dp_rank", "0"))


def _token_families(counters: Counters, labels: Labels) -> list[Family]:
    totals = counters.totals
    admitted = {"input": totals.prefill_input, "device_hit": totals.prefill_device_hit}
    admitted |= {"host_hit": totals.prefill_host_hit, "storage_hit": 0}
    processed = {
        "prefill_compute": totals.prefill_compute,
        "prefill_cache": totals.prefill_cache,
        "decode": totals.decode,
    }
    return [
        _counter("prefill_effective_tokens_total", "Prompt tokens at admission.", _by(labels, "mode", admitted)),
        _counter("realtime_tokens_total", "Tokens processed, retractions too.", _by(labels, "mode", processed)),
        _counter("num_retracted_requests_total", "Retractions.", {labels: totals.retracted_requests}),
        _counter("num_retracted_input_tokens_total", "Their prompt tokens.", {labels: totals.retracted_input}),
        _counter("num_retracted_output_tokens_total", "Their generated tokens.", {labels: totals.retracted_output}),
        _counter("evicted_tokens_total", "Device tokens freed, backed up or not.", {_TREE: counters.evicted}),
    ]


def _gauge_families(counters: Counters, settings: EngineSettings, labels: Labels) -> list[Family]:
    totals, page = counters.totals, settings.cache.page
    last = totals.last_prefill_hit + totals.last_prefill_input
    gauges: list[tuple[str, str, float]] = [
        ("cache_hit_rate", "Hit share of the last prefill batch.", totals.last_prefill_hit / last if last else 0.0),
        ("num_running_reqs", "Requests that decode.", counters.running),
        ("num_queue_reqs", "Requests that wait.", counters.queued),
        ("token_usage", "Share of the pool in use; reusable cache is not.", counters.token_usage),
        ("full_token_usage", "The same as token_usage.", counters.token_usage),
        ("num_used_tokens", "Tokens of the pool in use.", counters.used),
        ("kv_used_tokens", "Tokens of the pool in use.", counters.used),
        ("kv_available_tokens", "Free tokens of the pool.", counters.available),
        ("kv_evictable_tokens", "Cached tokens that nothing holds.", counters.evictable),
        ("decode_sum_seq_lens", "Tokens of context of the running requests.", counters.decode_context),
        ("new_token_ratio", "Share of a reply that admission reserves.", counters.new_token_ratio),
        ("max_total_num_tokens", "Tokens of the pool.", counters.pool),
        ("page_size", "Tokens of a page.", page),
        ("num_pages", "Pages of the pool.", counters.pool // page),
        ("context_len", "Tokens of the longest context.", settings.context),
    ]
    return [_gauge(name, about, labels, value) for name, about, value in gauges]


def _host_families(counters: Counters, labels: Labels) -> list[Family]:
    pool: Labels = (*_TREE, ("pool", "kv"))
    dropped = {
        "host_pressure": counters.dropped_host_pressure,
        "write_through_unbacked_eviction": counters.dropped_unbacked,
    }
    return [
        _gauge("hicache_host_total_tokens", "Tokens of the host tier.", labels, counters.host_total),
        _gauge("hicache_host_used_tokens", "Tokens of the host tier in use.", labels, counters.host_used),
        _counter("hicache_backup_tokens_total", "Tokens copied to the host.", {pool: counters.backed_up}),
        _counter("load_back_tokens_total", "Tokens loaded back from the host.", {pool: counters.loaded_back}),
        _counter("hicache_dropped_tokens_total", "Tokens lost on their way down.", _by(pool, "reason", dropped)),
    ]


def _by(labels: Labels, name: str, values: Mapping[str, float]) -> dict[Labels, float]:
    return {(*labels, (name, key)): value for key, value in values.items()}


def _gauge(name: str, about: str, labels: Labels, value: float) -> Family:
    return Family(f"sglang:{name}", "gauge", about, [Sample(f"sglang:{name}", value, dict(labels))])


def _counter(name: str, about: str, values: Mapping[Labels, float]) -> Family:
    return Family(
        f"sglang:{name}",
        "counter",
        about,
        [Sample(f"sglang:{name}", value, dict(labels)) for labels, value in values.items()],
    )
