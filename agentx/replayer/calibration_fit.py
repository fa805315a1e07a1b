"""The search: simulate the same sends under other constants until what is seen is what was seen.

Each round tries a small step of every constant (finite differences), solves for the step that brings the logarithms
of simulated and observed times together, and takes it if that is better; else a shorter one. An error counts by how far
chance alone moves that request's time between plays (a long prefill tells more than a short one that had to wait for a
decode step), and large errors count little (Huber), so that it is the typical request that comes out right. At the end
each constant, and some together, are moved a little up and down where that is better.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from agentx.engine.settings import Timing
from agentx.replayer.calibration_play import MOST, Played, play, plays
from agentx.replayer.calibration_run import CalibrationRun
from agentx.replayer.calibration_start import DECODE, PREFILL, Floats, start, timing_of

_ROUNDS = 8  # at most
_DAMPINGS = 4  # step lengths that are tried in a round
_STEP, _LEAST_STEP = 0.2, 0.1  # of a constant; of its unit
_HUBER = 1.5  # multiple of what chance does, from which on an error counts by its size and no longer by its square
_CHANCE = 0.03  # relative error that the best time has: the model is no better
_ENOUGH = 2e-3  # relative gain of a round below which the search ends
_EXACT = 1e-4  # mean loss that nobody needs to improve
_MOVES = (0.15, 0.05)  # relative moves of the last search
_GAIN = 0.01  # of the loss, that such a move must bring: less is chance

Told = Callable[[str], None]


@dataclass(slots=True)
class Fit:
    """`timing`, its constants that were fitted, and why the others were not."""

    timing: Timing
    fitted: tuple[str, ...]
    fixed: dict[str, str]
    simulations: int = 0


@dataclass(slots=True)
class _Search:
    runs: Sequence[CalibrationRun]
    train: Sequence[set[int]]
    base: Timing
    names: tuple[str, ...]
    simulations: int = 0
    chance: Floats = field(default_factory=lambda: np.empty(0))  # what it does to each time, relative
    count: Floats = field(default_factory=lambda: np.empty(0))  # root of how many times there are of its kind
    _ttft: list[tuple[int, int, float]] = field(default_factory=list)  # run, request, log of the observed seconds
    _tpot: list[tuple[int, int, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for number, (run, chosen) in enumerate(zip(self.runs, self.train, strict=True)):
            for index in sorted(chosen):
                sent = run.sent[index]
                if sent.ttft:
                    self._ttft.append((number, index, float(np.log(sent.ttft))))
                if sent.tpot:
                    self._tpot.append((number, index, float(np.log(sent.tpot))))

    def played(self, values: Floats) -> list[list[list[Played]]]:
        """By run, play and request."""
        self.simulations += 1
        timing = timing_of(dict(zip(self.names, map(float, values), strict=True)), self.base)
        return [plays(run, timing) for run in self.runs]

    def errors(self, played: list[list[list[Played]]]) -> Floats:
        """log(simulated / observed) of each TTFT and then of each TPOT: the mean over the plays."""
        return np.array([np.mean(each) for kind in self._logs(played) for each in kind])

    def _logs(self, played: list[list[list[Played]]]) -> tuple[list[list[float]], list[list[float]]]:
        ttft = [[_log(each[at].ttft, seen) for each in played[run]] for run, at, seen in self._ttft]
        tpot = [[_log(each[at].tpot, seen) for each in played[run]] for run, at, seen in self._tpot]
        return ttft, tpot

    def look_at_chance(self, values: Floats) -> None:
        """Set by how much chance moves each request's times."""
        timing = timing_of(dict(zip(self.names, map(float, values), strict=True)), self.base)
        logs = self._logs([plays(run, timing, MOST) for run in self.runs])
        sizes = [np.array([np.hypot(np.std(each), _CHANCE) for each in kind]) for kind in logs]
        counts = [np.full(len(each), np.sqrt(max(len(each), 1))) for each in sizes]
        self.chance, self.count = np.concatenate(sizes), np.concatenate(counts)

    def residual(self, values: Floats) -> Floats:
        """Both kinds of errors in multiples of what chance does, of equal weight however many there are."""
        return self.errors(self.played(values)) / (self.chance * self.count)


