"""What is recorded beside a run, in threads of their own: a server's KV events, the power and memory of this machine.

Nothing of it can hold the run up or end it: what cannot be had is said in a note.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from agentx.replayer.kv_recorder import KvRecorder
from agentx.replayer.targets import Endpoint


@contextlib.asynccontextmanager
async def recorded_beside(
    endpoint: Endpoint, folder: Path, clock: Callable[[], float], note: Callable[[str], None]
) -> AsyncIterator[None]:
    """Record for as long as the block goes on; `note` hears what is to be said of it."""
    if not endpoint.kv_events:
        yield
        return
    recorder = KvRecorder(endpoint.kv_events, folder, clock)
    await asyncio.to_thread(recorder.start)
    try:
        yield
    finally:
        for each in await asyncio.to_thread(recorder.stop):
            note(each)
