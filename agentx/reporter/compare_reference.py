"""A run beside published figures: the ratio, and every known difference of conditions.

Conditions of published figures are never all known, so a ratio of 1 says that two numbers are near each other, and
nothing more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentx import catalog
from agentx.reporter.compare_caveats import CLIENT, UNUSABLE, acceptance_length
from agentx.reporter.compare_conditions import flat, synthetic_acceptance
from agentx.reporter.compare_figures import FIGURES, RUN_FIGURES, Measured, measured
from agentx.reporter.foreign import read_run
from agentx.reporter.references import Published, Reference, Source, load_reference, rows_for
from agentx.reporter.table import Block, Facts, Heading, Lines, Table, as_markdown, as_text
from agentx.reporter.text import number
from agentx.results import RunResults

SCHEMA = "agentx/compare-reference/1"
NOTE = "Two figures that are near each other do not show that one explains the other: conditions are partly unknown."


@dataclass(frozen=True, slots=True)
class Against:
    """One published figure and the run's own; `ratio` is run over published, None where the run does not tell."""

    name: str
    label: str
    scale: float
    published: float
    run: float | None

    @property
    def ratio(self) -> float | None:
        return None if self.run is None else self.run / self.published


@dataclass(frozen=True, slots=True)
class RowComparison:
    """A run beside one row. `differences`: condition -> (published, of the run; None: the run does not tell)."""

    row: str
    source: Source
    figures: tuple[Against, ...]
    differences: Mapping[str, tuple[Any, Any]]


@dataclass(frozen=True, slots=True)
class ReferenceComparison:
    """A run beside a reference. `warnings` are findings of the run itself that weigh on its figures."""

    name: str
    reference: Reference
    one: Measured
    rows: tuple[RowComparison, ...]
    warnings: tuple[str, ...]

    def text(self) -> str:
        """For a terminal."""
        return as_text(_blocks(self))

    def markdown(self) -> str:
        """The same for a pull request."""
        return as_markdown(_blocks(self))

    def document(self) -> dict[str, Any]:
        """The JSON document, as plain values."""
        return _document(self)


def compare_reference(run: RunResults | Path | str, reference: str, row: str | None = None) -> ReferenceComparison:
    """`reference` is a name or a path. Raises BadInput for what is not there."""
    published = load_reference(reference)
    one = measured(run if isinstance(run, RunResults) else read_run(run))
    conditions = conditions_of(one)
    chosen = rows_for(published, conditions["sessions"], row)
    rows = tuple(
        RowComparison(
            name, each.source or published.source, _figures(one, each), _differences(published, each, conditions)
        )
        for name, each in chosen.items()
    )
    kinds = (*UNUSABLE, *CLIENT, "failures", "short_replies", "cut_requests", "drained", "recorded_history")
    warnings = tuple(finding.text for finding in one.findings if finding.kind in kinds)
    return ReferenceComparison(catalog.resolve("references", reference).stem, published, one, rows, warnings)


def total_per_gpu(one: Measured) -> float | None:
    """Prompt tokens, cached ones included, and reply tokens of answered requests, per second and GPU."""
    flow, isl = one.metrics.throughput.completed, one.metrics.lengths.isl
    told = isl is not None and isl.n == one.metrics.completed and flow.output.whole
    if not told or isl is None or flow.output.tokens is None or not flow.seconds or one.about.gpus is None:
        return None
    return (isl.mean * isl.n + flow.output.tokens) / flow.seconds / one.about.gpus


def _own(name: str, one: Measured) -> tuple[str, float, float | None]:
    """(label, scale, the run's own) of a figure by its name."""
    for figure in FIGURES:
        if figure.name == name:
            return figure.label, figure.scale, figure.of([*one.turns.values()], one.about.gpus)
    for whole in RUN_FIGURES:
        if whole.name == name:
            return whole.label, whole.scale, whole.of(one)
    return "total with cached input, tok/s/GPU", 1, total_per_gpu(one)  # TOTAL, the one that is left


def _figures(one: Measured, row: Published) -> tuple[Against, ...]:
    made = []
    for name, value in row.figures.items():
        label, scale, own = _own(name, one)
        made.append(Against(name, label, scale, value, own))
    return tuple(made)


