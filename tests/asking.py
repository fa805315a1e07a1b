"""How the tests ask a running server: a body, or a stream of events."""

from __future__ import annotations

from typing import Any

import aiohttp

from agentx.engine.settings import LAPTOP
from agentx.wire.sse import SseEvent, SseParser

FAST = LAPTOP.model_copy(update={"request": 0.0, "prefill_token": 1e-8, "decode_step": 2e-4, "decode_request": 0.0})
SLOW = FAST.model_copy(update={"decode_step": 0.02})
CHAT, COMPLETIONS, MESSAGES, RESPONSES = "/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses"


async def post(client: aiohttp.ClientSession, url: str, body: object) -> tuple[int, Any]:
    """Status and JSON of a reply."""
    async with client.post(url, json=body) as response:
        return response.status, await response.json()


async def stream(client: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> tuple[int, list[SseEvent]]:
    """Status and events of a stream that ends properly."""
    parser, events = SseParser(), []
    async with client.post(url, json={**body, "stream": True}) as response:
        async for data, _ in response.content.iter_chunks():
            events += parser.feed(data)
        assert not parser.close()
        return response.status, events
