"""Whether a run was in a steady state: the same quantities in the two halves of its window.

A turn belongs to the half in which it was sent. A run that began cold, or whose contexts still grew, has figures that
depend on how long it went on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agentx.core import Attempt
from agentx.reporter.throughput import MEASURED, Window, cached_tokens
from agentx.reporter.turns import mean_in_flight
from agentx.results import RunResults

DRIFT = 0.2  # a quantity that changes by more than this from half to half drifts


@dataclass(frozen=True, slots=True)
class Half:
    """Means over one half; None: nothing to tell it by. `in_flight`: requests at a time."""

    isl: float | None
    in_flight: float | None
    reuse: float | None


def halves(run: RunResults, window: Window | None) -> tuple[Half, Half] | None:
    """None without a window of some length."""
    if window is None or window.seconds <= 0:
        return None
    middle = window.start + window.seconds / 2
    mine = [attempt for attempt in run.attempts if attempt.phase == MEASURED and attempt.ok]
    return _half(mine, window.start, middle, last=False), _half(mine, middle, window.stop, last=True)


def drifts(pair: tuple[Half, Half]) -> dict[str, float]:
    """What changed by more than DRIFT: name -> second half over first."""
    found = {}
    for name in ("isl", "in_flight", "reuse"):
        first, second = getattr(pair[0], name), getattr(pair[1], name)
        if first and second is not None and abs(second / first - 1) > DRIFT:
            found[name] = second / first
    return found


def _half(attempts: Sequence[Attempt], start: float, stop: float, *, last: bool) -> Half:
    sent = [one for one in attempts if start <= one.sent < stop or (last and one.sent == stop)]
    prompts = [one.prompt_tokens for one in sent if one.prompt_tokens is not None]
    told = [
        (one.prompt_tokens, hit)
        for one in sent
        if one.prompt_tokens is not None and (hit := cached_tokens(one)) is not None
    ]
    total = sum(prompt for prompt, _ in told)
    return Half(
        isl=sum(prompts) / len(prompts) if prompts else None,
        in_flight=mean_in_flight(attempts, start, stop),
        reuse=sum(hit for _, hit in told) / total if total else None,
    )
