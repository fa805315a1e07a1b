"""A comparison as one JSON document, `schema: agentx/compare/1`. docs/reference/metrics.md defines each key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentx.reporter.compare_caveats import Side
from agentx.reporter.compare_cost import break_even_document, break_evens
from agentx.reporter.compare_losses import losses_document
from agentx.reporter.compare_pair import Pair, Row, Values
from agentx.reporter.document import spread_document
from agentx.reporter.metrics import Metrics

SCHEMA = "agentx/compare/1"


def document(sides: Sequence[Side], pairs: Sequence[Pair]) -> dict[str, Any]:
    """Plain values only, ready for json.dumps."""
    return {
        "schema": SCHEMA,
        "sides": [_side(side) for side in sides],
        "pairs": [_pair(pair) for pair in pairs],
    }


def _side(side: Side) -> dict[str, Any]:
    runs = [
        {
            "name": one.name,
            "state": one.about.state,
            "trace": one.about.trace,
            "trace_sha256": one.about.trace_sha256,
            "target": one.about.target,
            "engine_rules": one.about.engine_rules,
            "gpus": one.about.gpus,
            **_answered(one.metrics),
        }
        for one in side.runs
    ]
    return {"side": side.label, "runs": runs}


def _answered(metrics: Metrics) -> dict[str, Any]:
    return {
        "requests": metrics.attempts,
        "requests_completed": metrics.completed,
        "sessions": metrics.sessions,
        "whole_plays": metrics.books.done,
    }


def _pair(pair: Pair) -> dict[str, Any]:
    return {
        "baseline": pair.a.label,
        "other": pair.b.label,
        "basis": pair.basis,
        "paired": pair.paired,
        "same_turns": pair.same_turns,
        "sessions": pair.sessions,
        "comparable": not pair.breaking,
        "caveats": [
            {"kind": one.kind, "text": one.text, "size": one.size, "unit": one.unit, "breaks": one.breaks}
            for one in pair.caveats
        ],
        "figures": [_row(row) for row in pair.rows],
        "turn_ratios": {
            name: {"ratio": spread_document(found.ratios), "shorter_share": found.shorter}
            for name, found in pair.turn_ratios.items()
        },
        "distribution_distance": pair.distances,
        "break_even": break_even_document(break_evens(pair.a.runs, pair.b.runs)),
        "losses": losses_document(pair.losses),
    }


def _row(row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "all_answered": _values(row.all),
        "same_turns": None if row.same is None else {"turns": row.turns, **_values(row.same)},
    }


def _values(found: Values) -> dict[str, Any]:
    ratio = found.ratio
    return {
        "baseline_runs": list(found.a),
        "other_runs": list(found.b),
        "ratio": ratio.ratio,
        "interval_low": ratio.low,
        "interval_high": ratio.high,
    }
