"""Proof that a cache can be seen and be emptied: send P, P (must hit), flush, P (must miss), flush.

P is of fresh words, so no earlier run can have left it. A run behind such a proof begins with an empty cache, all tiers
of it, on a server that tells its cached tokens. Nothing else may use the server meanwhile.
"""

from __future__ import annotations

import aiohttp

from agentx.content import WordList
from agentx.errors import InvalidMeasurement
from agentx.replayer.asides import Asides
from agentx.replayer.client import Clock
from agentx.replayer.wires import Wire

TOKENS, PAGES = 256, 4  # P is as long as the longer of so many tokens and so many pages


async def prove_cold(
    session: aiohttp.ClientSession, base: str, wire: Wire, words: WordList, page: int, clock: Clock
) -> str:
    """Prove it, and leave the cache empty. Returns what was seen. Raises InvalidMeasurement where the proof fails."""
    asides, tokens = Asides(session, base, wire, words, clock), max(TOKENS, PAGES * page)
    seen = [await _cached(asides, tokens), await _cached(asides, tokens)]
    told = f"a prompt of {tokens} tokens, sent twice, met {seen[0]} and {seen[1]} cached tokens"
    if seen[0] + page > seen[1]:
        raise InvalidMeasurement(f"the cache cannot be seen: {told}: the second should have hit (a disabled cache?)")
    await _flush(asides)
    seen.append(await _cached(asides, tokens))
    told += f", and {seen[2]} after a flush"
    if seen[2]:
        raise InvalidMeasurement(f"the cache cannot be emptied: {told} (a storage tier, or another client?)")
    await _flush(asides)
    return f"proved cold: {told}; then flushed again"


async def _cached(asides: Asides, tokens: int) -> int:
    attempt = await asides.ask(tokens)
    if attempt.failure is not None:
        raise InvalidMeasurement(
            f"not proved cold: a prompt failed by {attempt.failure.kind}: {attempt.failure.message}"
        )
    if attempt.cached is None or attempt.cached.total is None:
        raise InvalidMeasurement("not proved cold: replies tell no cached tokens (SGLang: --enable-cache-report)")
    return attempt.cached.total


async def _flush(asides: Asides) -> None:
    wrong = await asides.flush()
    if wrong is not None:
        raise InvalidMeasurement(f"not proved cold: {wrong}")
