"""What n problems can say: an exact test of two runs of the same problems, and the most that a count can hide."""

from __future__ import annotations

import math


def mcnemar(broken: int, fixed: int) -> float:
    """Exact two-sided p of McNemar's test: of the problems whose verdict changed, each way is as likely as the other.

    1 when none changed.
    """
    n, fewer = broken + fixed, min(broken, fixed)
    if n == 0:
        return 1.0
    tail = sum(math.comb(n, k) for k in range(fewer + 1))
    p: float = min(1.0, 2 * tail / 2**n)
    return p


def upper_bound(count: int, n: int, level: float = 0.95) -> float:
    """The highest share that still gives `count` or fewer of `n` with probability 1 - level (Clopper and Pearson,
    one-sided). None of 128 still allows 2.3 % at 95 %."""
    if count >= n:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        if _at_most(count, n, middle) > 1 - level:
            low = middle
        else:
            high = middle
    return high


def _at_most(count: int, n: int, share: float) -> float:
    """P(at most `count` of `n`), each with probability `share`."""
    if share in (0.0, 1.0):
        return 1.0 - share
    logs = (
        math.lgamma(n + 1)
        - math.lgamma(k + 1)
        - math.lgamma(n - k + 1)
        + k * math.log(share)
        + (n - k) * math.log1p(-share)
        for k in range(count + 1)
    )
    return math.fsum(math.exp(each) for each in logs)
