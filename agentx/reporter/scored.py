"""A forecast against the run that it was made for: figure by figure, inside its interval or not; and the history.

A run names its forecast by holding it: `forecast.yaml` in its folder. Over many runs as many figures should lie inside
as the forecasts' level says, and the ratios of observed to expected should lie around 1 and near each other. Few runs
show little; the number stands beside every share.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentx.errors import BadInput
from agentx.reporter.compare_figures import FIGURES, RUN_FIGURES, Measured, measured
from agentx.reporter.forecasts import Expected, Forecast, figure, load_forecast
from agentx.reporter.table import Block, Heading, Lines, Table, as_text
from agentx.reporter.text import number
from agentx.results import RunResults, read_results

FORECAST = "forecast.yaml"
LABELS = {
    **{each.name: (each.label, each.scale) for each in FIGURES},
    **{each.name: (each.label, each.scale) for each in RUN_FIGURES},
}


@dataclass(frozen=True, slots=True)
class Score:
    """One figure; `observed` None: the run does not tell it."""

    name: str
    expected: Expected
    observed: float | None

    @property
    def ratio(self) -> float | None:
        """Observed over expected; None where one of them is unknown or 0."""
        return self.observed / self.expected.median if self.observed and self.expected.median else None

    @property
    def inside(self) -> bool | None:
        return None if self.observed is None else self.expected.low <= self.observed <= self.expected.high


@dataclass(frozen=True, slots=True)
class Scored:
    """A run's forecast and how it did. `differs`: what the run was that the forecast was not made for."""

    run: str
    wall: float
    forecast: Forecast
    scores: tuple[Score, ...]
    differs: tuple[str, ...]

    @property
    def told(self) -> list[Score]:
        """The figures that the run tells."""
        return [each for each in self.scores if each.observed is not None]

    @property
    def inside(self) -> int:
        return sum(each.inside is True for each in self.told)


def scored_of(results: RunResults, one: Measured | None = None) -> Scored | None:
    """The score of a run; None when it has no forecast. Raises BadInput for a forecast that is none."""
    path = results.folder / FORECAST
    if not path.exists():
        return None
    forecast = load_forecast(path)
    own = measured(results) if one is None else one
    scores = tuple(Score(name, each, figure(name, own)) for name, each in forecast.figures.items())
    name = results.folder.name or results.folder.resolve().name
    return Scored(name, results.wall, forecast, scores, tuple(_differs(results, forecast)))


def _differs(results: RunResults, forecast: Forecast) -> list[str]:
    found = []
    trace = results.settings.get("trace")
    sha = trace.get("sha256") if isinstance(trace, dict) else None
    if sha is not None and sha != forecast.trace_sha256:
        found.append("another trace was replayed")
    plan = results.settings.get("plan")
    load = plan.get("load") if isinstance(plan, dict) else None
    sessions = load.get("sessions") if isinstance(load, dict) else None
    if forecast.sessions is not None and sessions != forecast.sessions:
        found.append(f"{sessions or 'no number of'} sessions at a time, not {forecast.sessions}")
    if not results.complete:
        found.append("the run is not complete")
    return found


def scored_blocks(found: Scored) -> list[Block]:
    """For the report."""
    forecast = found.forecast
    rows = tuple(
        (
            LABELS[each.name][0],
            *(_shown(each.name, value) for value in (each.expected.median, each.expected.low, each.expected.high)),
            _shown(each.name, each.observed),
            "n/a" if each.ratio is None else f"{each.ratio:.2f}",
            {None: "unknown", True: "inside", False: "outside"}[each.inside],
        )
        for each in found.scores
    )
    told = f"made with {forecast.target}, {forecast.draws} draws; {found.inside} of {len(found.told)} figures inside"
    differs = (f"not as foretold: {why}" for why in found.differs)
    return [
        Heading("Forecast"),
        Lines((f"{told} (expected: {forecast.level:.0%} of them)", *differs)),
        Table(("figure", "expected", "low", "high", "observed", "ratio", "it is"), rows),
    ]


def _shown(name: str, value: float | None) -> str:
    return number(None if value is None else value * LABELS[name][1], "unknown")


def scored_document(found: Scored) -> dict[str, Any]:
    """For the report's document."""
    return {
        "target": found.forecast.target,
        "level": found.forecast.level,
        "inside": found.inside,
        "told": len(found.told),
        "differs": list(found.differs),
        "figures": {
            each.name: {
                "expected": each.expected.median,
                "low": each.expected.low,
                "high": each.expected.high,
                "observed": each.observed,
                "ratio": each.ratio,
                "inside": each.inside,
            }
            for each in found.scores
        },
    }


def ledger(folder: Path | str) -> list[Scored]:
    """Every run below `folder` that holds a forecast, by target and then by time. Raises BadInput for no folder."""
    root = Path(folder)
    if not root.is_dir():
        raise BadInput("is no folder of runs", file=root)
    found = []
    for path in sorted(root.rglob(FORECAST)):
        scored = scored_of(read_results(path.parent))
        if scored is not None:
            found.append(scored)
    return sorted(found, key=lambda each: (each.forecast.target, each.wall, each.run))


def ledger_text(history: Sequence[Scored]) -> str:
    """One table for each target of a model, for a terminal."""
    blocks: list[Block] = []
    for target in sorted({each.forecast.target for each in history}):
        own = [each for each in history if each.forecast.target == target]
        names = [name for name in LABELS if any(name in each.forecast.figures for each in own)]
        rows = tuple(
            (each.run, f"{each.inside} of {len(each.told)}", *(_ratio(each, name) for name in names)) for each in own
        )
        like = [each for each in own if not each.differs]
        inside, told = sum(each.inside for each in like), sum(len(each.told) for each in like)
        level = sum(each.forecast.level for each in like) / len(like) if like else 0.0
        lines = [f"{inside} of {told} figures of {len(like)} runs inside their intervals (expected: {level:.0%})"]
        if len(like) < len(own):
            lines.append(
                f"{len(own) - len(like)} are not what was foretold, and left out of that: their reports say why"
            )
        middles = tuple(_middle(like, name) for name in names)
        columns = ("run", "inside", *(LABELS[name][0] for name in names))
        blocks += [
            Heading(f"forecasts made with {target}: observed over expected"),
            Lines(tuple(lines)),
            Table(columns, (*rows, ("geometric mean", "", *middles))),
        ]
    return as_text(blocks) if blocks else "no run here holds a forecast\n"


def _ratio(found: Scored, name: str) -> str:
    score = next((each for each in found.scores if each.name == name), None)
    return "n/a" if score is None or score.ratio is None else f"{score.ratio:.2f}"


def _middle(history: Sequence[Scored], name: str) -> str:
    ratios = [each.ratio for run in history for each in run.scores if each.name == name and each.ratio is not None]
    return f"{math.exp(sum(math.log(each) for each in ratios) / len(ratios)):.2f}" if ratios else "n/a"
