"""`calibrate`: the timing of the embedded engine, fitted to runs of a server, and how far it is off.

Whole sessions are held out: their requests are sent in every simulation, because the server was busy with them, but
their times are not looked at until the fit is done. A run that was not fitted at all, with another pool or host tier,
can be predicted: its requests at the times at which they were sent, on an engine with its cache and the fitted timing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import numpy as np

from agentx.engine.settings import EngineSettings
from agentx.errors import BadInput
from agentx.replayer.calibration_fit import Fit, fit
from agentx.replayer.calibration_play import MOST, Played, plays, with_timing
from agentx.replayer.calibration_run import CalibrationRun, Sent, load_calibration_run

HOLD_OUT = 0.25


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure as it was observed and as it was simulated, over the same `n` requests; `unit` "s" or "share".

    `lowest` and `highest` are the figure in single plays: what chance alone does to it with so many requests.
    """

    name: str
    unit: str
    n: int
    observed: float
    simulated: float
    lowest: float
    highest: float

    @property
    def error(self) -> float:
        """Relative for seconds, in points of a share otherwise."""
        off = self.simulated - self.observed
        return off if self.unit == "share" else off / self.observed if self.observed else math.inf


@dataclass(frozen=True, slots=True)
class Prediction:
    """A run that the fit never saw; `changed`: (setting, in the fitted runs, in this one)."""

    folder: Path
    changed: tuple[tuple[str, str, str], ...]
    figures: tuple[Figure, ...]


@dataclass(frozen=True, slots=True)
class Calibration:
    """The fitted `settings`, and what they are worth. `held_out` is empty when no session was held out."""

    folders: tuple[Path, ...]
    settings: EngineSettings
    fit: Fit
    fitted_sessions: int
    held_sessions: int
    fitted: tuple[Figure, ...]
    held_out: tuple[Figure, ...]
    prediction: Prediction | None
    notes: tuple[str, ...]


def calibrate(
    folders: Sequence[Path],
    *,
    predict: Path | None = None,
    hold_out: float = HOLD_OUT,
    target: EngineSettings | None = None,
    told: Callable[[str], None] = lambda line: None,
) -> Calibration:
    """Fit the timing to the runs in `folders`, which share a server; `hold_out` is a share of the sessions.

    `target` describes the server where the runs do not, and gives the constants that no run shows. Raises BadInput.
    """
    runs = [load_calibration_run(folder, target) for folder in folders]
    other = None if predict is None else load_calibration_run(predict, _like(target, predict))
    held = _held(runs, hold_out)
    parts = [_parts(run, held) for run in runs]
    found = fit(runs, [train for train, _ in parts], runs[0].settings.timing, told)
    played = [plays(run, found.timing, MOST) for run in runs]
    settings = with_timing(runs[0].settings, found.timing)
    return Calibration(
        folders=tuple(folders),
        settings=settings,
        fit=found,
        fitted_sessions=len({sent.session for run in runs for sent in run.sent} - held),
        held_sessions=len(held),
        fitted=_figures(runs, played, [train for train, _ in parts]),
        held_out=_figures(runs, played, [test for _, test in parts]),
        prediction=None if other is None else _predicted(other, settings),
        notes=tuple(note for run in runs for note in run.notes),
    )


def _like(target: EngineSettings | None, folder: Path) -> EngineSettings | None:
    """The described server with the cache that a run told, where it told one."""
    if target is None:
        return None
    try:
        cache = load_calibration_run(folder).settings.cache
    except BadInput:
        return target
    return target.model_copy(update={"cache": cache})


def _held(runs: Sequence[CalibrationRun], share: float) -> set[str]:
    """Sessions that are held out: those of one name together, whichever run they are in."""
    if not 0 <= share < 1:
        raise BadInput(f"hold-out should be a share from 0 to below 1, not {share:g}")
    if share == 0:
        return set()
    names = sorted({sent.session for run in runs for sent in run.sent if sent.measured})
    if len(names) < 2:
        raise BadInput(
            "the run has one session, and whole sessions are held out",
            file=runs[0].folder,
            hint="--hold-out 0 fits to all of it, and the error is then no test",
        )
    count = min(max(1, round(share * len(names))), len(names) - 1)
    return set(Random(0).sample(names, count))


def _parts(run: CalibrationRun, held: set[str]) -> tuple[set[int], set[int]]:
    """Measured requests that are fitted, and those that are held out."""
    measured = {index for index, sent in enumerate(run.sent) if sent.measured}
    test = {index for index in measured if run.sent[index].session in held}
    return measured - test, test


def _figures(
    runs: Sequence[CalibrationRun], played: Sequence[Sequence[Sequence[Played]]], chosen: Sequence[set[int]]
) -> tuple[Figure, ...]:
    """Medians and 90th percentiles of TTFT and TPOT, and the reuse, over the chosen requests of all runs.

    What was simulated is all plays together.
    """
    pairs = [
        (run.sent[index], [each[index] for each in several])
        for run, several, indices in zip(runs, played, chosen, strict=True)
        for index in sorted(indices)
    ]
    figures = [figure for name in ("ttft", "tpot") for figure in _times(name, pairs)]
    told = [(sent, several) for sent, several in pairs if sent.cached is not None and sent.prompt]
    if told:
        seen = sum(sent.cached or 0 for sent, _ in told) / sum(sent.prompt or 0 for sent, _ in told)
        made = [_share([several[number] for _, several in told]) for number in range(MOST)]
        mean = sum(made) / len(made)
        figures.append(Figure("prompt tokens reused", "share", len(told), seen, mean, min(made), max(made)))
    return tuple(figures)


def _times(name: str, pairs: Sequence[tuple[Sent, Sequence[Played]]]) -> Iterator[Figure]:
    """The median and the 90th percentile of `ttft` or `tpot`."""
    rows = [(value, [getattr(each, name) for each in of]) for sent, of in pairs if (value := getattr(sent, name))]
    rows = [(value, of) for value, of in rows if None not in of]
    if not rows:
        return
    seen, made = np.array([value for value, _ in rows]), np.array([of for _, of in rows])
    for word, percent in (("median", 50), ("p90", 90)):
        single = np.percentile(made, percent, axis=0)
        whole, observed = float(np.percentile(made, percent)), float(np.percentile(seen, percent))
        lowest, highest = float(single.min()), float(single.max())
        yield Figure(f"{name.upper()} {word}", "s", len(rows), observed, whole, lowest, highest)


def _share(played: Sequence[Played]) -> float:
    """Reused tokens of prompt tokens, by the engine."""
    return sum(each.cached or 0 for each in played) / max(1, sum(each.prompt or 0 for each in played))


def _predicted(run: CalibrationRun, fitted: EngineSettings) -> Prediction:
    played = plays(run, fitted.timing, MOST)
    measured = {index for index, sent in enumerate(run.sent) if sent.measured}
    before, after = (
        _flat(each.model_dump(mode="json", exclude={"timing", "price"})) for each in (fitted, run.settings)
    )
    changed = tuple((key, str(before[key]), str(after[key])) for key in before if before[key] != after.get(key))
    return Prediction(run.folder, changed, _figures([run], [played], [measured]))


def _flat(body: dict[str, object], prefix: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for key, value in body.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {prefix + key: value}
    return flat