def fit(runs: Sequence[CalibrationRun], train: Sequence[set[int]], base: Timing, told: Told = lambda line: None) -> Fit:
    """Constants for the requests `train` of each run; the others are there as load. `told` hears of progress."""
    first = start(runs, train, [play(run, base) for run in runs])
    names = tuple(first.values)
    pinned = {"speculation_step": 0.0} if "in decode_step" in first.fixed.get("speculation_step", "") else {}
    search = _Search(runs, train, timing_of(pinned, base), names)
    values, units = _of(first.values, names), _of(first.units, names)
    values = _descend(search, values, units, told)
    values = _polish(search, values, units, told)
    timing = timing_of(dict(zip(names, map(float, values), strict=True)), search.base)
    return Fit(timing, names, dict(first.fixed), search.simulations)


def _of(table: dict[str, float], names: Sequence[str]) -> Floats:
    return np.array([table[name] for name in names])


def _log(simulated: float | None, observed: float) -> float:
    return 0.0 if not simulated else float(np.log(simulated)) - observed


def _loss(errors: Floats, spread: Floats) -> float:
    """Huber's loss of residuals that were divided by `spread`."""
    size = np.abs(errors * spread)
    each = np.where(size <= _HUBER, 0.5 * size**2, _HUBER * (size - 0.5 * _HUBER))
    return float(np.sum(each / spread**2))


def _descend(search: _Search, values: Floats, units: Floats, told: Told) -> Floats:
    search.look_at_chance(values)
    spread, damping = search.count, 1e-3
    errors = search.residual(values)
    loss = _loss(errors, spread)
    for number in range(_ROUNDS):
        told(f"round {number + 1}: typical error {np.median(np.abs(errors * spread * search.chance)):.1%}")
        if loss < _EXACT:
            break
        slopes = _slopes(search, values, units, errors)
        better = None
        for _ in range(_DAMPINGS):
            trial = _stepped(values, units, slopes, errors, spread, damping)
            found = search.residual(trial)
            if (trial_loss := _loss(found, spread)) < loss:
                better = trial, found, trial_loss
                break
            damping *= 30
        if better is None:
            break
        gain = 1.0 - better[2] / loss
        values, errors, loss = better
        damping = max(damping / 30, 1e-6)
        if gain < _ENOUGH:
            break
    return values


def _slopes(search: _Search, values: Floats, units: Floats, errors: Floats) -> Floats:
    """Change of each residual per unit of each constant."""
    columns = []
    for at, unit in enumerate(units):
        step = max(_STEP * values[at], _LEAST_STEP * unit)
        moved = values.copy()
        moved[at] += step
        columns.append((search.residual(moved) - errors) / (step / unit))
    return np.stack(columns, axis=1)


def _stepped(values: Floats, units: Floats, slopes: Floats, errors: Floats, spread: Floats, damping: float) -> Floats:
    """The damped step of weighted least squares; a constant that would become negative stays at nothing."""
    size = np.maximum(np.abs(errors * spread), 1e-12)
    weights = np.sqrt(np.minimum(1.0, _HUBER / size))
    active = np.ones(len(values), dtype=bool)
    step = np.zeros(len(values))
    while active.any():
        part: Floats = slopes[:, active] * weights[:, None]
        gram: Floats = part.T @ part
        ridge: Floats = damping * np.diag(np.diag(gram) + 1e-9 * np.trace(gram) + 1e-15)
        step = np.zeros(len(values))
        step[active] = np.linalg.lstsq(gram + ridge, -part.T @ (errors * weights), rcond=None)[0]
        stuck = active & (values <= 0) & (step < 0)
        if not stuck.any():
            break
        active &= ~stuck
    return np.asarray(np.maximum(values + step * units, 0.0))


def _polish(search: _Search, values: Floats, units: Floats, told: Told) -> Floats:
    """Move along one direction after another, up and down, where that is clearly better."""
    loss = _loss(search.residual(values), search.count)
    for move in _MOVES:
        told(f"last search, in moves of {move:.0%}: loss {loss:.4g}")
        for direction in _directions(search.names, values, units):
            for sign in (1, -1):
                trial = np.maximum(values + sign * move * direction, 0.0)
                trial_loss = _loss(search.residual(trial), search.count)
                if trial_loss < loss * (1 - _GAIN):
                    values, loss = trial, trial_loss
                    break
    return values


def _directions(names: Sequence[str], values: Floats, units: Floats) -> list[Floats]:
    """What of a fixed time is the batch's, all of prefill, all of decoding, and each constant alone."""
    sizes = np.maximum(values, _LEAST_STEP * units)
    fixed = values[names.index("request")] + values[names.index("prefill_batch")]
    split = np.array([{"request": -fixed, "prefill_batch": fixed}.get(name, 0.0) for name in names])
    groups = [np.array([float(name in group) for name in names]) * sizes for group in (PREFILL, DECODE)]
    return [split, *groups, *np.diag(sizes)]
