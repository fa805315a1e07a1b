"""The report's document as JSON Schema (draft 2020-12), for those who read `agentx report --json` with a program.

One line of a table below is one key: its type and nothing else, since docs/reference/metrics.md says what each means.
"""

from __future__ import annotations

from agentx.json_types import COUNT, FLAG, NUMBER, TEXT, Schema, each, extended, list_of, map_of, published, record, ref
from agentx.reporter.document import SCHEMA
from agentx.reporter.losses import CAUSES
from agentx.reporter.run_capacity import REACH
from agentx.reporter.spread import PERCENTILES

WHERE = "docs/reference/metrics.md"
_PERCENTILES = " ".join(f"p{percent}" for percent in PERCENTILES)


def report_schema() -> Schema:
    """Plain values, ready for json.dumps."""
    return published(SCHEMA, _parts(), WHERE, _definitions())


def spread_schema() -> Schema:
    """Of percentiles, mean and extremes."""
    return record(**each(COUNT, "n sessions"), **each(NUMBER, f"{_PERCENTILES} mean min max"))


def objective_schema() -> Schema:
    """What was asked for; `slo_schema` is of a document that defines it as `objective`."""
    return record(name=TEXT, limit=NUMBER, limit_text=TEXT)


def slo_schema() -> Schema:
    judged = list_of(extended("objective", value=NUMBER, **each(FLAG, "endless met")))
    return record(objectives=judged, goodput=_goodput())


def _definitions() -> dict[str, Schema]:
    flow = {name: ref("amount") for name in ("output", "input_computed", "input_cached")}
    rates = "tokens_per_second tokens_per_second_per_server tokens_per_second_per_gpu"
    return {
        "spread": spread_schema(),
        "rates": record(**each(COUNT, "n sessions"), **each(NUMBER, f"{_PERCENTILES} mean")),
        "amount": record(tokens=NUMBER, **each(COUNT, "told_responses of_responses"), **each(NUMBER, rates)),
        "flow": record(seconds=NUMBER, responses=COUNT, **flow),
        "turn": record(session=TEXT, **each(COUNT, "play turn")),
        "objective": objective_schema(),
        "curve": list_of(record(tokens=COUNT, reuse=NUMBER)),
        "group": list_of(
            record(name=TEXT, **each(COUNT, "requests prompt_tokens possible_tokens ideal_tokens observed_tokens"))
        ),
    }


def _parts() -> Schema:
    spread, rates, flow = ref("spread"), ref("rates"), ref("flow")
    return record(
        run=_run(),
        findings=list_of(record(kind=TEXT, text=TEXT)),
        books=record(
            **each(COUNT, "plays done failed cut turns completed turns_failed turns_unsent"),
            balanced=FLAG,
        ),
        latency=record(
            **each(spread, "ttft_seconds ttft_from_due_seconds tpot_seconds inter_token_seconds inter_chunk_seconds"),
            **each(spread, "latency_seconds latency_from_due_seconds lag_seconds queue_seconds server_ttft_seconds"),
            client_less_server_ttft_seconds=spread,
            **each(COUNT, "tpot_estimated_turns tpot_missing_turns"),
        ),
        interactivity=record(**each(rates, "streaming_tokens_per_second end_to_end_tokens_per_second")),
        lengths=record(
            **each(spread, "isl_tokens osl_tokens"),
            **each(COUNT, "shorter_than_asked longer_than_asked replies_without_count missing_tokens"),
        ),
        throughput=record(
            window=record(**each(NUMBER, "start_seconds stop_seconds seconds"), source=TEXT),
            **each(flow, "emitted completed"),
            **each(COUNT, "drained_after_window replies_with_estimated_times"),
            emitted_by_failed_tokens=NUMBER,
        ),
        reuse=_reuse(),
        jobs=record(
            **each(COUNT, "plays whole_in_window unsized_plays"),
            **each(NUMBER, "whole_per_hour equivalents_in_window equivalents_per_hour"),
            job_latency_seconds=spread,
        ),
        failures=list_of(record(kind=TEXT, requests=COUNT, statuses=map_of(COUNT), example=TEXT)),
        **_client(),
        **_explained(),
    )


def _run() -> Schema:
    return record(
        **each(TEXT, "state torn started trace trace_sha256 target target_kind model engine_rules salt history_note"),
        **each(COUNT, "gpus servers seed sessions requests requests_completed"),
        requests_in_flight_mean=NUMBER,
        requests_in_other_phases=map_of(COUNT),
        plan=map_of(),
    )


def _client() -> dict[str, Schema]:
    spread = ref("spread")
    counts = "dropped_turns empty_sessions moved_turns reconnects skipped_sessions skipped_turns shortened_turns"
    return {
        "adjustments": record(
            **each(COUNT, f"{counts} shortened_tokens"), **each(NUMBER, "moved_seconds skipped_share")
        ),
        "acceptance": record(
            **each(COUNT, "told_requests of_requests steps"),
            **each(NUMBER, "length length_by_counters engine_steps standard_error asked_length expected_length"),
            length_per_request=spread,
            off=FLAG,
        ),
        "client": record(
            bottleneck=FLAG,
            causes=list_of(TEXT),
            **each(COUNT, "workers files_open files_limit"),
            send_lag_seconds=spread,
            **each(
                NUMBER, "loop_lag_mean_seconds loop_lag_p99_seconds loop_lag_max_seconds cpu_seconds cpu_mean_share"
            ),
            **each(NUMBER, "cpu_busiest_share cpu_full_share cpu_wait_seconds gc_seconds gc_longest_seconds"),
        ),
    }


