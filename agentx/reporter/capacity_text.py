"""The capacity curve for people: how large a cache must be for how much reuse."""

from __future__ import annotations

from typing import NamedTuple

from agentx.capacity import Curve
from agentx.reporter.capacity_document import OF_POSSIBLE
from agentx.reporter.inspecting import Inspection
from agentx.reporter.sparks import bars
from agentx.reporter.table import Block, Heading, Lines, Table

WIDE = 32  # characters of the curve


class Memory(NamedTuple):
    """Bytes of KV that a token takes on one rank, and how many ranks hold it."""

    per_token: int
    ranks: int

    def told(self, tokens: int) -> str:
        """In GB (1e9 bytes), over all ranks."""
        return f"{tokens * self.per_token * self.ranks / 1e9:,.1f} GB"


def capacity(found: Inspection, shown: str) -> list[Block]:
    """Rows for parts of the possible reuse and for the shares that were asked for, each with the least size for it."""
    curve = found.curve
    if curve is None or not curve.possible:
        return []
    order = "as they arrive" if found.at_once is None else f"{found.at_once} at once"
    page = f", pages of {curve.page}" if curve.page > 1 else ""
    shares = [(part * curve.possible, f"{part:.0%} of the possible") for part in OF_POSSIBLE]
    rows = [_row(curve, share, why, found.kv_bytes) for share, why in shares]
    rows += [_row(curve, share, "asked for", found.kv_bytes) for share in found.reach]
    columns = ("reuse", "", "needs tokens", *(("needs",) if found.kv_bytes else ()))
    blocks: list[Block] = [
        Heading(f"Reuse by the size of a cache: page-LRU, an upper curve; sessions {order}{page}"),
        Table(columns, tuple(rows)),
        Lines((_drawn(curve, shown),)),
    ]
    if found.engine:
        told = ", ".join(f"{size:,}: {reused / curve.tokens:.1%}" for size, reused in found.engine)
        blocks.append(Lines((f"the embedded engine's cache, by its size: {told}",)))
    return blocks


def _row(curve: Curve, share: float, why: str, kv_bytes: int | None) -> tuple[str, ...]:
    needed = curve.needed(share)
    if needed is None:
        return (f"{share:.1%}", why, "more than possible", *(("n/a",) if kv_bytes else ()))
    return (f"{share:.1%}", why, f"{needed:,}", *((Memory(kv_bytes, 1).told(needed),) if kv_bytes else ()))


def _drawn(curve: Curve, shown: str) -> str:
    """The curve as bars, sizes at equal ratios."""
    low, high = max(1.0, min(curve.longest, curve.held) / 16), float(max(2, curve.held))
    sizes = [round(low * (high / low) ** (step / (WIDE - 1))) for step in range(WIDE)]
    heights = [curve.share(size) or 0.0 for size in sizes]
    return f"{sizes[0]:,} tokens |{bars(heights, shown, top=curve.possible)}| {curve.held:,}, which is all of them"
