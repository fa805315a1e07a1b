"""Draws are the same everywhere, follow their shape, and a shape that makes no sense is refused."""

from __future__ import annotations

import math
import statistics
from typing import Annotated, Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx import distributions
from agentx.distributions import Bits, Distribution

Plain = Distribution[Annotated[float, pydantic.Field(ge=0)]]

GOLDEN_BITS = [
    0.8657684259096224,
    0.26971560720452603,
    0.26335980685486515,
    0.1161071499472538,
    0.453071177088899,
    0.19442841097884667,
    0.5062965835669201,
    0.5949169710042993,
    0.3001869929187443,
]


def make(value: Any) -> Plain:
    return Plain.model_validate(value)


def test_bits_are_golden() -> None:
    # A change here changes every generated trace.
    bits = Bits(7, "gap", 3)
    assert [bits.uniform() for _ in range(9)] == GOLDEN_BITS


def test_streams_depend_on_each_part_of_their_name() -> None:
    names = [(1, "a", 2), (2, "a", 2), (1, "b", 2), (1, "a", 3), (1, "a2"), (1, "a", "2")]
    assert len({Bits(*name).uniform() for name in names}) == len(names)
    assert Bits(1, "a").uniform() == Bits(1, "a").uniform()


def test_uniforms_are_uniform() -> None:
    bits = Bits(0)
    draws = [bits.uniform() for _ in range(20_000)]
    assert statistics.mean(draws) == pytest.approx(0.5, abs=0.01)
    assert statistics.pvariance(draws) == pytest.approx(1 / 12, rel=0.03)
    assert 0 < min(draws) < max(draws) < 1


QUANTILES = [
    # (spec, p, value by hand)
    (5, 0.3, 5),
    ({"fixed": 5}, 0.9, 5),
    ({"uniform": {"low": 2, "high": 4}}, 0.25, 2.5),
    ({"normal": {"mean": 10, "sd": 2}}, 0.975, 13.919928),
    ({"lognormal": {"median": 300, "sigma": 1.2}}, 0.5, 300),
    ({"lognormal": {"median": 300, "sigma": 1.2}}, 0.9, 300 * math.exp(1.2 * 1.2815516)),
    ({"lognormal": {"median": 300, "sigma": 9}, "max": 400}, 0.9, 400),
    ({"lognormal": {"median": 300, "sigma": 9}, "min": 200}, 0.1, 200),
    ({"lognormal": {"median": 300, "sigma": 1e4}}, 0.9, 1e15),  # no draw is infinite
    ({"weibull": {"shape": 1, "scale": 3}}, 0.5, 3 * math.log(2)),
    ({"weibull": {"shape": 0.5, "scale": 3}}, 0.9, 3 * math.log(10) ** 2),
    ({"gamma": {"shape": 1, "scale": 3}}, 0.5, 3 * math.log(2)),
    ({"gamma": {"shape": 5, "scale": 2}}, 0.95, 2 * 9.153519),  # half of the chi-square of 10 degrees
    ({"burr12": {"c": 4.516, "d": 0.2547, "scale": 118}}, 0.5, 118 * (0.5 ** (-1 / 0.2547) - 1) ** (1 / 4.516)),
    ({"geometric": {"mean": 2}}, 0.5, 1),
    ({"geometric": {"mean": 2}}, 0.51, 2),
    ({"geometric": {"mean": 1}}, 0.99, 1),
    ({"quantiles": {"0.5": 10, "1": 20, "0": 0}}, 0.75, 15),
    ({"quantiles": {"0.4": 10, "0.6": 20}}, 0.1, 10),  # level outside
    ({"quantiles": {"0.4": 10, "0.6": 20}}, 0.9, 20),
    ({"mixture": [{"weight": 0.5, "fixed": 3}, {"weight": 0.5, "uniform": {"low": 10, "high": 20}}]}, 0.75, 15),
    ({"mixture": [{"weight": 0.5, "fixed": 3}, {"weight": 0.5, "uniform": {"low": 10, "high": 20}}]}, 0.4, 3),
]


@pytest.mark.parametrize(("spec", "p", "value"), QUANTILES)
def test_quantiles(spec: Any, p: float, value: float) -> None:
    assert make(spec).quantile(p) == pytest.approx(value, rel=1e-6)


@pytest.mark.parametrize("spec", [spec for spec, *_ in QUANTILES if isinstance(spec, dict)])
def test_draws_follow_the_quantiles(spec: Any) -> None:
    shape, bits = make(spec), Bits(3, "draws")
    draws = sorted(shape.draw(bits) for _ in range(2000))
    for p in (0.2, 0.45, 0.8):
        # Half a per cent of probability around p, widened by four standard errors of an empirical quantile.
        assert shape.quantile(p - 0.05) <= draws[int(p * len(draws))] <= shape.quantile(p + 0.05)


@given(st.floats(min_value=0.001, max_value=0.998))
def test_quantiles_never_fall(p: float) -> None:
    for spec, *_ in QUANTILES:
        if "mixture" not in str(spec):
            assert make(spec).quantile(p) <= make(spec).quantile(p + 0.001)


REFUSED = [
    ({}, "needs exactly one of fixed, uniform"),
    ({"fixed": 1, "uniform": {"low": 1, "high": 2}}, "fixed and uniform are given"),
    ({"fixed": 3, "min": 5, "max": 4}, "min 5 is more than max 4"),
    ({"uniform": {"low": 5, "high": 4}}, "low 5 is more than high 4"),
    ({"lognormal": {"median": 5, "sigma": -1}}, "greater than or equal to 0"),
    ({"geometric": {"mean": 0.5}}, "greater than or equal to 1"),
    ({"quantiles": {"0.5": 5}}, "at least two points"),
    ({"quantiles": {"0.5": 5, "0.9": 4}}, "quantile 0.9 is 4, less than 5 at 0.5"),
    ({"quantiles": {"0.5": 5, "1.5": 6}}, "must rise from 0 to 1"),
    ({"quantiles": {"half": 5}}, "should be probability: value"),
    ({"mixture": [{"weight": 0.5, "fixed": 1}, {"weight": 0.4, "fixed": 2}]}, "the weights sum to 0.9, not 1"),
    ({"mixture": [{"fixed": 1}]}, "weight"),
    ({"fixed": -1}, "greater than or equal to 0"),
    ("many", "valid number"),
    ({"fixed": math.inf}, "finite"),
]


@pytest.mark.parametrize(("spec", "says"), REFUSED)
def test_refused(spec: Any, says: str) -> None:
    with pytest.raises(pydantic.ValidationError, match=says):
        make(spec)


def test_a_distribution_survives_the_way_out_and_back() -> None:
    for spec, *_ in QUANTILES:
        shape = make(spec)
        assert Plain.model_validate(shape.model_dump(exclude_none=True)) == shape


def test_rounding() -> None:
    assert [distributions.whole(value) for value in (0.49, 0.5, 1.5, 2.5)] == [0, 1, 2, 3]
    assert [distributions.milliseconds(value) for value in (0.0004, 0.0005, 1.23456)] == [0.0, 0.001, 1.235]


def test_choose_follows_weights() -> None:
    bits = Bits(1)
    picks = [distributions.choose([3, 0, 1], bits) for _ in range(4000)]
    assert picks.count(1) == 0
    assert picks.count(0) == pytest.approx(3000, abs=150)
