"""A comparison for people: what is compared, what is known against it, then the two ratios of each figure.

A ratio is the other side over side A: x0.50 of a time is half the time. No verdict stands here that its caveats do not
stand before.
"""

from __future__ import annotations

from collections.abc import Sequence

from agentx.reporter.compare_caveats import Side
from agentx.reporter.compare_cost import break_even_blocks, break_evens
from agentx.reporter.compare_losses import losses_blocks
from agentx.reporter.compare_pair import Pair, Row
from agentx.reporter.compare_statistics import Estimate
from agentx.reporter.findings import counted
from agentx.reporter.table import Block, Facts, Heading, Lines, Table
from agentx.reporter.text import number


def blocks(sides: Sequence[Side], pairs: Sequence[Pair]) -> list[Block]:
    """The whole comparison."""
    names = ", ".join(f"{side.label} = {' '.join(one.name for one in side.runs)}" for side in sides)
    head: list[Block] = [Heading(f"agentx compare: {names}"), Facts(tuple(map(_side, sides)))]
    return head + [block for pair in pairs for block in _pair(pair)]


def _side(side: Side) -> tuple[str, str]:
    one = side.runs[0]
    answered = ", ".join(f"{run.metrics.completed} of {run.metrics.attempts}" for run in side.runs)
    text = f"{one.about.marked}; {counted(len(side.runs), 'run')}, requests answered {answered}"
    return side.label, text


def _pair(pair: Pair) -> list[Block]:
    a, b = pair.a.label, pair.b.label
    breaking = tuple(caveat.text for caveat in pair.caveats if caveat.breaks)
    others = tuple(caveat.text for caveat in pair.caveats if not caveat.breaks)
    made: list[Block] = [Heading(f"{b} against {a}"), Facts((("basis", pair.basis), ("turns", _turns(pair))))]
    if breaking:
        made += [Heading(f"{b} and {a} are not comparable as they stand"), Lines(breaking, bullet=True)]
    if others:
        made += [Heading("Know before use"), Lines(others, bullet=True)]
    made += [Heading(f"{b} / {a}"), _table(pair), Lines(tuple(_words(pair)))]
    made += losses_blocks(pair.losses, a, b)
    return made + break_even_blocks(break_evens(pair.a.runs, pair.b.runs), a, b)


def _turns(pair: Pair) -> str:
    if not pair.paired:
        return "not paired (no common trace): compared as distributions"
    return f"paired by (session, play, turn): {pair.same_turns} answered in every run"


def _table(pair: Pair) -> Table:
    """With intervals the values over the same turns make room for them; the JSON document has all."""
    a, b = pair.a.label, pair.b.label
    priced = [row for row in pair.rows if any(value is not None for value in (*row.all.a, *row.all.b))]
    rows = [row for row in pair.rows if row in priced or not row.name.startswith("dollars")]
    if any(row.all.ratio.low is not None for row in pair.rows):
        heads = ("", f"{a}, all", f"{b}, all", f"{b}/{a}, all", f"{b}/{a}, same")
        return Table(heads, tuple((*row[:4], row[6]) for row in map(_row, rows)))
    columns = ("", f"{a}, all", f"{b}, all", f"{b}/{a}", f"{a}, same", f"{b}, same", f"{b}/{a}")
    return Table(columns, tuple(map(_row, rows)))


def _row(row: Row) -> tuple[str, ...]:
    """Label; A, B and their ratio over all answered turns; the same over the same turns."""
    cells = [row.label]
    for values in (row.all, row.same):
        if values is None:
            return (*cells, "", "", "")
        cells += [*(_value(value, row.scale) for value in values.typical), ratio_text(values.ratio)]
    return tuple(cells)


def _value(value: float | None, scale: float) -> str:
    return "unknown" if value is None else number(value * scale)


def ratio_text(found: Estimate) -> str:
    """`x1.04`, with its interval where it has one, in as many digits as tell its ends from 1."""
    if found.ratio is None:
        return "unknown"
    if found.low is None or found.high is None:
        return f"x{_two(found.ratio)}"
    ends = (found.low, found.high)
    digits = next((some for some in (2, 3, 4) if all(round(end, some) != 1 for end in ends)), 5)
    return f"x{_two(found.ratio, digits)} ({_two(found.low, digits)}-{_two(found.high, digits)})"


def _two(value: float, digits: int = 2) -> str:
    return f"{value:.{digits}f}" if 0.1 <= value < 100 else f"{value:.3g}"


def _words(pair: Pair) -> list[str]:
    words = [f'"all": every answered turn of a run; "same": the {pair.same_turns} turns that every run answered.']
    if not pair.paired:
        words = ['"all": every answered turn of a run.']
    for name, found in pair.turn_ratios.items():
        label = name if name == "latency" else name.upper()
        words.append(
            f"{label} turn by turn: median x{_two(found.ratios.at(50))}, p5 x{_two(found.ratios.at(5))}, p95 "
            f"x{_two(found.ratios.at(95))}; shorter in {found.shorter * 100:.0f} % of "
            f"{counted(found.ratios.n, 'turn')}."
        )
    for name, distance in pair.distances.items():
        label = name if name == "latency" else name.upper()
        words.append(f"{label}: the distributions are {distance:.2f} apart at most (Kolmogorov-Smirnov, 0 to 1).")
    return words
