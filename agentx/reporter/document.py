"""The report as one JSON document, `schema: agentx/report/1`: every figure, units in the names, unknown as null.

The same run folder gives the same document, wherever it lies and whenever it is read. Keys are only added within a
schema number. docs/reference/metrics.md defines each key.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from agentx.reporter.about import RECORDED_HISTORY, About
from agentx.reporter.acceptance import Acceptance
from agentx.reporter.client import Client
from agentx.reporter.findings import Finding
from agentx.reporter.jobs import Jobs
from agentx.reporter.metrics import Interactivity, Latency, Lengths, Metrics
from agentx.reporter.observed import ByRequest, Ideal, Reuse
from agentx.reporter.server_counters import Counters
from agentx.reporter.spread import PERCENTILES, Rates, Spread
from agentx.reporter.throughput import Amount, Flow, Throughput

SCHEMA = "agentx/report/1"


def document(about: About, metrics: Metrics, findings: tuple[Finding, ...]) -> dict[str, Any]:
    """Plain values only, ready for json.dumps."""
    return {
        "schema": SCHEMA,
        "run": _run(about, metrics),
        "findings": [{"kind": one.kind, "text": one.text} for one in findings],
        "books": {**asdict(metrics.books), "balanced": metrics.books.balanced},
        "latency": _latency(metrics.latency),
        "interactivity": _interactivity(metrics.interactivity),
        "lengths": _lengths(metrics.lengths),
        "throughput": _throughput(metrics.throughput),
        "reuse": _reuse(metrics.reuse),
        "jobs": _jobs(metrics.jobs),
        "failures": [
            {
                "kind": one.kind,
                "requests": one.count,
                "statuses": {str(status): count for status, count in one.statuses.items()},
                "example": one.example,
            }
            for one in metrics.failures
        ],
        "adjustments": asdict(metrics.adjustments),
        "acceptance": None if metrics.acceptance is None else _acceptance(metrics.acceptance),
        "client": _client(metrics.client),
    }


def _client(found: Client) -> dict[str, Any]:
    return {
        "bottleneck": found.bottleneck,
        "causes": list(found.causes),
        "workers": found.workers,
        "send_lag_seconds": spread_document(found.send_lag),
        "loop_lag_mean_seconds": found.loop_lag_mean,
        "loop_lag_p99_seconds": found.loop_lag_p99,
        "loop_lag_max_seconds": found.loop_lag_max,
        "cpu_seconds": found.cpu_seconds,
        "cpu_mean_share": found.cpu_mean,
        "cpu_busiest_share": found.cpu_busiest,
        "cpu_full_share": found.cpu_full,
        "cpu_wait_seconds": found.cpu_wait,
        "gc_seconds": found.gc_seconds,
        "gc_longest_seconds": found.gc_longest,
        "files_open": found.files,
        "files_limit": found.files_limit,
    }


def _acceptance(found: Acceptance) -> dict[str, Any]:
    return {
        "told_requests": found.told,
        "of_requests": found.of,
        "length": found.length,
        "length_per_request": spread_document(found.per_request),
        "length_by_counters": found.length_by_counters,
        "steps": found.steps,
        "engine_steps": found.engine_steps,
        "standard_error": found.standard_error,
        "asked_length": found.asked,
        "expected_length": found.expected,
        "off": found.off,
    }


def _run(about: About, metrics: Metrics) -> dict[str, Any]:
    return {
        "state": about.state,
        "torn": about.torn,
        "started": about.started,
        "trace": about.trace,
        "trace_sha256": about.trace_sha256,
        "target": about.target,
        "target_kind": about.target_kind,
        "model": about.model,
        "gpus": about.gpus,
        "servers": metrics.throughput.servers,
        "engine_rules": about.engine_rules,
        "plan": dict(about.plan),
        "seed": about.seed,
        "salt": about.salt,
        "history_note": RECORDED_HISTORY if about.history in (None, "recorded") else None,
        "sessions": metrics.sessions,
        "requests": metrics.attempts,
        "requests_completed": metrics.completed,
        "requests_in_flight_mean": metrics.in_flight,
        "requests_in_other_phases": dict(metrics.other_phases),
    }


def _latency(found: Latency) -> dict[str, Any]:
    return {
        "ttft_seconds": spread_document(found.ttft),
        "ttft_from_due_seconds": spread_document(found.ttft_from_due),
        "tpot_seconds": spread_document(found.tpot),
        "tpot_estimated_turns": found.tpot_estimated,
        "tpot_missing_turns": found.tpot_missing,
        "inter_token_seconds": spread_document(found.inter_token),
        "inter_chunk_seconds": spread_document(found.inter_chunk),
        "latency_seconds": spread_document(found.latency),
        "latency_from_due_seconds": spread_document(found.latency_from_due),
        "lag_seconds": spread_document(found.lag),
        "queue_seconds": spread_document(found.queue),
        "server_ttft_seconds": spread_document(found.server_ttft),
        "client_less_server_ttft_seconds": spread_document(found.client_server_ttft),
    }


def spread_document(found: Spread | None) -> dict[str, Any] | None:
    """Percentiles, mean and extremes with the number of values and of sessions."""
    if found is None:
        return None
    percentiles = {f"p{percent}": found.at(percent) for percent in PERCENTILES}
    extremes = {"mean": found.mean, "min": found.minimum, "max": found.maximum}
    return {"n": found.n, "sessions": found.sessions, **percentiles, **extremes}


def _rates(found: Rates | None) -> dict[str, Any] | None:
    if found is None:
        return None
    percentiles = {f"p{percent}": found.at(percent) for percent in PERCENTILES}
    return {"n": found.n, "sessions": found.sessions, **percentiles, "mean": found.mean}


def _interactivity(found: Interactivity) -> dict[str, Any]:
    return {
        "streaming_tokens_per_second": _rates(found.streaming),
        "end_to_end_tokens_per_second": _rates(found.end_to_end),
    }


def _lengths(found: Lengths) -> dict[str, Any]:
    return {
        "isl_tokens": spread_document(found.isl),
        "osl_tokens": spread_document(found.osl),
        "shorter_than_asked": found.shorter,
        "longer_than_asked": found.longer,
        "replies_without_count": found.untold,
        "missing_tokens": found.missing,
    }


def _throughput(found: Throughput) -> dict[str, Any]:
    window = found.window
    return {
        "window": None
        if window is None
        else {
            "start_seconds": window.start,
            "stop_seconds": window.stop,
            "seconds": window.seconds,
            "source": window.source,
        },
        "emitted": _flow(found.emitted, found),
        "completed": _flow(found.completed, found),
        "drained_after_window": found.drained,
        "replies_with_estimated_times": found.estimated,
        "emitted_by_failed_tokens": found.failed_output,
    }


def _flow(flow: Flow, found: Throughput) -> dict[str, Any]:
    amounts = (
        ("output", flow.output),
        ("input_computed", flow.input_computed),
        ("input_cached", flow.input_cached),
    )
    return {
        "seconds": flow.seconds,
        "responses": flow.responses,
        **{name: _amount(amount, flow, found) for name, amount in amounts},
    }


def _amount(amount: Amount, flow: Flow, found: Throughput) -> dict[str, Any]:
    rate = flow.per_second(amount)
    return {
        "tokens": amount.tokens,
        "told_responses": amount.told,
        "of_responses": amount.of,
        "tokens_per_second": rate,
        "tokens_per_second_per_server": None if rate is None else rate / found.servers,
        "tokens_per_second_per_gpu": None if rate is None or found.gpus is None else rate / found.gpus,
    }


def _reuse(found: Reuse) -> dict[str, Any]:
    return {
        "by_request": _by_request(found.by_request),
        "by_counters": None if found.counters is None else _counters(found.counters),
        "ideal": None if found.ideal is None else _ideal(found.ideal),
        "ideal_missing_because": found.ideal_missing,
        "missing_to_ideal_tokens": found.missing_to_ideal,
    }


def _by_request(found: ByRequest) -> dict[str, Any]:
    return {
        "told_responses": found.told,
        "of_responses": found.of,
        "prompt_tokens": found.prompt,
        "cached_tokens": None if found.doubtful else found.cached,
        "share": found.share,
        "device_tokens": None if found.doubtful else found.device,
        "host_tokens": None if found.doubtful else found.host,
        "storage_tokens": None if found.doubtful else found.storage,
        "doubtful": found.doubtful,
    }


def _counters(found: Counters) -> dict[str, Any]:
    return {
        "source": found.source,
        "start_seconds": found.start,
        "stop_seconds": found.stop,
        "prompt_tokens": found.prompt,
        "cached_tokens": found.cached,
        "share": found.share,
        "device_tokens": found.device,
        "host_tokens": found.host,
        "storage_tokens": found.storage,
        "generated_tokens": found.generated,
        "requests": found.requests,
        "evicted_tokens": found.evicted,
        "retracted_requests": found.retracted,
        "pool_tokens": found.pool,
        "host_pool_tokens": found.host_pool,
        "went_back": found.went_back,
        "same_requests_prompt_tokens": found.requests_prompt,
        "same_requests_cached_tokens": found.requests_cached,
        "same_requests_untold": found.requests_untold,
        "counters_less_requests_tokens": found.difference,
    }


def _ideal(found: Ideal) -> dict[str, Any]:
    return {
        "prompt_tokens": found.prompt,
        "cached_tokens": found.cached,
        "share": found.share,
        "told_prompt_tokens": found.same_prompt,
        "told_cached_tokens": found.same_cached,
        "page_tokens": found.page,
        "page_known": found.page_known,
        "drift_tokens": found.drift,
        "possible_prompt_tokens": found.possible_prompt,
        "possible_cached_tokens": found.possible_cached,
        "possible_share": found.possible_share,
        "possible_less_ideal": {
            "truncation_tokens": found.possible_less_ideal.truncation,
            "salt_tokens": found.possible_less_ideal.salt,
            "replies_tokens": found.possible_less_ideal.replies,
            "page_tokens": found.possible_less_ideal.page,
            "servers_tokens": found.possible_less_ideal.servers,
            "template_tokens": found.possible_less_ideal.template,
            "sum_tokens": found.possible_less_ideal.total,
        },
        "template_fitted": found.template_fitted,
        "by_layer": [
            {"layer": layer, "prompt_tokens": prompt, "cached_tokens": cached}
            for layer, (prompt, cached) in found.by_layer.items()
        ],
    }


def _jobs(found: Jobs) -> dict[str, Any]:
    return {
        "plays": found.plays,
        "whole_in_window": found.whole,
        "whole_per_hour": found.whole_per_hour,
        "equivalents_in_window": found.equivalents,
        "equivalents_per_hour": found.equivalents_per_hour,
        "unsized_plays": found.unsized,
        "job_latency_seconds": spread_document(found.latency),
    }
