"""Two traces side by side: the same statistics of both, and how far apart they are.

The distance of two samples is that of Kolmogorov and Smirnov: the largest difference of their distribution functions,
from 0 (alike) to 1 (nothing in common). A ratio is the second trace's value over the first's. Possible reuse is
compared in points. What one of the traces does not have is None, printed "unknown".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentx.core import GAP_KINDS
from agentx.generator.fit_families import distance
from agentx.reporter.inspecting import Inspection, Values
from agentx.reporter.spread import percentile
from agentx.reporter.table import Block, Facts, Heading, Table

SCHEMA = "agentx/inspect-compare/1"
NONE = "unknown"
TOOLS = 6  # names of tools that are compared, the most frequent ones


def quantities(left: Inspection, right: Inspection) -> Iterator[tuple[str, str, Values, Values]]:
    """(name, unit, values of either trace) of all that at least one of them has."""
    pairs = [
        ("isl", "tokens", left.isl, right.isl),
        ("osl", "tokens", left.osl, right.osl),
        ("new_tokens", "tokens", left.fresh, right.fresh),
        ("turns_per_session", "turns", left.turns_each, right.turns_each),
        *((f"gap_{kind}", "seconds", left.gaps[kind], right.gaps[kind]) for kind in GAP_KINDS),
        ("observed_ttft", "seconds", left.ttft, right.ttft),
    ]
    return (pair for pair in pairs if pair[2].values or pair[3].values)


def document(left: Inspection, right: Inspection) -> dict[str, Any]:
    """One JSON document: both inspections, and the distances between them."""
    return {
        "schema": SCHEMA,
        "first": left.document(),
        "second": right.document(),
        "distances": {name: _apart(one, other) for name, _, one, other in quantities(left, right)},
        "shares": {name: {"first": one, "second": other} for name, one, other in _shares(left, right)},
        "possible_reuse_difference": _difference(left.reuse.share, right.reuse.share),
    }


def _apart(one: Values, other: Values) -> dict[str, float | int | None]:
    found: dict[str, float | int | None] = {"n_first": len(one.values), "n_second": len(other.values)}
    a, b = sorted(one.values), sorted(other.values)
    for percent in (50, 90):
        values = [percentile(each, percent) if each else None for each in (a, b)]
        found[f"p{percent}_first"], found[f"p{percent}_second"] = values
        found[f"p{percent}_ratio"] = _ratio(*values)
    found["ks"] = distance(a, b) if a and b else None
    return found


def _ratio(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None or one == 0 else other / one


def _difference(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else other - one


def _shares(left: Inspection, right: Inspection) -> list[tuple[str, float | None, float | None]]:
    """Shares of turns, tool calls and tokens, 0 ... 1, of either trace."""
    one, other = _counted(left), _counted(right)
    tools = [name for name, _ in (left.tools + right.tools).most_common(TOOLS)]
    rows: list[tuple[str, float | None, float | None]] = [("possible reuse", left.reuse.share, right.reuse.share)]
    for name in dict.fromkeys([*one, *other]):
        if not name.startswith("tool ") or name.removeprefix("tool ") in tools:
            whole = [each.get(name, 0.0) for each in (one, other)]
            rows.append((name, whole[0], whole[1]))
    return rows


def _counted(found: Inspection) -> dict[str, float]:
    """The shares of a trace that are not 0."""
    turns, tools, tokens = (max(1, n) for n in (found.turns, sum(found.tools.values()), found.reuse.tokens))
    shares = {f"turns of {kind} threads": found.thread_turns[kind] / turns for kind in ("subagent", "side")}
    shares |= {f"turns with {event}": found.events[event] / turns for event in sorted(found.events)}
    shares |= {f"tool {name}": count / tools for name, count in sorted(found.tools.items())}
    shares |= {f"tokens of {layer}": count / tokens for layer, (count, _) in found.reuse.by_layer().items()}
    return {name: share for name, share in shares.items() if share}


def blocks(left: Inspection, right: Inspection) -> list[Block]:
    """The comparison for people."""
    columns = ("", "n", "n", "p50", "p50", "ratio", "p90", "p90", "ratio", "KS")
    rows = [_row(name, unit, _apart(one, other)) for name, unit, one, other in quantities(left, right)]
    shares = [(name, _percent(one), _percent(other), _points(one, other)) for name, one, other in _shares(left, right)]
    return [
        Heading(f"agentx inspect: {left.headers[0].name} (first) and {right.headers[0].name} (second)"),
        Facts(
            (
                ("sessions", f"{left.sessions:,} and {right.sessions:,}"),
                ("turns", f"{left.turns:,} and {right.turns:,}"),
                ("longest", f"{left.longest:,} and {right.longest:,} tokens, reply included"),
            )
        ),
        Heading("Tokens, turns and seconds: the first trace, then the second; ratio is second over first"),
        Table(columns, tuple(rows)),
        Heading("Shares, and their difference in points"),
        Table(("", "first", "second", "points"), tuple(shares)),
    ]


def _row(name: str, unit: str, apart: dict[str, float | int | None]) -> tuple[str, ...]:
    digits = 2 if unit == "seconds" else 0
    cells = [name, f"{apart['n_first']:,}", f"{apart['n_second']:,}"]
    for percent in (50, 90):
        cells += [_number(apart[f"p{percent}_{side}"], digits) for side in ("first", "second")]
        cells.append(_number(apart[f"p{percent}_ratio"], 2))
    return (*cells, _number(apart["ks"], 3))


def _number(value: float | None, digits: int) -> str:
    return NONE if value is None else f"{value:,.{digits}f}"


def _percent(share: float | None) -> str:
    return NONE if share is None else f"{share:.1%}"


def _points(one: float | None, other: float | None) -> str:
    difference = _difference(one, other)
    return NONE if difference is None else f"{100 * difference:+.1f}"
