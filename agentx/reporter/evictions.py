"""Evictions as the server's KV events tell them: whose blocks left, when, from which tier, and for whom.

An event names blocks, not requests. Where the token ids of the prompts are known, whose a block is, is exact: of the
play whose prompts hold it (block_owners.py). Else it is *inferred* from the time at which it was stored: it belongs to
the request that got its first token, or ended, nearest to it; what lies more than `NEAR` seconds from any such moment
stays without an owner. For whom it was removed is always inferred: as block_removers.py says, else the request whose
prompt was being read then, else one that was decoding. Tokens and times are the server's own.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agentx.core import Attempt
from agentx.errors import BadInput
from agentx.kv_events import KV_EVENTS, Cleared, Hash, Removed, Stored, read_kv_events
from agentx.reporter.table import Block, Heading, Lines, Table
from agentx.results import RunResults

if TYPE_CHECKING:
    from agentx.reporter.block_removers import Prompt

NEAR = 2.0  # s from a request's first token or end within which a store is taken for its own
SHOWN = 8
Name = tuple[str, int] | None  # a session and its play; None: not known


@dataclass(frozen=True, slots=True)
class Eviction:
    """Tokens of one session that left a tier for another one's sake, and the first and last time of it. `shared`: of
    several, so that no one is the owner."""

    tier: str
    owner: Name
    by: Name
    tokens: int
    first: float
    last: float
    shared: bool = False


@dataclass(frozen=True, slots=True)
class Evictions:
    """Most tokens first. `unknown_blocks` were removed and never seen stored. `broken`: why nothing can be read.
    `exact`: the owners are."""

    rows: tuple[Eviction, ...] = ()
    unknown_blocks: int = 0
    broken: str | None = None
    exact: bool = False


def evictions_of(run: RunResults, prompts: Sequence[Prompt] = ()) -> Evictions | None:
    """None where no events were recorded. `prompts`: where their blocks are known."""
    if not (run.folder / KV_EVENTS).exists():
        return None
    return _exact(prompts) if prompts else _by_times(run)


def _exact(prompts: Sequence[Prompt]) -> Evictions:
    from agentx.reporter.block_owners import removals

    times = _Times([prompt.attempt for prompt in prompts])
    found: dict[tuple[str, Name, bool, Name], Eviction] = {}
    for one in removals(prompts):
        attempt = None if one.by is None else prompts[one.by].attempt
        by = times.reader(one.at) if attempt is None else (attempt.session, attempt.play)
        key = one.tier, one.owner, one.shared, by
        before = found.get(key)
        first, tokens = (one.at, one.tokens) if before is None else (before.first, before.tokens + one.tokens)
        found[key] = Eviction(one.tier, one.owner, by, tokens, first, one.at, one.shared)
    unknown = sum({id(prompt.blocks): prompt.blocks.unknown for prompt in prompts}.values())
    return Evictions(tuple(sorted(found.values(), key=lambda each: -each.tokens)), unknown, exact=True)


def _by_times(run: RunResults) -> Evictions:
    """Owners inferred from when their blocks were stored."""
    times = _Times(run.attempts)
    held: dict[tuple[str, Hash], tuple[Name, int]] = {}
    found: dict[tuple[str, Name, Name], Eviction] = {}
    unknown = 0
    try:
        for batch in read_kv_events(run.folder):
            for event in batch.events:
                if isinstance(event, Stored):
                    owner = times.storer(batch.at)
                    for block in event.blocks:
                        held[event.tier, block] = owner, event.block
                elif isinstance(event, Cleared):
                    held.clear()
                else:
                    unknown += _remove(event, batch.at, held, times, found)
    except BadInput as error:
        return Evictions(broken=str(error))
    return Evictions(tuple(sorted(found.values(), key=lambda each: -each.tokens)), unknown)


def _remove(
    event: Removed,
    at: float,
    held: dict[tuple[str, Hash], tuple[Name, int]],
    times: _Times,
    found: dict[tuple[str, Name, Name], Eviction],
) -> int:
    """Take blocks out. Returns how many of them were never seen stored."""
    by, unknown = times.reader(at), 0
    for block in event.blocks:
        known = held.pop((event.tier, block), None)
        if known is None:
            unknown += 1
            continue
        owner, tokens = known
        key = event.tier, owner, by
        before = found.get(key)
        first, sum_before = (at, 0) if before is None else (before.first, before.tokens)
        found[key] = Eviction(event.tier, owner, by, sum_before + tokens, first, at)
    return unknown


class _Times:
    """Which request was storing, or being read, at a time."""

    def __init__(self, attempts: Sequence[Attempt]) -> None:
        moments = sorted(
            (at, (one.session, one.play)) for one in attempts for at in (one.first, one.end) if at is not None
        )
        self._moments = [at for at, _ in moments]
        self._names = [name for _, name in moments]
        self._spans = sorted(
            ((one.sent, one.first if one.first is not None else one.end or one.sent, one.end or one.sent, one)
             for one in attempts),
            key=lambda span: span[0],
        )  # fmt: skip
        self._begin = 0

    def storer(self, at: float) -> Name:
        """The request with the nearest first token or end."""
        place = bisect_left(self._moments, at)
        near = [each for each in (place - 1, place) if 0 <= each < len(self._moments)]
        best = min(near, key=lambda each: abs(self._moments[each] - at), default=None)
        return self._names[best] if best is not None and abs(self._moments[best] - at) <= NEAR else None

    def reader(self, at: float) -> Name:
        """The request whose prompt was being read, the one that is done with it first; else one that was decoding."""
        while self._begin < len(self._spans) and self._spans[self._begin][2] < at - NEAR:
            self._begin += 1  # events come in order of time: what is over stays over
        reading: tuple[float, Name] | None = None
        decoding: Name = None
        for sent, first, end, one in self._from(at):
            name = one.session, one.play
            if sent <= at <= first and (reading is None or first < reading[0]):
                reading = first, name
            elif first < at <= end and decoding is None:
                decoding = name
        return reading[1] if reading is not None else decoding

    def _from(self, at: float) -> Iterator[tuple[float, float, float, Attempt]]:
        for span in self._spans[self._begin :]:
            if span[0] > at:
                return
            yield span


def evictions_document(found: Evictions) -> dict[str, Any]:
    """Plain values only; `for` is inferred, and `owner` unless `owners` are exact."""
    return {
        "broken": found.broken,
        "owners": "exact" if found.exact else "inferred",
        "unknown_blocks": found.unknown_blocks,
        "rows": [
            {
                "tier": each.tier,
                "owner": _named(each.owner),
                "shared": each.shared,
                "for": _named(each.by),
                "tokens": each.tokens,
                "first_seconds": each.first,
                "last_seconds": each.last,
            }
            for each in found.rows
        ],
    }


def _named(name: Name) -> dict[str, Any] | None:
    return None if name is None else {"session": name[0], "play": name[1]}


def evictions_blocks(found: Evictions) -> list[Block]:
    """The largest ones."""
    if not found.rows:
        return []
    rows = tuple(
        (
            "several" if each.shared else _said(each.owner),
            _said(each.by),
            each.tier,
            f"{each.tokens:,}",
            f"{each.first:,.1f}",
            f"{each.last:,.1f}",
        )
        for each in found.rows[:SHOWN]
    )
    inferred = "whose they were by the prompts; for whom is inferred from what was stored next."
    if not found.exact:
        inferred = "whose they were and for whom is inferred from the times."
    words = [f"Tokens, tiers and times by the server's KV events; {inferred}"]
    if len(found.rows) > SHOWN:
        words.append(f"{len(found.rows) - SHOWN} more pairs are in the JSON document.")
    columns = ("whose blocks", "for whom", "tier", "tokens", "first, s", "last, s")
    return [Heading("Evictions, measured"), Table(columns, rows), Lines(tuple(words))]


def _said(name: Name) -> str:
    return "unknown" if name is None else f"{name[0]}{f' play {name[1]}' if name[1] else ''}"
