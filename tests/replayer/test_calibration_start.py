"""First values of the constants by regression."""

from __future__ import annotations

import numpy as np
import pytest

from agentx.engine.settings import LAPTOP
from agentx.replayer.calibration_start import nonnegative, timing_of

CHANCE = np.random.default_rng(0)


def test_coefficients_are_found_under_outliers() -> None:
    columns = np.stack([np.ones(200), CHANCE.uniform(0, 1e4, 200), CHANCE.uniform(0, 1e9, 200)], axis=1)
    target = columns @ np.array([0.01, 2e-5, 3e-10])
    target[::10] *= 5  # a tenth had to wait
    assert nonnegative(columns, target) == pytest.approx([0.01, 2e-5, 3e-10], rel=0.02)


def test_no_coefficient_is_negative() -> None:
    columns = np.stack([np.ones(50), np.arange(50.0)], axis=1)
    found = nonnegative(columns, 100 - columns[:, 1])
    assert found[1] == 0.0
    assert found[0] > 0


def test_a_column_of_nothing_has_no_coefficient() -> None:
    columns = np.stack([np.ones(20), np.zeros(20)], axis=1)
    assert nonnegative(columns, np.full(20, 3.0)) == pytest.approx([3.0, 0.0])


def test_what_was_not_fitted_stays_as_it_was() -> None:
    timing = timing_of({"decode_step": 0.02}, LAPTOP)
    assert (timing.decode_step, timing.load_back_token) == (0.02, LAPTOP.load_back_token)
