"""Families of distributions for whole numbers: their likelihood, and the parameters that make it highest.

A value is known to a half: `x` says that the draw lay in x - 0.5 ... x + 0.5, the lowest value that everything below
it was moved there, a value that was a limit that everything above it was. Below `NARROW` these cells are exact; above,
the density times the cell's width is as good. Families are compared by BIC, k ln n - 2 ln L for k parameters.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from agentx.functions import gamma_share_below, log_gamma

NARROW = 50  # from here a cell is at most 2 % wide
_TINY = 1e-300
Array = npt.NDArray[np.float64]
Curve = Callable[[Array], Array]


@dataclass(frozen=True, slots=True)
class Sample:
    """Whole numbers with their counts, in ascending order; `floor`, `cap`: values that stand for all beyond them."""

    values: Array
    counts: Array
    floor: float | None
    cap: float | None

    @property
    def n(self) -> float:
        return float(self.counts.sum())

    @property
    def positive(self) -> tuple[Array, Array]:
        """Values as points, 0 moved to the middle of its cell, and their counts."""
        return np.maximum(self.values, 0.25), self.counts


@dataclass(frozen=True, slots=True)
class Candidate:
    """A family with its best parameters, as the spec names them, and its BIC."""

    family: str
    parameters: tuple[float, ...]
    bic: float


def likelihood(sample: Sample, density: Curve, below: Curve) -> float:
    """ln L of a sample: `density` is the logarithm of the density, `below` the distribution function."""
    x, counts = sample.values, sample.counts
    if sample.cap is not None:
        inside = x < sample.cap
        above = 1 - below(np.array([sample.cap - 0.5]))
        total = float(np.dot(counts[~inside], np.log(np.maximum(np.repeat(above, (~inside).sum()), _TINY))))
        x, counts = x[inside], counts[inside]
    else:
        total = 0.0
    wide = x < NARROW
    low = np.where(x[wide] == sample.floor, 0.0, np.maximum(x[wide] - 0.5, 0.0))
    cells = below(x[wide] + 0.5) - below(low)
    total += float(np.dot(counts[wide], np.log(np.maximum(cells, _TINY))))
    return total + float(np.dot(counts[~wide], np.maximum(density(x[~wide]), math.log(_TINY))))


# --- the families --------------------------------------------------------------------------------------------------


def _lognormal(mu: float, sigma: float) -> tuple[Curve, Curve]:
    def density(x: Array) -> Array:
        return -np.log(x * sigma * math.sqrt(2 * math.pi)) - (np.log(x) - mu) ** 2 / (2 * sigma * sigma)

    def below(x: Array) -> Array:
        return np.array([_normal_below((math.log(each) - mu) / sigma) if each > 0 else 0.0 for each in x])

    return density, below


def _normal_below(z: float) -> float:
    return 0.5 * math.erfc(-z / math.sqrt(2))


def _normal(mean: float, sd: float) -> tuple[Curve, Curve]:
    def density(x: Array) -> Array:
        return -math.log(sd * math.sqrt(2 * math.pi)) - (x - mean) ** 2 / (2 * sd * sd)

    return density, lambda x: np.array([_normal_below((each - mean) / sd) if each > 0 else 0.0 for each in x])


def _weibull(shape: float, scale: float) -> tuple[Curve, Curve]:
    def density(x: Array) -> Array:
        z = x / scale
        return math.log(shape / scale) + (shape - 1) * np.log(z) - z**shape

    return density, lambda x: -np.expm1(-((x / scale) ** shape))


def _gamma(shape: float, scale: float) -> tuple[Curve, Curve]:
    def density(x: Array) -> Array:
        return (shape - 1) * np.log(x / scale) - x / scale - math.log(scale) - log_gamma(shape)

    return density, lambda x: np.array([gamma_share_below(shape, each / scale) if each > 0 else 0.0 for each in x])


def _burr12(c: float, d: float, scale: float) -> tuple[Curve, Curve]:
    def density(x: Array) -> Array:
        lean = np.log(x / scale)
        return math.log(c * d / scale) + (c - 1) * lean - (d + 1) * np.logaddexp(0, c * lean)

    def below(x: Array) -> Array:
        return -np.expm1(-d * np.logaddexp(0, c * np.log(np.maximum(x, _TINY) / scale)))

    return density, below


_CURVES: dict[str, Callable[..., tuple[Curve, Curve]]] = {
    "lognormal": _lognormal,
    "weibull": _weibull,
    "gamma": _gamma,
    "burr12": _burr12,
    "normal": _normal,
}
_PARAMETERS = {"uniform": 2, "geometric": 1, "lognormals": 5}


def candidates(sample: Sample) -> list[Candidate]:
    """Every family that can have made a sample of at least two different values, the likeliest first."""
    x, counts = sample.positive
    n = sample.n
    logs = np.log(x)
    mu = float(np.average(logs, weights=counts))
    spread = max(1e-3, math.sqrt(float(np.average((logs - mu) ** 2, weights=counts))))
    mean = float(np.average(x, weights=counts))
    sd = max(1e-3, math.sqrt(float(np.average((x - mean) ** 2, weights=counts))))
    lean = max(1e-6, math.log(mean) - mu)
    shape = min(max((3 - lean + math.sqrt((lean - 3) ** 2 + 24 * lean)) / (12 * lean), 1e-2), 1e5)  # of the gamma
    steep = min(max(1.28 / spread, 0.05), 50.0)  # a Weibull's logarithm has a deviation of 1.28 / shape
    found = [
        _climb(sample, "lognormal", (mu, spread), free=(True, False)),
        _climb(sample, "weibull", (steep, math.exp(mu + 0.577 / steep))),
        _climb(sample, "burr12", (1.8 / spread, 1.0, math.exp(mu))),
        _at(sample, "gamma", (shape, mean / shape)),
        _at(sample, "normal", (mean, sd)),
        _uniform(sample),
    ]
    if sample.values[0] >= 1 and sample.cap is None:
        found.append(_geometric(sample, mean))
    if n >= 100:
        found.append(_two_lognormals(sample))
    return sorted(found, key=lambda each: each.bic)


def _bic(sample: Sample, family: str, parameters: Sequence[float]) -> float:
    return len(parameters) * math.log(sample.n) - 2 * likelihood(sample, *_CURVES[family](*parameters))


def _at(sample: Sample, family: str, parameters: tuple[float, ...]) -> Candidate:
    return Candidate(family, parameters, _bic(sample, family, parameters))


def _climb(sample: Sample, family: str, start: tuple[float, ...], free: tuple[bool, ...] | None = None) -> Candidate:
    """The best parameters near `start`; those that are not `free` to be negative are searched by their logarithm."""
    signed = free or (False,) * len(start)

    def real(point: Array) -> tuple[float, ...]:
        bounded = np.clip(point, -30, 30)
        return tuple(float(v if any_sign else math.exp(v)) for v, any_sign in zip(bounded, signed, strict=True))

    def cost(point: Array) -> float:
        with np.errstate(all="ignore"):
            value = _bic(sample, family, real(point))
        return value if math.isfinite(value) else math.inf

    begin = np.array([v if any_sign else math.log(v) for v, any_sign in zip(start, signed, strict=True)])
    best = simplex(cost, begin)
    return Candidate(family, real(best), cost(best))


def _uniform(sample: Sample) -> Candidate:
    low, high = float(sample.values[0]), float(sample.values[-1])
    bic = 2 * math.log(sample.n) + 2 * sample.n * math.log(high - low + 1)
    return Candidate("uniform", (max(0.0, low - 0.5), high + 0.49), bic)


def _geometric(sample: Sample, mean: float) -> Candidate:
    stop = 1 / max(mean, 1 + 1e-9)
    total = float(np.dot(sample.counts, math.log(stop) + (sample.values - 1) * math.log1p(-stop)))
    return Candidate("geometric", (max(mean, 1.0),), math.log(sample.n) - 2 * total)


def _two_lognormals(sample: Sample) -> Candidate:
    """Two lognormals by expectation and maximisation: (weight, mu, sigma, mu, sigma), the lower one first."""
    x, counts = sample.positive
    logs = np.log(x)
    centre = float(np.average(logs, weights=counts))
    upper = (logs > centre).astype(float)
    parts: list[tuple[float, float, float]] = []
    for _ in range(80):
        parts = [_part(logs, counts * share) for share in (1 - upper, upper)]
        low, high = (weight * _bell(logs, mu, sigma) for weight, mu, sigma in parts)
        upper = high / np.maximum(low + high, _TINY)
    (share, *first), (rest, *second) = parts
    first_density, first_below = _lognormal(first[0], first[1])
    second_density, second_below = _lognormal(second[0], second[1])
    share, rest = max(share, 1e-9) / sample.n, max(rest, 1e-9) / sample.n

    def density(values: Array) -> Array:
        return np.logaddexp(math.log(share) + first_density(values), math.log(rest) + second_density(values))

    def below(values: Array) -> Array:
        return share * first_below(values) + rest * second_below(values)

    bic = 5 * math.log(sample.n) - 2 * likelihood(sample, density, below)
    return Candidate("lognormals", (share / (share + rest), *first, *second), bic)


def _part(logs: Array, weights: Array) -> tuple[float, float, float]:
    total = max(float(weights.sum()), 1e-9)
    mu = float(np.dot(weights, logs)) / total
    return total, mu, max(0.05, math.sqrt(float(np.dot(weights, (logs - mu) ** 2)) / total))


def _bell(logs: Array, mu: float, sigma: float) -> Array:
    return np.asarray(np.exp(-((logs - mu) ** 2) / (2 * sigma * sigma)) / sigma)


def simplex(cost: Callable[[Array], float], start: Array, rounds: int = 160) -> Array:
    """A point of low cost near `start`, by Nelder and Mead's downhill simplex (Computer Journal 7, 1965)."""
    points = [start, *(start + 0.2 * each for each in np.eye(len(start)))]
    ranked = sorted(((cost(point), point) for point in points), key=lambda pair: pair[0])
    for _ in range(rounds):
        if ranked[-1][0] - ranked[0][0] < 1e-6 * (1 + abs(ranked[0][0])):
            break
        worst = ranked[-1][1]
        centre = sum((point for _, point in ranked[:-1]), np.zeros(len(start))) / (len(ranked) - 1)
        tried = _try(cost, centre, worst, -1.0)
        if tried[0] < ranked[0][0]:
            tried = min(tried, _try(cost, centre, worst, -2.0), key=lambda pair: pair[0])
        elif tried[0] >= ranked[-2][0]:
            tried = min(tried, _try(cost, centre, worst, 0.5), key=lambda pair: pair[0])
        if tried[0] < ranked[-1][0]:
            ranked[-1] = tried
        else:
            best = ranked[0][1]
            ranked[1:] = [(cost(moved), moved) for moved in (best + (point - best) / 2 for _, point in ranked[1:])]
        ranked.sort(key=lambda pair: pair[0])
    return ranked[0][1]


def _try(cost: Callable[[Array], float], centre: Array, worst: Array, factor: float) -> tuple[float, Array]:
    point = centre + factor * (worst - centre)
    return cost(point), point
