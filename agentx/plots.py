"""Line charts as self-contained SVG: text in, text out, no library, nothing fetched.

A figure has panels one above the other over one common axis; each panel draws named series, and one legend names them.
The same values give the same bytes. Values that are None leave a gap; a panel without any value says "unknown".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, PANEL, LEFT, RIGHT, GAP, LEGEND = 760, 190, 76, 20, 52, 20  # px
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#444444", "#8c6d31")
"""Okabe and Ito (2008), told apart with any colour vision, and two more."""
DASHES = ("", "6 3", "2 3")  # for more series than colours
TICKS = 5  # about so many on the y axis
LEAST = 1e-15  # what differs by less lies at 0
LOG_FROM = 16.0  # largest over smallest x, from which on the axis is logarithmic


@dataclass(frozen=True, slots=True)
class Axis:
    """The common axis: what it is, and its values. Values that are not all positive numbers stand side by side.

    `marks`: what is written below each value, the values themselves where it is empty.
    """

    label: str
    values: tuple[str, ...]
    marks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Series:
    """One value for each value of the axis; None where there is none."""

    name: str
    values: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class Panel:
    label: str
    series: tuple[Series, ...]


def svg(title: str, axis: Axis, panels: Sequence[Panel]) -> str:
    """The figure. Raises ValueError for a series that has not as many values as the axis."""
    for series in (each for panel in panels for each in panel.series):
        if len(series.values) != len(axis.values):
            raise ValueError(f"{series.name} has {len(series.values)} values for {len(axis.values)} on the axis")
    names = [series.name for series in panels[0].series] if panels else []
    rows = [row for row in _legend_rows(names) if len(names) > 1]
    top = 40 + LEGEND * len(rows)
    height = top + len(panels) * (PANEL + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        'font-family="sans-serif" font-size="12" fill="#222">',
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        _text(LEFT, 24, title, size=15),
    ]
    for row, cells in enumerate(rows):
        parts += _legend(cells, 40 + LEGEND * row)
    for number, panel in enumerate(panels):
        parts += _panel(panel, axis, top + number * (PANEL + GAP))
    return "\n".join([*parts, "</svg>"]) + "\n"


def places(values: Sequence[str]) -> list[float]:
    """Where each value lies on the axis, 0 ... 1: by its number, its logarithm, or its order."""
    numbers = [_number(value) for value in values]
    known = [number for number in numbers if number is not None]
    if len(known) != len(values) or len(set(known)) < 2:
        return [(place + 0.5) / len(values) for place in range(len(values))]
    if min(known) > 0 and max(known) / min(known) >= LOG_FROM:
        known = [math.log(number) for number in known]
    low, high = min(known), max(known)
    return [(number - low) / (high - low) for number in known]


def scale(values: Sequence[float]) -> list[float]:
    """Round numbers from below the least value (or 0, when that is near) to above the greatest, evenly spaced."""
    low, high = min(values), max(values)
    if low > 0 and low < 0.5 * high:
        low = 0.0
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        low, high = low - abs(low) / 2, high + abs(high) / 2
    if high - low < LEAST:
        low, high = 0.0, 1.0
    raw = (high - low) / TICKS
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * times for times in (1, 2, 2.5, 5, 10) if unit * times >= raw * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [place * step for place in range(first, last + 1)]


def _panel(panel: Panel, axis: Axis, top: int) -> list[str]:
    parts = [_text(LEFT, top + 12, panel.label, size=13)]
    top, bottom = top + 22, top + PANEL
    at = [LEFT + place * (WIDTH - LEFT - RIGHT) for place in places(axis.values)]
    known = [value for series in panel.series for value in series.values if value is not None]
    if not known:
        return [*parts, _text(LEFT, top + 24, "unknown")]
    ticks = scale(known)

    def y(value: float) -> float:
        return bottom - (value - ticks[0]) / (ticks[-1] - ticks[0]) * (bottom - top)

    for tick in ticks:
        parts.append(f'<path d="M{LEFT} {y(tick):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
        parts.append(_text(LEFT - 8, y(tick) + 4, _shown(tick), anchor="end"))
    for place, value in zip(at, axis.marks or axis.values, strict=True):
        parts.append(f'<path d="M{place:.1f} {bottom}v5" stroke="#222"/>')
        parts.append(_text(place, bottom + 18, _tick(value), anchor="middle"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, bottom + 34, axis.label, anchor="middle"))
    for number, series in enumerate(panel.series):
        parts += _line(series, at, [None if value is None else y(value) for value in series.values], number)
    return parts


def _line(series: Series, at: Sequence[float], heights: Sequence[float | None], number: int) -> list[str]:
    """The series in the order of the axis, with a mark and a readable value at each point."""
    points = sorted((x, y, value) for x, y, value in zip(at, heights, series.values, strict=True) if y is not None)
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y, _ in points)
    parts = [f'<path d="M{path}" fill="none" {_stroke(number)} stroke-width="2"/>'] if path else []
    for x, y, value in points:
        told = escape(f"{series.name}: {_shown(value or 0.0)}")
        colour = COLOURS[number % len(COLOURS)]
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"><title>{told}</title></circle>')
    return parts


def _legend_rows(names: Sequence[str]) -> list[list[tuple[int, float, str]]]:
    """(number, x, name) of each series, in as many rows as they need."""
    rows: list[list[tuple[int, float, str]]] = [[]]
    x = float(LEFT)
    for number, name in enumerate(names):
        wide = 44 + 7.0 * len(name)
        if rows[-1] and x + wide > WIDTH - RIGHT:
            rows.append([])
            x = float(LEFT)
        rows[-1].append((number, x, name))
        x += wide
    return rows


def _legend(cells: Sequence[tuple[int, float, str]], top: int) -> list[str]:
    parts = []
    for number, x, name in cells:
        parts.append(f'<path d="M{x:.1f} {top + 2}h24" {_stroke(number)} stroke-width="2"/>')
        parts.append(_text(x + 30, top + 6, name))
    return parts


def _stroke(number: int) -> str:
    dash = DASHES[number // len(COLOURS) % len(DASHES)]
    return f'stroke="{COLOURS[number % len(COLOURS)]}"' + (f' stroke-dasharray="{dash}"' if dash else "")


def _text(x: float, y: float, text: str, *, anchor: str = "start", size: int = 12) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _tick(value: str) -> str:
    number = _number(value)
    return _shown(number) if number is not None else value if len(value) <= 24 else value[:23] + "…"


def _shown(value: float) -> str:
    """Four figures are enough to read: 0.004123, 87.5, 40k, 2.1M."""
    for unit, sign in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= unit:
            return f"{value / (1e3 if sign == 'k' else unit):.4g}{sign}"
    return f"{value:.4g}"
