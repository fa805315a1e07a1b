"""Our own elementary and special functions agree with the mathematics library, and with tables."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx import functions


@given(st.floats(min_value=1e-290, max_value=1e290))
def test_log_agrees_with_the_library(x: float) -> None:
    assert functions.log(x) == pytest.approx(math.log(x), rel=1e-15, abs=1e-16)


@given(st.floats(min_value=-700, max_value=700))
def test_exp_agrees_with_the_library(x: float) -> None:
    assert functions.exp(x) == pytest.approx(math.exp(x), rel=1e-15)


@given(st.floats(min_value=2**-53, max_value=1 - 2**-53))
def test_probit_agrees_with_the_library(p: float) -> None:
    assert functions.probit(p) == pytest.approx(statistics.NormalDist().inv_cdf(p), rel=1e-14, abs=1e-15)


@given(st.floats(min_value=1e-3, max_value=1e6))
def test_log_gamma_agrees_with_the_library(x: float) -> None:
    assert functions.log_gamma(x) == pytest.approx(math.lgamma(x), rel=1e-13, abs=1e-14)


GAMMA = [
    # (shape, p, quantile): half of the chi-square distribution with twice the shape as degrees of freedom, from tables
    (0.5, 0.95, 3.8414588 / 2),
    (1, 0.9, math.log(10)),  # the exponential
    (2, 0.05, 0.7107230 / 2),
    (5, 0.5, 9.3418178 / 2),
    (15, 0.99, 50.8921813 / 2),
]


@pytest.mark.parametrize(("shape", "p", "value"), GAMMA)
def test_gamma_quantiles_of_tables(shape: float, p: float, value: float) -> None:
    assert functions.gamma_quantile(shape, p) == pytest.approx(value, rel=1e-6)


@given(shape=st.floats(0.05, 1e5), p=st.floats(1e-9, 1 - 1e-9))
def test_gamma_quantiles_undo_the_share_below(shape: float, p: float) -> None:
    x = functions.gamma_quantile(shape, p)
    assert functions.gamma_share_below(shape, x) == pytest.approx(p, rel=1e-9, abs=1e-13)
