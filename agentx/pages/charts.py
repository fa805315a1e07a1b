"""Charts as SVG that takes its colours from the page: values in, text out. Every mark can be read (`title`).

The same values give the same bytes. A chart has one frame with two axes; series are told apart by colour and, where
they are lines, by dashes; the legend names them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from agentx.pages.axes import Axis, short

WIDE, HIGH = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 64, 14, 12, 46  # px around the frame
COLOURS = 6  # classes c0 ... c5 of the page
DASHES = ("", "7 3", "2 3", "7 3 2 3", "1 4", "10 4")
LEGEND = 22

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Line:
    """Points in order of x. `steps`: level until the next one."""

    name: str
    points: Sequence[Point]
    steps: bool = False


@dataclass(frozen=True, slots=True)
class Dots:
    """Marks with what is said of each."""

    name: str
    points: Sequence[tuple[float, float, str]]


@dataclass(frozen=True, slots=True)
class Mark:
    """A line across the frame at one x, with its name."""

    name: str
    at: float


@dataclass(frozen=True, slots=True)
class Bar:
    """A stretch in a lane: `kind` is a number of the legend."""

    kind: int
    start: float
    end: float
    told: str


def lines(title: str, x: Axis, y: Axis, series: Sequence[Line], marks: Sequence[Mark] = ()) -> str:
    body = []
    for number, one in enumerate(series):
        path = _path(one, x, y)
        if path:
            body.append(
                f'<path d="{path}" class="l c{number % COLOURS}" stroke-dasharray="{DASHES[number % len(DASHES)]}">'
                f"<title>{escape(one.name)}</title></path>"
            )
    body += [_mark(mark, x, place) for place, mark in enumerate(marks)]
    return _frame(title, x, y, body, [one.name for one in series], dashed=True)


def dots(title: str, x: Axis, y: Axis, groups: Sequence[Dots], *, diagonal: bool = False) -> str:
    """`diagonal`: a line from corner to corner, where both axes have the same ends."""
    line = f'<path d="M{LEFT} {HIGH - BOTTOM}L{WIDE - RIGHT} {TOP}" class="m"/>'
    body = [line] if diagonal else []
    body += [
        f'<circle cx="{_x(x, at):.1f}" cy="{_y(y, value):.1f}" r="3" class="d c{number % COLOURS}">'
        f"<title>{escape(told)}</title></circle>"
        for number, group in enumerate(groups)
        for at, value, told in group.points
    ]
    return _frame(title, x, y, body, [group.name for group in groups])


def stacked(title: str, x: Axis, y: Axis, width: float, names: Sequence[str], rows: Sequence[Sequence[float]]) -> str:
    """Columns of `width` from x = 0 on, one row of values each, in the order of `names`, from the bottom up."""
    body = []
    for place, row in enumerate(rows):
        left, right = _x(x, x.low + place * width), _x(x, x.low + (place + 1) * width)
        base = 0.0
        for number, value in enumerate(row):
            if value > 0:
                top, bottom = _y(y, base + value), _y(y, base)
                body.append(
                    f'<rect x="{left:.1f}" y="{top:.1f}" width="{max(0.5, right - left - 0.3):.1f}" '
                    f'height="{bottom - top:.1f}" class="f c{number % COLOURS}"><title>{escape(names[number])}: '
                    f"{short(value)}</title></rect>"
                )
            base += value
    return _frame(title, x, y, body, list(names))


def bars(title: str, unit: str, rows: Sequence[tuple[str, float]]) -> str:
    """Horizontal bars with their values; those below 0 go to the left."""
    low, high = min([0.0, *(value for _, value in rows)]), max([0.0, *(value for _, value in rows)])
    wide, label = WIDE - RIGHT, 250
    unit_px = (wide - label - 80) / (high - low or 1.0)
    zero = label + (-low) * unit_px
    parts = []
    for place, (name, value) in enumerate(rows):
        top = 8 + 26 * place
        left, right = sorted((zero, zero + value * unit_px))
        shape = f'x="{left:.1f}" y="{top}" width="{max(1.0, right - left):.1f}" height="20"'
        parts.append(
            f'<text x="{label - 8}" y="{top + 15}" class="t" text-anchor="end">{escape(name)}</text>'
            f'<rect {shape} class="f c{0 if value >= 0 else 2}">'
            f"<title>{escape(name)}: {value:,.6g} {escape(unit)}</title></rect>"
            f'<text x="{right + 6:.1f}" y="{top + 15}" class="t">{short(value)} {escape(unit)}</text>'
        )
    return _svg(title, 16 + 26 * len(rows), parts)


def lanes(title: str, x: Axis, kinds: Sequence[str], rows: Sequence[tuple[str, Sequence[Bar]]]) -> str:
    """A row of bars for each lane; bars of a later kind lie above those of an earlier one."""
    left, high = 150, 18
    scale = (WIDE - left - RIGHT) / (x.high - x.low)

    def at(value: float) -> float:
        return left + (min(max(value, x.low), x.high) - x.low) * scale

    parts = []
    for place, (name, drawn) in enumerate(rows):
        top = LEGEND + place * high
        parts.append(f'<text x="{left - 6}" y="{top + 12}" class="t" text-anchor="end">{escape(name[:22])}</text>')
        for bar in sorted(drawn, key=lambda bar: bar.kind):
            start, end = at(bar.start), at(bar.end)
            inset = 5 if bar.kind == 0 else 2
            shape = f'x="{start:.1f}" y="{top + inset}" width="{max(0.6, end - start):.1f}" height="{16 - 2 * inset}"'
            parts.append(f'<rect {shape} class="f c{bar.kind % COLOURS}"><title>{escape(bar.told)}</title></rect>')
    bottom = LEGEND + len(rows) * high + 6
    for tick in x.ticks:
        parts.append(f'<path d="M{at(tick):.1f} {LEGEND}V{bottom}" class="g"/>')
        parts.append(f'<text x="{at(tick):.1f}" y="{bottom + 14}" class="t" text-anchor="middle">{short(tick)}</text>')
    parts.append(f'<text x="{left}" y="{bottom + 30}" class="t">{escape(x.label)}</text>')
    return _svg(title, bottom + 36, [*_legend(kinds, 14, left=left), *parts])


def _frame(title: str, x: Axis, y: Axis, body: Sequence[str], names: Sequence[str], *, dashed: bool = False) -> str:
    shown = names if len(names) > 1 else []
    parts = []
    for tick in y.ticks:
        parts.append(f'<path d="M{LEFT} {_y(y, tick):.1f}H{WIDE - RIGHT}" class="g"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{_y(y, tick) + 4:.1f}" class="t" text-anchor="end">{short(tick)}</text>')
    bottom = HIGH - BOTTOM
    for tick in x.ticks:
        parts.append(f'<path d="M{_x(x, tick):.1f} {bottom}v5" class="a"/>')
        parts.append(
            f'<text x="{_x(x, tick):.1f}" y="{bottom + 18}" class="t" text-anchor="middle">{short(tick)}</text>'
        )
    parts.append(f'<path d="M{LEFT} {bottom}H{WIDE - RIGHT}" class="a"/>')
    parts.append(f'<text x="{WIDE - RIGHT}" y="{bottom + 36}" class="t" text-anchor="end">{escape(x.label)}</text>')
    parts.append(f'<text x="{LEFT}" y="{bottom + 36}" class="t">vertical: {escape(y.label)}</text>')
    rows = _legend(shown, HIGH + 12, dashed=dashed)
    return _svg(title, HIGH + (LEGEND * -(-len(shown) // 3) if shown else 0), [*parts, *body, *rows])


def _legend(names: Sequence[str], top: int, *, left: int = LEFT, dashed: bool = False) -> list[str]:
    """Three names a row."""
    parts = []
    wide = (WIDE - left - RIGHT) / 3 if len(names) > 3 else 190
    for number, name in enumerate(names):
        x, y = (
            left + (number % 3 if len(names) > 3 else number) * wide,
            top + LEGEND * (number // 3 if len(names) > 3 else 0),
        )
        if len(names) > 3 and left != LEFT:  # the lanes' legend is one row
            x, y = left + number * (WIDE - left - RIGHT) / len(names), top
        dash = DASHES[number % len(DASHES)]
        mark = (
            f'<path d="M{x:.0f} {y - 4}h22" class="l c{number % COLOURS}" stroke-dasharray="{dash}"/>'
            if dashed
            else f'<rect x="{x:.0f}" y="{y - 10}" width="12" height="12" class="f c{number % COLOURS}"/>'
        )
        parts.append(f'{mark}<text x="{x + (28 if dashed else 18):.0f}" y="{y}" class="t">{escape(name)}</text>')
    return parts


def _svg(title: str, high: float, parts: Sequence[str]) -> str:
    return (
        f'<svg role="img" viewBox="0 0 {WIDE} {high:.0f}" aria-label="{escape(title, quote=True)}">'
        f"<title>{escape(title)}</title>{''.join(parts)}</svg>"
    )


def _path(line: Line, x: Axis, y: Axis) -> str:
    parts: list[str] = []
    before = 0.0
    for at, value in line.points:
        here = f"{_x(x, at):.1f} {_y(y, value):.1f}"
        if not parts:
            parts.append(f"M{here}")
        elif line.steps:
            parts.append(f"L{_x(x, at):.1f} {before:.1f}L{here}")
        else:
            parts.append(f"L{here}")
        before = _y(y, value)
    return "".join(parts)


def _mark(mark: Mark, x: Axis, place: int) -> str:
    """The names of several stand under each other, so that none covers another."""
    at = _x(x, mark.at)
    anchor, beside = ("end", at - 4) if x.place(mark.at) > 0.7 else ("start", at + 4)
    return (
        f'<path d="M{at:.1f} {TOP}V{HIGH - BOTTOM}" class="m"/>'
        f'<text x="{beside:.1f}" y="{TOP + 12 + 14 * place}" class="t" text-anchor="{anchor}">'
        f"{escape(mark.name)}</text>"
    )


def _x(axis: Axis, value: float) -> float:
    return LEFT + axis.place(value) * (WIDE - LEFT - RIGHT)


def _y(axis: Axis, value: float) -> float:
    return HIGH - BOTTOM - axis.place(value) * (HIGH - BOTTOM - TOP)
