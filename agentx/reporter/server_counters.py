"""What the server's own counters say of the run: the difference of two samples around the measured attempts.

The first sample is the last one taken before the first measured send, the second the last one of the run, for which
the driver waits until the server's counts have settled. What the server computes and reuses is counted when a prefill
batch is admitted (`prefill_*`, exact, preferred) or when a request finishes (`prompt_tokens`, `cached_*`). A counter
that is absent is unknown, with one exception: a server may show a tier only once it is above zero, so a tier that
appears began at zero, and beside another `cached_*` tier an absent one means none. A counter that went backwards from
one sample to a later one (a restart) makes all of them unknown, also where it has passed its first value since. Of
prefill and decode pools, which both count a request that passes both, each is asked for its own half: a decode server
for what was generated, a prefill server for everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from agentx.core import Attempt, Sample
from agentx.reporter.throughput import cached_tokens
from agentx.reporter.turns import finished
from agentx.results import RunResults

PREFILL = ("prefill_device_hit", "prefill_host_hit", "prefill_storage_hit")
FINISHED = ("cached_device", "cached_host", "cached_storage")
_ABSENT_IS_NONE = frozenset((*FINISHED, "prefill_host_hit", "prefill_storage_hit", "cached_total"))
_OF_DECODE = frozenset(("generation_tokens", "requests", "retracted", "spec_verify_calls", "spec_accepted"))
_RISING = (  # the other names of a sample are gauges: they may fall
    "prompt_tokens", "generation_tokens", "requests", "evicted", "retracted", "prefill_input", "cached_total",
    "spec_verify_calls", "spec_accepted",
    *PREFILL, *FINISHED,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Counters:
    """Tokens by the server's counters between seconds `start` and `stop`; None where it does not say.

    `pool`, `host_pool`: what the device and host caches hold at most.
    `spec_steps`, `spec_accepted`: verification steps of speculative decoding and the drafts that they accepted (vLLM).
    `source`: "prefill" or "finished", the counters that the reuse was taken from. `requests_cached` and
    `requests_prompt` are the same by the responses that ended between the samples, `requests_untold` how many of
    those told nothing.
    """

    start: float
    stop: float
    source: str | None
    prompt: int | None
    cached: int | None
    device: int | None
    host: int | None
    storage: int | None
    generated: int | None
    requests: int | None
    evicted: int | None
    retracted: int | None
    spec_steps: int | None
    spec_accepted: int | None
    pool: int | None
    host_pool: int | None
    went_back: bool
    requests_prompt: int | None
    requests_cached: int | None
    requests_untold: int

    @property
    def share(self) -> float | None:
        """Cached over prompt tokens, 0 ... 1."""
        return self.cached / self.prompt if self.cached is not None and self.prompt else None

    @property
    def difference(self) -> int | None:
        """Cached tokens by counters less those by the requests of the same time; 0 over a drained run."""
        if self.cached is None or self.requests_cached is None:
            return None
        return self.cached - self.requests_cached


def counters_of(run: RunResults, measured: Sequence[Attempt]) -> Counters | None:
    """None when there are not two samples of an endpoint."""
    pairs = _pairs(run.samples, measured)
    if not pairs:
        return None
    start = min(before.at for before, _ in pairs)
    stop = max(after.at for _, after in pairs)
    names = {name for _, after in pairs for name in after.values}
    deltas = {name: _difference(pairs, name) for name in _RISING if name in names}
    went_back = _fell(run.samples, pairs)
    source, prompt, tiers, cached = _reuse({} if went_back else deltas)
    by_name = {} if went_back else deltas
    told = [
        (attempt.prompt_tokens, hit)
        for attempt in _ended(run.attempts, start, stop)
        if attempt.prompt_tokens is not None and (hit := cached_tokens(attempt)) is not None
    ]
    return Counters(
        start=start,
        stop=stop,
        source=source,
        prompt=prompt,
        cached=cached,
        device=tiers[0],
        host=tiers[1],
        storage=tiers[2],
        generated=by_name.get("generation_tokens"),
        requests=by_name.get("requests"),
        evicted=by_name.get("evicted"),
        retracted=by_name.get("retracted"),
        spec_steps=by_name.get("spec_verify_calls"),
        spec_accepted=by_name.get("spec_accepted"),
        pool=_gauge(pairs, "pool"),
        host_pool=_gauge(pairs, "host_total"),
        went_back=went_back,
        requests_prompt=sum(isl for isl, _ in told) if told else None,
        requests_cached=sum(hit for _, hit in told) if told else None,
        requests_untold=len(_ended(run.attempts, start, stop)) - len(told),
    )


def _pairs(samples: Iterable[Sample], measured: Sequence[Attempt]) -> list[tuple[Sample, Sample]]:
    """(before, after) of each endpoint that was sampled twice."""
    begin = min((attempt.sent for attempt in measured), default=float("-inf"))
    by_endpoint: dict[str, list[Sample]] = {}
    for sample in sorted(samples, key=lambda one: one.at):
        by_endpoint.setdefault(sample.endpoint, []).append(sample)
    pairs = []
    for _, own in sorted(by_endpoint.items()):
        before = next((one for one in reversed(own) if one.at <= begin), own[0])
        if before.at < own[-1].at:
            pairs.append((before, own[-1]))
    return pairs


def _fell(samples: Iterable[Sample], pairs: Sequence[tuple[Sample, Sample]]) -> bool:
    """Whether a counter of an endpoint fell between any two of its samples in the measured time."""
    spans = {before.endpoint: (before.at, after.at) for before, after in pairs}
    last: dict[tuple[str, str], float] = {}
    for sample in sorted(samples, key=lambda one: one.at):
        start, stop = spans.get(sample.endpoint, (1.0, 0.0))
        if start <= sample.at <= stop:
            for name in _RISING:
                value = sample.values.get(name)
                if value is not None:
                    if value < last.get((sample.endpoint, name), value):
                        return True
                    last[sample.endpoint, name] = value
    return False


def _difference(pairs: Sequence[tuple[Sample, Sample]], name: str) -> int | None:
    """Summed over endpoints; None when one of them does not tell."""
    total, pairs = 0.0, _answering(pairs, name)
    for before, after in pairs:
        default = 0.0 if name in _ABSENT_IS_NONE else None
        first, last = before.values.get(name, default), after.values.get(name, default)
        if first is None or last is None:
            return None
        total += last - first
    return round(total) if pairs else None


def _answering(pairs: Sequence[tuple[Sample, Sample]], name: str) -> list[tuple[Sample, Sample]]:
    """Those whose server is the one to ask for this name."""
    wrong = "prefill" if name in _OF_DECODE else "decode"
    return [pair for pair in pairs if pair[1].extra.get("role") != wrong]


def _gauge(pairs: Sequence[tuple[Sample, Sample]], name: str) -> int | None:
    """Summed over endpoints, at the end."""
    values = [(after.extra.get("gauges") or {}).get(name) for _, after in _answering(pairs, name)]
    known = [value for value in values if value is not None]
    return round(sum(known)) if known and len(known) == len(values) else None


def _reuse(
    deltas: dict[str, int | None],
) -> tuple[str | None, int | None, tuple[int | None, int | None, int | None], int | None]:
    """(source, prompt tokens, cached by tier, cached tokens) by the best counters that are there."""
    computed = deltas.get("prefill_input")
    tiers = tuple(deltas.get(name) for name in PREFILL)
    if computed is not None and tiers[0] is not None:
        cached = sum(tier for tier in tiers if tier is not None)
        return "prefill", computed + cached, (tiers[0], tiers[1], tiers[2]), cached
    prompt = deltas.get("prompt_tokens")
    tiers = tuple(deltas.get(name) for name in FINISHED)
    known = [tier for tier in (*tiers, deltas.get("cached_total")) if tier is not None]
    cached_sum = sum(known) if known else None
    if any(tier is not None for tier in tiers):
        tiers = tuple(tier or 0 for tier in tiers)
    source = "finished" if prompt is not None and cached_sum is not None else None
    return source, prompt, (tiers[0], tiers[1], tiers[2]), cached_sum


def _ended(attempts: Iterable[Attempt], start: float, stop: float) -> list[Attempt]:
    """Answered attempts that ended between the samples: those that the server's counters of finished requests hold."""
    return [
        attempt
        for attempt in attempts
        if attempt.ok and (done := attempt.end or finished(attempt)) is not None and start < done <= stop
    ]
