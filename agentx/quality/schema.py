"""What `agentx quality --json` prints as JSON Schema: a run, and two runs of the same problems."""

from __future__ import annotations

from agentx.json_types import COUNT, FLAG, NUMBER, TEXT, Schema, each, list_of, map_of, published, record
from agentx.quality.answers import VERDICTS
from agentx.quality.comparing import SCHEMA as COMPARED

RUN = "agentx/quality-run/1"
WHERE = "docs/howto-quality.md"


def quality_run_schema() -> Schema:
    """Of `agentx quality --target`."""
    counts = each(COUNT, " ".join(VERDICTS))
    return published(RUN, record(problems=COUNT, complete=FLAG, **counts, by_variant=map_of(record(**counts))), WHERE)


def quality_compare_schema() -> Schema:
    """Of `agentx quality --compare`."""
    listed = record(**each(TEXT, "id variant answer before after"))
    said = each(NUMBER, "mcnemar_p broken_share_upper_bound")
    keys = record(
        **each(TEXT, "before after"),
        **each(COUNT, "problems left_out right_in_both right_in_none"),
        failed_now=list_of(record(**each(TEXT, "id variant"))),
        **each(list_of(listed), "fixed broken"),
        **said,
        worse=FLAG,
        by_variant=map_of(record(**each(COUNT, "problems fixed broken"), **said)),
    )
    return published(COMPARED, keys, WHERE)
