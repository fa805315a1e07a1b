"""Families that a plain server run does not show: the host tier, speculation, buckets."""

from __future__ import annotations

from agentx.engine.http_calls import Call
from agentx.engine.http_metrics import Histogram, RequestMetrics, engine_families
from agentx.engine.http_replies import Progress
from agentx.engine.messages import Counters, Tally
from agentx.engine.settings import Cache, EngineSettings, Speculation
from agentx.wire.metrics import encode_metrics, parse_metrics, total


def told(counters: Counters, settings: EngineSettings) -> list:
    return parse_metrics(encode_metrics(engine_families(counters, settings, "m")).decode())


def test_tiers_are_told_only_where_there_is_one() -> None:
    counters = Counters(Tally(), backed_up=7, loaded_back=5, dropped_unbacked=3, host_total=100, host_used=40)
    samples = told(counters, EngineSettings())
    assert total(samples, "sglang:hicache_host_used_tokens") == 40
    assert total(samples, "sglang:hicache_backup_tokens_total", pool="kv") == 7
    assert total(samples, "sglang:load_back_tokens_total") == 5
    assert total(samples, "sglang:hicache_dropped_tokens_total", reason="write_through_unbacked_eviction") == 3
    assert total(told(Counters(Tally()), EngineSettings()), "sglang:hicache_host_used_tokens") is None


def test_speculation_is_told_only_where_there_is_some() -> None:
    settings = EngineSettings(speculation=Speculation(algorithm="EAGLE", steps=3))
    samples = told(Counters(Tally(verify_calls=9), accept_length=2.5), settings)
    assert total(samples, "sglang:spec_verify_calls_total") == 9
    assert total(samples, "sglang:spec_accept_length") == 2.5
    assert total(told(Counters(Tally()), EngineSettings()), "sglang:spec_verify_calls_total") is None


def test_the_hit_rate_is_that_of_the_last_batch() -> None:
    samples = told(Counters(Tally(last_prefill_input=25, last_prefill_hit=75)), EngineSettings(cache=Cache(page=4)))
    assert total(samples, "sglang:cache_hit_rate") == 0.75
    assert total(samples, "sglang:page_size") == 4
    assert total(told(Counters(Tally()), EngineSettings()), "sglang:cache_hit_rate") == 0  # no batch yet


def test_buckets_add_up() -> None:
    histogram = Histogram((1, 2))
    for value in (0.5, 1, 1.5, 9):  # a bound belongs to its bucket
        histogram.observe((("a", "b"),), value)
    family = histogram.family("h", "about")
    assert [(sample.labels.get("le"), sample.value) for sample in family.samples] == [
        ("1.0", 2),
        ("2.0", 3),
        ("+Inf", 4),
        (None, 12),
        (None, 4),
    ]


def test_a_request_counts_by_source_once_there_is_something() -> None:
    metrics = RequestMetrics("m")
    call = Call("r", "m", b"\0" * 40, 5, 0, False, "", stream=True)
    metrics.finished(Progress(call, 1.0, 0.0, cached_device=4, cached_host=0, queued=0.1, first=2.0, end=4.0), 5)
    samples = parse_metrics(encode_metrics(metrics.families()).decode())
    assert total(samples, "sglang:cached_tokens_total", cache_source="device") == 4
    assert total(samples, "sglang:cached_tokens_total", cache_source="host") is None  # absent until above 0
    assert total(samples, "sglang:prompt_tokens_total", is_streaming="true") == 10
    assert total(samples, "sglang:time_to_first_token_seconds_sum") == 1.0
    assert total(samples, "sglang:request_time_per_output_token_seconds_sum") == 0.5  # 2 s over the 4 after the first
    assert total(samples, "sglang:num_aborted_requests_total") == 0
