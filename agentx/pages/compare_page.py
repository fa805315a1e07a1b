"""A comparison as a page: what is known against it first, then ratios with their intervals, and the paired turns."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from agentx.pages.axes import linear, logarithmic
from agentx.pages.charts import Dots, Line, bars, dots, lines
from agentx.pages.shell import Section, figure, listed, page, table
from agentx.reporter.compare import Comparison
from agentx.reporter.compare_figures import TIMES, Measured
from agentx.reporter.compare_losses import label, losses_lines, losses_table, shown
from agentx.reporter.compare_pair import Pair, Values
from agentx.reporter.compare_statistics import typical
from agentx.reporter.compare_text import ratio_text
from agentx.reporter.text import number

DOTS = 2500
_NAMES = {"ttft": "TTFT", "tpot": "TPOT", "latency": "latency"}


def compare_page(found: Comparison) -> str:
    """The whole file."""
    sections = [part for pair in found.pairs for part in _pair(pair)]
    sections.append(Section("The comparison in full", f'<div class="wide"><pre>{escape(found.text())}</pre></div>'))
    names = " against ".join(
        f"{side.label} = {' '.join(one.name for one in side.runs)}" for side in reversed(found.sides)
    )
    return page(f"agentx compare: {names}", _lead(found), sections, found.document())


def _lead(found: Comparison) -> str:
    said = []
    for pair in found.pairs:
        title = f"{pair.b.label} against {pair.a.label}: {pair.basis}."
        said.append(f"<p>{escape(title)}</p>")
        breaking = [caveat.text for caveat in pair.caveats if caveat.breaks]
        others = [caveat.text for caveat in pair.caveats if not caveat.breaks]
        if breaking:
            said.append(f'<p class="bad">Not comparable as they stand:</p>{listed(breaking, "bad")}')
        if others:
            said.append(f"<p>Know before use:</p>{listed(others)}")
        if not pair.caveats:
            said.append('<p class="ok">Nothing is known against it.</p>')
    return "".join(said)


def _pair(pair: Pair) -> list[Section]:
    name = f"{pair.b.label} / {pair.a.label}"
    parts = [Section(f"Ratios, {name}", _ratios(pair)), *_losses(pair)]
    for time in TIMES:
        body = _paired(pair, time) if pair.paired else _distributions(pair, time)
        if body:
            parts.append(Section(f"{_NAMES[time]}, {name}", body))
    return parts


def _ratios(pair: Pair) -> str:
    rows = []
    for row in pair.rows:
        if all(value is None for value in (*row.all.a, *row.all.b)):
            continue
        same = ("", "", "") if row.same is None else _cells(row.same, row.scale)
        rows.append((row.label, *_cells(row.all, row.scale), *same))
    a, b = pair.a.label, pair.b.label
    columns = ("", f"{a}, all", f"{b}, all", f"{b}/{a}, all", f"{a}, same", f"{b}, same", f"{b}/{a}, same")
    return table(columns, rows)


def _losses(pair: Pair) -> list[Section]:
    """What either side lost, cause by cause, in pairs of bars."""
    a, b = pair.a.label, pair.b.label
    found = pair.losses
    told = " ".join(losses_lines(found, a, b))
    title = f"Reuse that was lost, {b} against {a}"
    if found.missing:
        return [Section(title, f"<p>{escape(told)}</p>")]
    drawn = [
        (f"{label(row)}, {side}", value)
        for row in shown(found)
        for side, value in zip((a, b), row.all.means, strict=True)
        if value is not None
    ]
    rows = losses_table(found, a, b)
    chart = bars("Lost reuse by cause, mean tokens of a side's runs", "tokens", drawn)
    return [Section(title, figure(chart, told, rows.columns, rows.rows))]


def _cells(values: Values, scale: float) -> tuple[str, str, str]:
    a, b = values.typical
    before, after = ("unknown" if one is None else number(one * scale) for one in (a, b))
    return before, after, ratio_text(values.ratio)


def _paired(pair: Pair, time: str) -> str:
    """The same turns: what each took in both, on one chart; on the diagonal nothing changed."""
    value = TIMES[time]
    points = []
    for key in sorted(pair.a.every & pair.b.every):
        before = typical([value(one.turns[key]) for one in pair.a.runs])
        after = typical([value(one.turns[key]) for one in pair.b.runs])
        if before is not None and after is not None and before > 0 and after > 0:
            points.append((before, after, key))
    if not points:
        return ""
    step = max(1, -(-len(points) // DOTS))
    chosen = points[::step]
    every = [part for before, after, _ in chosen for part in (before, after)]
    x, y = logarithmic(f"{pair.a.label}, s", every), logarithmic(f"{pair.b.label}, s", every)
    quicker = [(before, after, key) for before, after, key in chosen if after < before]
    slower = [(before, after, key) for before, after, key in chosen if after >= before]
    groups = [_dots(f"less in {pair.b.label}", quicker), _dots("not less", slower)]
    rows = [(f"{key[0]} turn {key[2]}", before, after, after / before) for before, after, key in chosen]
    caption = f"{len(chosen):,} of {len(points):,} turns that every run answered; on the diagonal nothing changed."
    columns = ("turn", f"{pair.a.label}, s", f"{pair.b.label}, s", "ratio")
    return figure(dots(f"{_NAMES[time]} turn by turn", x, y, groups, diagonal=True), caption, columns, rows)


def _dots(name: str, points: Sequence[tuple[float, float, tuple[str, int, int]]]) -> Dots:
    return Dots(name, [(a, b, f"{key[0]} turn {key[2]}: {a:.3g} s, {b:.3g} s") for a, b, key in points])


def _distributions(pair: Pair, time: str) -> str:
    """Unpaired: the two distribution functions."""
    series, rows, every = [], [], []
    for side in (pair.a, pair.b):
        values = sorted(found for one in side.runs for found in _times(one, time))
        if not values:
            return ""
        every += values
        step = max(1, len(values) // 200)
        points = [(value, (place + 1) / len(values) * 100) for place, value in enumerate(values)][::step]
        series.append(Line(f"{side.label}, n {len(values):,}", points, steps=True))
        rows.append((side.label, *(values[min(len(values) - 1, len(values) * p // 100)] for p in (5, 50, 95))))
    x, y = logarithmic("seconds", every), linear("% of the turns that took no longer", [100.0])
    chart = lines(f"{_NAMES[time]}: distributions", x, y, series)
    return figure(chart, "The turns are other ones: only their distributions can be compared.",
                  ("", "p5, s", "p50, s", "p95, s"), rows)  # fmt: skip


def _times(one: Measured, time: str) -> list[float]:
    value = TIMES[time]
    return [found for turn in one.turns.values() if (found := value(turn)) is not None and found > 0]
