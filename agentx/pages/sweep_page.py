"""A sweep as a page: throughput against interactivity, its points and published ones; then its panels and its table.

Interactivity is 1 / the median TPOT. A published point stands there under its own definition (often of means), by
which it is no more than near.
"""

from __future__ import annotations

from html import escape

from agentx import catalog
from agentx.pages.axes import linear
from agentx.pages.charts import Dots, dots
from agentx.pages.shell import Section, figure, page
from agentx.reporter.references import load_reference
from agentx.reporter.sweeping import Sweep

_RATE = "output_tokens_per_second_per_gpu"
_PACE = ("tpot_p50_seconds", "tpot_mean_seconds")
CLOSE = 3.0  # published points further out than so many times ours are left out: they would squeeze ours into a corner


def sweep_page(found: Sweep) -> str:
    """The whole file."""
    sections = [Section("Throughput and interactivity", _frontier(found))]
    sections.append(Section("By the first knob", f'<div class="wide paper">{found.plot()}</div>'))
    sections.append(Section("The table", f'<div class="wide"><pre>{escape(found.text())}</pre></div>'))
    lead = "".join(f"<p>{escape(note)}</p>" for note in found.notes)
    return page(f"agentx sweep: {found.about}", lead, sections, found.document())


def _frontier(found: Sweep) -> str:
    mine = []
    for point, run, each in found.rows:
        if each.output_per_gpu is not None and each.tpot_p50:
            name = ", ".join(f"{key.rpartition('.')[2]} {value}" for key, value in point.settings)
            mine.append((1 / each.tpot_p50, each.output_per_gpu, f"{name} ({run})"))
    if not mine:
        return "<p>No point tells both its output per GPU and its TPOT.</p>"
    limits = [CLOSE * max(part) for part in zip(*((x, y) for x, y, _ in mine), strict=True)]
    groups = [Dots("this sweep", mine)]
    rows: list[tuple[object, ...]] = [("this sweep", told, x, y) for x, y, told in mine]
    for name in (entry.name for entry in catalog.entries("references")):
        near = [each for each in _published(name) if each[0] <= limits[0] and each[1] <= limits[1]]
        if near:
            groups.append(Dots(name, near))
            rows += [(name, told, x, y) for x, y, told in near]
    x = linear("tokens/s of one user while it streams, 1 / TPOT", [at for group in groups for at, _, _ in group.points])
    y = linear("output, tokens/s per GPU", [value for group in groups for _, value, _ in group.points])
    caption = "Up and to the right is better. Published points were measured under conditions of their own."
    columns = ("", "point", "tokens/s of a user", "tokens/s/GPU")
    return figure(dots("Throughput and interactivity", x, y, groups), caption, columns, rows)


def _published(name: str) -> list[tuple[float, float, str]]:
    points = []
    for row, published in load_reference(name).rows.items():
        rate = published.figures.get(_RATE)
        pace = next((value for key in _PACE if (value := published.figures.get(key))), None)
        if rate is not None and pace is not None:
            points.append((1 / pace, rate, f"{name} {row}"))
    return points