def conditions_of(one: Measured) -> dict[str, Any]:
    """The run's own conditions by the names of a reference; None: it does not tell."""
    settings = flat({"server": one.run.settings.get("server"), "target": one.run.settings.get("target")})
    plan = flat(one.about.plan)
    rules = one.about.engine_rules
    host = settings.get("target.cache.host.tokens")
    measure = plan.get("measure")
    return {
        "model": one.about.model,
        "gpus": one.about.gpus,
        "workload": one.about.trace,
        "sessions": plan.get("load.sessions"),
        "measure": measure if isinstance(measure, str) else None,
        "drain": plan.get("drain"),
        "engine": None if rules is None else f"a model with the rules of {rules}",
        "version": settings.get("server.version"),
        "tensor_parallel": settings.get("server.tp_size"),
        "expert_parallel": settings.get("server.ep_size"),
        "kv_dtype": settings.get("server.kv_cache_dtype"),
        "context": settings.get("server.context_length", settings.get("server.context")),
        "pool_tokens": settings.get("server.max_total_num_tokens"),
        "chunked_prefill": settings.get("server.chunked_prefill_size"),
        "max_running": settings.get("server.max_running_requests"),
        "host_tier": settings.get("server.enable_hierarchical_cache", None if host is None else host > 0),
        "speculation_steps": settings.get("server.speculative_num_steps", settings.get("target.speculation.steps")),
        "draft_tokens": settings.get(
            "server.speculative_num_draft_tokens", settings.get("target.speculation.draft_tokens")
        ),
        "acceptance": "simulated" if synthetic_acceptance(one) else "none" if rules is not None else None,
        "acceptance_length": acceptance_length(one),
    }


def _differences(reference: Reference, row: Published, own: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    published = reference.conditions_of(row)
    return {name: (value, own.get(name)) for name, value in published.items() if not _alike(value, own.get(name))}


def _alike(published: Any, own: Any) -> bool:
    if isinstance(published, float) and isinstance(own, int | float):
        return abs(own / published - 1) < 0.005  # as near as two printed decimals
    if isinstance(published, str) and isinstance(own, str):
        return published.lower() == own.lower()
    return bool(published == own)


def _blocks(found: ReferenceComparison) -> list[Block]:
    reference, one = found.reference, found.one
    head = (
        ("run", one.about.marked),
        ("reference", _source(reference.source)),
    )
    made: list[Block] = [Heading(f"agentx compare: {one.name} beside {found.name}"), Facts(head)]
    for row in found.rows:
        made += _row(row, reference)
    parts = (
        ("Not published", reference.unknown),
        ("Known against the reference", reference.caveats),
        ("Published beside it", reference.statements),
        ("Known against this run", found.warnings),
    )
    for heading, lines in parts:
        made += [Heading(heading), Lines(tuple(lines), bullet=True)] if lines else []
    return [*made, Lines((NOTE,))]


def _source(source: Source) -> str:
    return f"{source.by}: {source.what}, {source.date or 'date unknown'}"


def _row(row: RowComparison, reference: Reference) -> list[Block]:
    figures = tuple(
        (
            each.label,
            number(each.published * each.scale),
            number(None if each.run is None else each.run * each.scale),
            "unknown" if each.ratio is None else f"x{number(each.ratio)}",
        )
        for each in row.figures
    )
    conditions = tuple((name, _word(there), _word(here)) for name, (there, here) in row.differences.items())
    made: list[Block] = [Heading(row.row)]
    if row.source != reference.source:
        made.append(Facts((("source", _source(row.source)),)))
    made.append(Table(("", "published", "this run", "run/published"), figures))
    if conditions:
        made += [Lines(("Published conditions that are other here, or not known of this run:",))]
        made.append(Table(("", "published", "this run"), conditions))
    return made


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "unknown" if value is None else number(value) if isinstance(value, float) else str(value)


def _document(found: ReferenceComparison) -> dict[str, Any]:
    reference = found.reference
    return {
        "schema": SCHEMA,
        "run": found.one.name,
        "reference": found.name,
        "source": reference.source.model_dump(),
        "rows": [
            {
                "row": row.row,
                "source": row.source.model_dump(),
                "figures": [
                    {"name": each.name, "published": each.published, "run": each.run, "ratio": each.ratio}
                    for each in row.figures
                ],
                "conditions": [
                    {"name": name, "published": there, "run": here} for name, (there, here) in row.differences.items()
                ],
            }
            for row in found.rows
        ],
        "unknown": list(reference.unknown),
        "caveats": list(reference.caveats),
        "statements": list(reference.statements),
        "warnings": list(found.warnings),
        "note": NOTE,
    }
