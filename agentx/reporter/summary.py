"""The report on one screen: whether the run is good for anything, what to know first, and the figures that matter.

At most LINES lines of WIDTH columns, whatever the run: what is longer is cut, and what is not shown is counted. The
full report has every table. "unknown": the server did not say. "n/a": the run has nothing of the kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from agentx.reporter.blame_text import clock, sentence
from agentx.reporter.goodput_text import value_text, verdict_text
from agentx.reporter.losses import CAUSES, Losses, cause_words
from agentx.reporter.reuse_groups import Grouped
from agentx.reporter.spread import Rates, Spread
from agentx.reporter.table import WIDTH, Block, Facts, Heading, Lines, Table, as_text
from agentx.reporter.text import client_text, cut, number, share, state_text, target_text, title, tokens
from agentx.reporter.throughput import Amount, Throughput

if TYPE_CHECKING:
    from agentx.reporter.reporting import Report

LINES = 40
MORE = "Every table: agentx report RUN --full. Every figure: --json."
_SENTENCE = 2 * 84  # columns: two lines of text beside a name


def summary_blocks(report: Report) -> list[Block]:
    """The whole summary. As many of the caveats stand in it as the figures leave room for."""
    metrics = report.metrics
    head: list[Block] = [
        Heading(cut(title(report.about), WIDTH)),
        Facts(tuple(_short(*pair) for pair in _head(report))),
    ]
    figures: list[Block] = [
        Heading("Answered requests"),
        Table(("", "p50", "p90", "p95", "mean", "n", "sessions"), tuple(_times(report))),
        Table(("in the window", "tok/s", "tok/s/GPU", "tokens", "told by", "of"), tuple(_flows(metrics.throughput))),
        Heading("Reuse of prompt tokens, and what was waited for"),
        Facts(tuple(_explained(report))),
        Lines((MORE,)),
    ]
    taken = len(as_text([*head, *figures]).splitlines()) + 2  # its own heading and the line before that
    return [*head, *_caveats(report, LINES - taken), *figures]


def _short(name: str, text: str) -> tuple[str, str]:
    return name, cut(text, WIDTH - 14)


def _head(report: Report) -> Iterator[tuple[str, str]]:
    about, metrics = report.about, report.metrics
    invalid = [one.kind for one in report.findings if one.invalidates]
    verdict = f"; MEASUREMENT INVALID: {', '.join(invalid)}" if invalid else ""
    yield "state", state_text(about, metrics) + verdict
    if about.engine_rules:
        yield "rules", f"every figure is of a model, engine rules: {about.engine_rules}"
    yield "target", target_text(about)
    window = metrics.throughput.window
    length = "window unknown" if window is None else f"window {number(window.seconds)} s"
    flight = "" if metrics.in_flight is None else f", {number(metrics.in_flight)} in flight"
    answered = f"{metrics.completed} of {metrics.attempts} requests answered, {metrics.sessions} sessions"
    yield "done", f"{answered}, {length}{flight}; seed {'unknown' if about.seed is None else about.seed}"
    if metrics.attempts and about.started:
        yield "client", client_text(metrics.client)
    if report.judged.verdicts:
        order = sorted(report.judged.verdicts, key=lambda one: bool(one.met))  # missed ones first
        yield "objectives", "; ".join(f"{one.objective}: {verdict_text(one)}, {value_text(one)}" for one in order)
    if report.judged.goodput.objectives:
        goodput = report.judged.goodput
        yield "goodput", f"{goodput.met} of {goodput.due} turns ({share(goodput.share)}) meet the objectives of turns"
    if report.forecast is not None:
        yield "forecast", f"{report.forecast.inside} of {len(report.forecast.told)} figures inside their intervals"


def _caveats(report: Report, room: int) -> list[Block]:
    """The most severe ones, a line each, in at most `room` lines."""
    if not report.findings:
        return []
    order = sorted(report.findings, key=lambda one: not one.invalidates)
    shown = [cut(one.text, WIDTH - 6) for one in order[:room]]
    if len(order) > room:
        shown[-1] = f"... and {len(order) - room + 1} more, in the full report"
    return [Heading("Know before use"), Lines(tuple(shown), bullet=True)]


def _times(report: Report) -> Iterator[tuple[str, ...]]:
    latency, seen, lengths = report.metrics.latency, report.metrics.interactivity, report.metrics.lengths
    yield _spread("TTFT from sent, s", latency.ttft)
    yield _spread("TPOT, ms (estimated)" if latency.tpot_estimated else "TPOT, ms", latency.tpot, 1000)
    yield _spread("latency from sent, s", latency.latency)
    yield _spread("tokens/s of one user, 1 / TPOT", seen.streaming)
    yield _spread("isl, tokens", lengths.isl)
    yield _spread("osl, tokens", lengths.osl)
    yield _spread("job latency, s", report.metrics.jobs.latency)


def _spread(label: str, found: Spread | Rates | None, scale: float = 1) -> tuple[str, ...]:
    if found is None:
        return (label, *["n/a"] * 4, "0", "0")
    values = (*(found.at(percent) for percent in (50, 90, 95)), found.mean)
    shown = (number(None if value is None else value * scale, "n/a") for value in values)
    return (label, *shown, str(found.n), str(found.sessions))


def _flows(found: Throughput) -> Iterator[tuple[str, ...]]:
    flow = found.emitted
    named = (("output", flow.output), ("input computed", flow.input_computed), ("input from cache", flow.input_cached))
    for label, amount in named:
        rate = flow.per_second(amount)
        per_gpu = None if rate is None or found.gpus is None else rate / found.gpus
        absent = "unknown" if amount.tokens is None else "n/a"
        cells = (number(rate, absent), number(per_gpu), tokens(None if amount.tokens is None else round(amount.tokens)))
        yield (label, *(_bound(cell, amount) for cell in cells), str(amount.told), str(amount.of))


def _bound(cell: str, amount: Amount) -> str:
    """A sum over fewer responses than all is a lower bound."""
    return cell if amount.whole or not cell[0].isdigit() else f">={cell}"


def _explained(report: Report) -> Iterator[tuple[str, str]]:
    yield _short("observed", _observed(report))
    ideal = report.metrics.reuse.ideal
    if ideal is None:
        yield _short("ideal", f"unknown: {report.metrics.reuse.ideal_missing or 'nothing was answered'}")
    else:
        eligible = _eligible(report.grouped)
        part = ideal.same_cached / ideal.same_prompt if ideal.same_prompt else ideal.share
        yield _short("ideal", f"{share(part)}; possible {share(ideal.possible_share)}; eligible {eligible}")
        yield _short("lost", _largest(report.losses))
    if report.blame.turns:
        yield "slowest", cut(sentence(report.blame.turns[0], clock(report.about.started), largest=2), _SENTENCE)
    jobs = report.metrics.jobs
    hourly = f"{number(jobs.equivalents)} job-equivalents in the window, {number(jobs.equivalents_per_hour, 'n/a')}"
    yield "jobs", f"{hourly} per hour; {'unknown' if jobs.whole is None else jobs.whole} whole"
    if report.cost.dollars_per_gpu_hour is not None:
        each = report.cost.dollars_per_million_output_tokens
        mark = "at most " if "output" in report.cost.upper_bounds else ""
        told = f"{mark}${number(each)} per million output tokens, of the whole cost"
        yield "cost", f"unknown: {report.cost.missing or 'output tokens are not'}" if each is None else told


def _observed(report: Report) -> str:
    seen, counters = report.metrics.reuse.by_request, report.metrics.reuse.counters
    told = f"by request ({seen.told} of {seen.of} told)"
    by_counters = "unknown" if counters is None else share(counters.share)
    return f"{share(seen.share)} {told}; by counters {by_counters}"


def _eligible(found: Grouped) -> str:
    """Of what a prompt has in common with the prompt and reply before it, how much was cached."""
    if found.eligible is None:
        return "unknown"
    if found.eligible.share is None:
        return "n/a"
    return f"{share(found.eligible.share)} cached, {found.eligible.requests} turns"


def _largest(found: Losses) -> str:
    """The cause of the most tokens."""
    if found.total is None:
        return f"not split: {found.missing}"
    sizes = {cause: found.of(cause) or 0 for cause in CAUSES}
    most = max(sizes, key=lambda cause: sizes[cause])
    if sizes[most] <= 0:
        return f"nothing; ideal less observed is {found.total:,d} tokens"
    above = f", {-sizes['surplus']:,d} more than the ideal elsewhere" if sizes["surplus"] else ""
    lost = found.total - sizes["surplus"]
    return f"{lost:,d} tokens{above}; most: {cause_words(most, found.source)}, {sizes[most]:,d}"
