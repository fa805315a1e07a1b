"""Tokens per second: output, computed input and cached input, each apart, never summed to one "total".

Two views of the same run. *Emitted*: tokens whose own arrival lies in the window, whatever became of the response
later; input counts at the moment of its first token, when it has been read. *Completed*: all tokens of the completed
responses, over the time from the first send to the last end. Sums over responses of which some told no count are a
lower bound, and say over how many they go.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agentx.core import Attempt
from agentx.reporter.turns import arrivals, finished, reply_tokens
from agentx.results import RunResults

MEASURED = "measure"  # the phase of attempts that count


@dataclass(frozen=True, slots=True)
class Window:
    """The measured stretch of the run's clock, seconds. `source`: "plan", or "sends" (first send to last end)."""

    start: float
    stop: float
    source: str

    @property
    def seconds(self) -> float:
        return self.stop - self.start

    def holds(self, at: float | None) -> bool:
        return at is not None and self.start <= at <= self.stop


@dataclass(frozen=True, slots=True)
class Amount:
    """Tokens over those responses that told a count, `told` of `of`. None: none of them told."""

    tokens: float | None
    told: int
    of: int

    @property
    def whole(self) -> bool:
        return self.told == self.of


@dataclass(frozen=True, slots=True)
class Flow:
    """Tokens by kind over `seconds` (None: no time passed, so there is no rate)."""

    seconds: float | None
    responses: int
    output: Amount
    input_computed: Amount
    input_cached: Amount

    def per_second(self, amount: Amount) -> float | None:
        return amount.tokens / self.seconds if amount.tokens is not None and self.seconds else None


@dataclass(frozen=True, slots=True)
class Throughput:
    """Both views, and what the rates are to be divided by. `servers` and `gpus` are of the whole target.

    `drained`: answered responses that ended after the window. `estimated`: responses whose tokens were spread over
    their chunks. `failed_output`: those tokens of `emitted.output` that belong to responses that failed.
    """

    window: Window | None
    emitted: Flow
    completed: Flow
    drained: int
    estimated: int
    failed_output: float
    servers: int
    gpus: int | None


def window_of(run: RunResults, measured: Sequence[Attempt]) -> Window | None:
    """The window that the driver kept, else the first send to the last end of the measured attempts."""
    kept = (run.end or {}).get("window")
    if isinstance(kept, list | tuple) and len(kept) == 2 and all(isinstance(at, int | float) for at in kept):
        return Window(float(kept[0]), float(kept[1]), "plan")
    if not measured:
        return None
    ends = [done for attempt in measured if (done := attempt.end or finished(attempt)) is not None]
    start = min(attempt.sent for attempt in measured)
    return Window(start, max([start, *ends]), "sends")


def throughput(
    run: RunResults, measured: Sequence[Attempt], window: Window | None, *, trust_cached: bool = True
) -> Throughput:
    """`measured`: the attempts that count; tokens of warm-up attempts that come inside the window count as emitted.

    With `trust_cached` False what the server told of cached tokens is taken as not told.
    """
    target = run.settings.get("target") or {}
    urls, gpus = target.get("urls"), target.get("gpus")
    start, stop = (window.start, window.stop) if window else (math.inf, -math.inf)
    active = [attempt for attempt in run.attempts if window and _overlaps(attempt, window)]
    inside: list[float | None] = []
    estimated = 0
    for part in arrivals(active):
        came = zip(part.between(start, stop).tolist(), part.known.tolist(), strict=True)
        inside += [tokens if known else None for tokens, known in came]
        estimated += int((part.known & ~part.exact).sum())
    return Throughput(
        window=window,
        emitted=_emitted(active, inside, window, trust_cached),
        completed=_completed([attempt for attempt in measured if attempt.ok], trust_cached),
        drained=sum(window is not None and one.ok and (one.end or 0.0) > window.stop for one in measured),
        estimated=estimated,
        failed_output=math.fsum(tokens or 0.0 for tokens, one in zip(inside, active, strict=True) if not one.ok),
        servers=len(urls) if isinstance(urls, list | tuple) and urls else 1,
        gpus=gpus if isinstance(gpus, int) and gpus > 0 else None,
    )


def _emitted(
    active: Sequence[Attempt], inside: Sequence[float | None], window: Window | None, trust_cached: bool
) -> Flow:
    """What came inside the window: `inside` are the output tokens of the `active` attempts."""
    read = [attempt for attempt in active if window and window.holds(attempt.first)]
    seconds = window.seconds if window and window.seconds > 0 else None
    computed, cached = _inputs(read, trust_cached)
    return Flow(seconds, len(active), _amount(inside), computed, cached)


def _completed(done: Sequence[Attempt], trust_cached: bool) -> Flow:
    """What completed responses hold, over (last end - first start)."""
    ends = [end for attempt in done if (end := attempt.end or finished(attempt)) is not None]
    seconds = max(ends) - min(attempt.sent for attempt in done) if ends else 0.0
    computed, cached = _inputs(done, trust_cached)
    output = _amount(reply_tokens(attempt) for attempt in done)
    return Flow(seconds if seconds > 0 else None, len(done), output, computed, cached)


def cached_tokens(attempt: Attempt) -> int | None:
    """Prompt tokens that the server took from its cache: the total, else the sum of the tiers it told."""
    return None if attempt.cached is None else attempt.cached.tokens


def _overlaps(attempt: Attempt, window: Window) -> bool:
    done = finished(attempt)
    return attempt.first is not None and attempt.first <= window.stop and (done is None or done >= window.start)


def _inputs(attempts: Sequence[Attempt], trust_cached: bool) -> tuple[Amount, Amount]:
    """(computed, cached) prompt tokens."""
    pairs = [(attempt.prompt_tokens, cached_tokens(attempt) if trust_cached else None) for attempt in attempts]
    cached = _amount(hit for _, hit in pairs)
    computed = _amount(None if isl is None or hit is None else isl - hit for isl, hit in pairs)
    return computed, cached


def _amount(counts: Iterable[float | None]) -> Amount:
    listed = list(counts)
    told = [count for count in listed if count is not None]
    return Amount(math.fsum(told) if told else None, len(told), len(listed))
