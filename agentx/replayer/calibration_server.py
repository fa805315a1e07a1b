"""The embedded engine's settings for a server that was measured: what it told of itself, as SGLang tells it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pydantic

from agentx.core import Attempt
from agentx.engine.settings import EngineSettings
from agentx.errors import BadInput
from agentx.results import RunResults

BY_HAND = "describe the server's cache in a target of kind engine and give it with --target"
NGRAM = "NGRAM"


def settings_of_server(run: RunResults) -> EngineSettings:
    """The settings that a run's server told. Raises BadInput when what decides about reuse is missing."""
    told: Mapping[str, Any] = run.settings.get("server", {})
    pool = told.get("max_total_num_tokens")
    if not isinstance(pool, int):
        raise BadInput("the server did not tell the size of its cache", file=run.folder, hint=BY_HAND)
    page, eagle = told.get("page_size") or 1, told.get("speculative_algorithm") not in (None, NGRAM)
    body: dict[str, Any] = {
        "context": told.get("context") or told.get("context_length") or pool,
        "gpus": run.settings["target"].get("gpus") or told.get("tp_size") or 1,
        "cache": {
            "pool": pool // page * page,
            "page": page,
            "policy": told.get("radix_eviction_policy") or "lru",
            "bigram": eagle and "engine_rules" not in told,
            "host": _host(run, told, pool // page * page, page),
        },
        "scheduler": _scheduler(told),
        "speculation": _speculation(run, told),
    }
    try:
        return EngineSettings.model_validate(body)
    except pydantic.ValidationError as error:
        first = error.errors(include_url=False)[0]
        what = ".".join(map(str, first["loc"]))
        raise BadInput(f"the server's {what} is not modelled: {first['msg']}", file=run.folder, hint=BY_HAND) from None


def _scheduler(told: Mapping[str, Any]) -> dict[str, Any]:
    names = {"chunk": "chunked_prefill_size", "max_running": "max_running_requests", "queue": "max_queued_requests"}
    return {key: told[name] for key, name in names.items() if isinstance(told.get(name), int) and told[name] > 0}


def _host(run: RunResults, told: Mapping[str, Any], pool: int, page: int) -> dict[str, Any]:
    if not told.get("enable_hierarchical_cache"):
        return {}
    totals = [sample.values["host_total"] for sample in run.samples if sample.values.get("host_total")]
    ratio = told.get("hicache_ratio")
    if totals:
        tokens = int(totals[-1])
    elif isinstance(ratio, int | float) and not told.get("hicache_size"):
        tokens = int(ratio * pool)
    else:
        raise BadInput("the server did not tell how many tokens its host tier holds", file=run.folder, hint=BY_HAND)
    return {"tokens": tokens // page * page, "write": told.get("hicache_write_policy") or "write_through"}


def _speculation(run: RunResults, told: Mapping[str, Any]) -> dict[str, Any]:
    algorithm = told.get("speculative_algorithm")
    if algorithm is None:
        return {}
    length = _seen_length(run)
    if length is None:
        raise BadInput(
            f"the server speculates ({algorithm}), and the run does not tell how many tokens a step yields",
            file=run.folder,
            hint=BY_HAND,
        )
    steps = told.get("speculative_num_steps") or 0
    drafts = told.get("speculative_num_draft_tokens") or 0
    if not steps and algorithm != NGRAM:  # not told: at least as many as the steps yield
        steps = int(length) + 1
    bound = drafts if algorithm == NGRAM else steps + 1
    acceptance = {"length": min(max(1.0, round(length, 3)), float(bound or 1))}
    return {"algorithm": algorithm, "steps": steps, "draft_tokens": drafts, "acceptance": acceptance}


def _seen_length(run: RunResults) -> float | None:
    """Tokens per verification step: from requests' own histograms or counts, else from the counters' increase."""
    pairs = [pair for attempt in run.attempts if (pair := _accepted(attempt)) is not None]
    if steps := sum(count for _, count in pairs):
        return sum(tokens for tokens, _ in pairs) / steps
    tokens, calls = (_increase(run, name) for name in ("generation_tokens", "spec_verify_calls"))
    requests = _increase(run, "requests") or 0.0
    return (tokens - requests) / calls if tokens and calls else None  # the first token is the prefill's


def _accepted(attempt: Attempt) -> tuple[float, int] | None:
    """(tokens of verification steps, steps) of one request, the target's own tokens included."""
    spec = attempt.extra.get("spec")
    if not isinstance(spec, Mapping):
        return None
    steps, correct = spec.get("spec_verify_ct"), spec.get("spec_num_correct_drafts")
    if not isinstance(steps, int) or not isinstance(correct, int) or not steps:
        return None
    return float(correct + steps), steps


def _increase(run: RunResults, name: str) -> float | None:
    values = [sample.values[name] for sample in run.samples if name in sample.values]
    return values[-1] - values[0] if len(values) > 1 else None
