"""Mooncake rows as they stand in a file, and the survey of a file that is too big to hold.

A line is a turn: `input_length`, `output_length` tokens, `hash_ids` of blocks (512 tokens by default), `timestamp` or
`delay`, `session_id`. The survey reads the file once and keeps a few bytes a line: where the lines of each session
are, so that a session can be put together although others are interleaved with it, and evidence for the time unit.
"""

from __future__ import annotations

import statistics
from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentx.errors import BadInput
from agentx.recorder.imports.blocks import blocks_of
from agentx.recorder.imports.source import Line, block_ids, lines, looks_like, parse
from agentx.trace_bodies import Body, Invalid, integer, optional, seconds, string

MAX_TOKENS = 1 << 40
SAMPLE = 10_000  # rows on which the time unit and the block size are judged
KNOWN = frozenset({"input_length", "output_length", "hash_ids", "timestamp", "delay", "session_id", "model"})
TEXTS = ("text_input", "messages", "payload")


@dataclass(frozen=True, slots=True)
class Row:
    """One turn. `timestamp`, `delay` are in the file's unit. `ids` None: the row has none.

    `kept` are unknown keys with a number or truth value, `left` the other unknown keys.
    """

    line: int
    isl: int
    out: int
    ids: array[int] | None
    timestamp: float | None
    delay: float | None
    session: str | None
    model: str | None
    kept: dict[str, Any]
    left: tuple[str, ...]


def row_of(line: Line, path: Path) -> Row:
    """A line as a row. Raises BadInput, with the line, for what is no Mooncake row."""
    value = parse(line.data, path, line.number)
    foreign = not isinstance(value, dict) or "parent_chat_id" in value  # Bailian rows are linked by it
    if foreign or not ({"input_length", "hash_ids"} & value.keys() or _has_text(value)):
        message = f"not a Mooncake row: this looks like {looks_like(value)}"
        raise BadInput(message, file=path, line=line.number)
    try:
        return _checked(value, line.number)
    except Invalid as error:
        raise BadInput(str(error), file=path, line=line.number) from None


def _has_text(body: Body) -> bool:
    return any(key in body for key in TEXTS)


def _checked(body: Body, number: int) -> Row:
    if "input_length" not in body and _has_text(body):
        raise Invalid("the row carries text and no input_length; only lengths and hash ids are imported")
    delay = seconds(body, "delay")
    if delay is not None and delay < 0:
        raise Invalid(f"delay: {delay} is below 0")
    unknown = {key: body[key] for key in body.keys() - KNOWN}
    kept = {key: unknown[key] for key in sorted(unknown) if isinstance(unknown[key], (bool, int, float))}
    return Row(
        line=number,
        isl=integer(body, "input_length", high=MAX_TOKENS),
        out=integer(body, "output_length", high=MAX_TOKENS),
        ids=block_ids(body) if body.get("hash_ids") is not None else None,
        timestamp=seconds(body, "timestamp"),
        delay=delay,
        session=_session(body),
        model=optional(string, body, "model"),
        kept=kept,
        left=tuple(sorted(unknown.keys() - kept.keys())),
    )


def _session(body: Body) -> str | None:
    value = body.get("session_id")
    if value is None or (type(value) is str and value):
        return value
    if type(value) is int:
        return str(value)
    raise Invalid(f"session_id: {value!r:.40} is not a text or a whole number")


@dataclass(slots=True)
class Clock:
    """How the file's times become seconds: (value - zero) * scale. `found` says how that was decided."""

    scale: float
    zero: float
    found: str

    def at(self, value: float) -> float:
        return round((value - self.zero) * self.scale, 6)

    def span(self, value: float) -> float:
        return round(value * self.scale, 6)


UNITS = {"s": 1.0, "ms": 1e-3}


