"""One self-contained HTML file about a trace: the summary of the terminal, and plots. No script, nothing is fetched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from agentx.core import GAP_KINDS
from agentx.plots import Axis, Panel, Series, svg
from agentx.reporter.inspect_text import blocks
from agentx.reporter.inspecting import Inspection, Values
from agentx.reporter.sparks import counted
from agentx.reporter.spread import percentile
from agentx.reporter.table import as_text
from agentx.reporter.trace_boxes import layers, timeline, tree
from agentx.reporter.trace_drawing import FRONTS, STEPS, Drawing

DRAWN = 40  # capacities of a plot
BINS = 24  # of a distribution, evenly spaced in the logarithm
STYLE = "body{font-family:sans-serif;max-width:800px;margin:2em auto;color:#222}pre{font-size:11px;overflow-x:auto}"


def page(found: Inspection, drawing: Drawing) -> str:
    """The whole file. Equal traces give equal bytes."""
    name = escape(found.headers[0].name)
    seconds = {f"after {kind}": found.gaps[kind] for kind in GAP_KINDS if found.gaps[kind].values}
    head = f'<head><meta charset="utf-8"><title>{name}</title><style>{STYLE}</style></head>'
    parts = [
        f'<!doctype html><html lang="en">{head}',
        f"<body><h1>{name}</h1><pre>{escape(as_text(blocks(found)))}</pre>",
        _section(
            "Lengths", _distribution("Share of the calls by tokens", "tokens", {"isl": found.isl, "osl": found.osl})
        ),
        _section(
            "Gaps", _distribution("Share of the gaps by seconds", "seconds", seconds) if seconds else "<p>none</p>"
        ),
        _section("By the number of the call in its main thread", _by_call(drawing)),
        _section("Reuse by the size of a cache", _capacity(found)),
        _section("Prompt tokens by layer", layers(found.reuse.by_layer())),
        _section("First prompts", _first_prompts(drawing)),
        _section("Sessions", "".join(f"<h3>{escape(s.session)}</h3>{timeline(s)}" for s in drawing.stories)),
        "</body></html>\n",
    ]
    return "\n".join(parts)


def _section(title: str, body: str) -> str:
    return f"<h2>{escape(title)}</h2>\n{body}"


def _distribution(title: str, unit: str, samples: dict[str, Values]) -> str:
    """How many of the values lie in each of `BINS` ranges; what is 0 is in the first."""
    everything = [value for each in samples.values() for value in each.values if value > 0]
    if not everything:
        return "<p>all are 0</p>"
    low, high = math.log(min(everything)), math.log(max(everything))
    marks = [math.exp(low + (place + 0.5) * (high - low) / BINS) for place in range(BINS)]
    series = []
    for name, each in samples.items():
        total = len(each.values) or 1
        shares = tuple(count / total for count in counted(each.values, low, high, BINS))
        series.append(Series(f"{name}, n {len(each.values):,}", shares))
    shown = [f"{mark:.2g}" if place % 4 == 0 else "" for place, mark in enumerate(marks)]
    return svg(title, Axis(unit, tuple(shown)), [Panel("share", tuple(series))])


def _by_call(drawing: Drawing) -> str:
    steps = sorted(drawing.lengths)
    if not steps:
        return "<p>no main thread</p>"
    ordered = {step: sorted(drawing.lengths[step]) for step in steps}
    growth = [
        Series(f"p{percent}", tuple(percentile(ordered[step], percent) for step in steps)) for percent in (10, 50, 90)
    ]
    reuse = Series("possible reuse", tuple(_share(drawing.tokens.get(step)) for step in steps))
    axis = Axis("number of the call, from", tuple(str(STEPS[step]) for step in steps))
    panels = [Panel("prompt tokens", tuple(growth))]
    return svg("Context growth", axis, panels) + svg("Possible reuse", axis, [Panel("share of the prompt", (reuse,))])


def _capacity(found: Inspection) -> str:
    """Page-LRU from a sixteenth of the longest prompt on, and the engine's cache where it was asked."""
    curve = found.curve
    if curve is None or not curve.tokens:
        return "<p>no prompts</p>"
    low, high = max(1.0, curve.longest / 16), max(2.0, curve.longest, curve.held)
    points = {round(low * (high / low) ** (step / DRAWN)) for step in range(DRAWN + 1)}
    engine = {size: reused / curve.tokens for size, reused in found.engine}
    sizes = sorted(points | engine.keys())
    marks, written = [], 0.0
    for size in sizes:
        seen = size in engine or size == sizes[0]
        far = math.log(size) - written > math.log(sizes[-1] / sizes[0]) / 12
        marks.append(_short(size) if far and (seen or not engine) else "")
        written = math.log(size) if marks[-1] else written
    series = [Series("page-LRU: an upper curve", tuple(curve.share(size) for size in sizes))]
    if engine:
        series.append(Series("the embedded engine's cache", tuple(engine.get(size) for size in sizes)))
    axis = Axis("tokens that the cache holds", tuple(map(str, sizes)), tuple(marks))
    return svg("Reuse by capacity", axis, [Panel("share of the prompt tokens", tuple(series))])


def _short(tokens: int) -> str:
    """Two figures, as a mark on an axis."""
    for unit, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if tokens >= unit:
            return f"{float(f'{tokens / unit:.2g}'):g}{sign}"
    return str(tokens)


def _share(sums: Sequence[int] | None) -> float | None:
    return sums[1] / sums[0] if sums and sums[0] else None


def _first_prompts(drawing: Drawing) -> str:
    count = len(drawing.fronts.fronts)
    if not count:
        return "<p>none</p>"
    some = f", the first {FRONTS:,} sessions" if count == FRONTS else ""
    said = f"Up to the first message: what {count:,} sessions{some} have in common is one box."
    return f"<p>{escape(said)}</p>{tree(drawing.fronts.root, count)}"
