"""Dynamo's request and agent traces: lengths, times, and hashes of a prompt's blocks; tools that a harness reports.

A hash stands for a prompt up to the end of its block, so that equal hashes are equal prefixes. They are the server's
own, unkeyed, and could be tested against guesses: the trace has numbers in their place, given out as they come.
Trajectories are threads; lines are read plain or compressed (`.jsonl.gz`, whole members up to where one is torn).
"""

from __future__ import annotations

import gzip
import zlib
from array import array
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agentx.core import Gap, Observed, Output, Session, Thread, Tool, Turn
from agentx.errors import BadInput
from agentx.frames import open_for_reading
from agentx.recorder.imports.blocks import Weaver
from agentx.recorder.imports.books import Books, Fidelity
from agentx.recorder.imports.instants import count, listing, mapping, number, text
from agentx.recorder.imports.logged import parsed
from agentx.recorder.imports.running import Format
from agentx.recorder.imports.weaving import Link, Spun, spin
from agentx.recorder.names import Names
from agentx.trace_lines import MAX_LINE

Json = dict[str, Any]
MAX_UNPACKED = 16 << 30  # bytes of one compressed file
MAX_BLOCK = 1 << 20
BLOCK = 64  # tokens, where a file has no hashes


@dataclass(frozen=True, slots=True)
class Request:
    """One request. Times are milliseconds since the epoch."""

    trajectory: str
    isl: int
    out: int
    cached: int | None
    block: int
    hashes: tuple[int, ...]
    start: float | None
    end: float | None
    ttft: float | None
    model: str | None
    tools: tuple[str, ...]


@dataclass(slots=True)
class _Group:
    """A session as it is read."""

    requests: list[Request] = field(default_factory=list)
    parents: dict[str, str] = field(default_factory=dict)
    tools: dict[str, list[tuple[float | None, str, float | None]]] = field(default_factory=lambda: defaultdict(list))


