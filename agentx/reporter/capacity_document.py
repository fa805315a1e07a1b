"""The capacity curve as a part of a JSON document; sizes in tokens, shares 0 ... 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentx.capacity import STEPS, Curve

OF_POSSIBLE = (0.5, 0.8, 0.9, 0.95, 0.99)
EACH = STEPS // 4  # four sizes for each doubling are enough to draw it


def capacity_document(
    curve: Curve,
    at_once: int | None,
    reach: Sequence[float],
    kv_bytes: int | None,
    engine: Sequence[tuple[int, int]],
) -> dict[str, Any] | None:
    """None for a trace without prompts. `at_once` None: sessions began as they arrived.

    `reach`: further shares that are asked for; `kv_bytes`: what a token takes on all ranks together.
    """
    if curve.possible is None:
        return None
    wanted = {f"{part:g}_of_possible": curve.needed(part * curve.possible) for part in OF_POSSIBLE}
    wanted |= {f"{share:g}": curve.needed(share) for share in reach}
    sizes = [*curve.capacities[:-1:EACH], curve.capacities[-1]]
    return {
        "order": "arrivals" if at_once is None else "at_once",
        "at_once": at_once,
        "page": curve.page,
        "prompt_tokens": curve.tokens,
        "possible_reuse": curve.possible,
        "distinct_tokens": curve.held,
        "longest_context": curve.longest,
        "needed": wanted,
        "needed_bytes": kv_bytes and {name: None if size is None else size * kv_bytes for name, size in wanted.items()},
        "page_lru": [{"tokens": size, "reuse": curve.share(size)} for size in sizes],
        "engine": [{"tokens": size, "reuse": reused / curve.tokens} for size, reused in engine],
    }
