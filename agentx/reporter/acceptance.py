"""How many tokens a step of speculative decoding yielded, from what replies tell of their steps.

The mean is (drafts accepted + steps) / steps over all steps of all replies. A reply's own tokens over its steps would
be too high: the first token comes from the prefill, and what the limit cuts off was accepted all the same.

Every step serves a whole batch with one draw (SGLang's simulated acceptance), so replies that ran together are not
independent. The engine's own steps are at least those of any one reply; they are taken as all steps of replies over how
many replies were decoding at a time, and the standard error goes by them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from agentx.core import Attempt
from agentx.reporter.server_counters import Counters
from agentx.reporter.spread import Spread, spread
from agentx.results import RunResults

FEW = 2000  # engine steps; with fewer the mean says little
TOLERANCE, ERRORS = 0.01, 4  # a mean is off beyond this share, and beyond so many standard errors


@dataclass(frozen=True, slots=True)
class Acceptance:
    """`told` of `of` answered requests of more than one token said so. `steps` are the sum of theirs, `engine_steps` an
    estimate of the engine's own. `length_by_counters` is the server's own, where it counts accepted drafts (vLLM); it
    is not judged, as it has no deviation. `expected` is the plan's, None where it states none (or its bound is not
    known)."""

    told: int
    of: int
    length: float | None
    per_request: Spread | None
    steps: int
    engine_steps: int
    standard_error: float | None
    asked: float | None
    expected: float | None
    length_by_counters: float | None = None

    @property
    def off(self) -> bool | None:
        """Whether the mean is not the plan's; None where that cannot be told."""
        if self.length is None or self.expected is None or self.standard_error is None:
            return None
        return abs(self.length - self.expected) > max(TOLERANCE * self.expected, ERRORS * self.standard_error)


def acceptance_of(run: RunResults, done: Sequence[Attempt], counters: Counters | None = None) -> Acceptance | None:
    """Over the answered attempts; None without speculation in replies, plan and counters."""
    counted = None
    if counters is not None and counters.spec_steps and counters.spec_accepted is not None:
        counted = 1 + counters.spec_accepted / counters.spec_steps
    stated = run.settings.get("acceptance") or {}
    several = [attempt for attempt in done if attempt.completion_tokens is None or attempt.completion_tokens > 1]
    told = [(attempt, *found) for attempt in several if (found := _steps(attempt)) is not None]
    if not told and not stated and counted is None:
        return None
    steps, drafts = sum(each[1] for each in told), sum(each[2] for each in told)
    engine = _engine_steps([(attempt, count) for attempt, count, _, _ in told])
    return Acceptance(
        told=len(told),
        of=len(several),
        length=(drafts + steps) / steps if steps else None,
        per_request=spread((attempt.session, (more + count) / count) for attempt, count, more, _ in told),
        steps=steps,
        engine_steps=engine,
        standard_error=_standard_error([each[3] for each in told], engine),
        asked=stated.get("asked"),
        expected=stated.get("expected"),
        length_by_counters=counted,
    )


def _steps(attempt: Attempt) -> tuple[int, int, list[int]] | None:
    """(steps, accepted drafts, histogram of accepted drafts) of one reply."""
    spec = attempt.extra.get("spec")
    if not isinstance(spec, dict):
        return None
    histogram = spec.get("spec_correct_drafts_histogram")
    if isinstance(histogram, list | tuple) and all(isinstance(count, int) for count in histogram) and any(histogram):
        counts = list(histogram)
        return sum(counts), sum(index * count for index, count in enumerate(counts)), counts
    steps, drafts = spec.get("spec_verify_ct"), spec.get("spec_num_correct_drafts")
    return (steps, drafts, []) if isinstance(steps, int) and isinstance(drafts, int) and steps > 0 else None


def _engine_steps(told: Sequence[tuple[Attempt, int]]) -> int:
    spans = sorted((one.first, one.last) for one, _ in told if one.first is not None and one.last is not None)
    busy, reached = 0.0, -math.inf
    for start, stop in spans:
        busy += max(0.0, stop - max(start, reached))
        reached = max(reached, stop)
    together = math.fsum(stop - start for start, stop in spans)
    most, steps = max((count for _, count in told), default=0), sum(count for _, count in told)
    return max(most, round(steps * busy / together)) if together > 0 else most


def _standard_error(histograms: Sequence[Sequence[int]], engine_steps: int) -> float | None:
    """Of the mean over `engine_steps`; None where no histogram was told."""
    counts = [
        sum(each[at] for each in histograms if at < len(each)) for at in range(max(map(len, histograms), default=0))
    ]
    steps = sum(counts)
    if not steps or not engine_steps:
        return None
    mean = sum(at * count for at, count in enumerate(counts)) / steps
    variance = sum((at - mean) ** 2 * count for at, count in enumerate(counts)) / steps
    return math.sqrt(variance / engine_steps)
