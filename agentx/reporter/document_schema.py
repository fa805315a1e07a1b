"""The report's document as JSON Schema (draft 2020-12), for those who read `agentx report --json` with a program.

One line of a table below is one key: its type and nothing else, since docs/reference/metrics.md says what each means.
Every leaf, and every part that a run may not have, is also null: unknown. All keys are always there; others may be
added within `agentx/report/1`, so a reader lets those pass that it does not know.
"""

from __future__ import annotations

from typing import Any

from agentx.reporter.document import SCHEMA
from agentx.reporter.losses import CAUSES
from agentx.reporter.run_capacity import REACH
from agentx.reporter.spread import PERCENTILES

Schema = dict[str, Any]

NUMBER: Schema = {"type": ["number", "null"]}
COUNT: Schema = {"type": ["integer", "null"]}
TEXT: Schema = {"type": ["string", "null"]}
FLAG: Schema = {"type": ["boolean", "null"]}


def report_schema() -> Schema:
    """Plain values, ready for json.dumps."""
    parts = _parts()
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        "description": "docs/reference/metrics.md defines each key; null is unknown; keys may be added",
        **parts,
        "type": "object",
        "$defs": _definitions(),
    }


def _object(**keys: Schema) -> Schema:
    """An object that has all of these keys, or null."""
    return {"type": ["object", "null"], "properties": keys, "required": list(keys)}


def _list(of: Schema) -> Schema:
    return {"type": ["array", "null"], "items": of}


def _map(of: Schema | None = None) -> Schema:
    """An object whose keys are the user's, or the server's."""
    return {"type": ["object", "null"], "additionalProperties": True if of is None else of}


def _ref(name: str) -> Schema:
    return {"anyOf": [{"$ref": f"#/$defs/{name}"}, {"type": "null"}]}


def _all(kind: Schema, words: str) -> dict[str, Schema]:
    """Each of the words is a key of that kind."""
    return dict.fromkeys(words.split(), kind)


def _definitions() -> dict[str, Schema]:
    percentiles = " ".join(f"p{percent}" for percent in PERCENTILES)
    flow = {name: _ref("amount") for name in ("output", "input_computed", "input_cached")}
    rates = "tokens_per_second tokens_per_second_per_server tokens_per_second_per_gpu"
    return {
        "spread": _object(**_all(COUNT, "n sessions"), **_all(NUMBER, f"{percentiles} mean min max")),
        "rates": _object(**_all(COUNT, "n sessions"), **_all(NUMBER, f"{percentiles} mean")),
        "amount": _object(tokens=NUMBER, **_all(COUNT, "told_responses of_responses"), **_all(NUMBER, rates)),
        "flow": _object(seconds=NUMBER, responses=COUNT, **flow),
        "turn": _object(session=TEXT, **_all(COUNT, "play turn")),
        "objective": _object(name=TEXT, limit=NUMBER, limit_text=TEXT),
        "curve": _list(_object(tokens=COUNT, reuse=NUMBER)),
        "group": _list(
            _object(name=TEXT, **_all(COUNT, "requests prompt_tokens possible_tokens ideal_tokens observed_tokens"))
        ),
    }


