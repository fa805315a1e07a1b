"""At how many sessions a pool falls off, in seconds: plays in outline, many draws, no run folder.

A draw has fallen when the prompt tokens that an unlimited cache would have had and this one had not are more than a
tenth of all. Where most draws fall is the cliff; it is a band, because who meets whom decides. What more memory does,
and whether a host tier beats one session fewer, is asked there.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agentx.engine.settings import Host
from agentx.errors import BadInput
from agentx.replayer.order import order_of
from agentx.replayer.outlines import Outlines, outlines
from agentx.replayer.plan import Plan
from agentx.replayer.rough import Rough
from agentx.reporter.spread import percentile
from agentx.reporter.table import Block, Heading, Lines, Table, as_text
from agentx.reporter.text import share

SCHEMA = "agentx/cliff/1"
DRAWS = 20
FALLEN = 0.10  # of the prompt tokens, lost to what an unlimited cache has
MOST = 64  # sessions at a time
PLAN = "agentx-c1"
POOLS, HALVINGS = 4.0, 7  # times the pool that is looked at most, and how finely
RATIO = 2.0  # host tokens over pool when the target has no host tier: SGLang's default
NOTES = (
    "an outline: lines of context against the pool, too dark beyond a cliff; --sweep load.sessions=... is the engine",
    f"a draw has fallen when it loses more than {FALLEN:.0%} of the prompt tokens to what an unlimited cache has",
)


@dataclass(frozen=True, slots=True)
class Band:
    """Median and central 80 % of the draws."""

    low: float
    median: float
    high: float


@dataclass(frozen=True, slots=True)
class Lanes:
    """So many sessions at a time: shares 0 ... 1, output in tokens per second and GPU."""

    sessions: int
    fallen: float
    reuse: Band
    unlimited: Band
    output: Band


@dataclass(frozen=True, slots=True)
class Fewer:
    """Output of `sessions` - 1 at a time as the target is, over `sessions` with a host tier, draw by draw."""

    sessions: int
    host: int
    write: str
    ratio: Band
    wins: int
    draws: int


@dataclass(frozen=True, slots=True)
class Cliff:
    """`falls`: sessions at which 10, 50 and 90 % of the draws have fallen; None: at none that was looked at.

    `pool_for_one_more`: tokens of the pool with which the middle falls no oftener than one session fewer does now
    (None: not within POOLS times).
    """

    about: str
    pool: int
    bytes_per_token: int | None
    falls: tuple[int | None, int | None, int | None]
    rows: tuple[Lanes, ...]
    pool_for_one_more: int | None
    fewer: Fewer | None
    draws: int
    notes: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """Plain values, ready for json.dumps."""
        return {"schema": SCHEMA, **asdict(self)}

    def text(self) -> str:
        """For a terminal."""
        return as_text(_blocks(self))


def find_cliff(
    trace: str | Path | None = None,
    *,
    plan: Plan | str | Path | None = None,
    target: str | None = None,
    sets: Sequence[str] = (),
    draws: int = DRAWS,
) -> Cliff:
    """Where the pool of an engine target falls off under a trace or a workload. Without a plan: an hour of agentx-c1.

    Raises BadInput, also for a plan whose load is not sessions at a time.
    """
    with tempfile.TemporaryDirectory(prefix="agentx-") as scratch:
        chosen = PLAN if plan is None else plan
        order = order_of(trace, chosen, target, sets, folder=Path(scratch), scratch=Path(scratch), salt="")
        if order.plan.load.sessions is None:
            raise BadInput("the plan's load is not sessions at a time, and a cliff is looked for over these")
        plays = outlines(order, draws)
    found = _found(plays)
    falls = (_first(found, 0.1), _first(found, 0.5), _first(found, 0.9))
    middle = falls[1]
    cache = plays.settings.cache
    named = chosen if isinstance(chosen, str) else "given"
    about = f"{Path(str(order.plan.trace)).stem} on {order.target.name}, plan {named}"
    return Cliff(
        about=about,
        pool=cache.pool,
        bytes_per_token=cache.bytes_per_token,
        falls=falls,
        rows=tuple(_lanes(plays, sessions) for sessions in _shown(found, falls)),
        pool_for_one_more=None if middle is None else _more(plays, middle),
        fewer=None if middle is None or middle < 2 else _fewer(plays, middle),
        draws=draws,
        notes=(*NOTES, *order.notes),
    )


def _found(plays: Outlines) -> dict[int, float]:
    """Share of fallen draws by sessions: doubled until nearly all fall, then every whole number in between."""
    found, sessions = {}, 1
    while True:
        found[sessions] = _fallen(plays.at(sessions))
        if found[sessions] >= 0.9 or sessions >= MOST:
            break
        sessions *= 2
    if found[sessions] >= 0.1:
        for threshold in (0.1, 0.5, 0.9):
            _narrow(plays, found, threshold)
    return dict(sorted(found.items()))


def _narrow(plays: Outlines, found: dict[int, float], threshold: float) -> None:
    """Halve the gap below the first number whose share reaches the threshold, until its neighbour is known."""
    while (high := _first(found, threshold)) is not None:
        low = max((each for each in found if each < high), default=0)
        if high - low <= 1:
            return
        middle = (low + high) // 2
        found[middle] = _fallen(plays.at(middle))


def _first(found: dict[int, float], threshold: float) -> int | None:
    return next((sessions for sessions in sorted(found) if found[sessions] >= threshold), None)


def _fallen(draws: Sequence[Rough]) -> float:
    return sum((each.lost or 0.0) > FALLEN for each in draws) / len(draws)


def _shown(found: dict[int, float], falls: tuple[int | None, int | None, int | None]) -> list[int]:
    """Few rows: all that were looked at."""
    known = [each for each in falls if each is not None]
    last = max(known) + 2 if known else max(found)
    return [each for each in found if each <= last or each == min(found)]


def _lanes(plays: Outlines, sessions: int) -> Lanes:
    draws = plays.at(sessions)
    gpus = plays.settings.gpus
    return Lanes(
        sessions,
        _fallen(draws),
        _band([each.reuse or 0.0 for each in draws]),
        _band([(each.reuse or 0.0) + (each.lost or 0.0) for each in draws]),
        _band([each.rate / gpus for each in draws]),
    )


def _band(values: Sequence[float]) -> Band:
    ordered = sorted(values)
    return Band(*(percentile(ordered, percent) for percent in (10, 50, 90)))


def _more(plays: Outlines, sessions: int) -> int | None:
    """Tokens of the pool with which `sessions` fall no oftener than one fewer do now."""
    page, low = plays.settings.cache.page, float(plays.settings.cache.pool)
    now = _fallen(plays.at(sessions - 1)) if sessions > 1 else 0.0
    high = low * POOLS
    if _fallen(plays.at(sessions, pool=_whole(high, page))) > now:
        return None
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        if _fallen(plays.at(sessions, pool=_whole(middle, page))) > now:
            low = middle
        else:
            high = middle
    return _whole(high, page)


def _whole(tokens: float, page: int) -> int:
    return max(page, round(tokens / page) * page)


def _fewer(plays: Outlines, sessions: int) -> Fewer:
    own = plays.settings.cache.host
    tokens = own.tokens or _whole(plays.settings.cache.pool * RATIO, plays.settings.cache.page)
    tier, none = Host(tokens=tokens, write=own.write), Host(tokens=0, write=own.write)
    pairs = list(zip(plays.at(sessions - 1, host=none), plays.at(sessions, host=tier), strict=True))
    ratios = [few.rate / many.rate for few, many in pairs if many.rate > 0]
    wins = sum(few.rate > many.rate for few, many in pairs)
    return Fewer(sessions, tokens, own.write, _band(ratios or [0.0]), wins, len(pairs))


def _blocks(found: Cliff) -> list[Block]:
    columns = ("sessions", "draws fallen", "reuse", "p10", "p90", "unlimited", "out tok/s/GPU", "p10", "p90")
    rows = tuple(
        (
            f"{row.sessions}",
            f"{row.fallen:.0%}",
            *(share(each) for each in (row.reuse.median, row.reuse.low, row.reuse.high, row.unlimited.median)),
            *(f"{each:.3g}" for each in (row.output.median, row.output.low, row.output.high)),
        )
        for row in found.rows
    )
    return [
        Heading(f"agentx cliff: {found.about}"),
        Lines((_where(found), _memory(found), _lane(found))),
        Table(columns, rows),
        Lines((f"{found.draws} draws; {found.notes[0]}", *found.notes[1:])),
    ]


def _where(found: Cliff) -> str:
    low, middle, high = ("none" if each is None else str(each) for each in found.falls)
    if found.falls[0] is None:
        return f"the pool of {found.pool:,} tokens does not fall off up to {found.rows[-1].sessions} sessions at a time"
    band = f"10 % of draws at {low}, 90 % at {high}"
    return f"the pool of {found.pool:,} tokens falls off at {middle} sessions at a time ({band})"


def _memory(found: Cliff) -> str:
    if found.falls[1] is None:
        return "memory for one session more: not asked, as half of the draws never fall"
    if found.pool_for_one_more is None:
        return f"memory for one session more: above {POOLS:g} times the pool"
    more = found.pool_for_one_more - found.pool
    size = "" if found.bytes_per_token is None else f", {more * found.bytes_per_token / 1e9:,.0f} GB on every rank"
    return f"memory for one session more: {more:,} tokens more{size} (pool {found.pool_for_one_more:,})"


def _lane(found: Cliff) -> str:
    fewer = found.fewer
    if fewer is None:
        return "one session fewer against a host tier: not asked"
    better = "beats" if fewer.ratio.low > 1 else "loses to" if fewer.ratio.high < 1 else "is not clearly apart from"
    band = f"x{fewer.ratio.median:.2f} (p10 {fewer.ratio.low:.2f}, p90 {fewer.ratio.high:.2f})"
    return (
        f"{fewer.sessions - 1} sessions without a host tier: {better} {fewer.sessions} with {fewer.host:,} tokens of "
        f"it ({fewer.write}): output {band}, above in {fewer.wins} of {fewer.draws} draws"
    )
