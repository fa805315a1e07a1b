"""Proof that a cache can be seen and be emptied: send P, P (must hit), flush, P (must miss), flush.

P is of fresh words, so no earlier run can have left it. A run behind such a proof begins with an empty cache, all tiers
of it, on a server that tells its cached tokens. Nothing else may use the server meanwhile.
"""

from __future__ import annotations

import asyncio
import secrets

import aiohttp
from yarl import URL

from agentx.content import Encoder, WordList
from agentx.core import Output, Piece, Prompt, Segment, Session, Turn
from agentx.errors import InvalidMeasurement
from agentx.replayer.bodies import Bodies
from agentx.replayer.client import Clock, exchange_with
from agentx.replayer.exchange import Exchange, attempt_of
from agentx.replayer.moves import Key, Send
from agentx.replayer.wires import Wire

TOKENS, PAGES = 256, 4  # P is as long as the longer of so many tokens and so many pages
WAIT = 10  # s that a server may take to become idle before a flush
FLUSH = aiohttp.ClientTimeout(total=WAIT + 20)


async def prove_cold(
    session: aiohttp.ClientSession, base: str, wire: Wire, words: WordList, page: int, clock: Clock
) -> str:
    """Prove it, and leave the cache empty. Returns what was seen. Raises InvalidMeasurement where the proof fails."""
    send, bodies = (
        _prompt(max(TOKENS, PAGES * page)),
        Bodies(Encoder(words), wire, policy="run", salt=secrets.token_hex()),
    )
    body, url = bodies.body(send), URL(base + wire.path)
    seen: list[int] = []
    for _ in range(2):
        seen.append(await _cached(session, url, body, send, wire, clock))
    told = f"a prompt of {send.session.turns[0].isl} tokens, sent twice, met {seen[0]} and {seen[1]} cached tokens"
    if seen[0] + page > seen[1]:
        raise InvalidMeasurement(f"the cache cannot be seen: {told}: the second should have hit (a disabled cache?)")
    await _flush(session, base)
    seen.append(await _cached(session, url, body, send, wire, clock))
    told += f", and {seen[2]} after a flush"
    if seen[2]:
        raise InvalidMeasurement(f"the cache cannot be emptied: {told} (a storage tier, or another client?)")
    await _flush(session, base)
    return f"proved cold: {told}; then flushed again"


def _prompt(tokens: int) -> Send:
    turn = Turn(0, 0, Prompt((Piece(0, 0, tokens),)), tokens, Output(1))
    return Send(Key(0, 0), Session("cold", (turn,), segments={0: Segment(0, "user", tokens)}), 0, 0, 0.0, 0.0)


async def _cached(session: aiohttp.ClientSession, url: URL, body: bytes, send: Send, wire: Wire, clock: Clock) -> int:
    exchange = Exchange(heard=clock(), cumulative=wire.cumulative)
    await exchange_with(session, url, body, {}, exchange, clock)
    attempt, _ = attempt_of(send, exchange, wire)
    if attempt.failure is not None:
        raise InvalidMeasurement(
            f"not proved cold: a prompt failed by {attempt.failure.kind}: {attempt.failure.message}"
        )
    if attempt.cached is None or attempt.cached.total is None:
        raise InvalidMeasurement("not proved cold: replies tell no cached tokens (SGLang: --enable-cache-report)")
    return attempt.cached.total


async def _flush(session: aiohttp.ClientSession, base: str) -> None:
    url = f"{base}/flush_cache"
    try:
        async with session.post(url, params={"timeout": str(WAIT)}, timeout=FLUSH) as response:
            text = (await response.text(errors="replace")).strip()
            if response.status != 200:
                raise InvalidMeasurement(f"not proved cold: {url} answers {response.status}: {text[:200]}")
    except (aiohttp.ClientError, asyncio.TimeoutError) as error:
        raise InvalidMeasurement(f"not proved cold: {url} does not answer: {error or type(error).__name__}") from None