def _parts() -> Schema:
    spread, rates, flow = _ref("spread"), _ref("rates"), _ref("flow")
    return _object(
        schema={"const": SCHEMA},
        run=_run(),
        findings=_list(_object(kind=TEXT, text=TEXT)),
        books=_object(
            **_all(COUNT, "plays done failed cut turns completed turns_failed turns_unsent"),
            balanced=FLAG,
        ),
        latency=_object(
            **_all(spread, "ttft_seconds ttft_from_due_seconds tpot_seconds inter_token_seconds inter_chunk_seconds"),
            **_all(spread, "latency_seconds latency_from_due_seconds lag_seconds queue_seconds server_ttft_seconds"),
            client_less_server_ttft_seconds=spread,
            **_all(COUNT, "tpot_estimated_turns tpot_missing_turns"),
        ),
        interactivity=_object(**_all(rates, "streaming_tokens_per_second end_to_end_tokens_per_second")),
        lengths=_object(
            **_all(spread, "isl_tokens osl_tokens"),
            **_all(COUNT, "shorter_than_asked longer_than_asked replies_without_count missing_tokens"),
        ),
        throughput=_object(
            window=_object(**_all(NUMBER, "start_seconds stop_seconds seconds"), source=TEXT),
            **_all(flow, "emitted completed"),
            **_all(COUNT, "drained_after_window replies_with_estimated_times"),
            emitted_by_failed_tokens=NUMBER,
        ),
        reuse=_reuse(),
        jobs=_object(
            **_all(COUNT, "plays whole_in_window unsized_plays"),
            **_all(NUMBER, "whole_per_hour equivalents_in_window equivalents_per_hour"),
            job_latency_seconds=spread,
        ),
        failures=_list(_object(kind=TEXT, requests=COUNT, statuses=_map(COUNT), example=TEXT)),
        **_client(),
        **_explained(),
    )


def _run() -> Schema:
    return _object(
        **_all(TEXT, "state torn started trace trace_sha256 target target_kind model engine_rules salt history_note"),
        **_all(COUNT, "gpus servers seed sessions requests requests_completed"),
        requests_in_flight_mean=NUMBER,
        requests_in_other_phases=_map(COUNT),
        plan=_map(),
    )


def _client() -> dict[str, Schema]:
    spread = _ref("spread")
    counts = "dropped_turns empty_sessions moved_turns reconnects skipped_sessions skipped_turns shortened_turns"
    return {
        "adjustments": _object(
            **_all(COUNT, f"{counts} shortened_tokens"), **_all(NUMBER, "moved_seconds skipped_share")
        ),
        "acceptance": _object(
            **_all(COUNT, "told_requests of_requests steps"),
            **_all(NUMBER, "length length_by_counters engine_steps standard_error asked_length expected_length"),
            length_per_request=spread,
            off=FLAG,
        ),
        "client": _object(
            bottleneck=FLAG,
            causes=_list(TEXT),
            **_all(COUNT, "workers files_open files_limit"),
            send_lag_seconds=spread,
            **_all(
                NUMBER, "loop_lag_mean_seconds loop_lag_p99_seconds loop_lag_max_seconds cpu_seconds cpu_mean_share"
            ),
            **_all(NUMBER, "cpu_busiest_share cpu_full_share cpu_wait_seconds gc_seconds gc_longest_seconds"),
        ),
    }


def _reuse() -> Schema:
    tiers = "device_tokens host_tokens storage_tokens"
    same = "same_requests_prompt_tokens same_requests_cached_tokens same_requests_untold counters_less_requests_tokens"
    gap = "truncation_tokens salt_tokens replies_tokens page_tokens servers_tokens template_tokens sum_tokens"
    return _object(
        by_request=_object(
            **_all(COUNT, f"told_responses of_responses prompt_tokens cached_tokens {tiers}"),
            share=NUMBER,
            doubtful=FLAG,
        ),
        by_counters=_object(
            source=TEXT,
            **_all(NUMBER, "start_seconds stop_seconds share"),
            **_all(COUNT, f"prompt_tokens cached_tokens {tiers} generated_tokens requests evicted_tokens"),
            **_all(COUNT, f"retracted_requests pool_tokens host_pool_tokens {same}"),
            went_back=FLAG,
        ),
        ideal=_object(
            **_all(COUNT, "prompt_tokens cached_tokens told_prompt_tokens told_cached_tokens page_tokens drift_tokens"),
            **_all(COUNT, "possible_prompt_tokens possible_cached_tokens"),
            **_all(NUMBER, "share possible_share"),
            **_all(FLAG, "page_known template_fitted"),
            possible_less_ideal=_object(**_all(COUNT, gap)),
            by_layer=_list(_object(layer=TEXT, **_all(COUNT, "prompt_tokens cached_tokens"))),
        ),
        ideal_missing_because=TEXT,
        missing_to_ideal_tokens=COUNT,
    )


