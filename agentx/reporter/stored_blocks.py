"""What a server's cache held, block by block, by its KV events: when each block came to a tier, and when it left.

A block is known by its *place*: 64 bits made of the namespace and of every token id from the beginning of a prompt to
the block's end. So a prompt's own ids tell the places of its blocks without the server's hashes, and a place that was
stored says that all before it was. Events have numbers, in the order in which the server told them; what it told in one
message, it did since the message before.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from agentx.errors import BadInput
from agentx.kv_events import Cleared, Hash, KvBatch, Removed, Stored

Places = npt.NDArray[np.uint64]
Numbers = npt.NDArray[np.int64]
Ids = npt.NDArray[np.uint32]

LIMIT = 5_000_000  # stores and removals of single blocks that are kept in memory: some 500 MB
TIERS = ("device", "host")
_TIERS = {"device": 0, "unknown": 0, "host": 1}  # a storage below the host's memory has no part in this
_ODD = tuple(np.uint64(odd) for odd in (0x9E3779B97F4A7C15, 0xD1B54A32D192ED03, 0xA24BAED4963EE407))
_MIX = (np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB))  # of SplitMix64 (Steele, Lea and Flood, 2014)


def root_place(namespace: str) -> int:
    """The place of nothing, before the first token of a prompt."""
    return int.from_bytes(hashlib.blake2b(namespace.encode(), digest_size=8).digest(), "little")


def places(ids: Ids, page: int, place: int, start: int = 0, behind: int | None = None) -> Places:
    """The places of the whole pages of `ids`, which stand behind `place` from position `start` on.

    With `behind`, the token behind the last one, keys are bigrams: a token counts with the one that follows it.
    """
    if len(ids) < page:
        return np.empty(0, dtype=np.uint64)
    at = np.arange(start + 1, start + 1 + len(ids), dtype=np.uint64)
    mixed = ids.astype(np.uint64) * _ODD[0] + at * _ODD[1]
    if behind is not None:
        mixed += np.append(ids[1:], np.uint32(behind)).astype(np.uint64) * _ODD[2]
    mixed = (mixed ^ (mixed >> np.uint64(30))) * _MIX[0]
    mixed = (mixed ^ (mixed >> np.uint64(27))) * _MIX[1]
    mixed ^= mixed >> np.uint64(31)
    ends: Places = np.cumsum(mixed, dtype=np.uint64)[page - 1 :: page] + np.uint64(place)
    return ends


class State(NamedTuple):
    """Of each of some places on one tier, before some event: `told` whether anything was told of it, `there` whether it
    was there, `last` the number of the last event (-1: none), `next` of the first one from then on (-1: none), `comes`
    whether that is a store."""

    told: npt.NDArray[np.bool_]
    there: npt.NDArray[np.bool_]
    last: Numbers
    next: Numbers
    comes: npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Tier:
    """The events of one tier by place, then in order."""

    known: Places  # each place once, sorted
    order: Numbers  # (place's index in `known`) * span + event's number, sorted
    stored: npt.NDArray[np.bool_]
    span: int

    def at(self, where: Places, number: int | Numbers) -> State:
        """Just before event `number`, or one number for each place."""
        index = np.searchsorted(self.known, where)
        found = index < len(self.known)
        found[found] = self.known[index[found]] == where[found]
        place = np.searchsorted(self.order, index * self.span + np.minimum(number, self.span - 1))
        before, after = place - 1, place
        own = found & (before >= 0)
        own[own] = self.order[before[own]] // self.span == index[own]
        more = found & (after < len(self.order))
        more[more] = self.order[after[more]] // self.span == index[more]
        return State(
            own,
            own & self._stored(before, own),
            np.where(own, self._number(before, own), -1),
            np.where(more, self._number(after, more), -1),
            more & self._stored(after, more),
        )

    def first(self, where: Places) -> Numbers:
        """The number of the event that first told of each place; -1: none did."""
        return self.at(where, 0).next

    def _stored(self, place: Numbers, valid: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
        made = np.zeros(len(place), dtype=np.bool_)
        made[valid] = self.stored[place[valid]]
        return made

    def _number(self, place: Numbers, valid: npt.NDArray[np.bool_]) -> Numbers:
        made = np.full(len(place), -1, dtype=np.int64)
        made[valid] = self.order[place[valid]] % self.span
        return made


@dataclass(frozen=True, slots=True)
class Blocks:
    """A whole recording of one publisher. `times`: seconds of the run at which each event was told; `messages`: the
    message that told it. `page` None: nothing was ever stored. `rows` has every event of a block in order."""

    page: int | None
    bigram: bool
    times: npt.NDArray[np.float64]
    messages: Numbers
    device: Tier
    host: Tier
    rows: Rows
    lost: int = 0
    unread: int = 0
    unknown: int = 0  # removed, never seen stored
    orphans: int = 0  # stored behind a block that was never seen stored

    def number_at(self, at: float) -> int:
        """The number of the first event that was told at that time or later."""
        return int(np.searchsorted(self.times, at))


@dataclass(frozen=True, slots=True)
class Rows:
    """Every store and removal of a single block: its place, that of the block before it (0: the root's), the event's
    number, the tier's number, whether it came."""

    place: Places
    parent: Places
    number: Numbers
    tier: npt.NDArray[np.int8]
    stored: npt.NDArray[np.bool_]


class _Known(NamedTuple):
    """A block that is on some tier."""

    place: int
    end: int  # tokens up to its end
    tiers: int  # a bit for each


@dataclass(slots=True)
class _Reader:
    page: int | None = None
    bigram: bool = False
    held: dict[Hash, _Known] = field(default_factory=dict)
    place: array[int] = field(default_factory=lambda: array("Q"))
    parent: array[int] = field(default_factory=lambda: array("Q"))
    number: array[int] = field(default_factory=lambda: array("q"))
    tier: array[int] = field(default_factory=lambda: array("b"))
    stored: array[int] = field(default_factory=lambda: array("b"))
    events: int = 0
    unknown: int = 0
    orphans: int = 0
    unread: int = 0

    def add(self, event: Stored | Removed | Cleared) -> None:
        if isinstance(event, Cleared):
            for each in range(len(TIERS)):
                gone = [block for block, known in self.held.items() if known.tiers >> each & 1]
                self._remove(gone, each)
        elif (tier := _TIERS.get(event.tier)) is not None:
            if isinstance(event, Stored):
                self._store(event, tier)
            else:
                self._remove(event.blocks, tier)
        self.events += 1
        if len(self.place) > LIMIT:
            raise BadInput(f"more than {LIMIT:,d} stores and removals of blocks: it takes too much memory")

    def _store(self, event: Stored, tier: int) -> None:
        size = event.block if self.page is None else self.page
        self.page = size
        self.bigram |= event.behind is not None
        if event.block != size or event.tokens != size * len(event.blocks):
            self.unread += 1
            return
        above = None if event.parent is None else self.held.get(event.parent)
        if event.parent is not None and above is None:
            self.orphans += 1
            return
        begin = root_place(event.salt) if above is None else above.place
        end = 0 if above is None else above.end
        ids = np.array(event.ids, dtype=np.int64).astype(np.uint32)
        made = places(ids, size, begin, end, event.behind).tolist()
        before = 0 if above is None else above.place
        held, own, come, above_them = self.held, 1 << tier, list[int](), list[int]()
        for block, place in zip(event.blocks, made, strict=True):
            end += size
            known = held.get(block)
            tiers = 0 if known is None else known.tiers
            if not tiers & own:
                come.append(place)
                above_them.append(before)
            held[block] = _Known(place, end, tiers | own)
            before = place
        self._rows(come, above_them, tier, 1)

    def _remove(self, blocks: Sequence[Hash], tier: int) -> None:
        held, own, gone = self.held, 1 << tier, list[int]()
        for block in blocks:
            known = held.get(block)
            if known is None or not known.tiers & own:
                self.unknown += 1
                continue
            gone.append(known.place)
            if known.tiers == own:
                del held[block]
            else:
                held[block] = known._replace(tiers=known.tiers & ~own)
        self._rows(gone, [0] * len(gone), tier, 0)

    def _rows(self, places: list[int], parents: list[int], tier: int, stored: int) -> None:
        """Of one event."""
        count = len(places)
        self.place.extend(places)
        self.parent.extend(parents)
        self.number.extend([self.events] * count)
        self.tier.extend([tier] * count)
        self.stored.extend([stored] * count)

    def done(self, heard: Sequence[_Message], wall: float) -> Blocks:
        rows = Rows(
            np.frombuffer(self.place, dtype=np.uint64) if self.place else np.empty(0, dtype=np.uint64),
            np.frombuffer(self.parent, dtype=np.uint64) if self.parent else np.empty(0, dtype=np.uint64),
            np.array(self.number, dtype=np.int64),
            np.array(self.tier, dtype=np.int8),
            np.array(self.stored, dtype=np.bool_),
        )
        span, sizes = self.events + 1, [one.events for one in heard]
        return Blocks(
            self.page,
            self.bigram,
            np.repeat(_times(heard, wall), sizes),
            np.repeat(np.arange(len(heard)), sizes),
            _tier(rows, 0, span),
            _tier(rows, 1, span),
            rows,
            sum(one.lost for one in heard),
            sum(one.unread for one in heard) + self.unread,
            self.unknown,
            self.orphans,
        )


def _tier(rows: Rows, tier: int, span: int) -> Tier:
    own = rows.tier == tier
    known, index = np.unique(rows.place[own], return_inverse=True)
    order = index.astype(np.int64) * span + rows.number[own]
    sorting = np.argsort(order, kind="stable")
    return Tier(known, order[sorting], rows.stored[own][sorting], span)


class _Message(NamedTuple):
    at: float
    told: float | None
    events: int
    lost: int
    unread: int


def blocks_of(batches: Iterable[KvBatch], wall: float) -> dict[int, Blocks]:
    """By publisher, what it told; `wall`: seconds since the epoch at second 0 of the run.

    An event's time is the publisher's own, moved to the run's clock by the shortest way that a message took; where it
    tells none, it is when the message was read. Raises BadInput for a recording that is none, or too large.
    """
    readers: dict[int, _Reader] = {}
    heard: dict[int, list[_Message]] = {}
    for batch in batches:
        reader = readers.setdefault(batch.publisher, _Reader())
        message = _Message(batch.at, batch.told, len(batch.events), batch.lost, batch.unread)
        heard.setdefault(batch.publisher, []).append(message)
        for event in batch.events:
            reader.add(event)
    return {publisher: reader.done(heard[publisher], wall) for publisher, reader in readers.items()}


def _times(heard: Sequence[_Message], wall: float) -> npt.NDArray[np.float64]:
    """Of each message, never falling."""
    way = min((one.at - (one.told - wall) for one in heard if one.told is not None), default=0.0)
    times = [one.at if one.told is None else one.told - wall + way for one in heard]
    return np.maximum.accumulate(np.array(times, dtype=np.float64)) if times else np.empty(0)