@dataclass(slots=True)
class _Reader:
    """Numbers for hashes and names, across the files of one import."""

    numbers: dict[str, int] = field(default_factory=dict)
    names: Names = field(default_factory=Names)

    def read(self, path: Path, books: Books, digest: Any) -> Iterator[Session]:
        groups: dict[str, _Group] = defaultdict(_Group)
        for line in _lines(path, books, digest):
            books.rows.read += 1
            row = parsed(line)
            why = self._row(row, groups) if isinstance(row, dict) else "line that is no JSON object"
            if why is None:
                books.rows.used += 1
            else:
                books.rows.drop(why)
        made = 0
        for group in groups.values():
            if group.requests:
                made += 1
                yield self.session(f"s{made:04d}", group, books)
            else:
                books.notes["session of tools alone: left out"] += 1
        if not made:
            raise BadInput("0 model calls: no request_end with lengths", file=path)

    def _row(self, row: Json, groups: dict[str, _Group]) -> str | None:
        event = mapping(row["event"]) if isinstance(row.get("event"), dict) else row
        kind = text(event, "event_type") or text(row, "event")
        agent = mapping(event.get("agent_context"))
        session = text(agent, "session_id") or ""
        trajectory = text(agent, "trajectory_id") or ""
        if kind not in ("request_end", "tool_end", "tool_error"):
            return "event that is neither the end of a request nor of a tool"
        if kind != "request_end":
            tool = mapping(event.get("tool"))
            took, name = number(tool.get("duration_ms")), text(tool, "tool_class", "name") or "tool"
            ended = number(tool.get("ended_at_unix_ms", event.get("event_time_unix_ms")))
            groups[session].tools[trajectory].append((ended, self.names.tool(name), took))
            return None
        request = self._request(event, trajectory)
        if request is None:
            return "request without its length"
        group = groups[session] if session else groups[f"\0{len(groups)}"]
        group.requests.append(request)
        if parent := text(agent, "parent_trajectory_id"):
            group.parents[trajectory] = parent
        return None

    def _request(self, event: Json, trajectory: str) -> Request | None:
        told = mapping(event.get("request"))
        replay = mapping(told.get("replay") or event.get("replay"))
        isl = count(told.get("input_tokens", replay.get("input_length")))
        block = count(replay.get("trace_block_size", replay.get("block_size"))) or BLOCK
        if not isl or not 1 <= block <= MAX_BLOCK:
            return None
        hashes = [hash for hash in listing(replay.get("input_sequence_hashes")) if isinstance(hash, int | str)]
        numbers = tuple(self.numbers.setdefault(str(hash), len(self.numbers)) for hash in hashes[: -(-isl // block)])
        took, came = number(told.get("total_time_ms")), number(told.get("request_received_ms"))
        end = number(event.get("event_time_unix_ms"))
        start = came if came is not None else end - took if end is not None and took is not None else None
        if start is not None and took is not None:
            end = start + took
        calls = listing(mapping(told.get("finish_reason_metadata")).get("tool_calls"))
        return Request(
            trajectory, isl, count(told.get("output_tokens")) or 0, count(told.get("cached_tokens")), block, numbers,
            start, end, number(told.get("ttft_ms")), self.names.model(text(told, "model") or ""),
            tuple(self.names.tool(text(mapping(call), "name") or "tool") for call in calls),
        )  # fmt: skip

    def session(self, id: str, group: _Group, books: Books) -> Session:
        """The requests of one session as turns, trajectories as threads."""
        books.sessions.read += 1
        books.sessions.used += 1
        requests = _ordered(group.requests)
        block = requests[0].block
        books.note(
            "block size differs within a session: its hashes are left out", any(r.block != block for r in requests)
        )
        names = list(dict.fromkeys(request.trajectory for request in requests))
        main = next((name for name in names if group.parents.get(name) not in names), names[0])
        names = [main, *[name for name in names if name != main]]
        threads = tuple(_thread(number, name, names, group.parents) for number, name in enumerate(names))
        weaver, spun = Weaver(block), dict[int, Spun]()
        for name in names:
            places = [at for at, request in enumerate(requests) if request.trajectory == name]
            links = [_link(at, requests[at], block) for at in places]
            lengths = all(not link.ids for link in links)
            spun.update(zip(places, spin(weaver, links, (), books, by_length=lengths), strict=True))
        turns = [self._turn(at, requests, spun[at], threads[names.index(r.trajectory)], group)
                 for at, r in enumerate(requests)]  # fmt: skip
        return Session(id, tuple(turns), threads, weaver.segments)

    def _turn(self, at: int, requests: Sequence[Request], made: Spun, thread: Thread, group: _Group) -> Turn:
        request = requests[at]
        before = next((i for i in range(at - 1, -1, -1) if requests[i].trajectory == request.trajectory), None)
        parent = group.parents.get(request.trajectory)
        spawner = None
        if before is None and parent is not None:
            spawner = next((i for i in range(at - 1, -1, -1) if requests[i].trajectory == parent), None)
        waited = before if before is not None else spawner
        zero = next((r.start for r in requests if r.start is not None), None)
        tools = _tools(request, requests[before], group) if before is not None else ()
        kind: Any = "tool" if tools else "spawn" if spawner is not None else "unknown"
        start, end = _since(request.start, zero), _since(request.end, zero)
        return Turn(
            index=at,
            thread=thread.id,
            prompt=made.prompt,
            isl=request.isl,
            output=Output(request.out),
            after=() if waited is None else (waited,),
            gap=_gap(request, requests[waited] if waited is not None else None, kind, tools),
            tools=tools,
            model=request.model,
            reply=made.reply,
            event=made.event,
            observed=Observed(start, _seconds(request.ttft), end, request.cached),
        )


def _lines(path: Path, books: Books, digest: Any) -> Iterator[bytes]:
    with open_for_reading(path) as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        while chunk := file.read(1 << 20):
            digest.update(chunk)
        file.seek(0)
        source: Any = gzip.GzipFile(fileobj=file) if packed else file
        size = 0
        try:
            while line := source.readline(MAX_LINE + 1):
                size += len(line)
                if len(line) > MAX_LINE or size > MAX_UNPACKED:
                    raise BadInput("a line or the unpacked file is longer than the limit", file=path)
                if line.strip():
                    yield line
        except (EOFError, zlib.error, gzip.BadGzipFile) as error:
            books.find(f"a compressed file is torn: {type(error).__name__}")


def _ordered(requests: list[Request]) -> list[Request]:
    if any(request.start is None for request in requests):
        return requests
    return sorted(requests, key=lambda request: request.start or 0.0)


def _link(at: int, request: Request, block: int) -> Link:
    ids = array("Q", request.hashes) if request.block == block else array("Q")
    return Link(at, request.isl, request.out, ids)


def _thread(number: int, name: str, names: list[str], parents: Mapping[str, str]) -> Thread:
    parent = parents.get(name)
    if number == 0:
        return Thread(0)
    known = names.index(parent) if parent in names and names.index(parent) < number else 0
    return Thread(number, known, "subagent" if parent is not None else "side")


def _tools(request: Request, before: Request, group: _Group) -> tuple[Tool, ...]:
    """The tools that ended between two requests of a trajectory, else those that the earlier one called."""
    if before.end is not None and request.start is not None:
        found = [
            Tool(name, _seconds(took))
            for ended, name, took in group.tools[request.trajectory]
            if ended is not None and before.end <= ended <= request.start + 1
        ]
        if found:
            return tuple(found)
    return tuple(Tool(name) for name in before.tools)


def _gap(request: Request, before: Request | None, kind: Any, tools: Sequence[Tool]) -> Gap:
    if before is None:
        return Gap()
    if request.start is not None and before.end is not None:
        return Gap(kind, round(max(request.start - before.end, 0.0) / 1000, 6), "recorded")
    times = [tool.seconds for tool in tools if tool.seconds is not None]
    return Gap(kind, max(times, default=0.0), "inferred")


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else round(milliseconds / 1000, 6)


def _since(at: float | None, zero: float | None) -> float | None:
    return None if at is None or zero is None else max(0.0, round((at - zero) / 1000, 6))


def make_format() -> Format:
    """What `agentx import dynamo` reads."""
    return Format(
        name="dynamo",
        row="event",
        sessions=_Reader().read,
        unknowable=(
            "text and token ids: only lengths and the identity of blocks",
            "what the layers of a prompt are: all but replies is called user",
            "what was lost: the trace is best effort by its own words",
        ),
        endings=(".jsonl", ".gz"),
        identity="file",
        content="opaque",
        fidelity=Fidelity("lengths", "ttft", "header", "server", "split"),
    )
