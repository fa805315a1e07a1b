"""References: `agentx: reference/1`, figures that others published, with source, date, conditions and what is unknown.

A figure has the name and the definition of agentx's own; where the source does not say how it was made, that stands
under `unknown`. Figures of a reference are never averaged or interpolated.
"""

from __future__ import annotations

from typing import Any

import pydantic
from pydantic import Field

from agentx import catalog
from agentx.errors import BadInput
from agentx.reporter.compare_figures import FIGURES, RUN_FIGURES
from agentx.yamlspec import Duration, Strict, load

TOTAL = "total_tokens_per_second_per_gpu"
NAMES = (*(figure.name for figure in FIGURES), *(figure.name for figure in RUN_FIGURES), TOTAL)


class Source(Strict):
    """Who published it, what it is, and when (null: no date is known)."""

    by: str
    what: str
    date: str | None


class Conditions(Strict):
    """What is known of how it was measured. A key that is absent is not known, or does not apply."""

    model: str | None = None
    precision: str | None = None
    hardware: str | None = None
    gpus: int | None = None
    workload: str | None = None
    sessions: int | None = None
    measure: Duration | None = None
    drain: Duration | None = None
    engine: str | None = None
    version: str | None = None
    tensor_parallel: int | None = None
    expert_parallel: int | None = None
    dp_attention: bool | None = None
    kv_dtype: str | None = None
    context: int | None = None
    pool_tokens: int | None = None
    chunked_prefill: int | None = None
    max_running: int | None = None
    host_tier: bool | None = None
    speculation_steps: int | None = None
    draft_tokens: int | None = None
    acceptance: str | None = None
    acceptance_length: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    requests_per_second: float | None = None
    cache_hits: str | None = None
    objective: str | None = None


class Published(Strict):
    """One row: its own source and conditions stand over the reference's."""

    source: Source | None = None
    conditions: Conditions = Conditions()
    figures: dict[str, float] = Field(min_length=1)

    @pydantic.field_validator("figures")
    @classmethod
    def _known(cls, value: dict[str, float]) -> dict[str, float]:
        for name, figure in value.items():
            if name not in NAMES:
                raise ValueError(f"{name} is no figure of agentx (known: {', '.join(NAMES)})")
            if figure <= 0:
                raise ValueError(f"{name} should be above 0")
        return value


class Reference(Strict):
    """One `agentx: reference/1` file. `statements` are published words that no figure of a run stands beside."""

    source: Source
    conditions: Conditions = Conditions()
    unknown: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    statements: tuple[str, ...] = ()
    rows: dict[str, Published] = Field(default={})

    def conditions_of(self, row: Published) -> dict[str, Any]:
        """Every known condition of a row, plain, in the order of Conditions; durations as text."""
        own = row.conditions.model_dump(mode="json", exclude_none=True)
        known = {**self.conditions.model_dump(mode="json", exclude_none=True), **own}
        return {name: known[name] for name in Conditions.model_fields if name in known}


def load_reference(name: str) -> Reference:
    """The reference that an argument means, a name or a path. Raises BadInput."""
    return load(Reference, catalog.resolve("references", name), kind="reference")


def rows_for(reference: Reference, sessions: int | None, row: str | None) -> dict[str, Published]:
    """The row that was asked for, else those of as many sessions as the run had, else all.

    Raises BadInput for a row that is not there.
    """
    if row is not None:
        if row not in reference.rows:
            raise BadInput(f"the reference has no row {row!r}", hint=f"it has {', '.join(reference.rows) or 'none'}")
        return {row: reference.rows[row]}
    alike = {
        name: published
        for name, published in reference.rows.items()
        if sessions is not None and reference.conditions_of(published).get("sessions") == sessions
    }
    return alike or dict(reference.rows)
