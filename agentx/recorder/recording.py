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
from agentx.recorder.proxy import check_place, serve
from agentx.recorder.scribe import Scribe
from agentx.recorder.segments import Durability


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
    check_place(wanted.host, wanted.port)
    with recording(wanted.folder, {**about, "started": time.time_ns()}, wanted.key_file) as capture:
        copies = Copies(wanted.queue_bytes)
        scribe = Scribe(copies, capture, wanted.durability, wanted.profile.identity.names, warn)
        scribe.start()
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
            counters = await asyncio.to_thread(closed, scribe, copies)
            try:
                capture.note_run({"counters": counters, "ended": time.time_ns(), "closed": True})
            except OSError as error:
                warn(f"agentx record: the manifest cannot be written: {error.strerror or error}")
        return counters


def closed(scribe: Scribe, copies: Copies) -> dict[str, Any]:
    """Stop the writer and recount the books: every exchange is recorded, lost to the disk, or was dropped.

    What only a writer that died could tell is None.
    """
    written, traffic = scribe.stop(), copies.tally
    counters: dict[str, Any] = {
        "exchanges": traffic.exchanges,
        "calls": traffic.calls,
        "answered": traffic.answered,
        "ends": {cause: traffic.ends[cause] for cause in CAUSES if traffic.ends[cause]},
        "request_bytes": traffic.request_bytes,
        "response_bytes": traffic.response_bytes,
        "dropped_bytes": traffic.dropped_bytes,
    }
    names = ("recorded", "incomplete", "lost_frames", "failures", "struck", "bytes")
    counters |= {name: getattr(written, name) if written is not None else None for name in names}
    counters["not_recorded"] = None if written is None else traffic.exchanges - written.recorded
    return counters


def summary(counters: dict[str, Any]) -> list[str]:
    """The counters as lines for a terminal; losses are named even where the rest is well."""
    ends = ", ".join(f"{count:,} {cause.replace('_', ' ')}" for cause, count in counters["ends"].items())
    shown = {name: "unknown" if value is None else f"{value:,}" for name, value in counters.items() if name != "ends"}
    lines = [
        f"exchanges   {shown['exchanges']}{f' ({ends})' if ends else ''}",
        f"calls       {shown['calls']} to a model, {shown['answered']} answered",
        f"recorded    {shown['recorded']}, of which {shown['incomplete']} with something missing",
        f"bodies      {shown['request_bytes']} bytes up, {shown['response_bytes']} bytes down",
        f"capture     {shown['bytes']} bytes",
    ]
    if counters["not_recorded"] != 0 or counters["dropped_bytes"] or counters["failures"] != 0:
        lines.append(
            f"LOST        {shown['not_recorded']} exchanges not recorded, {shown['dropped_bytes']} bytes dropped, "
            f"{shown['lost_frames']} frames lost in {shown['failures']} failed writes"
        )
    return lines


def what_next(counters: dict[str, Any], wanted: Recording) -> str:
    """What to do with the capture; or, where it holds no answer of a model in this run, why that may be."""
    if not counters["exchanges"]:
        names = " or ".join(wanted.profile.environment)
        return f"nothing came through: is {names} set where the client runs?" if names else "nothing came through"
    if not counters["calls"]:
        return f"no model call among them: no path ended in {', '.join(wanted.profile.paths)}"
    if not counters["answered"]:
        return f"no call was answered: are upstream and base URL right, with and without /v1? ({wanted.upstream})"
    key = f" --key {wanted.key_file}" if wanted.key_file is not None else ""
    folder = wanted.folder
    return f"next: agentx compile {folder} -o {folder.with_name(folder.name + '.trace')}{key}"
