"""Where two sides lost reuse, cause by cause: tokens of each run, their mean over a side's repeats, and the change.

A cause may be 0 tokens, so its change is a difference, not a ratio. Over the same turns a change of the mix cannot move
it. A cause that one run cannot tell (its pool is not known) is unknown for its side, and never 0.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Any

from agentx.reporter.compare_caveats import Side, each_run
from agentx.reporter.compare_figures import Measured, TurnKey
from agentx.reporter.compare_statistics import difference, mean
from agentx.reporter.losses import CAUSE_NAMES, CAUSES, OF_A_HOST
from agentx.reporter.table import Block, Heading, Lines, Table

TOTAL = "ideal_less_observed"


@dataclass(frozen=True, slots=True)
class Tokens:
    """Tokens of one cause in each run of the two sides."""

    a: tuple[int | None, ...]
    b: tuple[int | None, ...]

    @property
    def means(self) -> tuple[float | None, float | None]:
        return mean(self.a), mean(self.b)

    @property
    def change(self) -> float | None:
        before, after = self.means
        return None if before is None or after is None else after - before

    @property
    def interval(self) -> tuple[float, float] | None:
        return difference(self.a, self.b)


@dataclass(frozen=True, slots=True)
class LossRow:
    """One of CAUSES, or TOTAL. `same` None: there are no same turns."""

    cause: str
    all: Tokens
    same: Tokens | None


@dataclass(frozen=True, slots=True)
class PairLosses:
    """`missing`: by A, B or A1, A2 ..., why a run has no split; then there are no rows. `sources`: A's and B's."""

    rows: tuple[LossRow, ...]
    missing: dict[str, str]
    sources: tuple[tuple[str | None, ...], tuple[str | None, ...]]


def pair_losses(a: Side, b: Side, same: Set[TurnKey] | None) -> PairLosses:
    """`same`: the turns that every run answered; None: the turns are not paired."""
    missing = {name: one.losses.missing for name, one in each_run(a, b) if one.losses.missing is not None}
    sources = (tuple(one.losses.source for one in a.runs), tuple(one.losses.source for one in b.runs))
    if missing:
        return PairLosses((), missing, sources)
    rows = []
    for cause in (*CAUSES, TOTAL):
        every = Tokens(_tokens(a, cause, None), _tokens(b, cause, None))
        kept = None if same is None else Tokens(_tokens(a, cause, same), _tokens(b, cause, same))
        rows.append(LossRow(cause, every, kept))
    return PairLosses(tuple(rows), {}, sources)


def _tokens(side: Side, cause: str, same: Set[TurnKey] | None) -> tuple[int | None, ...]:
    return tuple(_of(one, cause, same) for one in side.runs)


def _of(one: Measured, cause: str, same: Set[TurnKey] | None) -> int | None:
    losses = one.losses
    if same is not None:
        losses = losses.over(same)
    return losses.total if cause == TOTAL else losses.of(cause)


def losses_document(found: PairLosses) -> dict[str, Any]:
    """Plain values only."""
    return {
        "causes": [
            {
                "cause": row.cause,
                "all_answered": _document(row.all),
                "same_turns": None if row.same is None else _document(row.same),
            }
            for row in found.rows
        ],
        "baseline_evicted_sources": list(found.sources[0]),
        "other_evicted_sources": list(found.sources[1]),
        "split_missing_because": [{"run": name, "text": why} for name, why in found.missing.items()],
    }


def _document(found: Tokens) -> dict[str, Any]:
    before, after = found.means
    low, high = found.interval or (None, None)
    return {
        "baseline_runs": list(found.a),
        "other_runs": list(found.b),
        "baseline_mean": before,
        "other_mean": after,
        "change": found.change,
        "change_low": low,
        "change_high": high,
    }


def losses_table(found: PairLosses, a: str, b: str) -> Table:
    """A row for each cause: A's mean, B's mean, the change, and the change over the same turns where there are any."""
    paired = any(row.same is not None for row in found.rows)
    columns = ("", f"{a}, all", f"{b}, all", "change", *(("change, same",) if paired else ()))
    rows = []
    for row in shown(found):
        same = () if row.same is None else (_change(row.same),)
        rows.append((label(row), *map(_count, row.all.means), _change(row.all), *same))
    return Table(columns, tuple(rows))


def shown(found: PairLosses) -> list[LossRow]:
    """Causes of a host tier only where a run has them."""
    return [row for row in found.rows if row.cause not in OF_A_HOST or any((*row.all.a, *row.all.b))]


def label(row: LossRow) -> str:
    """The cause for a reader."""
    return "ideal less observed" if row.cause == TOTAL else CAUSE_NAMES[row.cause]


def _count(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.0f}"


def _change(found: Tokens) -> str:
    if found.change is None:
        return "unknown"
    interval = found.interval
    spread = "" if interval is None else f" +- {(interval[1] - interval[0]) / 2:,.0f}"
    return f"{found.change:+,.0f}{spread}" if round(found.change) or interval else "0"


def losses_lines(found: PairLosses, a: str, b: str) -> tuple[str, ...]:
    """How the evicted are known on each side; or why there is no table."""
    if found.missing:
        return tuple(f"{name}: the lost reuse is not split: {why}." for name, why in found.missing.items())
    told = [_source(side, sources) for side, sources in zip((a, b), found.sources, strict=True)]
    lines = [f"What was evicted: {', '.join(told)}."]
    if len({source for sources in found.sources for source in sources}) > 1:
        lines.append("Not all runs know it in the same way: a change between causes may be the method's.")
    if any(row.all.interval or (row.same is not None and row.same.interval) for row in found.rows):
        lines.append("After +-: half of the 95 % t-interval between runs.")
    return tuple(lines)


def _source(side: str, sources: tuple[str | None, ...]) -> str:
    kinds = sorted({source or "unknown (the pool is not known)" for source in sources})
    return f"{side} {' and '.join(kinds)}"


def losses_blocks(found: PairLosses, a: str, b: str) -> list[Block]:
    """Nothing where no run has an ideal to lose from."""
    if len(found.missing) == len(found.sources[0]) + len(found.sources[1]):
        return []
    heading = Heading(f"Reuse that was lost, by cause, mean tokens of the runs: {b} against {a}")
    return [heading, losses_table(found, a, b), Lines(losses_lines(found, a, b))]
