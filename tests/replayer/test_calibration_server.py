"""The engine's settings for a server that only told of itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentx.core import Attempt, Sample
from agentx.errors import BadInput
from agentx.replayer.calibration_server import settings_of_server
from agentx.results import RunResults

TOLD = {"max_total_num_tokens": 100_010, "page_size": 16, "context": 32_768, "chunked_prefill_size": 2048, "tp_size": 8}
HIER = {"enable_hierarchical_cache": True, "hicache_write_policy": "write_back"}


def run(server: dict[str, Any], *, spec: dict[str, Any] | None = None, samples: tuple[Sample, ...] = ()) -> RunResults:
    attempt = Attempt("s", 0, 0, 0, 0, 0.0, 0.0, 10, 5, extra={"spec": spec} if spec else {})
    settings = {"target": {"kind": "endpoint"}, "server": server}
    return RunResults(Path("run"), settings, 0.0, (attempt,), (), samples)


def test_what_a_server_tells_is_taken() -> None:
    found = settings_of_server(run(TOLD))
    assert (found.cache.pool, found.cache.page, found.context, found.gpus) == (100_000, 16, 32_768, 8)
    assert (found.scheduler.chunk, found.cache.host.tokens, found.cache.bigram) == (2048, 0, False)


def test_a_host_tier_by_its_ratio_or_by_what_it_holds() -> None:
    by_ratio = settings_of_server(run({**TOLD, **HIER, "hicache_ratio": 1.5}))
    assert (by_ratio.cache.host.tokens, by_ratio.cache.host.write) == (150_000, "write_back")
    sampled = (Sample(1.0, "u", {"host_total": 64_000.0}),)
    assert settings_of_server(run({**TOLD, **HIER}, samples=sampled)).cache.host.tokens == 64_000


def test_the_acceptance_length_of_requests_or_of_counters() -> None:
    server = {
        **TOLD,
        "speculative_algorithm": "EAGLE",
        "speculative_num_steps": 3,
        "speculative_num_draft_tokens": 4,
    }
    by_request = settings_of_server(run(server, spec={"spec_verify_ct": 10, "spec_num_correct_drafts": 15}))
    assert by_request.speculation.acceptance.length == 2.5
    assert by_request.cache.bigram  # SGLang's keys with EAGLE
    before = {"generation_tokens": 100.0, "spec_verify_calls": 40.0, "requests": 1.0}
    after = {"generation_tokens": 351.0, "spec_verify_calls": 140.0, "requests": 2.0}
    counted = settings_of_server(run(server, samples=(Sample(0.0, "u", before), Sample(9.0, "u", after))))
    assert counted.speculation.acceptance.length == 2.5


REFUSED = [
    ({}, "did not tell the size of its cache"),
    ({**TOLD, **HIER}, "did not tell how many tokens its host tier holds"),
    ({**TOLD, **HIER, "hicache_ratio": 2.0, "hicache_size": 30}, "how many tokens its host tier holds"),
    ({**TOLD, "speculative_algorithm": "EAGLE"}, "does not tell how many tokens a step yields"),
    ({**TOLD, "radix_eviction_policy": "mru"}, "the server's cache.policy is not modelled"),
]


@pytest.mark.parametrize(("server", "message"), REFUSED)
def test_what_is_missing_is_one_line_with_a_way_out(server: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput) as caught:
        settings_of_server(run(server))
    assert message in str(caught.value)
    assert "--target" in str(caught.value)
    assert "\n" not in str(caught.value)
