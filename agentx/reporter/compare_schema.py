"""What `agentx compare --json` prints as JSON Schema: runs against runs, a run beside published figures or its trace.

One line of a table below is one key, as in document_schema.py; docs/reference/metrics.md says what each means.
"""

from __future__ import annotations

from agentx.json_types import (
    ANY,
    COUNT,
    FLAG,
    NUMBER,
    TEXT,
    Schema,
    each,
    extended,
    list_of,
    map_of,
    published,
    record,
    ref,
)
from agentx.reporter.compare_document import SCHEMA
from agentx.reporter.compare_recorded import SCHEMA as RECORDED
from agentx.reporter.compare_reference import SCHEMA as REFERENCE
from agentx.reporter.document_schema import WHERE, spread_schema

_RATIO = each(NUMBER, "ratio interval_low interval_high")


def compare_schema() -> Schema:
    """Of runs against runs: `agentx compare A B`."""
    keys = record(
        sides=list_of(record(side=TEXT, runs=list_of(_run()))),
        pairs=list_of(_pair()),
        neighbours=list_of(_neighbour()),
        decisions=list_of(_decision()),
    )
    values = record(**each(list_of(NUMBER), "baseline_runs other_runs"), **_RATIO)
    means = "baseline_mean other_mean change change_low change_high"
    tokens = record(**each(list_of(COUNT), "baseline_runs other_runs"), **each(NUMBER, means))
    definitions = {"spread": spread_schema(), "values": values, "tokens": tokens}
    return published(SCHEMA, keys, WHERE, definitions)


def _run() -> Schema:
    return record(
        **each(TEXT, "name state trace trace_sha256 target engine_rules"),
        **each(COUNT, "gpus requests requests_completed sessions whole_plays"),
    )


def _pair() -> Schema:
    return record(
        **each(TEXT, "baseline other basis"),
        **each(FLAG, "paired comparable"),
        **each(COUNT, "same_turns sessions"),
        caveats=list_of(record(**each(TEXT, "kind text unit"), size=NUMBER, breaks=FLAG)),
        figures=list_of(record(name=TEXT, all_answered=ref("values"), same_turns=extended("values", turns=COUNT))),
        turn_ratios=map_of(record(ratio=ref("spread"), shorter_share=NUMBER)),
        distribution_distance=map_of(NUMBER),
        break_even=list_of(_break_even()),
        losses=record(
            causes=list_of(record(cause=TEXT, **each(ref("tokens"), "all_answered same_turns"))),
            **each(list_of(TEXT), "baseline_evicted_sources other_evicted_sources"),
            split_missing_because=list_of(record(run=TEXT, text=TEXT)),
        ),
    )


def _break_even() -> Schema:
    dollars = "baseline_dollars_per_gpu_hour other_dollars_per_gpu_hour break_even_dollars_per_gpu_hour"
    return record(**each(TEXT, "work verdict"), **each(NUMBER, f"price_ratio interval_low interval_high {dollars}"))


def _neighbour() -> Schema:
    figure = record(name=TEXT, **each(NUMBER, "neighbour compared"))
    return record(
        **each(TEXT, "side name key"), **each(NUMBER, "value compared_value"), figures=list_of(figure), cliff=FLAG
    )


def _decision() -> Schema:
    return record(
        **each(TEXT, "baseline other figure verdict"),
        over_same_turns=FLAG,
        **each(NUMBER, "margin more_hours"),
        more_runs_of_each=COUNT,
        looks=list_of(record(runs=COUNT, **_RATIO)),
    )


def reference_schema() -> Schema:
    """Of a run beside published figures: `agentx compare RUN --reference NAME`."""
    figure = record(name=TEXT, **each(NUMBER, "published run ratio"))
    condition = record(name=TEXT, published=ANY, run=ANY)
    row = record(row=TEXT, source=ref("source"), figures=list_of(figure), conditions=list_of(condition))
    keys = record(
        **each(TEXT, "run reference note"),
        source=ref("source"),
        rows=list_of(row),
        **each(list_of(TEXT), "unknown caveats statements warnings"),
    )
    return published(REFERENCE, keys, WHERE, {"source": record(**each(TEXT, "by what date"))})


def recorded_schema() -> Schema:
    """Of a run beside the trace that it played: `agentx compare TRACE RUN`."""
    lengths = record(**each(COUNT, "turns same recorded replayed largest_difference"))
    beside = record(**each(NUMBER, "recorded replayed"))
    difference = record(**each(TEXT, "session what"), **each(COUNT, "turn recorded replayed"))
    keys = record(
        **each(TEXT, "trace run target"),
        **each(FLAG, "as_recorded recorded_history"),
        reasons=list_of(TEXT),
        **each(COUNT, "turns answered"),
        **each(ref("lengths"), "prompt_tokens reply_tokens cached_tokens"),
        possible_reuse=beside,
        times=record(**each(beside, "ttft_p50_seconds latency_p50_seconds")),
        differences=list_of(difference),
        template=record(**each(COUNT, "per_message start")),
    )
    return published(RECORDED, keys, WHERE, {"lengths": lengths})
