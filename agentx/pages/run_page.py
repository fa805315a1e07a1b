"""The report of a run as a page: the verdict and what to know first, then charts, each with its values."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape

from agentx.core import Attempt
from agentx.pages.axes import exact, linear, logarithmic
from agentx.pages.charts import Dots, Line, Mark, bars, dots, lanes, lines, stacked
from agentx.pages.run_series import KINDS, TIERS, Through, lanes_of, some, through
from agentx.pages.shell import Section, figure, listed, page, table, tiles
from agentx.reporter.blame_text import clock, sentence
from agentx.reporter.findings import counted
from agentx.reporter.losses import CAUSES, cause_name
from agentx.reporter.reporting import Report
from agentx.reporter.text import number, share
from agentx.reporter.throughput import MEASURED
from agentx.reporter.turns import TurnTimes
from agentx.results import RunResults

TIME = "seconds of the run"


def run_page(report: Report, run: RunResults) -> str:
    """The whole file. The same run gives the same bytes."""
    done = [one for one in run.attempts if one.phase == MEASURED and one.ok]
    seen = through(run.attempts)
    sections = [
        Section("Know before use", listed([one.text for one in report.findings]) or "<p>Nothing.</p>"),
        *_present("The slowest turns", _slow(report)),
        *_present("Sessions", _sessions(report, run)),
        *_present("Reuse through time", _reuse(seen)),
        *_present("Reuse that was lost", _lost(report)),
        *_present("Reuse by the size of the cache", _capacity(report)),
        *_present("Reuse by groups of requests", _groups(report)),
        *_present("First token and prompt", _first_token(done)),
        *_present("Load through time", _load(seen)),
        *_present("Latency", _latency(report.metrics.times)),
        Section("The report in full", f'<div class="wide"><pre>{escape(report.text())}</pre></div>'),
    ]
    about = report.about
    return page(f"agentx report: {about.title}", _lead(report), sections, report.document())


def _present(title: str, body: str) -> list[Section]:
    return [Section(title, body)] if body else []


def _lead(report: Report) -> str:
    """The state, the verdict, and the figures that matter most."""
    about, metrics = report.about, report.metrics
    invalid = [one for one in report.findings if one.invalidates]
    said = []
    if not about.whole:
        said.append(f'<p class="bad">The run is {escape(about.state)}: its figures are of the part before that.</p>')
    if invalid:
        said.append(f'<p class="bad">Invalid: {escape(invalid[0].text)}</p>')
    for verdict in report.judged.verdicts:
        kind, word = ("ok", "met") if verdict.met else ("bad", "missed" if verdict.met is False else "cannot be told")
        said.append(f'<p class="{kind}">Objective {escape(str(verdict.objective))}: {word}</p>')
    if about.engine_rules:
        said.append(f"<p>Every figure is of a model, engine rules: {escape(about.engine_rules)}.</p>")
    if not said:
        said.append('<p class="ok">Complete; nothing makes it invalid.</p>')
    plan = about.plan.get("load") or {}
    load = ", ".join(f"{key} {value}" for key, value in plan.items() if value is not None) or "unknown"
    words = (
        f"{counted(metrics.completed, 'request')} of {metrics.attempts} answered",
        counted(metrics.sessions, "session"),
        f"load: {load}",
        f"model {about.model or 'unknown'}",
        about.started or "in virtual time",
    )
    said.append(f'<p class="soft">{escape("; ".join(words))}</p>')
    return "".join(said) + tiles(_tiles(report))


def _tiles(report: Report) -> list[tuple[str, str, str]]:
    metrics = report.metrics
    ttft, tpot, flow = metrics.latency.ttft, metrics.latency.tpot, metrics.throughput.emitted
    rate, gpus = flow.per_second(flow.output), metrics.throughput.gpus
    made = [
        ("latency.ttft_seconds.p50", _seconds(None if ttft is None else ttft.at(50)), "TTFT p50"),
        ("latency.ttft_seconds.p95", _seconds(None if ttft is None else ttft.at(95)), "TTFT p95"),
        ("latency.tpot_seconds.p50", _milliseconds(None if tpot is None else tpot.at(50)), "TPOT p50"),
        ("throughput.emitted.output.tokens_per_second", _per_second(rate), "output in the window"),
    ]
    if gpus is not None:
        per_gpu = None if rate is None else rate / gpus
        made.append(
            ("throughput.emitted.output.tokens_per_second_per_gpu", _per_second(per_gpu), f"output per GPU, {gpus}")
        )
    made.append(("reuse.by_request.share", share(metrics.reuse.by_request.share), "reuse, by request"))
    if metrics.reuse.ideal is not None:
        made.append(("reuse.ideal.share", share(metrics.reuse.ideal.share), "ideal reuse, same prompts"))
    return made


def _seconds(value: float | None) -> str:
    return f"{number(value, 'n/a')} s" if value is not None else "n/a"


def _milliseconds(value: float | None) -> str:
    return f"{number(value * 1000)} ms" if value is not None else "n/a"


def _per_second(value: float | None) -> str:
    return f"{number(value)} tok/s" if value is not None else "unknown"


def _slow(report: Report) -> str:
    when = clock(report.about.started)
    return listed([sentence(turn, when) for turn in report.blame.turns[:10]])


def _sessions(report: Report, run: RunResults) -> str:
    if not run.attempts:
        return ""
    ideal = report.metrics.reuse.ideal
    kinds = {} if ideal is None else {(row.attempt.session, row.attempt.turn): row.turn_kind for row in ideal.rows}
    rows, left = lanes_of(run, kinds)
    ends = [one.end or one.last or one.sent for one in run.attempts]
    axis = exact(TIME, min(one.sent for one in run.attempts), max(ends))
    more = f" {left} more threads are not drawn." if left else ""
    values = [(name, len([bar for bar in made if bar.kind == 3])) for name, made in rows]
    return figure(lanes("Sessions, a lane for each thread", axis, KINDS, rows),
                  f"A lane for each thread: session, then its number where it is a subagent.{more}",
                  ("thread", "replies"), values)  # fmt: skip


def _reuse(seen: Through | None) -> str:
    if seen is None or not any(seen.reused):
        return ""
    rows = [each or (0.0,) * len(TIERS) for each in seen.reused]
    used = [place for place in range(len(TIERS)) if any(row[place] for row in rows)]
    names = [TIERS[place] for place in used]
    columns = [[row[place] for place in used] for row in rows]
    x = exact(TIME, seen.start, seen.start + seen.width * len(rows))
    y = linear("prompt tokens", [sum(row) for row in columns])
    values = [
        (
            f"{seen.start + place * seen.width:.1f}",
            *(None if seen.reused[place] is None else round(part) for part in row),
        )
        for place, row in enumerate(columns)
    ]
    chart = stacked("Prompt tokens by where they came from", x, y, seen.width, names, columns)
    return figure(
        chart, "By the time of the first token. What the server did not tell is left out.", ("from, s", *names), values
    )


def _lost(report: Report) -> str:
    losses = report.losses
    if losses.total is None:
        return f"<p>Not split: {escape(losses.missing or 'unknown')}.</p>"
    rows = [(cause_name(cause, losses.source), float(losses.of(cause) or 0)) for cause in CAUSES if losses.of(cause)]
    rows.append(("ideal less observed", float(losses.total)))
    told = [(cause_name(cause, losses.source), losses.of(cause)) for cause in CAUSES]
    return figure(bars("Lost reuse by cause", "tokens", rows), "They sum to ideal less observed, exactly.",
                  ("cause", "tokens"), [*told, ("ideal less observed", losses.total)])  # fmt: skip


def _capacity(report: Report) -> str:
    found = report.capacity
    curve = found.curve
    if curve is None or not curve.possible:
        return ""
    points = [
        (float(size), (curve.share(size) or 0.0) * 100) for size in curve.capacities[::8] if size >= curve.longest / 16
    ]
    engine = [(float(size), value * 100) for size, value in found.engine]
    series = [
        Line("page-LRU, an upper curve", points),
        *([Line("the embedded engine's cache", engine)] if engine else []),
    ]
    named = [(found.device, "device"), (found.usable if found.host else None, "device and host")]
    marks = [Mark(f"{name} {size:,}", float(size)) for size, name in named if size]
    sizes = [size for size, _ in [*points, *engine]] + [mark.at for mark in marks]
    x, y = logarithmic("tokens that the cache holds", sizes), linear("reuse, % of prompt tokens", [100.0])
    memory = found.memory
    rows = [(f"{int(size):,}", value, memory.told(int(size)) if memory else None) for size, value in points]
    chart = lines("Reuse by the size of the cache", x, y, series, marks)
    caption = "What a cache of that size could have given to these prompts."
    return figure(chart, caption, ("tokens", "reuse, %", "memory"), rows)


def _groups(report: Report) -> str:
    rows = []
    for group in report.grouped.groups:
        parts = (group.possible, group.ideal, group.observed)
        shares = [None if part is None else f"{part / group.prompt * 100:.1f} %" for part in parts]
        requests = "all" if group.requests is None else group.requests
        rows.append((f"{group.by.replace('_', ' ')}: {group.name}", requests, group.prompt, *shares))
    return table(("group", "requests", "prompt tokens", "possible", "ideal", "observed"), rows) if rows else ""


def _first_token(done: Sequence[Attempt]) -> str:
    timed = [one for one in done if one.first is not None and one.prompt_tokens is not None]
    if not timed:
        return ""
    chosen = some(timed)
    parts = [_scatter(chosen, len(timed), "prompt tokens", lambda one: one.prompt_tokens)]
    told = [one for one in chosen if one.cached is not None and one.cached.tokens is not None]
    if told:
        parts.append(_scatter(told, len(timed), "prompt tokens that were computed", _computed))
    return "".join(parts)


def _computed(one: Attempt) -> int | None:
    cached = None if one.cached is None else one.cached.tokens
    return None if cached is None or one.prompt_tokens is None else one.prompt_tokens - cached


def _scatter(chosen: Sequence[Attempt], of: int, what: str, value: Callable[[Attempt], int | None]) -> str:
    points = [(float(value(one) or 0), (one.first or one.sent) - one.sent, one) for one in chosen]
    x, y = linear(what, [at for at, _, _ in points]), linear("TTFT, s", [ttft for _, ttft, _ in points])
    marks = Dots(
        "turns",
        [(at, ttft, f"{one.session} turn {one.turn}: {at:,.0f} tokens, {ttft:.3g} s") for at, ttft, one in points],
    )
    rows = [(f"{one.session} turn {one.turn}", round(at), ttft) for at, ttft, one in points]
    caption = f"{len(points):,} of {of:,} answered turns." if len(points) < of else "Every answered turn."
    return figure(dots(f"TTFT by {what}", x, y, [marks]), caption, ("turn", what, "TTFT, s"), rows)


def _load(seen: Through | None) -> str:
    if seen is None:
        return ""
    at = [seen.start + (place + 0.5) * seen.width for place in range(len(seen.rate))]
    x = exact(TIME, seen.start, seen.start + seen.width * len(seen.rate))
    parts = []
    for name, values in (("output, tokens per second", seen.rate), ("requests in flight", seen.flying)):
        chart = lines(name, x, linear(name, values), [Line(name, list(zip(at, values, strict=True)))])
        rows = [(f"{when:.1f}", value) for when, value in zip(at, values, strict=True)]
        parts.append(figure(chart, f"Mean of each {seen.width:.3g} s.", ("at, s", name), rows))
    return "".join(parts)


def _latency(times: Sequence[TurnTimes]) -> str:
    samples = {
        "TTFT": sorted(one.ttft for one in times if one.ttft is not None),
        "latency": sorted(one.latency for one in times if one.latency is not None),
        "TPOT": sorted(one.tpot for one in times if one.tpot is not None),
    }
    drawn = {name: values for name, values in samples.items() if values}
    if not drawn:
        return ""
    every = [value for values in drawn.values() for value in values]
    x, y = logarithmic("seconds", every), linear("% of the turns that took no longer", [100.0])
    series = [Line(f"{name}, n {len(values):,}", _shares(values), steps=True) for name, values in drawn.items()]
    rows = [
        (f"p{percent}", *(values[min(len(values) - 1, len(values) * percent // 100)] for values in drawn.values()))
        for percent in (5, 25, 50, 75, 90, 95, 99)
    ]
    chart = lines("Latency of answered turns", x, y, series)
    caption = "Each curve: the share of turns that took no longer."
    return figure(chart, caption, ("", *(f"{name}, s" for name in drawn)), rows)


def _shares(ordered: Sequence[float]) -> list[tuple[float, float]]:
    """At most 200 points of the distribution function, percent."""
    step = max(1, len(ordered) // 200)
    places = [*range(0, len(ordered), step), len(ordered) - 1]
    return [(max(ordered[place], 1e-6), (place + 1) / len(ordered) * 100) for place in places]
