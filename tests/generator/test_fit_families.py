"""A sample becomes the distribution that it was drawn from, or its own quantiles."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.distributions import Bits, whole
from agentx.generator.fit_families import drawn, fit, mean
from agentx.generator.quantities import Counts, Shares, Times


def sample(shape: Any, n: int, model: Any = Counts, per: int = 1) -> list[float]:
    law, bits = model.model_validate(shape), Bits(1, "sample")
    return [max(1, whole(law.draw(bits) * per)) / per for _ in range(n)]


@pytest.mark.parametrize(
    ("shape", "family"),
    [
        ({"lognormal": {"median": 500, "sigma": 0.9}}, "lognormal"),
        ({"lognormal": {"median": 3, "sigma": 1.75}, "max": 90}, "lognormal"),  # small numbers, and a limit
        ({"weibull": {"shape": 1.2, "scale": 60}}, "weibull"),
        ({"gamma": {"shape": 2, "scale": 80}}, "gamma"),
        ({"burr12": {"c": 4.5, "d": 0.25, "scale": 118}, "max": 32000}, "burr12"),
        ({"geometric": {"mean": 4.5}}, "geometric"),
        ({"normal": {"mean": 300, "sd": 40}}, "normal"),
        ({"uniform": {"low": 100, "high": 900}}, "uniform"),
        ({"mixture": [{"weight": 0.6, "lognormal": {"median": 200, "sigma": 0.3}},
                      {"weight": 0.4, "lognormal": {"median": 9000, "sigma": 0.4}}]}, "lognormals"),
        ({"mixture": [{"weight": 0.6, "fixed": 3}, {"weight": 0.4, "fixed": 90}]}, "listed"),
        (30, "fixed"),
        ({"quantiles": {0: 5, 0.3: 6, 0.31: 400, 0.6: 410, 0.61: 3000, 1: 4000}}, "quantiles"),  # no family is like it
    ],
)  # fmt: skip
def test_a_sample_of_a_family_is_told_to_be_of_it(shape: Any, family: str) -> None:
    found = fit(sample(shape, 2000), least=1)
    assert found.family == family
    assert found.ks is not None
    assert found.ks < 0.03
    assert Counts.model_validate(found.shape).quantile(0.5) == pytest.approx(
        Counts.model_validate(shape).quantile(0.5), rel=0.1
    )


def test_parameters_are_found_again() -> None:
    found = fit(sample({"lognormal": {"median": 200, "sigma": 2.0}}, 4000), least=1)
    assert found.shape["lognormal"]["median"] == pytest.approx(200, rel=0.06)
    assert found.shape["lognormal"]["sigma"] == pytest.approx(2.0, rel=0.06)


def test_seconds_have_units_and_shares_none() -> None:
    times = fit(sample({"lognormal": {"median": "400ms", "sigma": 1}}, 1000, Times, 1000), "seconds")
    assert times.family == "lognormal"
    assert times.shape["lognormal"]["median"].endswith("ms")
    shares = fit(sample({"uniform": {"low": 0.2, "high": 0.8}}, 500, Shares, 1000), "share")
    assert Shares.model_validate(shares.shape).quantile(0.5) == pytest.approx(0.5, abs=0.05)


def test_zeros_are_a_part_of_their_own() -> None:
    values = [0.0] * 600 + sample({"lognormal": {"median": 180, "sigma": 0.3}}, 1400)
    found = fit(values)
    assert found.family == "zeros and lognormal"
    assert found.shape["mixture"][0] == {"weight": 0.3, "fixed": 0}


def test_nothing_and_a_few_values() -> None:
    assert fit([], otherwise=7).shape == 7
    assert fit([], "seconds", otherwise=30).shape == "30s"
    assert fit([]).ks is None
    assert fit([4]).shape == 4
    few = fit([10, 20, 40])
    assert few.family == "quantiles"
    assert Counts.model_validate(few.shape).quantile(0.5) == 20


def test_a_heavy_tail_keeps_its_mean_when_no_family_fits() -> None:
    values = [5.0] * 900 + [float(400 + 37 * step) for step in range(90)] + [50_000.0] * 10
    found = fit(values, least=1)
    assert found.family == "quantiles"
    assert mean(found.shape, "tokens", 1) == pytest.approx(sum(values) / len(values), rel=0.12)


@given(st.lists(st.integers(0, 10**6), min_size=1, max_size=60), st.sampled_from([0, 1]))
def test_whatever_the_values_the_spec_takes_it_and_stays_within_them(values: list[int], least: int) -> None:
    values = [max(least, value) for value in values]
    found = fit([float(value) for value in values], least=least)
    made = drawn(found.shape, "tokens", least)
    assert made[-1] <= float(f"{max(values):.5g}") + 1
    assert made[0] >= least


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=60))
def test_whatever_the_seconds_the_spec_takes_them(values: list[float]) -> None:
    found = fit(values, "seconds")
    assert 0 <= drawn(found.shape, "seconds")[-1] <= 1000 * float(f"{max(values):.5g}") + 1


def test_seconds_far_apart_have_no_parameter_that_means_nothing() -> None:
    found = fit([4.21] * 150 + [3058.9] * 40 + [1000.0 + step for step in range(110)], "seconds")
    assert "e+" not in str(found.shape)
