"""Requests that are no part of a run: a prompt of fresh words, sent and read as a turn would be.

What proves a cache cold, warms a server up or examines it is asked this way. Two prompts of one `segment` begin alike.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import dataclass, field

import aiohttp
from yarl import URL

from agentx.content import Encoder, WordList
from agentx.core import Attempt, Output, Piece, Prompt, Segment, Session, Turn
from agentx.replayer.bodies import Bodies
from agentx.replayer.client import Clock, exchange_with
from agentx.replayer.exchange import Exchange, attempt_of
from agentx.replayer.moves import Key, Send
from agentx.replayer.wires import Wire

WAIT = 10  # s that a server may take to become idle before a flush
FLUSH = aiohttp.ClientTimeout(total=WAIT + 20)


@dataclass(slots=True)
class Asides:
    """Asks one server. Its words are its own: no run has them."""

    session: aiohttp.ClientSession
    base: str
    wire: Wire
    words: WordList
    clock: Clock
    bodies: Bodies = field(init=False)

    def __post_init__(self) -> None:
        self.bodies = Bodies(Encoder(self.words), self.wire, policy="run", salt=secrets.token_hex())

    async def ask(self, tokens: int, *, segment: int = 0, reply: int = 1) -> Attempt:
        """Send a prompt of so many tokens, and ask for so many; what became of it."""
        return (await self.exchange(tokens, segment=segment, reply=reply))[0]

    async def exchange(self, tokens: int, *, segment: int = 0, reply: int = 1) -> tuple[Attempt, Exchange]:
        """The same, with what came over the wire."""
        send = _prompt(tokens, segment, reply)
        exchange = Exchange(heard=self.clock(), cumulative=self.wire.cumulative)
        url = URL(self.base + self.wire.path)
        await exchange_with(self.session, url, self.bodies.body(send), {}, exchange, self.clock)
        return attempt_of(send, exchange, self.wire)[0], exchange

    async def flush(self) -> str | None:
        """Empty the cache, all tiers of it. Returns what went wrong."""
        url = f"{self.base}/flush_cache"
        try:
            async with self.session.post(url, params={"timeout": str(WAIT)}, timeout=FLUSH) as response:
                text = (await response.text(errors="replace")).strip()
                return None if response.status == 200 else f"{url} answers {response.status}: {text[:200]}"
        except (aiohttp.ClientError, asyncio.TimeoutError) as error:
            return f"{url} does not answer: {error or type(error).__name__}"


def _prompt(tokens: int, segment: int, reply: int) -> Send:
    turn = Turn(0, 0, Prompt((Piece(segment, 0, tokens),)), tokens, Output(reply))
    session = Session("aside", (turn,), segments={segment: Segment(segment, "user", tokens)})
    return Send(Key(0, 0), session, 0, 0, 0.0, 0.0)
