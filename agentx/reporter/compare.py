"""`compare([side, side, ...])`, a side being a run or its repeats: the first against each other one, and what is known
against it.

The run is the unit: repeats give intervals, one pair gives none. Two ratios stand side by side: over all answered turns
(what each run did) and over the same turns (those that every run of both sides answered), which a change of the mix
cannot move. Without a common trace there are no same turns, and the distributions are compared.
"""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentx.errors import BadInput, InvalidMeasurement
from agentx.reporter.compare_caveats import Side
from agentx.reporter.compare_decide import Decision, decide, decision_blocks, decision_document
from agentx.reporter.compare_document import document
from agentx.reporter.compare_figures import measured
from agentx.reporter.compare_neighbours import (
    Neighbour,
    neighbour_caveats,
    neighbour_rows,
    neighbours_document,
    neighbours_of,
)
from agentx.reporter.compare_pair import Pair, pair_of
from agentx.reporter.compare_text import blocks
from agentx.reporter.cost import check_price
from agentx.reporter.foreign import read_run
from agentx.reporter.table import Block, Heading, Table, as_markdown, as_text
from agentx.results import RunResults

Run = RunResults | Path | str  # results, or their folder


@dataclass(frozen=True, slots=True)
class Comparison:
    """Side A against each of the others."""

    sides: tuple[Side, ...]
    pairs: tuple[Pair, ...]
    neighbours: tuple[Neighbour, ...] = ()
    decisions: tuple[Decision, ...] = ()

    def text(self) -> str:
        """For a terminal."""
        return as_text(self._blocks())

    def markdown(self) -> str:
        """The same for a pull request."""
        return as_markdown(self._blocks())

    def document(self) -> dict[str, Any]:
        """The JSON document (`schema: agentx/compare/1`), as plain values."""
        return {
            **document(self.sides, self.pairs),
            "neighbours": neighbours_document(self.neighbours),
            "decisions": [decision_document(one) for one in self.decisions],
        }

    def _blocks(self) -> list[Block]:
        found = blocks(self.sides, self.pairs)
        if self.neighbours:
            columns = ("neighbour / compared", "output, tok/s", "TTFT p90", "reuse")
            found += [Heading("Runs next to these"), Table(columns, tuple(neighbour_rows(self.neighbours)))]
        for one in self.decisions:
            found += decision_blocks(one)
        return found

    def check(self) -> None:
        """Raises InvalidMeasurement when a finding makes a pair not comparable."""
        broken = [f"{pair.b.label}: {caveat.text}" for pair in self.pairs for caveat in pair.breaking]
        if broken:
            raise InvalidMeasurement("not comparable. " + " ".join(broken))


def compare(
    sides: Sequence[Run | Sequence[Run]], *, price: float | None = None, decide_on: str | None = None
) -> Comparison:
    """At least two sides, each a run or several repeats of it, as results or folders: `compare([before, after])`.

    `price` in dollars per GPU-hour stands for every target's own. `decide_on`: a figure on which the repeats are to
    decide (see compare_decide). Runs that lie beside the compared ones are looked at for a cliff. Raises BadInput for
    fewer sides or more than 26, for a price that is not above 0, for a folder that is no run or is given twice, and for
    no such figure.
    """
    alone = isinstance(sides, RunResults | Path | str)  # a name is a sequence too, of letters
    runs = [] if alone else [[side] if isinstance(side, RunResults | Path | str) else list(side) for side in sides]
    if len(runs) < 2 or not all(runs):
        raise BadInput("two sides are needed, each of at least one run")
    if len(runs) > len(string.ascii_uppercase):
        raise BadInput(f"{len(runs)} sides: at most {len(string.ascii_uppercase)} have a letter of their own")
    _check_apart([Path(run) for side in runs for run in side if not isinstance(run, RunResults)])
    rate = check_price(price)
    made = tuple(
        Side(label, tuple(measured(run if isinstance(run, RunResults) else read_run(run), rate) for run in side))
        for label, side in zip(string.ascii_uppercase, runs, strict=False)
    )
    neighbours = neighbours_of(made)
    pairs = []
    for other in made[1:]:
        pair = pair_of(made[0], other)
        beside = [one for one in neighbours if one.side in (pair.a.label, pair.b.label)]
        pairs.append(replace(pair, caveats=(*pair.caveats, *neighbour_caveats(beside))))
    decisions = () if decide_on is None else tuple(decide(pair, decide_on) for pair in pairs)
    return Comparison(made, tuple(pairs), neighbours, decisions)


def _check_apart(folders: Sequence[Path]) -> None:
    seen = set()
    for folder in folders:
        if folder.resolve() in seen:
            raise BadInput("this run is given twice: a run says nothing against itself", file=folder)
        seen.add(folder.resolve())
