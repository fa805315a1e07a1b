"""One recording: the proxy and the capture's writer together, and the counters of both at its end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentx.recorder.capture import recording
from agentx.recorder.copies import CAUSES, LIMIT, Copies
from agentx.recorder.profile import Profile
from agentx.recorder.proxy import serve
from agentx.recorder.segments import Durability, Segments
from agentx.recorder.writer import Writer


@dataclass(frozen=True, slots=True)
class Recording:
    """What is asked of one recording. `name` is the profile's, `upstream` overrides its own."""

    name: str
    profile: Profile
    upstream: str
    folder: Path
    host: str = "127.0.0.1"
    port: int = 0
    key_file: Path | None = None
    durability: Durability = "second"
    queue_bytes: int = LIMIT


async def record(
    wanted: Recording, *, ready: Callable[[str], None], stop: asyncio.Event, warn: Callable[[str], None]
) -> dict[str, Any]:
    """Record until `stop` is set. Returns the counters, which are in the manifest too.

    Raises BadInput for a folder or an address that cannot be used; `ready` is told the URL, `warn` what goes wrong.
    """
    about: dict[str, Any] = {
        "profile": wanted.name,
        "upstream": wanted.upstream,
        "durability": wanted.durability,
        "identity": wanted.profile.identity.model_dump(),
        "closed": False,
    }
    with recording(wanted.folder, {**about, "started": time.time_ns()}, wanted.key_file) as capture:
        copies = Copies(wanted.queue_bytes)
        segments = Segments(capture.folder, {"capture": capture.id, "run": capture.run}, wanted.durability)
        writer = Writer(copies, segments, capture.key, wanted.profile.identity.names, warn)
        writer.start()
        try:
            await serve(
                wanted.upstream,
                copies,
                wanted.profile.paths,
                host=wanted.host,
                port=wanted.port,
                ready=ready,
                stop=stop,
            )
        finally:
            counters = _closed(writer, copies)
            try:
                capture.note_run({"counters": counters, "ended": time.time_ns(), "closed": True})
            except OSError as error:
                warn(f"agentx record: the manifest cannot be written: {error.strerror or error}")
        return counters


def _closed(writer: Writer, copies: Copies) -> dict[str, Any]:
    """Stop the writer and recount the books: every exchange is recorded, lost to the disk, or was dropped."""
    writer.stop()
    traffic, written = copies.tally, writer.tally
    return {
        "exchanges": traffic.exchanges,
        "ends": {cause: traffic.ends[cause] for cause in CAUSES if traffic.ends[cause]},
        "request_bytes": traffic.request_bytes,
        "response_bytes": traffic.response_bytes,
        "recorded": written.recorded,
        "incomplete": written.incomplete,
        "not_recorded": traffic.exchanges - written.recorded,
        "dropped_bytes": traffic.dropped_bytes,
        "lost_frames": written.lost_frames,
        "failed_writes": written.failures,
        "credentials_struck": written.struck,
        "capture_bytes": written.bytes,
    }


def summary(counters: dict[str, Any]) -> list[str]:
    """The counters as lines for a terminal; losses are named even where the rest is well."""
    ends = ", ".join(f"{count:,} {cause.replace('_', ' ')}" for cause, count in counters["ends"].items())
    lines = [
        f"exchanges   {counters['exchanges']:,}{f' ({ends})' if ends else ''}",
        f"recorded    {counters['recorded']:,}, of which {counters['incomplete']:,} with something missing",
        f"bodies      {counters['request_bytes']:,} bytes up, {counters['response_bytes']:,} bytes down",
        f"capture     {counters['capture_bytes']:,} bytes",
    ]
    if counters["not_recorded"] or counters["dropped_bytes"] or counters["failed_writes"]:
        lines.append(
            f"LOST        {counters['not_recorded']:,} exchanges not recorded, {counters['dropped_bytes']:,} bytes "
            f"dropped, {counters['lost_frames']:,} frames lost in {counters['failed_writes']:,} failed writes"
        )
    return lines
