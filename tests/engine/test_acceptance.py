from __future__ import annotations

from collections import Counter

import pytest

from agentx.engine.acceptance import Acceptance
from agentx.engine.settings import Speculation

DRAWS = 20_000


def shares(length: float, method: str, algorithm: str = "EAGLE") -> dict[int, float]:
    speculation = Speculation.model_validate(
        {"algorithm": algorithm, "steps": 3, "draft_tokens": 4, "acceptance": {"length": length, "method": method}}
    )
    drawn = Acceptance(speculation, seed=1)
    counted = Counter(drawn.draw() for _ in range(DRAWS))
    return {tokens: counted[tokens] / DRAWS for tokens in sorted(counted)}


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (1.0, {1: 1.0}),
        (1.8, {1: 0.2, 2: 0.8}),  # the two integers next to it, no others
        (2.6, {2: 0.4, 3: 0.6}),
        (4.0, {4: 1.0}),
    ],
)
def test_match_expected_has_the_mean_it_was_given(length: float, expected: dict[int, float]) -> None:
    assert shares(length, "match-expected") == pytest.approx(expected, abs=0.012)


@pytest.mark.parametrize(
    ("length", "expected"),
    [  # what SGLang's own function drew 20,000 times, bound 4
        (1.0, {1: 0.69, 2: 0.24, 3: 0.06, 4: 0.006}),
        (2.6, {1: 0.14, 2: 0.32, 3: 0.36, 4: 0.19}),
    ],
)
def test_multinomial_is_a_rounded_normal(length: float, expected: dict[int, float]) -> None:
    assert shares(length, "multinomial") == pytest.approx(expected, abs=0.015)


def test_draws_repeat_for_a_seed() -> None:
    speculation = Speculation.model_validate({"algorithm": "NGRAM", "draft_tokens": 8, "acceptance": {"length": 3.3}})
    first, second, other = (Acceptance(speculation, seed) for seed in (7, 7, 8))
    draws = [[drawn.draw() for _ in range(50)] for drawn in (first, second, other)]
    assert draws[0] == draws[1] != draws[2]


def test_without_speculation_a_step_makes_one_token() -> None:
    assert {Acceptance(Speculation()).draw() for _ in range(10)} == {1}