def _reuse() -> Schema:
    tiers = "device_tokens host_tokens storage_tokens"
    same = "same_requests_prompt_tokens same_requests_cached_tokens same_requests_untold counters_less_requests_tokens"
    gap = "truncation_tokens salt_tokens replies_tokens page_tokens servers_tokens template_tokens sum_tokens"
    return record(
        by_request=record(
            **each(COUNT, f"told_responses of_responses prompt_tokens cached_tokens {tiers}"),
            share=NUMBER,
            doubtful=FLAG,
        ),
        by_counters=record(
            source=TEXT,
            **each(NUMBER, "start_seconds stop_seconds share"),
            **each(COUNT, f"prompt_tokens cached_tokens {tiers} generated_tokens requests evicted_tokens"),
            **each(COUNT, f"retracted_requests pool_tokens host_pool_tokens {same}"),
            went_back=FLAG,
        ),
        ideal=record(
            **each(COUNT, "prompt_tokens cached_tokens told_prompt_tokens told_cached_tokens page_tokens drift_tokens"),
            **each(COUNT, "possible_prompt_tokens possible_cached_tokens"),
            **each(NUMBER, "share possible_share"),
            **each(FLAG, "page_known template_fitted"),
            possible_less_ideal=record(**each(COUNT, gap)),
            by_layer=list_of(record(layer=TEXT, **each(COUNT, "prompt_tokens cached_tokens"))),
        ),
        ideal_missing_because=TEXT,
        missing_to_ideal_tokens=COUNT,
    )


def _explained() -> dict[str, Schema]:
    """What explains a run: the parts that later modules of this room add to the document."""
    return {
        "losses": record(
            **{f"{cause}_tokens": COUNT for cause in CAUSES},
            sum_tokens=COUNT,
            **each(TEXT, "evicted_source evicted_source_text not_measured_because split_missing_because"),
        ),
        "blame": _blame(),
        "capacity": record(
            **each(COUNT, "device_tokens host_tokens usable_tokens page longest_context distinct_tokens"),
            **each(NUMBER, "gb_per_token ideal page_lru_at_usable"),
            needed=record(**{f"{part:g}_of_ideal": COUNT for part in REACH}),
            **each(ref("curve"), "page_lru engine"),
        ),
        "reuse_by": record(
            **each(ref("group"), "layer turn_kind thread_kind context"),
            eligible=record(**each(COUNT, "requests tokens cached_tokens"), share=NUMBER),
        ),
        "cost": record(
            gpus=COUNT,
            **each(NUMBER, "dollars_per_gpu_hour gpu_hours dollars dollars_per_session output_tokens_per_dollar"),
            **each(NUMBER, "dollars_per_million_output_tokens dollars_per_million_input_tokens"),
            dollars_per_million_uncached_input_tokens=NUMBER,
            upper_bounds=list_of(TEXT),
            missing=TEXT,
        ),
        "slo": slo_schema(),
        **_recorded(),
    }


def _blame() -> Schema:
    lost = record(tokens=COUNT, cause=TEXT, at_seconds=NUMBER, **{"for": ref("turn")})
    part = extended("turn", kind=TEXT, seconds=NUMBER, computed_tokens=COUNT, lost=list_of(lost))
    turn = extended("turn", ttft_seconds=NUMBER, lag_seconds=NUMBER, queue_told=FLAG, parts=list_of(part))
    return record(slow_over_seconds=NUMBER, slow_turns=COUNT, turns=list_of(turn))


def _goodput() -> Schema:
    return record(
        turn_objectives=list_of(extended("objective", missed_turns=COUNT)),
        **each(COUNT, "due_turns met_turns missed_turns unknown_turns failed_turns cut_turns unsent_due_turns"),
        **each(COUNT, "plays plays_met plays_unknown"),
        **each(NUMBER, "share turns_per_second session_share sessions_per_hour"),
    )


def _recorded() -> dict[str, Schema]:
    """What stands in files of its own beside the results, where it was recorded or laid there."""
    events = "batches lost_batches unread_events removed_unknown_blocks cleared"
    memory = "gpu_memory_max_bytes host_memory_total_bytes host_memory_max_bytes"
    means = "watts_mean joules joules_per_output_token clock_mean_mhz busy_mean_percent pcie_mean_megabits_per_second"
    play = record(session=TEXT, play=COUNT)
    row = record(tier=TEXT, owner=play, **{"for": play}, tokens=COUNT, **each(NUMBER, "first_seconds last_seconds"))
    figure = record(**each(NUMBER, "expected low high observed ratio"), inside=FLAG)
    return {
        "cache_events": record(
            broken=TEXT,
            **each(COUNT, events),
            by_tier=list_of(record(tier=TEXT, **each(COUNT, "stored_tokens removed_tokens"))),
        ),
        "evictions": record(broken=TEXT, unknown_blocks=COUNT, rows=list_of(row)),
        "machine": record(**each(COUNT, f"looks gpus {memory}"), **each(NUMBER, means)),
        "forecast": record(
            target=TEXT, level=NUMBER, **each(COUNT, "inside told"), differs=list_of(TEXT), figures=map_of(figure)
        ),
    }
