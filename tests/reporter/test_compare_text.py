"""How ratios are written: in as many digits as their intervals take."""

from __future__ import annotations

import pytest

from agentx.reporter.compare_statistics import Estimate
from agentx.reporter.compare_text import ratio_text

ROWS = [
    (Estimate(None), "unknown"),
    (Estimate(1.0379), "x1.04"),
    (Estimate(0.0123), "x0.0123"),
    (Estimate(1.5, 1.25, 1.8), "x1.50 (1.25-1.80)"),
    (Estimate(0.98, 0.961, 0.9985), "x0.980 (0.961-0.999)"),  # not 0.96-1.00: 1 is left out
    (Estimate(0.98, 0.961, 1.0004), "x0.9800 (0.9610-1.0004)"),  # and here it is not
    (Estimate(8.7, 6.07, 120.0), "x8.70 (6.07-120)"),
]


@pytest.mark.parametrize(("found", "want"), ROWS)
def test_ratios(found: Estimate, want: str) -> None:
    assert ratio_text(found) == want
