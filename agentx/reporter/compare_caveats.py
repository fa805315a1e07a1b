"""What is known against a comparison, each with its size: found from the two sides' results.

`breaks`: the two sides did not do the same work, or one of them must not be used: a ratio of them says little of the
server. The limits below were chosen, and stand here once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from agentx.reporter.compare_figures import Measured, TurnKey
from agentx.reporter.findings import CUT
from agentx.reporter.halves import drifts, halves
from agentx.reporter.text import share

MIX_SHOWN, MIX_BREAKS = 0.0, 0.1  # share of the answered turns that one side alone answered
ISL_SHOWN, ISL_BREAKS = 0.01, 0.05  # relative difference of the mean prompt
ERRORS_BREAK = 0.05  # share of requests that failed
SHORT_BREAKS = 0.05  # difference of the share of asked tokens that did not come
ACCEPTANCE_SHOWN, ACCEPTANCE_BREAKS = 0.01, 0.05  # relative difference of tokens per verification step
WARM_BREAKS = 0.01  # surplus over prompt tokens
OTHERWISE = ("foreign", "tpot_estimated", "cached_partly", "cached_unknown", "cached_doubtful", "tokens_unknown")
CLIENT = ("fell_behind", "client_saturated", "client_busy", "client_lag", "loop_lag")
UNUSABLE = ("books", "torn", "interrupted", "stopped", "partial", "all_failed", "nothing_measured")


@dataclass(frozen=True, slots=True)
class Caveat:
    """`kind` is a stable short name. `size` in `unit` says how much, None where it is no quantity."""

    kind: str
    text: str
    size: float | None = None
    unit: str | None = None
    breaks: bool = False


@dataclass(frozen=True, slots=True)
class Side:
    """The runs of one configuration. `label` is A, B, C ..."""

    label: str
    runs: tuple[Measured, ...]

    @property
    def every(self) -> set[TurnKey]:
        """Turns that were answered in each of its runs."""
        return set.intersection(*(set(one.turns) for one in self.runs))


def result_caveats(a: Side, b: Side, paired: bool) -> tuple[Caveat, ...]:
    """Those of the results; those of the settings are in compare_conditions."""
    found = [*_unusable(a, b), *_client(a, b)]
    found += _mix(a, b) if paired else ()
    found += [*_isl(a, b), *_short(a, b), *_errors(a, b), *_acceptance(a, b), *_warm(a, b), *_phases(a, b)]
    return (*found, *_fixed_time(a, b), *_otherwise(a, b), *_order(a, b))


def each_run(a: Side, b: Side) -> Iterator[tuple[str, Measured]]:
    """(name for the reader, run) of all runs."""
    for side in (a, b):
        for number, one in enumerate(side.runs, 1):
            yield side.label if len(side.runs) == 1 else f"{side.label}{number}", one


def _mean(side: Side, figure: Callable[[Measured], float | None]) -> float | None:
    values = [figure(one) for one in side.runs]
    known = [value for value in values if value is not None]
    return fmean(known) if known and len(known) == len(values) else None


def _unusable(a: Side, b: Side) -> Iterator[Caveat]:
    for label, one in each_run(a, b):
        for finding in one.findings:
            if finding.kind in UNUSABLE:
                yield Caveat("unusable", f"{label}: {finding.text}", breaks=True)


def _client(a: Side, b: Side) -> Iterator[Caveat]:
    for label, one in each_run(a, b):
        bound = next((finding for kind in CLIENT for finding in one.findings if finding.kind == kind), None)
        if bound is not None:
            lag = one.metrics.client.send_lag
            size = None if lag is None else lag.at(95)
            breaks = bound.kind in ("fell_behind", "client_saturated")
            yield Caveat("client_bound", f"{label}: {bound.text}", size, "seconds", breaks)


def _mix(a: Side, b: Side) -> Iterator[Caveat]:
    """Turns that a run of one side answered, and not every run of both."""
    everywhere = a.every & b.every
    union = set().union(*(one.turns for _, one in each_run(a, b)))
    other = 1 - len(everywhere) / len(union) if union else 0.0
    if other > MIX_SHOWN:
        counts = ", ".join(f"{label} {len(one.turns)}" for label, one in each_run(a, b))
        yield Caveat(
            "mix",
            f"Other turns were answered: of {len(union)} in all, {len(everywhere)} in every run ({counts}). The ratio "
            "over all answered turns compares different work; the one over the same turns does not.",
            other,
            "share of turns",
            other > MIX_BREAKS,
        )


def _isl(a: Side, b: Side) -> Iterator[Caveat]:
    def mean(one: Measured) -> float | None:
        return None if one.metrics.lengths.isl is None else one.metrics.lengths.isl.mean

    first, second = _mean(a, mean), _mean(b, mean)
    if first is None or second is None or not first:
        return
    drift = second / first - 1
    if abs(drift) > ISL_SHOWN:
        yield Caveat(
            "isl_drift",
            f"The answered prompts of {b.label} are {abs(drift) * 100:.1f} % {'longer' if drift > 0 else 'shorter'} on "
            f"average: {second:,.0f} tokens, {first:,.0f} of {a.label}.",
            drift,
            "relative",
            abs(drift) > ISL_BREAKS,
        )


def _missing(one: Measured) -> float | None:
    """Share of the asked tokens that did not come, over replies that told a count."""
    asked = sum(turn.attempt.osl for turn in one.turns.values() if turn.tokens is not None)
    return one.metrics.lengths.missing / asked if asked else None


def _short(a: Side, b: Side) -> Iterator[Caveat]:
    counts = {label: (one.metrics.lengths.shorter, one.metrics.completed) for label, one in each_run(a, b)}
    if not any(shorter for shorter, _ in counts.values()):
        return
    first, second = _mean(a, _missing), _mean(b, _missing)
    gap = None if first is None or second is None else second - first
    told = ", ".join(f"{label} {shorter} of {of}" for label, (shorter, of) in counts.items())
    yield Caveat(
        "short_replies",
        f"Replies were shorter than asked: {told}. Of the tokens asked for, {share(first)} did not come in "
        f"{a.label}, {share(second)} in {b.label}.",
        gap,
        "share of asked tokens",
        gap is not None and abs(gap) > SHORT_BREAKS,
    )


def _failed(one: Measured) -> float | None:
    failed = sum(kind.count for kind in one.metrics.failures if kind.kind != CUT)
    return failed / one.metrics.attempts if one.metrics.attempts else None


def _errors(a: Side, b: Side) -> Iterator[Caveat]:
    first, second = _mean(a, _failed), _mean(b, _failed)
    if first or second:
        size = max(first or 0.0, second or 0.0)
        yield Caveat(
            "errors",
            f"Requests failed: {share(first)} of {a.label}, {share(second)} of {b.label}. Latencies are of the others.",
            size,
            "share of requests",
            size > ERRORS_BREAK,
        )


def acceptance_length(one: Measured) -> float | None:
    """Tokens per verification step by the server's counters; a reply's first token comes of its prefill."""
    first: dict[str, dict[str, float]] = {}
    last: dict[str, dict[str, float]] = {}
    for sample in sorted(one.run.samples, key=lambda sample: sample.at):
        first.setdefault(sample.endpoint, dict(sample.values))
        last[sample.endpoint] = dict(sample.values)
    names = ("generation_tokens", "requests", "spec_verify_calls")
    if not last or any(name not in values for values in last.values() for name in names):
        return None
    made, requests, steps = (sum(last[key][name] - first[key].get(name, 0.0) for key in last) for name in names)
    return (made - requests) / steps if steps > 0 and made > requests else None


def _acceptance(a: Side, b: Side) -> Iterator[Caveat]:
    first, second = _mean(a, acceptance_length), _mean(b, acceptance_length)
    if first is None and second is None:
        return
    if first is None or second is None:
        known = f"{first or second:.2f} tokens per step in {a.label if second is None else b.label}"
        yield Caveat("acceptance_length", f"Speculation: {known}, unknown or none in the other.", breaks=True)
        return
    change = second / first - 1
    if abs(change) > ACCEPTANCE_SHOWN:
        yield Caveat(
            "acceptance_length",
            f"Achieved acceptance length: {first:.2f} tokens per step in {a.label}, {second:.2f} in {b.label}.",
            change,
            "relative",
            abs(change) > ACCEPTANCE_BREAKS,
        )


def _warm(a: Side, b: Side) -> Iterator[Caveat]:
    for label, one in each_run(a, b):
        above, ideal = _above(one), one.metrics.reuse.ideal
        if above is None or above <= 0 or ideal is None or not ideal.same_prompt:
            continue
        part = above / ideal.same_prompt
        yield Caveat(
            "warm",
            f"{label}: {above:,d} tokens more were reused than this run's own prompts allow in the order they were "
            f"sent ({share(part)} of the prompts): a warm cache"
            f"{'.' if one.losses.missing is None else ', or requests that overtook each other.'}",
            part,
            "share of prompt tokens",
            part > WARM_BREAKS,
        )


def _above(one: Measured) -> int | None:
    """Tokens above the ideal. Of requests that overtake each other one gets what another has in flight: that much is
    taken off. What was lost elsewhere, to evictions say, hides nothing. Without the split, what is left of all."""
    surplus, in_flight = one.losses.of("surplus"), one.losses.of("in_flight")
    if surplus is not None and in_flight is not None:
        return -surplus - in_flight
    missing = one.metrics.reuse.missing_to_ideal
    return None if missing is None else -missing


def _phases(a: Side, b: Side) -> Iterator[Caveat]:
    counts = {label: dict(one.metrics.other_phases) for label, one in each_run(a, b)}
    totals = [sum(phases.values()) for phases in counts.values()]
    if any(phases != next(iter(counts.values())) for phases in counts.values()):
        told = "; ".join(
            f"{label} " + (", ".join(f"{count} of {phase}" for phase, count in phases.items()) or "none")
            for label, phases in counts.items()
        )
        text = f"Requests outside the measured phase differ: {told}."
        yield Caveat("phases", text, float(max(totals) - min(totals)), "requests")


def _fixed_time(a: Side, b: Side) -> Iterator[Caveat]:
    """Runs of a fixed time do as much work as they can: how far each got; and whether they were steady."""
    runs = [(label, one) for label, one in each_run(a, b) if _fixed(one)]
    if not runs:
        return
    told = "; ".join(f"{label} {one.metrics.completed} turns, {_whole(one)} whole plays" for label, one in runs)
    yield Caveat("fixed_time", f"Measured for a fixed time, so the work differs: {told}. Fixed work compares better.")
    for label, one in runs:
        pair = halves(one.run, one.metrics.throughput.window)
        drift = {} if pair is None else drifts(pair)
        if drift:
            words = ", ".join(f"{name.replace('_', ' ')} x{ratio:.2f}" for name, ratio in drift.items())
            size = max(drift.values(), key=lambda ratio: abs(ratio - 1))
            text = f"{label} was not stationary: from the first half of its window to the second, {words}."
            yield Caveat("not_stationary", text, size, "second half over first")


def _whole(one: Measured) -> int | str:
    """Plays that came to their end; not known where no play's number of turns is."""
    return "unknown" if one.metrics.jobs.whole is None else one.metrics.books.done


