from __future__ import annotations

import pytest

from agentx.engine.settings import Timing
from agentx.engine.timing import decode_seconds, prefill_seconds

TIMING = Timing.model_validate(
    {
        "request": "9s", "prefill_batch": "1s", "prefill_token": "100ms", "prefill_token_context": "1ms",
        "decode_step": "2s", "decode_request": "200ms", "decode_context": "10ms", "speculation_step": "500ms",
        "load_back_token": "10ms",
    }
)  # fmt: skip


@pytest.mark.parametrize(
    ("spans", "loaded", "seconds"),
    [
        ([(0, 1)], 0, 1.1),  # a first token has no context
        ([(0, 4)], 0, 1 + 0.4 + 0.006),  # 0 + 1 + 2 + 3 pairs
        ([(10, 12)], 0, 1 + 0.2 + 0.021),  # 10 + 11
        ([(0, 1), (10, 12)], 0, 1 + 0.3 + 0.021),
        ([(10, 12)], 10, 1 + 0.2 + 0.021 + 0.1),
    ],
)
def test_prefill(spans: list[tuple[int, int]], loaded: int, seconds: float) -> None:
    assert prefill_seconds(TIMING, spans, loaded) == pytest.approx(seconds)


@pytest.mark.parametrize(("speculative", "seconds"), [(False, 2 + 0.6 + 1.0), (True, 2 + 0.6 + 1.0 + 0.5)])
def test_decode(speculative: bool, seconds: float) -> None:
    assert decode_seconds(TIMING, 3, 100, speculative) == pytest.approx(seconds)
