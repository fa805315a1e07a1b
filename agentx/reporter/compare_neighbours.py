"""Runs that lie next to a compared one: the same but for one more or one less session at a time.

A node's figures may fall off between two loads; a comparison next to such a cliff says little of any other load. So
run folders beside a compared one are looked at, and the nearest load on each side is shown.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentx.errors import BadInput
from agentx.reporter.compare_caveats import Caveat, Side
from agentx.reporter.compare_conditions import flat
from agentx.reporter.compare_figures import Measured, measured
from agentx.reporter.text import share
from agentx.results import SETTINGS, read_results

MOST = 500  # folders that are looked at
# From which on it is a cliff: output of the higher load over the lower one's, TTFT of the one over the other's, reuse.
CLIFF_RATE, CLIFF_TTFT, CLIFF_REUSE = 0.8, 3.0, 0.1
LOADS = ("load.sessions", "load.requests", "load.rate.per_second")
_DRAWN = ("seed", "slo", "repeats")  # keys of the plan in which neighbours may differ


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A run at another value of `key`, beside the run `of` side `side`; figures are (there, here)."""

    side: str
    of: Measured
    run: Measured
    key: str
    there: float
    here: float

    @property
    def figures(self) -> dict[str, tuple[float | None, float | None]]:
        return {name: (figure(self.run), figure(self.of)) for name, figure in FIGURES.items()}

    @property
    def cliff(self) -> list[str]:
        """The figures that fall off between the two."""
        return [name for name, pair in self.figures.items() if None not in pair and self._falls(name, *pair)]

    def _falls(self, name: str, there: float | None, here: float | None) -> bool:
        lower, higher = (there or 0.0, here or 0.0) if self.there < self.here else (here or 0.0, there or 0.0)
        if name == "reuse_share":
            return lower - higher > CLIFF_REUSE
        if name == "ttft_p90_seconds":
            return higher > CLIFF_TTFT * lower
        return higher < CLIFF_RATE * lower


def _rate(one: Measured) -> float | None:
    """Of the whole run: it may rise with the load or stay, and should not fall."""
    flow = one.metrics.throughput.completed
    return flow.per_second(flow.output)


FIGURES: Mapping[str, Callable[[Measured], float | None]] = {
    "output_tokens_per_second": _rate,
    "ttft_p90_seconds": lambda one: None if one.metrics.latency.ttft is None else one.metrics.latency.ttft.at(90),
    "reuse_share": lambda one: one.metrics.reuse.by_request.share,
}


def neighbours_of(sides: Iterable[Side]) -> tuple[Neighbour, ...]:
    """The nearest lower and higher load beside each side's first run, from the folders beside it and beside its
    parent's."""
    sides = tuple(sides)
    compared = {one.run.folder.resolve() for side in sides for one in side.runs}
    found: list[Neighbour] = []
    for side in sides:
        found += _nearest(side, compared)
    return tuple(found)


def _nearest(side: Side, compared: set[Path]) -> Iterator[Neighbour]:
    one = side.runs[0]
    mine = _shape(one.run.settings)
    if mine is None:
        return
    key, here, rest = mine
    others: dict[float, Path] = {}
    for folder in _folders(one.run.folder):
        other = _shape(_settings(folder))
        if other is not None and (other[0], other[2]) == (key, rest) and other[1] != here:
            others.setdefault(other[1], folder)
    lower = max((load for load in others if load < here), default=None)
    higher = min((load for load in others if load > here), default=None)
    for load in (lower, higher):
        if load is not None and others[load].resolve() not in compared:
            try:
                yield Neighbour(side.label, one, measured(read_results(others[load])), key, load, here)
            except BadInput:  # a run that cannot be read is no neighbour
                continue


def _folders(folder: Path) -> Iterator[Path]:
    """Run folders beside this one, and one level around."""
    around = folder.resolve().parent
    seen = 0
    for pattern in (f"*/{SETTINGS}", f"*/*/{SETTINGS}"):
        for base in (around, around.parent):
            for path in sorted(base.glob(pattern)):
                seen += 1
                if seen > MOST:
                    return
                yield path.parent


def _settings(folder: Path) -> Mapping[str, Any]:
    try:
        value = json.loads((folder / SETTINGS).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _shape(settings: Mapping[str, Any]) -> tuple[str, float, str] | None:
    """(which load, how much of it, everything else that must be equal); None for a run without a number of load."""
    trace, plan = settings.get("trace"), flat(settings.get("plan") or {})
    key = next((key for key in LOADS if isinstance(plan.get(key), int | float)), None)
    if key is None or not isinstance(trace, Mapping) or trace.get("sha256") is None:
        return None
    rest = {name: value for name, value in plan.items() if name != key and name.split(".")[0] not in _DRAWN}
    target = settings.get("target")
    same = [trace["sha256"], rest, target, bool(settings.get("simulated"))]
    return key, float(plan[key]), json.dumps(same, sort_keys=True, default=str)


def neighbour_caveats(found: Iterable[Neighbour]) -> Iterator[Caveat]:
    """A comparison beside a cliff says so."""
    for one in found:
        if cliff := one.cliff:
            words = ", ".join(f"{_WORDS[name]} {_value(name, there)} / {_value(name, here)}"
                              for name, (there, here) in one.figures.items() if name in cliff)  # fmt: skip
            text = (
                f"{one.side} stands next to a cliff: at {one.key} {one.there:g} instead of {one.here:g}, {words} "
                f"(run {one.run.name})."
            )
            yield Caveat("cliff", text, one.there - one.here, one.key)


_WORDS = {"output_tokens_per_second": "output tok/s", "ttft_p90_seconds": "TTFT p90", "reuse_share": "reuse"}


def _value(name: str, value: float | None) -> str:
    if value is None:
        return "unknown"
    if name == "reuse_share":
        return share(value)
    return f"{value:.3g}{' s' if name.endswith('seconds') else ''}"


def neighbours_document(found: Iterable[Neighbour]) -> list[dict[str, Any]]:
    """Plain values only."""
    return [
        {
            "side": one.side,
            "name": one.run.name,
            "key": one.key,
            "value": one.there,
            "compared_value": one.here,
            "figures": [
                {"name": name, "neighbour": there, "compared": here} for name, (there, here) in one.figures.items()
            ],
            "cliff": bool(one.cliff),
        }
        for one in found
    ]


def neighbour_rows(found: Iterable[Neighbour]) -> list[tuple[str, ...]]:
    """Rows of a table: side, load, the figures there and here."""
    rows = []
    for one in found:
        cells = [f"{_value(name, there)} / {_value(name, here)}" for name, (there, here) in one.figures.items()]
        rows.append((f"{one.side}, {one.key} {one.there:g} / {one.here:g}", *cells))
    return rows