@dataclass(slots=True)
class Survey:
    """Where a file's rows are and what its first ones show."""

    path: Path
    block: int
    rows: int = 0
    first: bytearray = field(default_factory=bytearray)  # by row: 1 begins a session, 2 belongs to an earlier one
    places: dict[str, array[int]] = field(default_factory=dict)  # session: offset, line, offset, line ...
    times: list[float] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    steps: list[tuple[float, int]] = field(default_factory=list)  # in a session: time to the next row, tokens out
    mismatched: int = 0
    hashed: int = 0
    ratios: list[float] = field(default_factory=list)

    def read(self, digest: Any) -> None:
        last: dict[str, Row] = {}
        for line in lines(self.path, digest):
            self.first.append(0)
            if self.rows < SAMPLE or b'"session_id"' in line.data:
                row = row_of(line, self.path)
                if row.session is not None:
                    known = self.places.get(row.session)
                    self.first[-1] = 1 if known is None else 2
                    self.places.setdefault(row.session, array("Q")).extend((line.offset, line.number))
                if self.rows < SAMPLE:
                    self._sample(row, last)
            self.rows += 1
        self._check_block()

    def _sample(self, row: Row, last: dict[str, Row]) -> None:
        if row.timestamp is not None:
            self.times.append(row.timestamp)
        if row.delay:
            self.delays.append(row.delay)
        if row.session is not None:
            before = last.get(row.session)
            last[row.session] = row
            if before is not None and before.timestamp is not None and row.timestamp is not None:
                self.steps.append((row.timestamp - before.timestamp, before.out))
        if row.ids:
            self.hashed += 1
            self.mismatched += len(row.ids) not in (row.isl // self.block, blocks_of(row.isl, self.block))
            self.ratios.append(row.isl / len(row.ids))

    def _check_block(self) -> None:
        """Raises BadInput when most rows do not have as many ids as their length has blocks."""
        if self.mismatched * 2 <= self.hashed:
            return
        likely = statistics.median(self.ratios)
        message = (
            f"{self.mismatched} of {self.hashed} rows have not as many hash ids as blocks of {self.block} tokens; "
            f"an id stands for some {likely:.0f} tokens here"
        )
        raise BadInput(message, file=self.path, hint="--block N gives the block size")

    def session(self, name: str) -> Iterator[Row]:
        """The rows of one session, in file order."""
        place = self.places[name]
        with self.path.open("rb") as file:
            for offset, number in zip(place[::2], place[1::2], strict=True):
                file.seek(offset)
                yield row_of(Line(number, offset, file.readline()), self.path)

    def clock(self, unit: str | None) -> Clock:
        """The file's time unit: the forced one, or what the evidence says."""
        low = min(self.times, default=0.0)
        epoch = low >= 1e8  # as milliseconds more than a day after the start, as seconds three years
        zero = low if epoch else 0.0
        since = ", counted from the earliest one" if epoch else ""
        if unit is not None:
            return Clock(UNITS[unit], zero, f"times are read as {unit}, as told{since}")
        if not self.times and not self.delays:
            return Clock(1.0, 0.0, "no row has a timestamp or a delay")
        if epoch:
            return _epoch(low)
        found, why = self._relative()
        return Clock(UNITS[found], 0.0, f"times are {'seconds' if found == 's' else 'milliseconds'}: {why}")

    def _relative(self) -> tuple[str, str]:
        span = max(self.times, default=0.0) - min(self.times, default=0.0)
        if span > 0:
            per_second = len(self.times) / (span / 1000)
            if per_second > MAX_RATE:
                return "s", f"as milliseconds there would be {per_second:,.0f} rows a second"
            hasty = sum(step < out * 1.0 for step, out in self.steps)
            if hasty * 2 > len(self.steps):
                return "s", "as milliseconds most replies would have come at over 1,000 tokens a second"
            if span < 1e6 and any(value % 1 for value in self.times):
                return "s", "they have fractions, and span less than 17 minutes as milliseconds"
            return "ms", f"the format's unit, and it gives a sensible {per_second:,.3g} rows a second"
        if self.delays:
            middle = statistics.median(self.delays)
            if middle < MIN_DELAY:
                return "s", f"as milliseconds half of the delays would be below {MIN_DELAY} ms"
            return "ms", f"the format's unit, and the delays' median is {middle:,.0f}"
        return "ms", "the format's unit, nothing speaks for or against it"


MAX_RATE = 200.0  # rows a second, above which a time-stamp is not in milliseconds
MIN_DELAY = 50.0  # ms between two turns, below which delays are not in milliseconds


def _epoch(low: float) -> Clock:
    """The unit of absolute time-stamps by their size: seconds since 1970 have ten digits in our time."""
    for limit, scale, name in ((1e11, 1.0, "seconds"), (1e14, 1e-3, "milliseconds"), (1e17, 1e-6, "microseconds")):
        if low < limit:
            return Clock(scale, low, f"times are {name} of a calendar clock, counted from the earliest one")
    return Clock(1e-9, low, "times are nanoseconds of a calendar clock, counted from the earliest one")
