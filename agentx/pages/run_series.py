"""What the charts of a run are drawn from: values through time, and a lane for each thread that was played.

Time is in seconds of the run. Stretches of time are columns, `COLUMNS` of them at most; of very many turns some are
drawn, evenly chosen, and it is said how many.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agentx.core import Attempt
from agentx.pages.charts import Bar
from agentx.reporter.turns import arrivals, finished
from agentx.results import RunResults

COLUMNS = 120
LANES, BARS = 40, 4000  # that are drawn
DOTS = 2500
KINDS = ("pause", "queue", "prefill", "reply", "failed")
PAUSE, QUEUE, PREFILL, REPLY, FAILED = range(5)


@dataclass(frozen=True, slots=True)
class Through:
    """Columns of `width` seconds from `start` on.

    `reused`: of the prompts whose first token came in it, tokens by TIERS; None where nothing is known of them.
    `rate`: reply tokens per second. `flying`: requests in flight on average.
    """

    start: float
    width: float
    reused: tuple[tuple[float, ...] | None, ...]
    rate: tuple[float, ...]
    flying: tuple[float, ...]


TIERS = ("device", "host", "storage", "cached, tier unknown", "computed")


def through(attempts: Sequence[Attempt]) -> Through | None:
    """None for a run without an answered request."""
    ends = [end for one in attempts if (end := finished(one)) is not None]
    if not ends:
        return None
    start = min(one.sent for one in attempts)
    width = max((max(ends) - start) / COLUMNS, 1e-6)
    reused: list[list[float] | None] = [None] * COLUMNS
    flying = [0.0] * COLUMNS

    def column(at: float) -> int:
        return min(COLUMNS - 1, max(0, int((at - start) / width)))

    for one in attempts:
        if one.first is not None and (parts := _parts(one)) is not None:
            place = column(one.first)
            sums = reused[place] or [0.0] * len(TIERS)
            reused[place] = [a + b for a, b in zip(sums, parts, strict=True)]
        end = finished(one)
        if end is not None:
            for place in range(column(one.sent), column(end) + 1):
                low, high = start + place * width, start + (place + 1) * width
                flying[place] += max(0.0, min(end, high) - max(one.sent, low)) / width
    rate = np.zeros(COLUMNS)
    for part in arrivals(attempts):
        places = ((part.at - start) / width).clip(0, COLUMNS - 1).astype(int)
        np.add.at(rate, places, part.counts / width)
    columns = tuple(None if each is None else tuple(each) for each in reused)
    return Through(start, width, columns, tuple(rate.tolist()), tuple(flying))


def _parts(one: Attempt) -> tuple[float, ...] | None:
    """Prompt tokens by tier, and computed."""
    cached = one.cached
    if cached is None or cached.tokens is None or one.prompt_tokens is None:
        return None
    device, host, storage = (float(tier or 0) for tier in (cached.device, cached.host, cached.storage))
    rest = max(0.0, cached.tokens - device - host - storage)
    return device, host, storage, rest, float(one.prompt_tokens - cached.tokens)


def some(values: Sequence[Attempt], most: int = DOTS) -> list[Attempt]:
    """At most so many, evenly chosen."""
    step = max(1, math.ceil(len(values) / most))
    return list(values[::step])


def lanes_of(run: RunResults, kinds: dict[tuple[str, int], str]) -> tuple[list[tuple[str, list[Bar]]], int]:
    """(name, bars) of the first threads that were played, and how many are left out. `kinds`: of (session, turn)."""
    by_thread: dict[tuple[int, str, int, int], list[Attempt]] = {}
    for one in sorted(run.attempts, key=lambda one: one.sent):
        by_thread.setdefault((one.lane, one.session, one.play, one.thread), []).append(one)
    rows: list[tuple[str, list[Bar]]] = []
    drawn = 0
    ordered = sorted(by_thread.items(), key=lambda item: (item[0][0], item[1][0].sent, item[0][3]))
    for (_, session, play, thread), turns in ordered:
        if len(rows) >= LANES or drawn >= BARS:
            break
        name = f"{session}{f'#{play}' if play else ''}{f' / {thread}' if thread else ''}"
        made = _bars(turns, kinds)
        drawn += len(made)
        rows.append((name, made))
    return rows, len(ordered) - len(rows)


def _bars(turns: Sequence[Attempt], kinds: dict[tuple[str, int], str]) -> list[Bar]:
    made: list[Bar] = []
    before: float | None = None
    for one in turns:
        name = f"turn {one.turn}"
        if before is not None and one.due > before:
            made.append(
                Bar(PAUSE, before, one.due, f"{kinds.get((one.session, one.turn), 'pause')}: {one.due - before:.3g} s")
            )
        end = finished(one) or one.end or one.sent
        if not one.ok:
            kind = one.failure.kind if one.failure else "failed"
            made.append(Bar(FAILED, one.sent, max(end, one.sent), f"{name} failed: {kind}"))
        else:
            first = one.first if one.first is not None else end
            admitted = min(first, one.sent + (one.queue_seconds or 0.0))
            if admitted > one.sent:
                made.append(Bar(QUEUE, one.sent, admitted, f"{name}: {admitted - one.sent:.3g} s in the queue"))
            made.append(
                Bar(PREFILL, admitted, first, f"{name}: {_prompt(one)}, first token after {first - one.sent:.3g} s")
            )
            made.append(Bar(REPLY, first, end, f"{name}: {one.completion_tokens or 'unknown'} reply tokens"))
        before = end
    return made


def _prompt(one: Attempt) -> str:
    cached = None if one.cached is None else one.cached.tokens
    told = "unknown" if one.prompt_tokens is None else f"{one.prompt_tokens:,}"
    return f"{told} prompt tokens, {'unknown' if cached is None else f'{cached:,}'} cached"
