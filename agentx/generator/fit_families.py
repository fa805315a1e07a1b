"""A sample becomes a distribution as a spec writes it: the likeliest family that fits, else the sample's own curve.

Families are tried in the order of their BIC; the first whose numbers, as they are written, keep the sample's median,
ninth decile, mean and shape is taken. Where none does, or there are too few values to tell one family from another,
the sample's quantiles stand for it. Values of one kind only are `fixed`; a few kinds are a mixture of them. Zeros that
are too many for a smooth family are a part of their own. Draws are never outside what was seen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from agentx.distributions import Distribution, whole
from agentx.generator.fit_likelihood import Candidate, Sample, candidates
from agentx.generator.quantities import Counts, Shares, Times

Unit = Literal["tokens", "seconds", "share"]
ENOUGH = 20  # values, to tell families apart
FEW_KINDS = 8  # different values that are listed one by one
MOST = 4000  # values that are judged; more are thinned evenly by rank
COMMON = 0.6  # share of one value (but the lowest) from which on no smooth family is tried
ZEROS = 0.05  # share of zeros that is a part of its own
GRID = 400  # draws of a distribution, evenly spaced, that stand for it
CLOSE = 0.025  # distance that is always near enough; else 1.36 / root n, the 5 % point of Kolmogorov and Smirnov
_PER_UNIT = {"tokens": 1.0, "seconds": 1000.0, "share": 1000.0}  # whole numbers in one: tokens, ms, per mille
_POINTS = (0.0, 0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99)
MORE_POINTS = 8  # put where the curve is furthest from the sample
_MODELS: dict[Unit, type[Distribution[Any]]] = {"tokens": Counts, "seconds": Times, "share": Shares}
Shape = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Fit:
    """What a spec writes, its family, the number of values, and the distance from them (None: there were none)."""

    shape: Any
    family: str
    n: int
    ks: float | None = None

    @property
    def told(self) -> str:
        """How well it fits, in a few words."""
        if self.ks is None:
            return "assumed: the trace has none"
        return f"{self.family}, KS {self.ks:.3f}, n {self.n:,}"


def fit(values: Sequence[float], unit: Unit = "tokens", *, least: int = 0, otherwise: float = 0) -> Fit:
    """The distribution of `values`, in tokens, seconds or shares. `otherwise` stands in where there are none.

    `least` is the value that the generator moves lower draws to.
    """
    if not len(values):
        return Fit(_quantity(otherwise, unit), "fixed", 0)
    exact = np.sort(np.round(np.asarray(values, float) * _PER_UNIT[unit]))
    thin = exact if len(exact) <= MOST else exact[((np.arange(MOST) + 0.5) * len(exact) / MOST).astype(int)]
    kinds, counts = np.unique(thin, return_counts=True)
    if len(kinds) == 1:
        return Fit(_quantity(float(kinds[0]) / _PER_UNIT[unit], unit), "fixed", len(values), 0.0)
    few = len(kinds) <= FEW_KINDS and len(thin) >= 3 * len(kinds)
    zeros = float(np.mean(thin == 0)) if least == 0 else 0.0
    if zeros >= ZEROS:
        rest = fit([float(each) / _PER_UNIT[unit] for each in thin[thin > 0]], unit, least=1)
        return _judged(_with_zeros(zeros, rest.shape, unit), f"zeros and {rest.family}", thin, unit, 0, len(values))
    common = float(counts[1:].max()) / len(thin)  # of the lowest value, a steep family may well have most
    if len(thin) >= ENOUGH and len(kinds) > 3 and common < COMMON and unit != "share":
        for candidate in candidates(_sample(kinds, counts, least)):
            if (candidate.family == "geometric" and unit != "tokens") or max(candidate.parameters) > 100 * kinds[
                -1
            ] + 100:
                continue  # whole numbers only; and no parameter without a meaning
            shape = _written(candidate, thin, unit, _limits(kinds, counts, least, unit))
            found = _judged(shape, candidate.family, thin, unit, least, len(values))
            if (
                found.ks is not None
                and found.ks <= max(CLOSE, 1.36 / math.sqrt(len(thin)))
                and _kept(found, thin, unit, least)
            ):
                return found
    if few:
        return _judged(_listed(kinds, counts, unit), "listed", thin, unit, least, len(values))
    return _judged({"quantiles": _curve(thin, unit)}, "quantiles", thin, unit, least, len(values))


def _sample(kinds: Any, counts: Any, least: int) -> Sample:
    """Values at an end that occur too often for a tail are limits, where draws from beyond were moved to."""
    total = counts.sum()
    floor = float(kinds[0]) if kinds[0] <= least or counts[0] >= max(3, 0.01 * total) else None
    cap = float(kinds[-1]) if counts[-1] >= max(3, 0.002 * total) and counts[-1] > counts[-2] else None
    return Sample(kinds, counts.astype(float), floor, cap)


def _limits(kinds: Any, counts: Any, least: int, unit: Unit) -> Shape:
    limits = {"max": _quantity(float(kinds[-1]) / _PER_UNIT[unit], unit)}
    if kinds[0] > least and counts[0] >= max(3, 0.01 * counts.sum()):
        limits = {"min": _quantity(float(kinds[0]) / _PER_UNIT[unit], unit), **limits}
    return limits


def _written(candidate: Candidate, values: Any, unit: Unit, limits: Shape) -> Shape:
    """A candidate as a spec writes it, with rounded parameters and the values' limits."""
    per, (first, *more) = _PER_UNIT[unit], candidate.parameters
    family = candidate.family
    if family == "lognormals":
        parts = [(first, more[0], more[1]), (1 - first, more[2], more[3])]
        mixed: list[dict[str, Any]] = []
        for weight, mu, sigma in parts:
            body = {"median": _quantity(math.exp(mu) / per, unit), "sigma": _short(sigma)}
            mixed.append({"weight": round(weight, 4), "lognormal": body})
        mixed[1]["weight"] = round(1 - mixed[0]["weight"], 4)
        return {"mixture": [part for part in mixed if part["weight"]], **limits}
    if family == "uniform":
        return {"uniform": {"low": _quantity(first / per, unit, 9), "high": _quantity(more[0] / per, unit, 9)}}
    if family == "geometric":
        return {"geometric": {"mean": _short(first)}, **limits}
    if family == "lognormal":
        return {"lognormal": {"median": _quantity(math.exp(first) / per, unit), "sigma": _short(more[0])}, **limits}
    if family == "burr12":
        return {"burr12": {"c": _short(first), "d": _short(more[0]), "scale": _quantity(more[1] / per, unit)}, **limits}
    if family == "normal":
        least = {"min": _quantity(float(values[0]) / per, unit)}
        return {
            "normal": {"mean": _quantity(first / per, unit), "sd": _quantity(more[0] / per, unit)},
            **least,
            **limits,
        }
    return {family: {"shape": _short(first), "scale": _quantity(more[0] / per, unit)}, **limits}


