"""What a reader must know before using the numbers, found from the figures, in plain words.

Most severe first. A finding says what was seen, how much of it, and what it does to the figures.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from agentx.reporter.about import RECORDED_HISTORY, About
from agentx.reporter.acceptance import FEW, Acceptance
from agentx.reporter.client import LATE, MOST, SOME, Client
from agentx.reporter.metrics import Metrics
from agentx.reporter.observed import Reuse

CUT = "cut"  # the kind of failure of a request that was in flight when the run ended


BEHIND_SECONDS, BEHIND_SHARE = 0.25, 0.1  # later than this, and than this share of the TTFT: the run fell behind
# The figures must not be used as they stand:
INVALIDATING = ("books", "stopped", "worker_lost", "fell_behind", "client_saturated", "client_files", "acceptance_off")
WAITED = 0.2  # of the seconds without a CPU: it is the machine that is too small, or too busy


@dataclass(frozen=True, slots=True)
class Finding:
    """`kind` is a stable short name, `text` one sentence or two."""

    kind: str
    text: str

    @property
    def invalidates(self) -> bool:
        """Whether the measurement is invalid because of it: `replay` then exits with 5."""
        return self.kind in INVALIDATING


def findings(about: About, metrics: Metrics) -> tuple[Finding, ...]:
    """All that were found."""
    replies = (*_replies(metrics), *_acceptance(metrics.acceptance))
    whole = (*_wholeness(about, metrics), *_steady(metrics))
    own = (*whole, *_foreign(about), *_pauses(about), *_client(metrics), *replies, *_adjusted(metrics))
    return (*own, *_reuse(about, metrics), *_several(about), *_always(about))


def counted(number: int, noun: str) -> str:
    """`1 turn`, `2 turns`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _wholeness(about: About, metrics: Metrics) -> Iterator[Finding]:
    books = metrics.books
    if not books.balanced:
        yield Finding("books", "The books do not balance: a play or a turn is missing. Do not use these figures.")
    if about.torn is not None:
        yield Finding("torn", f"The results file is {about.torn}.")
    if about.state == "interrupted":
        yield Finding("interrupted", "The run was interrupted: the figures are of the part before that.")
    elif about.state == "failed":
        yield Finding("stopped", f"The run was stopped before its end: {about.reason or 'it does not say why'}.")
    elif about.lost:
        yield _lost_workers(about)
    elif about.state == "partial":
        yield Finding("partial", "The run has no end record (it was killed, or still goes on): figures are partial.")
    if metrics.attempts and not metrics.completed:
        yield Finding("all_failed", f"None of the {metrics.attempts} measured requests was answered.")
    elif metrics.completed < metrics.attempts:
        yield from _some_failed(metrics)
    elif not metrics.attempts:
        yield Finding("nothing_measured", "No request was sent in the measured phase.")
    if (cut := books.cut - metrics.jobs.unsized) > 0 and about.whole:
        yield Finding("cut", f"{cut} of {books.plays} plays were cut at the end; they have no job latency.")


def _lost_workers(about: About) -> Finding:
    each = ", ".join(f"worker {worker} at {at:.1f} s" for worker, at in about.lost)
    return Finding(
        "worker_lost",
        f"Lost: {each}. Its plays were cut, what was in flight is in no figure, and from then on the load was "
        "less than the plan's.",
    )


def _some_failed(metrics: Metrics) -> Iterator[Finding]:
    cut = sum(one.count for one in metrics.failures if one.kind == CUT)
    failed = metrics.attempts - metrics.completed - cut
    if failed:
        share = 100 * failed / metrics.attempts
        yield Finding(
            "failures",
            f"{failed} of {metrics.attempts} requests failed ({share:.1f} %): latency and reuse are of the others.",
        )
    if cut:
        yield Finding(
            "cut_requests", f"{counted(cut, 'request')} in flight when the run ended: cut, not the server's fault."
        )


def _steady(metrics: Metrics) -> Iterator[Finding]:
    if metrics.drifts:
        changes = ", ".join(f"{name.replace('_', ' ')} x{ratio:.2f}" for name, ratio in metrics.drifts.items())
        yield Finding(
            "not_stationary",
            f"The run was not stationary: from the first half of its window to the second, {changes}. Figures are of "
            "both together; a longer warm-up or window makes them steadier.",
        )


def _foreign(about: About) -> Iterator[Finding]:
    if about.foreign is not None:
        yield Finding("foreign", about.foreign)


def _pauses(about: About) -> Iterator[Finding]:
    gaps = about.plan.get("gaps")
    scale = gaps.get("scale", 1.0) if isinstance(gaps, dict) else 1.0
    if scale != 1.0:
        yield Finding(
            "gaps_scaled",
            f"The pauses between turns were multiplied by {scale:g}; how much a cache forgets between turns hangs on "
            "them.",
        )


