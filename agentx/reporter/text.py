"""The report for people: what was run, whether it is whole, its figures, and what to know before using them.

Built once as blocks, rendered for a terminal (at most 100 columns, ASCII) or as markdown. "unknown": the server did
not say. "n/a": the run has nothing of the kind. ">=" : a lower bound, as some responses told no count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from agentx.reporter.about import About
from agentx.reporter.acceptance import Acceptance
from agentx.reporter.client import Client
from agentx.reporter.findings import Finding, counted
from agentx.reporter.metrics import Latency, Metrics
from agentx.reporter.observed import Ideal, Reuse
from agentx.reporter.spread import Rates, Spread
from agentx.reporter.table import Block, Facts, Heading, Lines, Table
from agentx.reporter.throughput import Amount, Flow, Throughput

_PLAN_KEYS = ("load", "wire", "history", "length", "gaps", "order", "start", "warmup", "measure", "acceptance")
NOTABLE = 0.1  # s without a CPU that are worth a word
_STATES = {
    "done": "complete",
    "interrupted": "INTERRUPTED, the figures are of the part before that",
    "failed": "FAILED, the driver gave up",
    "partial": "PARTIAL, the run has no end record",
}


def blocks(about: About, metrics: Metrics, findings: tuple[Finding, ...], first: Sequence[Block] = ()) -> list[Block]:
    """The whole report; `first` stands before all other figures."""
    return [
        *_head(about, metrics),
        *first,
        *_findings(findings),
        *_latency(metrics),
        *_throughput(metrics.throughput),
        *_reuse(metrics.reuse),
        *_jobs(metrics),
        *_failures(metrics),
    ]


def title(about: About) -> str:
    return f"agentx report: {about.title}"


def state_text(about: About, metrics: Metrics) -> str:
    """Whether the run is whole, and whether anything came of it."""
    state = "PARTIAL, a worker was lost" if about.lost else _STATES.get(about.state, about.state)
    if about.whole and not metrics.completed:
        state += ", but nothing was answered"
    return state + (f"; the results file is {about.torn}" if about.torn else "")


def _head(about: About, metrics: Metrics) -> list[Block]:
    books, window = metrics.books, metrics.throughput.window
    hours = "unknown" if window is None else f"{number(window.seconds)} s ({_WINDOW_SOURCES[window.source]})"
    if metrics.in_flight is not None:
        hours += f", {number(metrics.in_flight)} requests in flight on average"
    others = "".join(f", {count} of phase {phase} left out" for phase, count in metrics.other_phases.items())
    rules = f"every figure is of a model, engine rules: {about.engine_rules}"
    pairs = (
        ("state", state_text(about, metrics)),
        *([("rules", rules)] if about.engine_rules else []),
        ("target", target_text(about)),
        ("trace", f"{about.trace or 'unknown'}, sha256 {(about.trace_sha256 or 'unknown')[:16]}"),
        ("plan", _plan(about.plan)),
        ("repeat", f"seed {_told(about.seed)}, salt {_told(about.salt)}, started {about.started or 'in virtual time'}"),
        (
            "done",
            f"{metrics.completed} of {metrics.attempts} requests answered, "
            f"{counted(metrics.sessions, 'session')}{others}",
        ),
        *([] if metrics.acceptance is None else [("acceptance", _acceptance(metrics.acceptance))]),
        ("window", hours),
        (
            "books",
            f"plays {books.plays} = {books.done} done + {books.failed} failed + {books.cut} cut; "
            f"turns {books.turns} = {books.completed} completed + {books.turns_failed} failed + "
            f"{books.turns_unsent} unsent; {'balanced' if books.balanced else 'NOT BALANCED'}",
        ),
        *([("client", client_text(metrics.client))] if metrics.attempts and about.started else []),
    )
    return [Heading(title(about)), Facts(pairs)]


def _acceptance(found: Acceptance) -> str:
    length = "unknown" if found.length is None else f"{found.length:.3f} tokens a step"
    if found.length is None and found.length_by_counters is not None:
        length = f"{found.length_by_counters:.3f} tokens a step by the server's counters, unknown by replies"
    plan = "" if found.asked is None else f", the plan's is {found.asked:g}"
    return f"{length} over {counted(found.steps, 'step')} of {counted(found.told, 'request')}{plan}"


def client_text(found: Client) -> str:
    """The verdict on the client, and what it rests on."""
    if found.bottleneck is None:
        return "unknown, the run does not tell how its client was"
    verdict = "WAS THE BOTTLENECK" if found.bottleneck else "was not the bottleneck"
    return f"{verdict}: {', '.join(_client_evidence(found)) or 'of itself it tells nothing'}"


def _client_evidence(found: Client) -> Iterator[str]:
    if found.workers > 1:
        yield f"the worst of {found.workers} workers"
    if found.loop_lag_p99 is not None:
        yield f"event loop {number(found.loop_lag_p99 * 1000)} ms late (p99)"
    if found.send_lag is not None:
        yield f"sends {number(max(0.0, found.send_lag.at(95)) * 1000)} ms late (p95)"
    if found.cpu_mean is not None and found.cpu_busiest is not None:
        yield f"its loop used {found.cpu_mean:.0%} of a core, {found.cpu_busiest:.0%} in the busiest second"
    if found.cpu_wait is not None and found.cpu_wait >= NOTABLE:
        yield f"waited {number(found.cpu_wait)} s for a CPU"
    if found.gc_longest is not None:
        yield f"longest GC pause {number(found.gc_longest * 1000)} ms"
    if found.files is not None and found.files_limit is not None:
        yield f"{found.files:,} of {found.files_limit:,} files open"


_WINDOW_SOURCES = {"plan": "the plan's window", "sends": "first send to last end"}


def target_text(about: About) -> str:
    kind = f" ({about.target_kind})" if about.target_kind and about.target_kind != about.target else ""
    gpus = "GPUs unknown" if about.gpus is None else f"{about.gpus} GPU{'s' if about.gpus > 1 else ''}"
    return f"{about.target or 'unknown'}{kind}, model {about.model or 'unknown'}, {gpus}"


def _plan(plan: Mapping[str, object]) -> str:
    told = [f"{key} {_compact(plan[key])}" for key in _PLAN_KEYS if plan.get(key) is not None]
    return ", ".join(told) or "unknown"


def _compact(value: object) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {_compact(item)}" for key, item in value.items() if item is not None) + "}"
    return str(value)


def _findings(findings: tuple[Finding, ...]) -> list[Block]:
    return [Heading("Know before use"), Lines(tuple(one.text for one in findings), bullet=True)] if findings else []


def _latency(metrics: Metrics) -> list[Block]:
    found = metrics.latency
    columns = ("", "n", "sessions", "p5", "p50", "p90", "p95", "p99", "mean", "max")
    rows = [_times(label, spread, scale) for label, spread, scale in _latency_rows(found)]
    shown = ("", "n", "sessions", "p5", "p50", "p90", "p95", "p99", "mean")
    rates = [
        _rates("while streaming, 1 / TPOT", metrics.interactivity.streaming),
        _rates("end to end, tokens / latency", metrics.interactivity.end_to_end),
    ]
    lengths = [_times("isl", metrics.lengths.isl, 1), _times("osl", metrics.lengths.osl, 1)]
    return [
        Heading("Latency of answered requests"),
        Table(columns, tuple(rows)),
        Heading("Interactivity, tokens/s of one user (p95 is the slow tail)"),
        Table(shown, tuple(rates)),
        Heading("Lengths, tokens by the server"),
        Table(columns, tuple(lengths)),
    ]


def _latency_rows(found: Latency) -> list[tuple[str, Spread | None, float]]:
    tpot = "TPOT, ms (estimated)" if found.tpot_estimated else "TPOT, ms"
    rows: list[tuple[str, Spread | None, float]] = [
        ("TTFT from sent, s", found.ttft, 1),
        ("TTFT from due, s", found.ttft_from_due, 1),
        (tpot, found.tpot, 1000),
        ("inter-token (ITL), ms", found.inter_token, 1000),
        ("inter-chunk, ms", found.inter_chunk, 1000),
        ("latency from sent, s", found.latency, 1),
        ("latency from due, s", found.latency_from_due, 1),
        ("lag (sent - due), ms", found.lag, 1000),
    ]
    optional: list[tuple[str, Spread | None, float]] = [
        ("server's queue, s", found.queue, 1),
        ("server's TTFT, s", found.server_ttft, 1),
    ]
    return rows + [row for row in optional if row[1] is not None]


def _times(label: str, spread: Spread | None, scale: float) -> tuple[str, ...]:
    if spread is None:
        return (label, "0", "0", *["n/a"] * 7)
    shown = [spread.at(percent) for percent in (5, 50, 90, 95, 99)]
    return (
        label,
        str(spread.n),
        str(spread.sessions),
        *(number(value * scale) for value in (*shown, spread.mean, spread.maximum)),
    )


def _rates(label: str, rates: Rates | None) -> tuple[str, ...]:
    if rates is None:
        return (label, "0", "0", *["n/a"] * 6)
    shown = [rates.at(percent) for percent in (5, 50, 90, 95, 99)]
    return (label, str(rates.n), str(rates.sessions), *(number(value, "n/a") for value in (*shown, rates.mean)))


def _throughput(found: Throughput) -> list[Block]:
    rows: list[tuple[str, ...]] = []
    for name, flow in (("emitted in the window", found.emitted), ("completed responses", found.completed)):
        seconds = "n/a" if flow.seconds is None else f"{number(flow.seconds)} s"
        rows.append((f"{name}, {seconds}", str(flow.responses), "", "", "", ""))
        for label, amount in (
            ("  output", flow.output),
            ("  input computed", flow.input_computed),
            ("  input from cache", flow.input_cached),
        ):
            rows.append(_flow_row(label, flow, amount, found))
    columns = ("", "responses", "tokens", "tok/s", "tok/s/server", "tok/s/GPU")
    return [Heading("Throughput"), Table(columns, tuple(rows))]


def _flow_row(label: str, flow: Flow, amount: Amount, found: Throughput) -> tuple[str, ...]:
    rate = flow.per_second(amount)
    mark = "" if amount.whole or amount.tokens is None else ">="
    per_gpu = None if rate is None or found.gpus is None else rate / found.gpus
    per_server = None if rate is None else rate / found.servers
    absent = "n/a" if amount.tokens is not None else "unknown"
    told = f"{amount.told} told" if not amount.whole else ""
    counted = "unknown" if amount.tokens is None else f"{amount.tokens:,.0f}"
    cells = (number(rate, absent), number(per_server, absent), number(per_gpu, "unknown"))
    return (label, told, mark + counted, *(mark + cell if cell[0].isdigit() else cell for cell in cells))


def _reuse(found: Reuse) -> list[Block]:
    seen, counters, ideal = found.by_request, found.counters, found.ideal
    label = f"by request ({seen.told} of {seen.of} told)"
    rows: list[tuple[str, ...]]
    if seen.doubtful:
        rows = [(label, "unknown", tokens(seen.prompt), "unknown", "unknown", "unknown", "unknown")]
    else:
        tiers = (tokens(seen.device), tokens(seen.host), tokens(seen.storage))
        rows = [(label, tokens(seen.cached), tokens(seen.prompt), share(seen.share), *tiers)]
    if counters is None:
        rows.append(("by counters", *["unknown"] * 6))
    else:
        tiers = (tokens(counters.device), tokens(counters.host), tokens(counters.storage))
        cells = (tokens(counters.cached), tokens(counters.prompt), share(counters.share))
        rows.append(("by counters", *cells, *tiers))
    if ideal is not None:
        rows.append(_ideal_row(ideal, seen.told))
    columns = ("observed", "cached", "prompt", "share", "device", "host", "storage")
    layers = _layers(ideal) if ideal is not None else []
    return [Heading("Reuse of prompt tokens"), Table(columns, tuple(rows)), Lines(tuple(_reuse_words(found))), *layers]


def _ideal_row(ideal: Ideal, told: int) -> tuple[str, ...]:
    """Over the responses that tell what was observed, so that the rows can be held together; else over all."""
    if not told:
        return ("ideal, all prompts", tokens(ideal.cached), tokens(ideal.prompt), share(ideal.share), "", "", "")
    part = share(ideal.same_cached / ideal.same_prompt if ideal.same_prompt else None)
    return ("ideal, the same prompts", tokens(ideal.same_cached), tokens(ideal.same_prompt), part, "", "", "")


def _layers(ideal: Ideal) -> list[Block]:
    rows = [
        (layer, tokens(prompt), tokens(cached), share(cached / prompt if prompt else None))
        for layer, (prompt, cached) in ideal.by_layer.items()
    ]
    return [Table(("ideal by layer, all prompts", "prompt tokens", "reusable", "share"), tuple(rows))]


def _reuse_words(found: Reuse) -> list[str]:
    words = []
    counters, ideal, missing = found.counters, found.ideal, found.missing_to_ideal
    if counters is not None and counters.difference is not None:
        agree = "exactly" if counters.difference == 0 else f"but for {counters.difference:+,d} cached tokens"
        words.append(f"Counters and requests of the same time agree {agree}.")
    if counters is not None:
        host = "" if counters.host_pool is None else f", its host tier {counters.host_pool:,d}"
        words.append(
            f"The server's cache holds {tokens(counters.pool)} tokens{host}; {tokens(counters.evicted)} tokens were "
            f"evicted, {tokens(counters.retracted)} requests retracted."
        )
    if missing is not None and ideal is not None:
        part = share(abs(missing) / ideal.same_prompt) if ideal.same_prompt else "n/a"
        noun = "missing to the ideal" if missing >= 0 else "surplus above the ideal"
        words.append(f"{noun.capitalize()}: {abs(missing):,d} tokens, {part} of the prompt tokens.")
    if ideal is not None:
        possible = share(ideal.possible_share)
        words.append(f"Possible by the trace's own identities (pages of 1 token, replies counted): {possible}.")
        words += _less_words(ideal)
    return words


def _less_words(ideal: Ideal) -> list[str]:
    """Why the ideal is not what is possible, where it is not."""
    less = ideal.possible_less_ideal
    named = (
        (less.truncation, "of history that was dropped to fit"),
        (less.salt, "kept apart by the salt"),
        (less.replies, "of replies that are not sent back as they were made"),
        (less.page, "in pages that are not full"),
        (less.servers, "shared by sessions that went to different servers"),
        (less.template, "of the chat template, which the trace does not have"),
    )
    parts = [f"{count:+,d} {what}" for count, what in named if count]
    return [f"Possible less ideal: {less.total:+,d} tokens = {', '.join(parts)}."] if parts else []


def _jobs(metrics: Metrics) -> list[Block]:
    jobs = metrics.jobs
    row = _times("job latency, s", jobs.latency, 1)
    whole = "unknown whole jobs" if jobs.whole is None else counted(jobs.whole, "whole job")
    rates = (
        f"{whole} in the window, {number(jobs.whole_per_hour, 'n/a')} per hour; "
        f"{number(jobs.equivalents)} job-equivalents, {number(jobs.equivalents_per_hour, 'n/a')} per hour.",
    )
    columns = ("", "n", "sessions", "p5", "p50", "p90", "p95", "p99", "mean", "max")
    return [Heading("Sessions as jobs"), Table(columns, (row,)), Lines(rates)]


def _failures(metrics: Metrics) -> list[Block]:
    if not metrics.failures:
        return []
    rows = tuple(
        (
            one.kind,
            str(one.count),
            " ".join(f"{status}:{count}" for status, count in one.statuses.items()) or "-",
            cut(one.example),
        )
        for one in metrics.failures
    )
    return [Heading("Failed requests"), Table(("kind", "requests", "HTTP status", "for example"), rows)]


def cut(message: str, width: int = 56) -> str:
    """In one line of at most `width`."""
    flat = " ".join(message.split())
    return flat if len(flat) <= width else flat[: width - 3] + "..."


def number(value: float | None, absent: str = "unknown") -> str:
    """Three digits or more, without an exponent for what people meet."""
    if value is None:
        return absent
    if value == 0:
        return "0"
    if abs(value) >= 1e6:
        return f"{value / 1e6:,.2f}M" if abs(value) < 1e15 else f"{value:.3g}"
    for limit, digits in ((1000, 0), (100, 1), (1, 2), (0.1, 3), (0.01, 4), (0.001, 5)):
        if abs(value) >= limit:
            return f"{value:,.{digits}f}"
    return f"{value:.2g}"


def tokens(count: int | None) -> str:
    return "unknown" if count is None else f"{count:,d}"


def share(value: float | None) -> str:
    """Something is never rounded to nothing, nor what is not all to all."""
    if value is None:
        return "unknown"
    if 0 < value < 0.0005:
        return "< 0.1 %"
    return "> 99.9 %" if 0.9995 <= value < 1 else f"{value * 100:.1f} %"


def _told(value: object) -> str:
    return "unknown" if value is None else str(value)
