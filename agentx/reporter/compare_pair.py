"""One side against another: every figure over all answered turns and over the same turns, and what is known against it.

The same turns are those that every run of both sides answered, by (session, play, turn), if all replayed one trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentx.reporter.compare_caveats import Caveat, Side, distances, result_caveats
from agentx.reporter.compare_conditions import condition_caveats, same_trace
from agentx.reporter.compare_figures import FIGURES, RUN_FIGURES, TIMES, Figure, TurnKey
from agentx.reporter.compare_losses import PairLosses, pair_losses
from agentx.reporter.compare_statistics import MINIMUM, Estimate, estimate, typical
from agentx.reporter.spread import Spread, spread


@dataclass(frozen=True, slots=True)
class Values:
    """A figure of each run of the two sides."""

    a: tuple[float | None, ...]
    b: tuple[float | None, ...]

    @property
    def ratio(self) -> Estimate:
        return estimate(self.a, self.b)

    @property
    def typical(self) -> tuple[float | None, float | None]:
        return typical(self.a), typical(self.b)


@dataclass(frozen=True, slots=True)
class Row:
    """One figure over all answered turns, and over the same `turns`; `same` None: it has none."""

    name: str
    label: str
    scale: float
    all: Values
    same: Values | None
    turns: int


@dataclass(frozen=True, slots=True)
class TurnRatios:
    """Paired: B over A turn by turn, and the share of the turns in which B took less time."""

    ratios: Spread
    shorter: float


@dataclass(frozen=True, slots=True)
class Pair:
    """Side `b` against side `a`. `distances`: of the distributions of unpaired sides, by time."""

    a: Side
    b: Side
    paired: bool
    same_turns: int
    sessions: int
    rows: tuple[Row, ...]
    turn_ratios: dict[str, TurnRatios]
    distances: dict[str, float]
    losses: PairLosses
    caveats: tuple[Caveat, ...]

    @property
    def basis(self) -> str:
        """What the ratios rest on."""
        a, b = len(self.a.runs), len(self.b.runs)
        if a == b == 1:
            return f"one pair, {self.sessions} session{'s' if self.sessions != 1 else ''}: no interval"
        if min(a, b) < MINIMUM:
            return f"{a} and {b} runs: no interval, which takes {MINIMUM} of each side"
        if all(row.all.ratio.low is None for row in self.rows):
            return f"{a} and {b} runs, those of a side equal to the last digit: no spread between runs, so no interval"
        return f"{a} and {b} runs: 95 % t-intervals between runs"

    @property
    def breaking(self) -> tuple[Caveat, ...]:
        return tuple(caveat for caveat in self.caveats if caveat.breaks)


def pair_of(a: Side, b: Side) -> Pair:
    """Everything about B against A."""
    runs = (*a.runs, *b.runs)
    paired = same_trace(runs)
    same = (a.every & b.every) if paired else set()
    caveats = (*result_caveats(a, b, paired), *condition_caveats(a, b))
    return Pair(
        a=a,
        b=b,
        paired=paired,
        same_turns=len(same),
        sessions=len({key[0] for one in runs for key in one.turns}),
        rows=(*(_row(figure, a, b, same) for figure in FIGURES), *_run_rows(a, b)),
        turn_ratios=_turn_ratios(a, b, same),
        distances={} if paired else _distances(a, b),
        losses=pair_losses(a, b, same if paired else None),
        caveats=tuple(sorted(caveats, key=lambda caveat: not caveat.breaks)),
    )


def _row(figure: Figure, a: Side, b: Side, same: set[TurnKey]) -> Row:
    runs = (*a.runs, *b.runs)
    kept = sorted(key for key in same if all(figure.needs(one.turns[key]) is not None for one in runs))

    def over(side: Side, keys: Sequence[TurnKey] | None) -> tuple[float | None, ...]:
        return tuple(
            figure.of([*one.turns.values()] if keys is None else [one.turns[key] for key in keys], one.about.gpus)
            for one in side.runs
        )

    paired = Values(over(a, kept), over(b, kept)) if kept else None
    return Row(figure.name, figure.label, figure.scale, Values(over(a, None), over(b, None)), paired, len(kept))


def _run_rows(a: Side, b: Side) -> list[Row]:
    return [
        Row(
            figure.name, figure.label, figure.scale,
            Values(tuple(map(figure.of, a.runs)), tuple(map(figure.of, b.runs))), None, 0,
        )
        for figure in RUN_FIGURES
    ]  # fmt: skip


def _turn_ratios(a: Side, b: Side, same: set[TurnKey]) -> dict[str, TurnRatios]:
    """Turn by turn; a turn of several repeats by the geometric mean of its times."""
    found = {}
    for name, value in TIMES.items():
        ratios = []
        for key in sorted(same):
            left = typical([value(one.turns[key]) for one in a.runs])
            right = typical([value(one.turns[key]) for one in b.runs])
            if left is not None and right is not None and left > 0:
                ratios.append((key[0], right / left))
        spreaded = spread(ratios)
        if spreaded is not None:
            found[name] = TurnRatios(spreaded, sum(ratio < 1 for _, ratio in ratios) / len(ratios))
    return found


def _distances(a: Side, b: Side) -> dict[str, float]:
    """Over the turns of all runs of a side together."""
    found = {}
    for name, value in TIMES.items():
        left, right = (
            [time for one in side.runs for turn in one.turns.values() if (time := value(turn)) is not None]
            for side in (a, b)
        )
        if left and right:
            found[name] = distances(left, right)
    return found