def _judged(shape: Any, family: str, values: Any, unit: Unit, least: int, n: int) -> Fit:
    return Fit(shape, family, n, distance(values, drawn(shape, unit, least)))


def drawn(shape: Any, unit: Unit, least: int = 0) -> list[float]:
    """About `GRID` evenly spaced draws of what a spec writes, in ascending order, as whole tokens, ms or per mille."""
    return sorted(_draws(shape, unit, least, [(step + 0.5) / GRID for step in range(GRID)]))


def _draws(shape: Any, unit: Unit, least: int, points: Sequence[float]) -> list[float]:
    """Quantiles at `points`; a mixture's parts have as many of them as their weights say."""
    if isinstance(shape, dict) and "mixture" in shape:
        limits = {name: shape[name] for name in ("min", "max") if name in shape}
        made: list[float] = []
        for part in shape["mixture"]:
            own = {**limits, **{key: value for key, value in part.items() if key != "weight"}}
            count = max(1, round(part["weight"] * len(points)))
            made += _draws(own, unit, least, [(step + 0.5) / count for step in range(count)])
        return made
    model = _MODELS[unit].model_validate(shape)
    return [float(max(least, whole(model.quantile(point) * _PER_UNIT[unit]))) for point in points]


def mean(shape: Any, unit: Unit, least: int = 0) -> float:
    """The mean of what a spec writes, in the same whole numbers, its upper tail taken apart ever finer."""
    if isinstance(shape, dict) and "mixture" in shape:
        limits = {name: shape[name] for name in ("min", "max") if name in shape}
        parts = [(part["weight"], {k: v for k, v in part.items() if k != "weight"}) for part in shape["mixture"]]
        return float(sum(weight * mean({**limits, **part}, unit, least) for weight, part in parts))
    total, low = 0.0, 0.0
    for high in (0.9, 0.99, 0.999, 0.9999, 1.0):
        points = [low + (high - low) * (step + 0.5) / 50 for step in range(50)]
        total += (high - low) * sum(_draws(shape, unit, least, points)) / 50
        low = high
    return total


def distance(left: Sequence[float], right: Sequence[float]) -> float:
    """The two-sample Kolmogorov-Smirnov distance of values in ascending order, at least one on either side."""
    a, b = np.asarray(left, float), np.asarray(right, float)
    points = np.union1d(a, b)
    below = np.searchsorted(a, points, side="right") / len(a) - np.searchsorted(b, points, side="right") / len(b)
    return float(np.abs(below).max())