def _client(metrics: Metrics) -> Iterator[Finding]:
    client, gap = metrics.client, metrics.latency.client_server_ttft
    lag, loop = client.send_lag, client.loop_lag_p99
    if loop is not None and loop > LATE:
        yield Finding(
            "loop_lag", f"The client's event loop was up to {loop * 1000:.0f} ms late (p99): all times are off by that."
        )
    if lag is not None and lag.at(95) > LATE:
        yield Finding(
            "client_lag",
            f"Requests left late: p95 {lag.at(95) * 1000:.0f} ms after they were due. The client was a bottleneck; "
            "use the figures from due.",
        )
    yield from _fell_behind(metrics)
    yield from _saturated(client)
    if without := sum(one.count for one in metrics.failures if one.kind == "files"):
        yield Finding(
            "client_files",
            f"{counted(without, 'request')} found no free file descriptor in the client: not the server's fault. "
            "ulimit -n tells the limit.",
        )
    if gap is not None and abs(gap.at(50)) > LATE:
        yield Finding(
            "client_server_ttft",
            f"Client and server differ on the first token by {gap.at(50) * 1000:.0f} ms (median): network, proxy or "
            "client take that time.",
        )


def _fell_behind(metrics: Metrics) -> Iterator[Finding]:
    lag, loop, ttft = metrics.client.send_lag, metrics.client.loop_lag_p99, metrics.latency.ttft
    late = max(0.0 if lag is None else lag.at(95), loop or 0.0)
    if ttft is not None and late > max(BEHIND_SECONDS, BEHIND_SHARE * ttft.at(95)):
        yield Finding(
            "fell_behind",
            f"The client fell behind: it was {late * 1000:.0f} ms late where the first token took "
            f"{ttft.at(95) * 1000:.0f} ms (p95). {_relief(metrics.client)}",
        )


def _relief(client: Client) -> str:
    """What to do about a client that is late: it may not have been its own fault."""
    if client.cpu_wait is not None and client.cpu_wait > WAITED * client.cpu_looked > 0:
        return f"Others used the machine: in {client.cpu_looked} s the client waited {client.cpu_wait:.1f} s for a CPU."
    return "Use more workers (--workers), fewer sessions at a time or a faster machine."


def _saturated(client: Client) -> Iterator[Finding]:
    if client.cpu_full is None or not client.full(SOME):
        return
    kind, end = ("client_saturated", "Its times are its own. ") if client.full(MOST) else ("client_busy", "")
    yield Finding(
        kind,
        f"The client's loop used all of a core in {client.cpu_full:.0%} of the {client.cpu_looked} seconds. "
        f"{end}{_relief(client)}",
    )


def _replies(metrics: Metrics) -> Iterator[Finding]:
    lengths, flow, latency = metrics.lengths, metrics.throughput, metrics.latency
    if lengths.shorter:
        yield Finding(
            "short_replies",
            f"{lengths.shorter} of {metrics.completed} replies were shorter than asked, {lengths.missing} tokens in "
            "all. They count like the others.",
        )
    if lengths.longer:
        yield Finding("long_replies", f"{lengths.longer} of {metrics.completed} replies were longer than asked.")
    if lengths.untold:
        yield Finding(
            "tokens_unknown",
            f"{lengths.untold} of {metrics.completed} replies came without a token count: they have no TPOT, and "
            "token sums are lower bounds.",
        )
    if latency.tpot_estimated:
        yield Finding(
            "tpot_estimated",
            f"Chunks of {latency.tpot_estimated} replies carried no token counts: their tokens were spread evenly over "
            "the chunks, and TPOT is an estimate.",
        )
    if flow.drained:
        yield Finding("drained", f"{counted(flow.drained, 'response')} ended after the window; completed all the same.")
    if metrics.jobs.unsized:
        yield Finding(
            "unsized_plays", f"{counted(metrics.jobs.unsized, 'play')} without a record of the end, counted as cut."
        )


def _acceptance(found: Acceptance | None) -> Iterator[Finding]:
    if found is None:
        return
    if found.length is None:
        yield Finding(
            "acceptance_unknown", "No reply told its speculative steps: the plan's acceptance is unconfirmed."
        )
        return
    if found.off and found.expected is not None:
        yield Finding(
            "acceptance_off",
            f"Acceptance length {found.length:.3f} where the plan has {found.expected:.3f} (standard error "
            f"{found.standard_error or 0:.3f}): it was not the plan's speculation that was measured.",
        )
    if found.engine_steps < FEW:
        yield Finding(
            "acceptance_few", f"Acceptance length rests on about {found.engine_steps} engine steps, fewer than {FEW:,}."
        )
    if found.told < found.of:
        yield Finding("acceptance_partly", f"{found.of - found.told} of {found.of} replies told no speculative steps.")


