"""What is recorded beside a run, in threads of their own: a server's KV events, the power and memory of this machine.

Nothing of it can hold the run up or end it: what cannot be had is said in a note. The GPUs are looked at where the
server is on this machine; those of another one are not to be seen from here, and the embedded engine has none.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from agentx.replayer.kv_recorder import KvRecorder
from agentx.replayer.targets import Endpoint
from agentx.replayer.telemetry_recorder import TelemetryRecorder


@contextlib.asynccontextmanager
async def recorded_beside(
    endpoint: Endpoint, folder: Path, clock: Callable[[], float], note: Callable[[str], None], *, embedded: bool
) -> AsyncIterator[None]:
    """Record for as long as the block goes on; `note` hears what is to be said of it."""
    recorders: list[KvRecorder | TelemetryRecorder] = []
    if endpoint.kv_events:
        recorders.append(KvRecorder(endpoint.kv_events, folder, clock))
    recorders.append(TelemetryRecorder(folder, clock, gpus=not embedded and any(map(is_here, endpoint.bases))))
    for recorder in recorders:
        await asyncio.to_thread(recorder.start)
    try:
        yield
    finally:
        for recorder in recorders:
            for each in await asyncio.to_thread(recorder.stop):
                note(each)


def is_here(url: str) -> bool:
    """Whether an address is one of this machine alone."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