def _kept(found: Fit, values: Any, unit: Unit, least: int) -> bool:
    """Whether a distribution has its sample's median (to 5 %), ninth decile (12 %) and mean (6 %), or to a half.

    A few values with a heavy tail do not tell these so well: a standard error of the median, but no more than 9 %, or
    two of the mean, but no more than 15 %, are near enough too.
    """
    mine = np.asarray(drawn(found.shape, unit, least))
    low, middle, high = (float(np.quantile(values, 0.5 + side / math.sqrt(len(values)))) for side in (-0.5, 0, 0.5))
    average = float(values.mean())
    loose = min(2 * float(values.std()) / math.sqrt(len(values)), 0.15 * average)
    pairs = (
        (float(np.median(mine)), middle, 0.05, min((high - low) / 2, 0.09 * middle)),
        (float(np.quantile(mine, 0.9)), float(np.quantile(values, 0.9)), 0.12, 0.0),
        (mean(found.shape, unit, least), average, 0.06, loose),
    )
    return all(abs(made - wanted) <= max(0.5, share * wanted, error) for made, wanted, share, error in pairs)


def _listed(kinds: Any, counts: Any, unit: Unit) -> Shape:
    total, per = counts.sum(), _PER_UNIT[unit]
    weights = [max(round(float(count / total), 6), 1e-6) for count in counts]
    weights[int(np.argmax(counts))] += 1 - sum(weights)
    parts = zip(kinds, weights, strict=True)
    return {
        "mixture": [
            {"weight": round(share, 6), "fixed": _quantity(float(kind) / per, unit, 9)} for kind, share in parts
        ]
    }


def _with_zeros(zeros: float, rest: Any, unit: Unit) -> Shape:
    share = round(zeros, 4)
    parts = [_plain(rest)]
    if "mixture" in parts[0]:
        limits = {name: limit for name, limit in parts[0].items() if name != "mixture"}
        parts = [{**part, **limits} for part in parts[0]["mixture"]]
    weights = [round((1 - share) * part.get("weight", 1.0), 6) for part in parts]
    weights[0] = round(weights[0] + 1 - share - sum(weights), 6)
    mixed = [{**part, "weight": weight} for part, weight in zip(parts, weights, strict=True)]
    return {"mixture": [{"weight": share, "fixed": _quantity(0, unit)}, *mixed]}


def _plain(shape: Any) -> Shape:
    return shape if isinstance(shape, dict) else {"fixed": shape}


def _curve(values: Any, unit: Unit) -> dict[float, Any]:
    """The sample's quantiles. The last point is where the mean of what is above the one before it asks for it."""
    per, n = _PER_UNIT[unit], len(values)
    if n < 2 * len(_POINTS):
        return {round((at + 0.5) / n, 4): _quantity(float(value) / per, unit) for at, value in enumerate(values)}
    points = {p: float(np.quantile(values, p)) for p in _POINTS}
    ranks = (np.arange(n) + 0.5) / n
    for _ in range(MORE_POINTS):
        known = sorted(points)
        levels = [points[p] for p in known]
        off = np.abs(np.interp(values, levels, known) - ranks) * ((ranks < 0.99) & ~np.isin(values, levels))
        if off.max() < CLOSE / 2:
            break
        p = round(float(ranks[int(off.argmax())]), 4)
        points[p] = float(np.quantile(values, p))
    low, high = points[0.99], float(values[-1])
    above = float(values[-(n // 100 or 1) :].mean())
    points[1.0] = max(low, min(high, 2 * above - low))
    if 2 * above - low > high > low:  # even a straight line to the highest value is below the mean: reach it earlier
        points[round(max(0.9901, 1 - 0.01 * (2 * above - low - high) / (high - low)), 6)] = high
    points = dict(sorted(points.items()))
    return {p: _quantity(value / per, unit) for p, value in points.items()}


def seconds_text(value: float) -> str:
    """Seconds as a spec writes them, without an exponent."""
    number, unit = (value, "s") if value >= 1 or not value else (value * 1000, "ms")
    return f"{number:.3f}".rstrip("0").rstrip(".") + unit


def _short(value: float) -> float:
    """Four significant digits."""
    return float(f"{value:.4g}")


def _quantity(value: float, unit: Unit, digits: int = 5) -> Any:
    """A quantity as a spec writes it, to so many significant digits."""
    short = float(f"{value:.{digits}g}")
    if unit == "seconds":
        return seconds_text(short)
    return int(short) if short == int(short) else short
