"""Likelihoods of whole numbers, and the search for their maximum."""

from __future__ import annotations

import math

import numpy as np
import pytest

from agentx.generator.fit_likelihood import _CURVES, Sample, candidates, likelihood, simplex


@pytest.mark.parametrize(
    ("family", "parameters"),
    [("lognormal", (2.0, 0.7)), ("weibull", (1.4, 9.0)), ("gamma", (2.0, 5.0)), ("burr12", (3.0, 0.5, 6.0)),
     ("normal", (12.0, 4.0))],
)  # fmt: skip
def test_a_density_is_the_slope_of_its_distribution_function(family: str, parameters: tuple[float, ...]) -> None:
    density, below = _CURVES[family](*parameters)
    for x in (3.0, 8.0, 20.0):
        slope = (below(np.array([x + 1e-4])) - below(np.array([x - 1e-4]))) / 2e-4
        assert math.exp(float(density(np.array([x]))[0])) == pytest.approx(float(slope[0]), rel=1e-3)


def test_cells_hold_what_was_moved_to_a_limit() -> None:
    density, below = _CURVES["weibull"](1.0, 10.0)
    everything = Sample(np.array([1.0, 2.0]), np.array([1.0, 1.0]), floor=1.0, cap=2.0)
    moved = math.log(1 - math.exp(-0.15)) + math.log(math.exp(-0.15))  # all below 1.5 is 1, all above it is 2
    assert likelihood(everything, density, below) == pytest.approx(moved)


def test_a_parameter_more_must_pay() -> None:
    values = np.arange(1, 60, dtype=float)
    counts = np.round(1e6 * 0.9 ** (values - 1) * 0.1)
    best = candidates(Sample(values, counts, 1.0, None))[0]
    assert best.family == "geometric"
    assert best.parameters[0] == pytest.approx(10, rel=0.03)


def test_the_simplex_finds_a_valley() -> None:
    found = simplex(lambda p: float((p[0] - 3) ** 2 + 10 * (p[1] + 1) ** 2), np.array([0.0, 0.0]))
    assert found == pytest.approx([3, -1], abs=0.02)
