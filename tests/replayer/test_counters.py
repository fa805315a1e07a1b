"""Counters out of expositions that repeat themselves."""

from __future__ import annotations

import aiohttp
import pytest
from aiohttp import web

from agentx.replayer.counters import Scraper, read_counters, role_of

CASES = [
    # One server: both streaming kinds are summed, a source by its label; what is absent is unknown.
    (
        """
# TYPE sglang:prompt_tokens_total counter
sglang:prompt_tokens_total{model_name="m",is_streaming="true"} 100.0
sglang:prompt_tokens_total{model_name="m",is_streaming="false"} 20.0
sglang:cached_tokens_total{model_name="m",cache_source="device"} 30.0
""",
        {"prompt_tokens": 120.0, "cached_device": 30.0},
    ),
    # Every tensor-parallel rank exports the same counts: one of them is taken.
    (
        """
sglang:prefill_effective_tokens_total{mode="input",tp_rank="0"} 70.0
sglang:prefill_effective_tokens_total{mode="input",tp_rank="1"} 70.0
sglang:prefill_effective_tokens_total{mode="device_hit",tp_rank="0"} 5.0
sglang:prefill_effective_tokens_total{mode="device_hit",tp_rank="1"} 5.0
""",
        {"prefill_input": 70.0, "prefill_device_hit": 5.0},
    ),
    # Data-parallel ranks count their own requests; the first tensor rank of the second one need not be 0.
    (
        """
sglang:evicted_tokens_total{dp_rank="0",tp_rank="0"} 1.0
sglang:evicted_tokens_total{dp_rank="0",tp_rank="1"} 1.0
sglang:evicted_tokens_total{dp_rank="1",tp_rank="2"} 10.0
sglang:evicted_tokens_total{dp_rank="1",tp_rank="3"} 10.0
""",
        {"evicted": 11.0},
    ),
    # With priority scheduling the total stands under an empty priority.
    (
        """
sglang:generation_tokens_total{priority=""} 9.0
sglang:generation_tokens_total{priority="1"} 4.0
sglang:generation_tokens_total{priority="2"} 5.0
""",
        {"generation_tokens": 9.0},
    ),
    # vLLM: engines add up, what was looked up less what was found was computed.
    (
        """
vllm:prompt_tokens_total{engine="0",model_name="m"} 100.0
vllm:prompt_tokens_total{engine="1",model_name="m"} 50.0
vllm:generation_tokens_total{engine="0",model_name="m"} 7.0
vllm:request_success_total{engine="0",finished_reason="stop"} 3.0
vllm:request_success_total{engine="0",finished_reason="abort"} 1.0
vllm:prefix_cache_queries_total{engine="0"} 100.0
vllm:prefix_cache_queries_total{engine="1"} 50.0
vllm:prefix_cache_hits_total{engine="0"} 64.0
vllm:prefix_cache_hits_total{engine="1"} 0.0
vllm:external_prefix_cache_hits_total{engine="0"} 16.0
vllm:num_preemptions_total{engine="0"} 2.0
vllm:spec_decode_num_drafts_total{engine="0"} 5.0
vllm:spec_decode_num_accepted_tokens_total{engine="0"} 9.0
vllm:prompt_tokens_created{engine="0"} 1.7e9
""",
        {
            "prompt_tokens": 150.0,
            "generation_tokens": 7.0,
            "requests": 4.0,
            "aborted": 1.0,
            "prefill_device_hit": 64.0,
            "prefill_storage_hit": 16.0,
            "prefill_input": 70.0,
            "retracted": 2.0,
            "spec_verify_calls": 5.0,
            "spec_accepted": 9.0,
        },
    ),
    # vLLM without prefix caching has no lookups: what was reused is unknown, not none.
    ('vllm:prompt_tokens_total{engine="0"} 100.0', {"prompt_tokens": 100.0}),
    # Gauges of the last batch are no counters.
    ("sglang:cache_hit_rate 0.97\nsglang:spec_accept_length 2.7\n", {}),
    ("", {}),
    ("something else entirely 1 2 3", {}),
]


@pytest.mark.parametrize(("text", "counters"), CASES)
def test_counters(text, counters):
    assert read_counters(text)[0] == counters


def test_gauges_are_kept_apart():
    counters, gauges = read_counters('sglang:num_running_reqs{tp_rank="0"} 3.0\n')
    assert (counters, gauges) == ({}, {"running": 3.0})


GAUGES = [
    # the same thing told by two processes of the server, one of them long dead
    (
        'sglang:num_running_reqs{tp_rank="0",pid="11"} 0.0\nsglang:num_running_reqs{tp_rank="0",pid="12"} 3.0\n',
        {"running": 3.0},
    ),
    (
        'vllm:num_requests_running{engine="0"} 3.0\nvllm:num_requests_running{engine="1"} 4.0\n'
        'vllm:num_requests_waiting{engine="0"} 1.0\nvllm:kv_cache_usage_perc{engine="0"} 0.5\n'
        'vllm:cache_config_info{block_size="16",engine="0",num_gpu_blocks="1000"} 1.0\n'
        'vllm:cache_config_info{block_size="16",engine="1",num_gpu_blocks="500"} 1.0\n',
        {"running": 7.0, "queued": 1.0, "pool": 24_000.0},
    ),
    ('vllm:cache_config_info{block_size="16",num_gpu_blocks="None"} 1.0\n', {}),
]


@pytest.mark.parametrize(("text", "gauges"), GAUGES)
def test_gauges(text, gauges):
    assert read_counters(text)[1] == gauges


async def test_scraping():
    texts = iter(["sglang:prompt_tokens_total 1.0", "sglang:prompt_tokens_total 5.0", "sglang:prompt_tokens_total 5.0"])

    async def metrics(_):
        return web.Response(text=next(texts, "sglang:prompt_tokens_total 5.0"))

    app = web.Application()
    app.router.add_get("/metrics", metrics)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    base = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        async with aiohttp.ClientSession() as session:
            scraper = Scraper(
                session, [f"{base}/metrics", f"{base}/nothing", "http://127.0.0.1:9/metrics"], lambda: 4.0
            )
            (first,) = await scraper.sample()  # the two that do not answer are left out
            assert (first.at, first.endpoint, first.values) == (4.0, f"{base}/metrics", {"prompt_tokens": 1.0})
            (last,) = await scraper.settled()
            assert last.values == {"prompt_tokens": 5.0}
    finally:
        await runner.cleanup()


ROLES = [
    ('sglang:prompt_tokens_total{engine_type="prefill"} 1.0\nsglang:num_pages 2.0', "prefill"),
    ('sglang:prompt_tokens_total{engine_type="decode"} 1.0', "decode"),
    ('sglang:prompt_tokens_total{engine_type="unified"} 1.0', None),
    # one exposition of both, as a proxy may make: nothing can be told apart
    ('a{engine_type="prefill"} 1.0\na{engine_type="decode"} 1.0', None),
    ("a 1.0", None),
]


@pytest.mark.parametrize(("text", "role"), ROLES)
def test_a_server_says_which_half_it_does(text, role):
    assert role_of(text) == role
