"""Known values of the exact test and of the bound, and both by simulation-free recount."""

from __future__ import annotations

import math

import pytest

from agentx.quality.statistics import mcnemar, upper_bound

TESTS = [  # broken, fixed, p
    (0, 0, 1.0),
    (1, 0, 1.0),
    (5, 0, 2 / 32),
    (6, 0, 2 / 64),
    (0, 6, 2 / 64),
    (8, 2, 2 * (1 + 10 + 45) / 1024),
    (3, 3, 1.0),
]


@pytest.mark.parametrize(("broken", "fixed", "p"), TESTS)
def test_mcnemar(broken: int, fixed: int, p: float) -> None:
    assert mcnemar(broken, fixed) == pytest.approx(p)


BOUNDS = [  # count, n, the share
    (0, 128, 0.0231),  # 1 - 0.05 ** (1 / 128): what no broken one in 128 still allows
    (0, 1, 0.95),
    (5, 5, 1.0),
    (3, 128, 0.0593),
]


@pytest.mark.parametrize(("count", "n", "share"), BOUNDS)
def test_upper_bound(count: int, n: int, share: float) -> None:
    bound = upper_bound(count, n)
    assert bound == pytest.approx(share, abs=2e-4)
    if count < n:
        tail = sum(math.comb(n, k) * bound**k * (1 - bound) ** (n - k) for k in range(count + 1))
        assert tail == pytest.approx(0.05, abs=1e-9)
