"""What the server's cache stored and removed in the measured time, by the KV events that it published."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentx.errors import BadInput
from agentx.kv_events import KV_EVENTS, KvSummary, read_kv_events, summarise
from agentx.reporter.table import Block, Heading, Lines, Table
from agentx.results import RunResults


@dataclass(frozen=True, slots=True)
class CacheEvents:
    """`broken`: why a recording cannot be read."""

    summary: KvSummary
    broken: str | None = None


def cache_events_of(run: RunResults, window: tuple[float, float] | None = None) -> CacheEvents | None:
    """None where none were recorded; `window` in seconds of the run's clock."""
    if not (run.folder / KV_EVENTS).exists():
        return None
    try:
        return CacheEvents(summarise(read_kv_events(run.folder), window))
    except BadInput as error:
        return CacheEvents(KvSummary(), str(error))


def cache_events_document(found: CacheEvents) -> dict[str, Any]:
    summary = found.summary
    tiers = sorted({*summary.stored, *summary.removed})
    return {
        "broken": found.broken,
        "batches": summary.batches,
        "lost_batches": summary.lost_batches,
        "unread_events": summary.unread_events,
        "by_tier": [
            {"tier": tier, "stored_tokens": summary.stored[tier], "removed_tokens": summary.removed[tier]}
            for tier in tiers
        ],
        "removed_unknown_blocks": summary.removed_unknown,
        "cleared": summary.cleared,
    }


def cache_events_blocks(found: CacheEvents) -> list[Block]:
    summary = found.summary
    if found.broken is not None:
        return [Heading("Cache events"), Lines((f"the recording cannot be read: {found.broken}",))]
    if not summary.batches:
        return [Heading("Cache events"), Lines(("none came in the measured time: what the cache did is unknown",))]
    rows = tuple(
        (tier, f"{summary.stored[tier]:,d}", f"{summary.removed[tier]:,d}")
        for tier in sorted({*summary.stored, *summary.removed})
    )
    words = [f"{summary.batches:,d} messages came, {summary.lost_batches:,d} were lost on the way."]
    if summary.removed_unknown:
        words.append(f"{summary.removed_unknown:,d} removed blocks were stored earlier, or in lost messages.")
    if summary.cleared:
        words.append(f"All was cleared {summary.cleared} times.")
    return [Heading("Cache events"), Table(("tier", "tokens stored", "tokens removed"), rows), Lines(tuple(words))]
