"""Simulated speculative acceptance: how many tokens a verification step yields, the target's own included.

One number is drawn per step for the whole batch, as SGLang 0.5.23 does (facts of `SGLANG_SIMULATE_ACC_*`):
`match-expected` gives the two integers next to the length so that the mean is exact; `multinomial`, in spite of its
name, rounds a normal draw of deviation 1 after clamping it, so that its mean is off near the ends.
"""

from __future__ import annotations

import random
from statistics import NormalDist

from agentx.engine.settings import Speculation


class Acceptance:
    """The draws of one engine, repeatable from `seed`."""

    def __init__(self, speculation: Speculation, seed: int = 0) -> None:
        self.bound = speculation.bound
        self._length = min(max(1.0, speculation.acceptance.length), float(self.bound))
        self._exact = speculation.acceptance.method == "match-expected"
        self._random = random.Random(seed)

    def draw(self) -> int:
        """Tokens of the next step, in [1, bound]."""
        if self.bound == 1:
            return 1
        chance = self._random.random()
        if self._exact:
            lower = int(self._length)
            return lower + 1 if lower < self.bound and chance < self._length - lower else lower
        normal = NormalDist(self._length, 1.0).inv_cdf(chance or 0.5)
        return round(min(max(1.0, normal), float(self.bound)))
