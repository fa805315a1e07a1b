"""The server's counters as AIPerf exports them (`server_metrics_export.jsonl` or `.json`), as samples by our names.

The lines of the `.jsonl` are scrapes. The `.json` holds for each series what a counter rose by in each slice of the
measured phase, from 0 at its first scrape, and what a gauge was on average in it: summed up they are samples again.
Both drop the `_total` of a counter's name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from agentx.core import Sample
from agentx.errors import BadInput
from agentx.frames import open_for_reading
from agentx.recorder.imports.instants import listing, mapping, of_number
from agentx.recorder.imports.source import lines, parse
from agentx.replayer.counters import COUNTERS, GAUGES, VLLM_COUNTERS, VLLM_GAUGES, named, role_in
from agentx.reporter.foreign_rows import text
from agentx.wire import metrics

_KNOWN = {series.name for table in (COUNTERS, GAUGES, VLLM_COUNTERS, VLLM_GAUGES) for series in table.values()}


def samples_in(scrapes: Path, slices: Path, zero: int) -> tuple[Sample, ...]:
    """In seconds after `zero`, ns since the epoch, of the first of the two files that is there; empty where none is.

    Raises BadInput, with its place, for a file that is damaged.
    """
    if scrapes.exists():
        found = list(_scrapes(scrapes, zero))
    elif slices.exists():
        found = list(_slices(slices, zero))
    else:
        return ()
    return tuple(sorted(found, key=lambda sample: sample.at))


def _full(name: str) -> str | None:
    """The name that the server gives to a series, if it is one that is read here."""
    return next((one for one in (name, f"{name}_total") if one in _KNOWN), None)


def _sample(at: int, zero: int, endpoint: str, series: list[metrics.Sample]) -> Sample | None:
    counters, gauges = named(series)
    role = role_in(series)
    extra: dict[str, Any] = {"gauges": gauges} | ({"role": role} if role else {})
    return Sample((at - zero) / 1e9, endpoint, counters, extra) if counters or gauges else None


def _labels(told: Any) -> dict[str, str]:
    return {str(name): str(value) for name, value in mapping(told).items()}


def _number(value: Any) -> float | None:
    return float(value) if type(value) in (int, float) and abs(value) < 1e18 else None


def _scrapes(path: Path, zero: int) -> Iterator[Sample]:
    for line in lines(path):
        row = mapping(parse(line.data, path, line.number))
        at, told = of_number(row.get("timestamp_ns"), 1e-9), row.get("metrics")
        if at is None or not isinstance(told, dict):
            raise BadInput("this is no scrape: it has no timestamp_ns and metrics", file=path, line=line.number)
        series = [
            metrics.Sample(full, value, _labels(one.get("labels")))
            for name, family in told.items()
            if (full := _full(name)) is not None
            for one in map(mapping, listing(family))
            if (value := _number(one.get("value"))) is not None
        ]
        if (found := _sample(at, zero, text(row, "endpoint_url") or "", series)) is not None:
            yield found


def _slices(path: Path, zero: int) -> Iterator[Sample]:
    with open_for_reading(path) as file:
        whole = parse(file.read(), path)
    families = whole.get("metrics") if isinstance(whole, dict) else None
    if not isinstance(families, dict):
        raise BadInput("this is no export of server metrics: it has no metrics", file=path)
    by_endpoint: dict[str, list[_Line]] = {}
    for name, family in families.items():
        full, counter = _full(name), mapping(family).get("type") == "counter"
        for series in map(mapping, listing(mapping(family).get("series"))) if full else ():
            points = list(_points(counter, series))
            line = _Line(str(full), _labels(series.get("labels")), counter, points)
            by_endpoint.setdefault(text(series, "endpoint_url") or "", []).append(line)
    for endpoint, held in by_endpoint.items():
        for at, found in _moments(held):
            if (sample := _sample(at, zero, endpoint, found)) is not None:
                yield sample


class _Line(NamedTuple):
    """A series through time: (ns, value), ascending."""

    name: str
    labels: dict[str, str]
    counter: bool
    points: list[tuple[int, float]]


def _moments(held: list[_Line]) -> Iterator[tuple[int, list[metrics.Sample]]]:
    """All series of an endpoint at each moment of any: the last value, and of a counter that is not there yet, 0."""
    changes: dict[int, dict[int, float]] = {}
    for number, line in enumerate(held):
        for at, value in line.points:
            changes.setdefault(at, {})[number] = value
    now = {number: 0.0 for number, line in enumerate(held) if line.counter and line.points}
    for at in sorted(changes):
        now |= changes[at]
        yield at, [metrics.Sample(held[number].name, value, held[number].labels) for number, value in now.items()]


def _points(counter: bool, series: Mapping[str, Any]) -> Iterator[tuple[int, float]]:
    """(ns, value) of a series at the start of its first slice and at the end of each."""
    total, begun = 0.0, False
    for slice in map(mapping, listing(series.get("timeslices"))):
        start, end = of_number(slice.get("start_ns"), 1e-9), of_number(slice.get("end_ns"), 1e-9)
        value = _number(slice.get("total" if counter else "avg"))
        if start is None or end is None or value is None:
            return
        if not begun:
            yield start, 0.0 if counter else value
        begun, total = True, total + value
        yield end, total if counter else value
