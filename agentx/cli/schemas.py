"""The JSON Schemas that `agentx show schema KIND` prints; a kind is the middle of what a document's key `schema` says.

Those of documents that the verbs themselves make are here, one line a key: docs/reference/documents.md defines them.
"""

from __future__ import annotations

from collections.abc import Callable

from agentx.json_types import (
    COUNT,
    FLAG,
    NUMBER,
    TEXT,
    Schema,
    each,
    list_of,
    map_of,
    published,
    published_forms,
    record,
)

CHECK, DOCTOR, LIST = "agentx/check/1", "agentx/doctor/1", "agentx/list/1"
WHERE = "docs/reference/documents.md"


def kinds() -> dict[str, Callable[[], Schema]]:
    """name -> what makes its schema; workload's is of a file that people write, all others of what is printed."""
    from agentx.generator.schema import schema
    from agentx.quality.schema import quality_compare_schema, quality_run_schema
    from agentx.reporter.batch_schema import cliff_schema, find_schema, repeats_schema, sweep_schema
    from agentx.reporter.compare_schema import compare_schema, recorded_schema, reference_schema
    from agentx.reporter.document_schema import report_schema

    return {
        "workload": schema,
        "report": report_schema,
        "compare": compare_schema,
        "compare-reference": reference_schema,
        "compare-recorded": recorded_schema,
        "sweep": sweep_schema,
        "repeats": repeats_schema,
        "find": find_schema,
        "cliff": cliff_schema,
        "quality-run": quality_run_schema,
        "quality-compare": quality_compare_schema,
        "check": check_schema,
        "doctor": doctor_schema,
        "list": list_schema,
    }


def check_schema() -> Schema:
    """Of a spec, or of a trace."""
    expectation = record(**each(TEXT, "statistic source"), **each(NUMBER, "target realised tolerance"), met=FLAG)
    finding = record(**each(TEXT, "level rule first"), count=COUNT)
    counts = each(COUNT, "sessions turns")
    spec = record(spec=TEXT, seed=COUNT, **counts, expectations=list_of(expectation))
    trace = record(trace=TEXT, **counts, errors=COUNT, findings=list_of(finding))
    return published_forms(CHECK, [spec, trace], WHERE)


def doctor_schema() -> Schema:
    check = record(**each(TEXT, "name verdict said mend"))
    keys = record(**each(TEXT, "target kind"), problems=COUNT, checks=list_of(check), server=map_of())
    return published(DOCTOR, keys, WHERE)


def list_schema() -> Schema:
    return published(LIST, record(entries=list_of(record(**each(TEXT, "name kind about")))), WHERE)
