"""What `--sweep`, `--repeats`, `--find` and `--find-cliff` print with `--json`, as JSON Schema.

One line of a table below is one key, as in document_schema.py; docs/reference/metrics.md says what each means.
"""

from __future__ import annotations

from agentx.json_types import COUNT, FLAG, NUMBER, TEXT, Schema, each, list_of, map_of, published, record, ref
from agentx.reporter.cliff import SCHEMA as CLIFF
from agentx.reporter.document_schema import WHERE, objective_schema, slo_schema
from agentx.reporter.found import SCHEMA as FIND
from agentx.reporter.repeating import SCHEMA as REPEATS
from agentx.reporter.sweeping import SCHEMA as SWEEP

_FIGURES = record(
    **each(COUNT, "requests failed objectives_missed"),
    **each(NUMBER, "reuse ideal_reuse output_per_gpu ttft_p50 ttft_p90 tpot_p50 goodput"),
)


def sweep_schema() -> Schema:
    """Of `--sweep`, and of sweep.json."""
    run = record(run=TEXT, figures=ref("figures"))
    keys = record(
        about=TEXT,
        notes=list_of(TEXT),
        knobs=list_of(record(key=TEXT, values=list_of(TEXT))),
        points=list_of(record(settings=map_of(TEXT), run=TEXT, figures=ref("figures"), runs=list_of(run))),
    )
    return published(SWEEP, keys, WHERE, {"figures": _FIGURES})


def repeats_schema() -> Schema:
    """Of `--repeats`, and of repeats.json."""
    run = record(run=TEXT, figures=ref("figures"), slo=slo_schema())
    keys = record(about=TEXT, notes=list_of(TEXT), runs=list_of(run))
    return published(REPEATS, keys, WHERE, {"figures": _FIGURES, "objective": objective_schema()})


def find_schema() -> Schema:
    """Of `--find`, and of find.json."""
    keys = record(
        about=TEXT,
        simulated=FLAG,
        searched=record(**each(TEXT, "name key unit")),
        conditions=list_of(objective_schema()),
        repeats=COUNT,
        answer=record(**each(NUMBER, "good bad"), text=TEXT, exhausted=FLAG),
        notes=list_of(TEXT),
        points=list_of(_point()),
    )
    return published(FIND, keys, WHERE)


def _point() -> Schema:
    run = record(
        **each(TEXT, "run server invalid"),
        met=FLAG,
        **each(COUNT, "requests failed"),
        figures=map_of(NUMBER),
        endless=list_of(TEXT),
        output_tokens_per_second=NUMBER,
    )
    return record(
        **each(NUMBER, "value output_tokens_per_second output_tokens_per_second_per_gpu"),
        met_runs=COUNT,
        server=TEXT,
        runs=list_of(run),
    )


def cliff_schema() -> Schema:
    """Of `agentx simulate --find-cliff`."""
    row = record(sessions=COUNT, fallen=NUMBER, **each(ref("band"), "reuse unlimited output"))
    fewer = record(**each(COUNT, "sessions host wins draws"), write=TEXT, ratio=ref("band"))
    keys = record(
        about=TEXT,
        **each(COUNT, "pool bytes_per_token pool_for_one_more draws"),
        falls=list_of(COUNT),
        rows=list_of(row),
        fewer=fewer,
        notes=list_of(TEXT),
    )
    return published(CLIFF, keys, WHERE, {"band": record(**each(NUMBER, "low median high"))})