def _fixed(one: Measured) -> bool:
    measure = one.about.plan.get("measure")
    return isinstance(measure, str) and measure != "once"


def _otherwise(a: Side, b: Side) -> Iterator[Caveat]:
    """What one run could not tell and another could."""
    runs = list(each_run(a, b))
    for kind in OTHERWISE:
        having = {label: one for label, one in runs if any(finding.kind == kind for finding in one.findings)}
        for label, one in having.items():
            text = next(finding.text for finding in one.findings if finding.kind == kind)
            yield Caveat("told_less" if len(having) < len(runs) else "told_little", f"{label}: {text}")


def _order(a: Side, b: Side) -> Iterator[Caveat]:
    """Repeats that were run one side after the other share the server's drift with the change."""
    starts = sorted((one.run.wall, label[0]) for label, one in each_run(a, b))
    if len(a.runs) < 2 or len(b.runs) < 2 or any(wall <= 0 for wall, _ in starts):
        return
    order = "".join(label for _, label in starts)
    turns = sum(one != other for one, other in pairwise(order))
    if turns < 2:
        yield Caveat("order", f"The runs were made in the order {order}: drift through the day is in the ratio (ABBA).")


def distances(a: Sequence[float], b: Sequence[float]) -> float:
    """The largest distance of two distribution functions (Kolmogorov, Smirnov), 0 ... 1. Both must have values."""
    first, second = sorted(a), sorted(b)
    i = j = 0
    largest = 0.0
    while i < len(first) and j < len(second):
        at = min(first[i], second[j])
        while i < len(first) and first[i] == at:
            i += 1
        while j < len(second) and second[j] == at:
            j += 1
        largest = max(largest, abs(i / len(first) - j / len(second)))
    return largest
