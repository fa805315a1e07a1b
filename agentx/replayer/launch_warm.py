"""Warming a launched server up: requests of the shapes that a run will have, before anything is measured.

Kernels are compiled, and graphs and buffers made, when a shape comes for the first time; on a fresh server that would
be in the first turns of a run. The shapes follow from the server's chunk size: a prompt that is longer than a chunk (so
that a full chunk runs, and one behind a prefix), its repetition (a short rest behind a cached prefix), prompts of half
a chunk, a quarter and so on, and as many short ones at once as there will be lanes. Then the cache is emptied.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

import aiohttp

from agentx.content import WordList
from agentx.errors import Unreachable
from agentx.replayer.asides import Asides
from agentx.replayer.wires import Wire

CHUNK = 8192  # tokens, of a server that does not tell its chunk size
LEAST = 32  # tokens of the shortest prompt
REPLY = 16  # tokens: some decode steps, or some of speculation
ROOM = 256  # tokens of the context that are left for a template and the reply
TOGETHER = 64  # most requests at once


def lengths(server: Mapping[str, Any]) -> list[int]:
    """Tokens of the prompts that are sent one after another, by what the server says of itself."""
    told = server.get("chunked_prefill_size")
    chunk = told if isinstance(told, int) and told > 0 else CHUNK
    limits = [limit for key in ("context", "max_total_num_tokens") if isinstance(limit := server.get(key), int)]
    most = max(LEAST, min([chunk + chunk // 2, *(limit - ROOM for limit in limits)]))
    halves = []
    while chunk >= 2 * LEAST:
        chunk //= 2
        halves.append(chunk)
    return [most, most, *(each for each in halves if each < most)]


async def warm_up(
    session: aiohttp.ClientSession, base: str, wire: Wire, words: WordList, server: Mapping[str, Any], lanes: int
) -> str:
    """Send them. Returns what was done. Raises Unreachable when the server fails one of them."""
    asides, began, sent = Asides(session, base, wire, words, time.monotonic), time.monotonic(), 0
    shapes = lengths(server)
    for place, tokens in enumerate(shapes):
        await _one(asides, tokens, segment=0 if place < 2 else place)
        sent += tokens
    together = min(lanes, TOGETHER)
    await asyncio.gather(*(_one(asides, LEAST, segment=len(shapes) + place) for place in range(together)))
    sent += together * LEAST
    wrong = await asides.flush()
    emptied = "then the cache was emptied" if wrong is None else f"the cache was not emptied: {wrong}"
    return (
        f"warmed up with {len(shapes) + together} requests of {sent:,} prompt tokens, the longest {shapes[0]:,}, in "
        f"{time.monotonic() - began:.1f} s, before anything was measured; {emptied}"
    )


async def _one(asides: Asides, tokens: int, *, segment: int) -> None:
    attempt = await asides.ask(tokens, segment=segment, reply=REPLY)
    if attempt.failure is not None:
        failure = attempt.failure
        raise Unreachable(f"a warm-up prompt of {tokens:,} tokens failed by {failure.kind}: {failure.message}")