def _adjusted(metrics: Metrics) -> Iterator[Finding]:
    found = metrics.adjustments
    if found.dropped_turns:
        yield Finding(
            "dropped_turns",
            f"{counted(found.dropped_turns, 'turn')} not sent: more than the context holds, or aborted and skipped.",
        )
    if found.empty_sessions:
        yield Finding(
            "empty_sessions", f"{counted(found.empty_sessions, 'session')} of the trace with nothing to send."
        )
    if found.skipped_sessions:
        part = "" if found.skipped_share is None else f" and {100 * found.skipped_share:.0f}% of the prompt tokens"
        yield Finding(
            "skipped_sessions",
            f"{counted(found.skipped_sessions, 'session')} not played, since a turn does not fit: with them "
            f"{counted(found.skipped_turns, 'turn')}{part} of the trace. What is left is shorter than the traffic.",
        )
    if found.shortened_turns:
        yield Finding(
            "shortened_turns",
            f"{counted(found.shortened_turns, 'turn')} sent without {found.shortened_tokens:,} tokens of the oldest "
            "history, to fit: such prompts share less with what was sent before.",
        )
    if found.moved_turns:
        yield Finding(
            "moved_turns",
            f"Idle caps brought {counted(found.moved_turns, 'turn')} forward, {found.moved_seconds:.0f} s in all: "
            "pauses were shorter than recorded.",
        )
    if found.reconnects:
        yield Finding("reconnects", f"{counted(found.reconnects, 'request')} met a closing connection and went again.")


def _reuse(about: About, metrics: Metrics) -> Iterator[Finding]:
    seen = metrics.reuse
    by_request, counters = seen.by_request, seen.counters
    if by_request.doubtful:
        yield Finding(
            "cached_doubtful",
            f"All {by_request.told} replies say 0 cached tokens and no counter confirms it: taken as unknown.",
        )
    elif metrics.completed and by_request.cached is None:
        yield Finding("cached_unknown", "No reply told its cached tokens (SGLang: --enable-cache-report).")
    elif by_request.told < by_request.of:
        yield Finding(
            "cached_partly",
            f"{by_request.of - by_request.told} of {by_request.of} replies did not tell their cached tokens.",
        )
    if counters is None and metrics.attempts:
        why = "the run ended before they were read again" if about.state == "partial" else "SGLang: --enable-metrics"
        yield Finding("counters_missing", f"The server's counters are not known ({why}).")
    elif counters is not None and counters.went_back:
        yield Finding("counters_went_back", "A server counter went backwards (a restart?): counters are not used.")
    yield from _agreement(seen)


def _agreement(seen: Reuse) -> Iterator[Finding]:
    counters, ideal, missing = seen.counters, seen.ideal, seen.missing_to_ideal
    if counters is not None and counters.difference:
        told = f"{counters.requests_untold} requests did not tell; " if counters.requests_untold else ""
        yield Finding(
            "counters_differ",
            f"Counters and requests differ by {counters.difference:+d} cached tokens ({told}failed, foreign or "
            "unfinished requests are in the counters only).",
        )
    if missing is not None and missing < 0:
        yield Finding(
            "surplus",
            f"{counted(-missing, 'token')} more were reused than the ideal of this order holds: another run's or an "
            "earlier "
            "order's cache, or requests that overtook each other.",
        )
    if seen.ideal_missing is not None and seen.by_request.of:
        yield Finding("ideal_missing", f"No ideal reuse: {seen.ideal_missing}.")
    if ideal is not None and not ideal.page_known:
        yield Finding("page_unknown", "The server did not tell its page size: the ideal is for pages of 1 token.")
    if ideal is not None and ideal.template_fitted:
        yield Finding(
            "template_fitted",
            "What the server's chat template adds was fitted to the lengths that it reported: the ideal rests on that.",
        )
    yield from _lost(seen)
    if ideal is not None and ideal.drift:
        yield Finding("drift", f"The server counts the prompts {ideal.drift} tokens otherwise than they were made.")


def _lost(seen: Reuse) -> Iterator[Finding]:
    """What of the trace a replay against one server does not keep."""
    ideal = seen.ideal
    if ideal is None:
        return
    if ideal.literal:
        yield Finding(
            "literal", "The trace holds literal text, which no salt changes: an earlier run of it may still be cached."
        )
    if ideal.models > 1:
        yield Finding("models", f"The trace names {ideal.models} models; all turns went to one.")
    if ideal.arrivals:
        yield Finding(
            "arrivals", "The sessions' recorded arrival times were not used: they began as the plan's load says."
        )


def _several(about: About) -> Iterator[Finding]:
    """What follows from more than one server: a cache of each, and what they do not have in common."""
    if about.addresses > 1:
        yield Finding(
            "several_servers",
            f"Sessions were dealt out to {about.addresses} servers: what they share is computed on each of them.",
        )
    names = {name for told in about.servers.values() for name in told} - {"role"}
    for name in sorted(names):
        by_role: dict[object, dict[str, list[str]]] = {}
        for url, told in about.servers.items():
            by_role.setdefault(told.get("role"), {}).setdefault(str(told.get(name, "not told")), []).append(url)
        for values in by_role.values():
            if len(values) > 1:
                said = "; ".join(f"{value} ({', '.join(urls)})" for value, urls in sorted(values.items()))
                yield Finding("servers_differ", f"The servers differ in {name}: {said}.")


def _always(about: About) -> Iterator[Finding]:
    if about.history in (None, "recorded"):
        yield Finding("recorded_history", RECORDED_HISTORY)
    for note in about.notes:
        yield Finding("note", note)
