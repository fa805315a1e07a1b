"""Reuse that was observed, beside the one that was possible without limits.

*By request*: the sum of cached tokens over the sum of prompt tokens, over completed responses that told both. *By
counters*: see server_counters. *Ideal*: what an unbounded cache with the server's page would have given to the same
prompts in send order, recomputed from the trace. Observed above ideal is a surplus and is shown as one.

A server that counts no cached tokens often says 0 rather than nothing. So if every response said 0 although the
ideal is above 0, and no counter confirms it, the observed reuse is *unknown*.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from agentx.capacity import Curve
from agentx.core import Attempt
from agentx.errors import BadInput
from agentx.reporter.server_counters import Counters
from agentx.reporter.throughput import cached_tokens
from agentx.results import TRACE, RunResults, key_of
from agentx.reuse_template import PLAIN, Template

if TYPE_CHECKING:
    from agentx.run_reuse import PossibleLessIdeal, Row

Key = tuple[str, int, int, int]  # session, play, turn, attempt


@dataclass(frozen=True, slots=True)
class ByRequest:
    """Sums over the `told` of `of` completed responses that told prompt and cached tokens; None: nobody told.

    A tier is known only when all of those told it. `doubtful`: only zeros, which nothing confirms.
    """

    told: int
    of: int
    prompt: int | None
    cached: int | None
    device: int | None
    host: int | None
    storage: int | None
    doubtful: bool

    @property
    def share(self) -> float | None:
        """Cached over prompt tokens, 0 ... 1; None when unknown or doubtful."""
        return self.cached / self.prompt if self.cached is not None and self.prompt and not self.doubtful else None


@dataclass(frozen=True, slots=True)
class Ideal:
    """Tokens that an unbounded cache would have given; `by_layer`: layer -> (prompt tokens, reusable tokens).

    `same_cached` and `same_prompt` go over exactly those responses that tell their cached tokens, so that the
    observed sum can be held against them. `drift`: tokens by which the recomputed prompts miss the server's counts.
    `possible_less_ideal`: in tokens, by cause. `rows`: of each measured response that told prompt and cached tokens.
    `curve`: the ideal at each size of a cache, over all prompts that the server took.
    `by_attempt`: the ideal of each request that the server took.
    """

    prompt: int
    cached: int
    same_prompt: int
    same_cached: int
    by_layer: Mapping[str, tuple[int, int]]
    page: int
    page_known: bool
    drift: int | None
    possible_prompt: int
    possible_cached: int
    template_fitted: bool
    models: int
    literal: bool
    arrivals: bool
    possible_less_ideal: PossibleLessIdeal
    rows: Sequence[Row]
    curve: Curve
    by_attempt: Mapping[Key, int] = field(default_factory=dict)
    template: Template = PLAIN

    @property
    def share(self) -> float | None:
        return self.cached / self.prompt if self.prompt else None

    @property
    def possible_share(self) -> float | None:
        return self.possible_cached / self.possible_prompt if self.possible_prompt else None


@dataclass(frozen=True, slots=True)
class Reuse:
    """All views of one run. `ideal` None: `ideal_missing` says why."""

    by_request: ByRequest
    counters: Counters | None
    ideal: Ideal | None
    ideal_missing: str | None

    @property
    def missing_to_ideal(self) -> int | None:
        """Ideal less observed tokens over the same responses; negative is a surplus. None: one of them is unknown."""
        if self.ideal is None or self.by_request.cached is None or self.by_request.doubtful:
            return None
        return self.ideal.same_cached - self.by_request.cached


def reuse(run: RunResults, measured: Sequence[Attempt], counters: Counters | None) -> Reuse:
    """Over the completed attempts of `measured`."""
    done = [attempt for attempt in measured if attempt.ok]
    ideal, missing = _ideal(run, done)
    return Reuse(by_request(done, counters, ideal), counters, ideal, missing)


def by_request(done: Sequence[Attempt], counters: Counters | None, ideal: Ideal | None) -> ByRequest:
    """What the responses themselves told."""
    told = [attempt for attempt in done if _tells(attempt)]
    cached = sum(cached_tokens(attempt) or 0 for attempt in told) if told else None
    confirmed = counters is not None and counters.cached == 0
    hopeless = ideal is not None and ideal.same_cached == 0
    return ByRequest(
        told=len(told),
        of=len(done),
        prompt=sum(attempt.prompt_tokens or 0 for attempt in told) if told else None,
        cached=cached,
        device=_tier(told, "device"),
        host=_tier(told, "host"),
        storage=_tier(told, "storage"),
        doubtful=cached == 0 and len(told) > 1 and not confirmed and not hopeless,
    )


def _tells_what_was_sent(run: RunResults) -> bool:
    plan = run.settings.get("plan") or {}
    trace = "trace" in run.settings or (run.folder / TRACE).exists()
    return trace and "salt" in run.settings and "salt" in plan and "wire" in plan


def _tells(attempt: Attempt) -> bool:
    return attempt.prompt_tokens is not None and cached_tokens(attempt) is not None


def _tier(told: Sequence[Attempt], name: str) -> int | None:
    counts: list[int | None] = [getattr(attempt.cached, name) for attempt in told]
    known = [count for count in counts if count is not None]
    return sum(known) if counts and len(known) == len(counts) else None


def _ideal(run: RunResults, done: Sequence[Attempt]) -> tuple[Ideal | None, str | None]:
    """The ideal of the run, or None and the reason."""
    from agentx.run_reuse import run_reuse  # numpy, and a trace to read: only when it is wanted

    if not done:
        return None, "no response completed"
    if not _tells_what_was_sent(run):
        return None, "the run does not say what it replayed"
    try:
        found = run_reuse(run)
    except (BadInput, OSError) as error:
        path = run.trace_path  # a report does not tell where things lay
        return None, f"the prompts cannot be recomputed: {error}".replace(str(path), path.name)
    mine = {key_of(attempt): attempt for attempt in done if _tells(attempt)}
    by_attempt = found.by_attempt
    return Ideal(
        prompt=found.ideal.tokens,
        cached=found.ideal.reused,
        same_prompt=sum(attempt.prompt_tokens or 0 for attempt in mine.values()),
        same_cached=sum(by_attempt.get(key, 0) for key in mine),
        by_layer=found.ideal.by_layer(),
        page=found.page,
        page_known=found.page_known,
        drift=found.drift,
        possible_prompt=found.possible.tokens,
        possible_cached=found.possible.reused,
        template_fitted=found.template_fitted,
        models=found.facts.models,
        literal=found.facts.literal,
        arrivals=found.facts.arrivals,
        possible_less_ideal=found.possible_less_ideal,
        curve=found.curve,
        rows=[row for row in found.rows if key_of(row.attempt) in mine],
        by_attempt=by_attempt,
        template=found.template,
    ), None
