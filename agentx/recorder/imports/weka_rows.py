"""Weka sessions as they stand in a file: reading and validation, no interpretation.

One JSON object is a session (kv-cache-tester, SemiAnalysis cc-traces): `id, block_size, hash_id_scope, tool_tokens,
system_tokens, requests`. A request has `t` seconds, `type` n or s (streamed), `model, in, out, hash_ids` and
perhaps `input_types, output_types, stop, api_time, ttft`; an entry of type subagent has `t, agent_id,
subagent_type, duration_ms` and `requests` of its own. A key that is not known is counted and left out.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentx.errors import BadInput
from agentx.recorder.imports.books import Books
from agentx.recorder.imports.source import block_ids, lines, looks_like, parse, parse_file, texts
from agentx.trace_bodies import Body, Invalid, integer, items, one_of, optional, seconds, string

MAX_BLOCK = 1 << 20
MAX_TOKENS = 1 << 40
_SESSION_KEYS = frozenset({"id", "models", "block_size", "hash_id_scope", "tool_tokens", "system_tokens", "requests"})
_REQUEST_KEYS = frozenset({"t", "type", "model", "in", "out", "hash_ids", "input_types", "output_types", "stop"})
_TIME_KEYS = frozenset({"api_time", "think_time", "ttft"})  # think_time is the gap again, rounded
_AGENT_KEYS = frozenset({"t", "type", "agent_id", "subagent_type", "duration_ms", "status", "requests", "models"})
_SUM_KEYS = frozenset({"totals", "total_tokens", "tool_use_count"})  # sums over the requests


@dataclass(frozen=True, slots=True)
class Request:
    """One model call. `t` and `api_time`, `ttft` are seconds; None where the file does not tell."""

    t: float
    isl: int
    out: int
    ids: array[int]
    model: str | None = None
    stop: str | None = None
    input_types: tuple[str, ...] = ()
    api_time: float | None = None
    ttft: float | None = None
    streamed: bool = False

    @property
    def key(self) -> tuple[float, int, int, bytes]:
        """Equal for exact duplicates."""
        return self.t, self.isl, self.out, self.ids.tobytes()


@dataclass(frozen=True, slots=True)
class Agent:
    """A subagent: `t` is its start or its end, `duration` seconds or None; `before` requests stand before it.

    `total` is what the server's usage of its last call sums up to, where its client told it.
    """

    t: float
    before: int
    requests: tuple[Request, ...]
    name: str | None = None
    type: str | None = None
    duration: float | None = None
    status: str | None = None
    tools: int = 0
    system: int = 0
    total: int | None = None  # tokens, as its client counted them


@dataclass(frozen=True, slots=True)
class WekaSession:
    """One session: its own requests in file order, and its subagents. `tools`, `system`: leading tokens."""

    id: str
    block: int
    tools: int
    system: int
    requests: tuple[Request, ...]
    agents: tuple[Agent, ...]


def weka_files(paths: list[Path]) -> list[Path]:
    """The session files that the paths name: a folder stands for its *.json and *.jsonl files, sorted by name."""
    found: list[Path] = []
    for path in paths:
        if path.is_dir():
            inside = sorted(file for file in path.iterdir() if file.suffix in (".json", ".jsonl"))
            if not inside:
                raise BadInput("the folder holds no .json or .jsonl file", file=path)
            found += inside
        else:
            found.append(path)
    return found


def read_sessions(path: Path, books: Books, digest: Any) -> Iterator[WekaSession]:
    """The sessions of one file: a single object, or (for a name that ends in .jsonl) one a line.

    The file's bytes go through `digest`, a hashlib object. Raises BadInput, with the file and the place in it.
    """
    if path.suffix == ".jsonl":
        for line in lines(path, digest):
            yield _session(parse(line.data, path, line.number), path, line.number, books)
    else:
        yield _session(parse_file(path, digest), path, None, books)


def _session(value: Any, path: Path, line: int | None, books: Books) -> WekaSession:
    if not isinstance(value, dict) or "requests" not in value:
        raise BadInput(f"not a Weka session: this looks like {looks_like(value)}", file=path, line=line)
    try:
        return _checked(value, books)
    except Invalid as error:
        raise BadInput(str(error), file=path, line=line) from None


def _checked(body: Body, books: Books) -> WekaSession:
    if body.get("hash_id_scope", "local") != "local":
        raise Invalid(f"hash_id_scope: {body['hash_id_scope']!r:.40} is not 'local', the only one this format has")
    _count_unknown(body, _SESSION_KEYS | _SUM_KEYS, books)
    requests: list[Request] = []
    agents: list[Agent] = []
    for number, item in enumerate(items(body, "requests"), start=1):
        place = f"request {number}"
        if isinstance(item, dict) and item.get("type") == "subagent":
            agents.append(_agent(item, place, len(requests), books))
        else:
            requests.append(_request(item, place, books))
    return WekaSession(
        id=string(body, "id"),
        block=integer(body, "block_size", low=1, high=MAX_BLOCK),
        tools=integer(body, "tool_tokens", high=MAX_TOKENS, default=0),
        system=integer(body, "system_tokens", high=MAX_TOKENS, default=0),
        requests=tuple(requests),
        agents=tuple(agents),
    )


def _agent(body: Body, place: str, before: int, books: Books) -> Agent:
    _count_unknown(body, _AGENT_KEYS | _SUM_KEYS | {"tool_tokens", "system_tokens"}, books)
    try:
        inner = [_request(item, f"request {number}", books) for number, item in enumerate(items(body, "requests"), 1)]
        duration = _span(body, "duration_ms")
        return Agent(
            t=_moment(body),
            before=before,
            requests=tuple(inner),
            name=optional(string, body, "agent_id"),
            type=optional(string, body, "subagent_type"),
            duration=None if duration is None else duration / 1000,
            status=optional(string, body, "status"),
            tools=integer(body, "tool_tokens", high=MAX_TOKENS, default=0),
            system=integer(body, "system_tokens", high=MAX_TOKENS, default=0),
            total=optional(integer, body, "total_tokens", high=MAX_TOKENS),
        )
    except Invalid as error:
        raise Invalid(f"{place} (subagent): {error}") from None


def _request(body: Any, place: str, books: Books) -> Request:
    if not isinstance(body, dict):
        raise Invalid(f"{place}: {body!r:.40} is not an object")
    _count_unknown(body, _REQUEST_KEYS | _TIME_KEYS, books)
    try:
        plain = one_of(body, "type", ("n", "s")) == "n"
        books.note("request that was not streamed (type n): its pause may hold a streamed twin that was lost", plain)
        return Request(
            t=_moment(body),
            isl=integer(body, "in", high=MAX_TOKENS),
            out=integer(body, "out", high=MAX_TOKENS),
            ids=block_ids(body),
            model=optional(string, body, "model"),
            stop=optional(string, body, "stop"),
            input_types=texts(body, "input_types"),
            api_time=_span(body, "api_time"),
            ttft=_span(body, "ttft"),
            streamed=not plain,
        )
    except Invalid as error:
        raise Invalid(f"{place}: {error}") from None


def _moment(body: Body) -> float:
    at = seconds(body, "t")
    if at is None:
        raise Invalid("the field 't' is missing")
    return at


def _span(body: Body, key: str) -> float | None:
    value = seconds(body, key)
    if value is not None and value < 0:
        raise Invalid(f"{key}: {value} is below 0")
    return value


def _count_unknown(body: Body, known: frozenset[str], books: Books) -> None:
    for key in body.keys() - known:
        books.note(f"key {key!r:.40} is not part of the format: left out")