def _explained() -> dict[str, Schema]:
    """What explains a run: the parts that later modules of this room add to the document."""
    return {
        "losses": _object(
            **{f"{cause}_tokens": COUNT for cause in CAUSES},
            sum_tokens=COUNT,
            **_all(TEXT, "evicted_source evicted_source_text not_measured_because split_missing_because"),
        ),
        "blame": _blame(),
        "capacity": _object(
            **_all(COUNT, "device_tokens host_tokens usable_tokens page longest_context distinct_tokens"),
            **_all(NUMBER, "gb_per_token ideal page_lru_at_usable"),
            needed=_object(**{f"{part:g}_of_ideal": COUNT for part in REACH}),
            **_all(_ref("curve"), "page_lru engine"),
        ),
        "reuse_by": _object(
            **_all(_ref("group"), "layer turn_kind thread_kind context"),
            eligible=_object(**_all(COUNT, "requests tokens cached_tokens"), share=NUMBER),
        ),
        "cost": _object(
            gpus=COUNT,
            **_all(NUMBER, "dollars_per_gpu_hour gpu_hours dollars dollars_per_session output_tokens_per_dollar"),
            **_all(NUMBER, "dollars_per_million_output_tokens dollars_per_million_input_tokens"),
            dollars_per_million_uncached_input_tokens=NUMBER,
            upper_bounds=_list(TEXT),
            missing=TEXT,
        ),
        "slo": _object(
            objectives=_list(_with("objective", value=NUMBER, **_all(FLAG, "endless met"))), goodput=_goodput()
        ),
        **_recorded(),
    }


def _with(name: str, **keys: Schema) -> Schema:
    """One of the definitions, with more keys."""
    return {"allOf": [{"$ref": f"#/$defs/{name}"}, _object(**keys)]}


def _blame() -> Schema:
    lost = _object(tokens=COUNT, cause=TEXT, at_seconds=NUMBER, **{"for": _ref("turn")})
    part = _with("turn", kind=TEXT, seconds=NUMBER, computed_tokens=COUNT, lost=_list(lost))
    turn = _with("turn", ttft_seconds=NUMBER, lag_seconds=NUMBER, queue_told=FLAG, parts=_list(part))
    return _object(slow_over_seconds=NUMBER, slow_turns=COUNT, turns=_list(turn))


def _goodput() -> Schema:
    return _object(
        turn_objectives=_list(_with("objective", missed_turns=COUNT)),
        **_all(COUNT, "due_turns met_turns missed_turns unknown_turns failed_turns cut_turns unsent_due_turns"),
        **_all(COUNT, "plays plays_met plays_unknown"),
        **_all(NUMBER, "share turns_per_second session_share sessions_per_hour"),
    )


def _recorded() -> dict[str, Schema]:
    """What stands in files of its own beside the results, where it was recorded or laid there."""
    events = "batches lost_batches unread_events removed_unknown_blocks cleared"
    memory = "gpu_memory_max_bytes host_memory_total_bytes host_memory_max_bytes"
    means = "watts_mean joules joules_per_output_token clock_mean_mhz busy_mean_percent pcie_mean_megabits_per_second"
    play = _object(session=TEXT, play=COUNT)
    row = _object(tier=TEXT, owner=play, **{"for": play}, tokens=COUNT, **_all(NUMBER, "first_seconds last_seconds"))
    figure = _object(**_all(NUMBER, "expected low high observed ratio"), inside=FLAG)
    return {
        "cache_events": _object(
            broken=TEXT,
            **_all(COUNT, events),
            by_tier=_list(_object(tier=TEXT, **_all(COUNT, "stored_tokens removed_tokens"))),
        ),
        "evictions": _object(broken=TEXT, unknown_blocks=COUNT, rows=_list(row)),
        "machine": _object(**_all(COUNT, f"looks gpus {memory}"), **_all(NUMBER, means)),
        "forecast": _object(
            target=TEXT, level=NUMBER, **_all(COUNT, "inside told"), differs=_list(TEXT), figures=_map(figure)
        ),
    }
