"""One self-contained HTML file about a trace: the summary of the terminal, and plots. No script, nothing is fetched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from agentx.core import GAP_KINDS
from agentx.plots import Axis, Panel, Series, svg
from agentx.reporter.inspect_text import blocks
from agentx.reporter.inspecting import Inspection, Values
from agentx.reporter.spread import percentile
from agentx.reporter.table import as_text
from agentx.reporter.trace_boxes import layers, timeline, tree
from agentx.reporter.trace_drawing import FRONTS, STEPS, Drawing

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
    width = (high - low) / BINS or 1.0
    marks = [math.exp(low + (place + 0.5) * width) for place in range(BINS)]
    series = []
    for name, each in samples.items():
        counts = [0] * BINS
        for value in each.values:
            place = int((math.log(value) - low) / width) if value > 0 else 0
            counts[min(max(place, 0), BINS - 1)] += 1
        total = len(each.values) or 1
        series.append(Series(f"{name}, n {len(each.values):,}", tuple(count / total for count in counts)))
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


def _share(sums: Sequence[int] | None) -> float | None:
    return sums[1] / sums[0] if sums and sums[0] else None


def _first_prompts(drawing: Drawing) -> str:
    count = len(drawing.fronts.fronts)
    if not count:
        return "<p>none</p>"
    some = f", the first {FRONTS:,} sessions" if count == FRONTS else ""
    said = f"Up to the first message: what {count:,} sessions{some} have in common is one box."
    return f"<p>{escape(said)}</p>{tree(drawing.fronts.root, count)}"
