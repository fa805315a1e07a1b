"""KV events of a run: what a server's cache stored and removed, as its publisher told it while the run went on.

    kv-events.agx   frames: `kv-events` (version, addresses), then `batch` for each message, as it came:
                    at (seconds on the run's clock), publisher (index of its address), seq, payload

A payload is the publisher's own msgpack, [seconds since the epoch, [events], rank], read here and not while the run
goes on. SGLang and vLLM tell events alike: maps with their `type`, or (older vLLM) arrays that begin with it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgpack

from agentx.errors import BadInput
from agentx.frames import FrameReader

VERSION = 1
KV_EVENTS = "kv-events.agx"
UNTOLD = "unknown"  # the medium of an event that names none
TIERS = {"GPU": "device", "CPU_PINNED": "host", "CPU": "host", "DISK": "storage", "EXTERNAL": "storage"}
_STORED = ("block_hashes", "parent_block_hash", "token_ids", "block_size", "lora_id", "medium")
_REMOVED = ("block_hashes", "medium")

Hash = int | bytes | str


@dataclass(frozen=True, slots=True)
class Stored:
    """Blocks that are in a tier now, one behind the other; `parent` is the block before the first, None at a prompt's
    beginning. `ids` are the tokens of all of them, `block` how many one has. `tier`: device, host, storage; the medium
    itself where that is another, `unknown` where it is not told. `behind`: of bigram keys the token behind the last
    one, else None. `salt`: the `cache_salt` that they are kept apart by, where it is told."""

    blocks: tuple[Hash, ...]
    parent: Hash | None
    ids: tuple[int, ...]
    block: int
    tier: str
    behind: int | None = None
    salt: str = ""

    @property
    def tokens(self) -> int:
        return len(self.ids)


@dataclass(frozen=True, slots=True)
class Removed:
    """Blocks that are in a tier no more."""

    blocks: tuple[Hash, ...]
    tier: str


@dataclass(frozen=True, slots=True)
class Cleared:
    """All blocks are gone, of every tier."""


KvEvent = Stored | Removed | Cleared


@dataclass(frozen=True, slots=True)
class KvBatch:
    """One message: `at` seconds on the run's clock when it was read, `told` the publisher's own clock; `seq` is its
    number there, `lost` how many before it never came. `unread` events were of other types."""

    at: float
    publisher: int
    seq: int
    told: float | None
    rank: int | None
    events: tuple[KvEvent, ...]
    lost: int
    unread: int = 0


def read_kv_events(folder: Path | str) -> Iterator[KvBatch]:
    """The batches of a run folder in the order in which they came; none where nothing was recorded.

    One is in memory at a time. Raises BadInput for a file that is no such recording, and for one of a newer version;
    a torn end is where it ends.
    """
    path = Path(folder) / KV_EVENTS
    if not path.exists():
        return
    frames = iter(FrameReader(path))
    kind, head = next(frames, ("", {}))
    if kind != "kv-events" or head.get("version") != VERSION:
        raise BadInput(f"these are not KV events of version {VERSION}", file=path)
    last: dict[int, int] = {}
    for kind, body in frames:
        if kind == "batch":
            yield _batch(body, last)


def _batch(body: Mapping[str, Any], last: dict[int, int]) -> KvBatch:
    publisher, seq = int(body["publisher"]), int(body["seq"])
    lost = max(0, seq - last.get(publisher, seq - 1) - 1)  # a number that falls is that of a new publisher
    last[publisher] = seq
    told, events, rank, unread = _payload(body["payload"])
    return KvBatch(float(body["at"]), publisher, seq, told, rank, tuple(events), lost, unread)


def _payload(payload: bytes) -> tuple[float | None, list[KvEvent], int | None, int]:
    """(the publisher's time, events, rank, events that could not be read)."""
    try:
        parts = msgpack.unpackb(payload, strict_map_key=False)
    except (ValueError, msgpack.UnpackException):
        return None, [], None, 1
    if not isinstance(parts, list) or len(parts) < 2 or not isinstance(parts[1], list):
        return None, [], None, 1
    read = [_event(each) for each in parts[1]]
    events = [event for event in read if event is not None]
    told = float(parts[0]) if isinstance(parts[0], int | float) else None
    rank = parts[2] if len(parts) > 2 and isinstance(parts[2], int) else None
    return told, events, rank, len(read) - len(events)


def _event(raw: object) -> KvEvent | None:
    """One event; None for another kind, and for one that is not whole."""
    if isinstance(raw, list) and raw:
        names = {"BlockStored": _STORED, "BlockRemoved": _REMOVED}.get(str(raw[0]), ())
        kind, told = raw[0], dict(zip(names, raw[1:], strict=False))
    elif isinstance(raw, dict):
        kind, told = raw.get("type"), raw
    else:
        return None
    if kind == "AllBlocksCleared":
        return Cleared()
    blocks, medium = told.get("block_hashes"), told.get("medium")
    if not isinstance(blocks, list) or kind not in ("BlockStored", "BlockRemoved"):
        return None
    tier = UNTOLD if medium is None else TIERS.get(str(medium), str(medium))
    if kind == "BlockRemoved":
        return Removed(tuple(blocks), tier)
    ids, size = told.get("token_ids"), told.get("block_size")
    if not isinstance(ids, list) or not isinstance(size, int):
        return None
    pairs = bool(ids) and isinstance(ids[0], list | tuple)  # bigram keys: each id with the one behind it
    if not all(isinstance(id, list | tuple) and len(id) == 2 if pairs else isinstance(id, int) for id in ids):
        return None
    flat, behind = (tuple(id[0] for id in ids), ids[-1][1]) if pairs else (tuple(ids), None)
    return Stored(
        tuple(blocks), told.get("parent_block_hash"), flat, size, tier, behind, str(told.get("cache_salt") or "")
    )


@dataclass(slots=True)
class KvSummary:
    """Sums over a recording. Tokens by tier: `stored`, `removed`; a block that is removed and was stored before the
    recording began has no known length: such are in `removed_unknown` blocks. `cleared`: how often all was."""

    batches: int = 0
    lost_batches: int = 0
    unread_events: int = 0
    stored: Counter[str] = field(default_factory=Counter)
    removed: Counter[str] = field(default_factory=Counter)
    removed_unknown: int = 0
    cleared: int = 0


def summarise(batches: Iterator[KvBatch], within: tuple[float, float] | None = None) -> KvSummary:
    """Sums over all batches, or those that came between two seconds of the run's clock."""
    summary, sizes = KvSummary(), dict[tuple[int, str, Hash], int]()
    for batch in batches:
        counts = within is None or within[0] <= batch.at <= within[1]
        if counts:
            summary.batches += 1
            summary.lost_batches += batch.lost
            summary.unread_events += batch.unread
        for event in batch.events:
            _count(summary if counts else KvSummary(), sizes, batch.publisher, event)
    return summary


def _count(summary: KvSummary, sizes: dict[tuple[int, str, Hash], int], publisher: int, event: KvEvent) -> None:
    if isinstance(event, Cleared):
        summary.cleared += 1
        for key in [key for key in sizes if key[0] == publisher]:
            del sizes[key]
    elif isinstance(event, Stored):
        summary.stored[event.tier] += event.tokens
        for block, tokens in zip(event.blocks, _sizes(event), strict=True):
            sizes[publisher, event.tier, block] = tokens
    else:
        for block in event.blocks:
            known = sizes.pop((publisher, event.tier, block), None)
            if known is None:
                summary.removed_unknown += 1
            else:
                summary.removed[event.tier] += known


def _sizes(event: Stored) -> Sequence[int]:
    """Tokens of each block; the last one may have fewer."""
    count = len(event.blocks)
    return [max(0, min(event.block, event.tokens - place * event.block)) for place in range(count)]
