"""A row of AIPerf's record export (`profile_export.jsonl`), one request: checked, then an attempt of a run.

Moments are whole nanoseconds of the wall clock, lengths of time are milliseconds from the request's start, which AIPerf
takes before it opens the connection and sends the body. A metric that a row lacks is unknown. Gaps between chunks are
in the row, tokens of a chunk are not. What was asked for is told only through the difference to it:
`osl_mismatch_diff_pct` = (came - asked) / asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from agentx.chunks import Chunks
from agentx.core import Attempt, Cached, Chunk, Failure
from agentx.errors import BadInput
from agentx.frames import Tear
from agentx.recorder.imports.instants import count, mapping, number, of_number
from agentx.recorder.imports.instants import text as told_text
from agentx.recorder.imports.source import lines, parse
from agentx.replayer.exchange import MAX_MESSAGE, told_failure
from agentx.reporter.findings import CUT
from agentx.trace_bodies import Invalid
from agentx.wire.reply import ServerError

PHASES = {"profiling": "measure", "warmup": "warmup"}
UNTOLD = "untold"  # in `Attempt.extra`: fields that must hold a number and of which nothing is known
LONGEST = 1e15  # ms that a time may have: what is longer is none
_CANCELLED = 499  # the status that AIPerf gives to a request that it cancelled itself
_KINDS = (  # parts of the names of exceptions, as AIPerf tells them, and the kind of failure that they are here
    ("Cancel", CUT),
    ("Timeout", "stall"),
    ("ConnectorError", "refused"),
    ("ConnectionRefused", "refused"),
    ("Disconnected", "closed"),
    ("ConnectionReset", "closed"),
    ("ClientPayload", "closed"),
    ("ClientOSError", "closed"),
    ("SSE", "stream"),
)


@dataclass(frozen=True, slots=True)
class Row:
    """One request. `due`, `start`, `ack`, `end` in ns since the epoch; `ttft`, `latency` in seconds.

    `length`: of the prompt by the client's count. `own_counts`: the lengths are of the client's tokenizer, since the
    server told no usage.
    """

    session: str
    played: str
    root: str
    turn: int | None
    depth: int
    phase: str
    worker: str
    rid: str | None
    recorded: bool
    due: int | None
    start: int
    ack: int | None
    end: int
    ttft: float | None
    latency: float | None
    chunks: Sequence[Chunk]
    length: int | None
    prompt: int | None
    completion: int | None
    own_counts: bool
    asked: int | None
    cached: int | None
    status: int | None
    failure: Failure | None


def read_rows(path: Path) -> tuple[list[Row], Tear | None]:
    """All rows, and where the file ends in the middle of one. Raises BadInput, with the line, for what is no row."""
    rows: list[Row] = []
    for line in lines(path):
        try:
            value = parse(line.data, path, line.number, blocks=False)
        except BadInput:
            if not rows or line.data.endswith(b"\n"):
                raise
            return rows, Tear(line.offset, len(line.data), "its last row is not whole")
        try:
            rows.append(_row(value))
        except Invalid as error:
            raise BadInput(str(error), file=path, line=line.number) from None
    if not rows:
        raise BadInput("holds no request", file=path)
    return rows, None


def _row(value: Any) -> Row:
    told = value.get("metadata") if isinstance(value, dict) else None
    if not isinstance(told, dict) or not isinstance(metrics := value.get("metrics", {}), dict):
        raise Invalid("this is no row of AIPerf's record export: it has no metadata and metrics")
    start, end = _moment(told, "request_start_ns"), _moment(told, "request_end_ns")
    if start is None or end is None:
        raise Invalid("metadata has no request_start_ns and request_end_ns")
    if end < start:
        raise Invalid(f"request_end_ns {end} is before request_start_ns {start}")
    session = text(told, "conversation_id", "x_correlation_id") or f"session-{told.get('session_num')}"
    played = text(told, "x_correlation_id") or session
    failure, status = _failure(told, value.get("error"))
    server = "usage_prompt_tokens" in metrics or "usage_completion_tokens" in metrics
    prompt, own_prompt = _tokens(metrics, "usage_prompt_tokens"), _tokens(metrics, "input_sequence_length")
    came, own_came = _tokens(metrics, "usage_completion_tokens"), _tokens(metrics, "output_sequence_length")
    phase = text(told, "benchmark_phase", "phase_kind") or "profiling"
    ttft, latency = _seconds(metrics, "time_to_first_token"), _seconds(metrics, "request_latency")
    completion = came if server else own_came
    return Row(
        session=session,
        played=played,
        root=text(told, "root_correlation_id") or played,
        turn=count(told.get("turn_index")),
        depth=count(told.get("agent_depth")) or 0,
        phase=PHASES.get(phase, phase),
        worker=text(told, "worker_id") or "",
        rid=text(told, "x_request_id"),
        recorded=(text(told, "source_kind") or "").startswith("weka"),
        due=_moment(told, "credit_issued_ns"),
        start=start,
        ack=_moment(told, "request_ack_ns"),
        end=end,
        ttft=ttft,
        latency=latency,
        chunks=_chunks(_gaps(metrics), ttft, latency, completion),
        length=own_prompt if own_prompt is not None else _tokens(metrics, "error_isl"),
        prompt=prompt if server else own_prompt,
        completion=completion,
        own_counts=not server and own_came is not None,
        asked=_asked(metrics, own_came if own_came is not None else came),
        cached=_tokens(metrics, "usage_prompt_cache_read_tokens"),
        status=status,
        failure=failure,
    )


def text(value: Mapping[str, Any], *names: str) -> str | None:
    """The first of these keys that holds a text, with ? for what a terminal or a file cannot show."""
    found = told_text(value, *names)
    if found is None or found.isprintable():
        return found
    return "".join(each if each.isprintable() else " " if each.isspace() else "?" for each in found)


def _moment(told: Mapping[str, Any], name: str) -> int | None:
    value = told.get(name)
    if value is None:
        return None
    found = of_number(value, 1e-9)
    if found is None:
        raise Invalid(f"{name}: {value!r:.40} is not a moment in nanoseconds")
    return found


def _value(metrics: Mapping[str, Any], name: str, unit: str) -> Any:
    """The value of a metric; None where the row does not have it."""
    metric = mapping(metrics.get(name))
    if not metric or metric.get("value") is None:
        return None
    if metric.get("unit", unit) != unit:
        raise Invalid(f"{name} is in {metric['unit']!r:.20}, and {unit!r} was looked for")
    return metric["value"]


def _seconds(metrics: Mapping[str, Any], name: str) -> float | None:
    value = _value(metrics, name, "ms")
    return None if value is None else _milliseconds(value, name)


def _milliseconds(value: Any, name: str) -> float:
    found = number(value)
    if found is None:
        raise Invalid(f"{name}: {value!r:.40} is not a number of milliseconds")
    return found / 1000


def _gaps(metrics: Mapping[str, Any]) -> list[float]:
    """Milliseconds between chunks; empty where they are not told."""
    name = "inter_chunk_latency"
    value = _value(metrics, name, "ms")
    if value is None:
        return []
    if not isinstance(value, list):
        raise Invalid(f"{name}: {value!r:.40} is not a list of milliseconds")
    if not set(map(type, value)) <= {int, float} or (value and not 0 <= min(value) <= max(value) < LONGEST):
        for gap in value:
            _milliseconds(gap, name)  # names the first that is none
    return value


def _chunks(
    gaps: Sequence[float], ttft: float | None, latency: float | None, completion: int | None
) -> Sequence[Chunk]:
    """Their times, where the row tells them; the tokens of one only where there is no other."""
    if ttft is None:
        return ()
    if not gaps:
        return Chunks.of([Chunk(round(ttft * 1e6), completion)]) if latency == ttft else ()
    at = np.cumsum([ttft * 1000, *gaps])  # adds one after the other
    return Chunks.untold(np.rint(np.minimum(at * 1000, LONGEST * 1000)).astype(np.int64).tolist())


def _tokens(metrics: Mapping[str, Any], name: str) -> int | None:
    value = _value(metrics, name, "tokens")
    if value is None:
        return None
    found = count(int(value) if isinstance(value, float) and value.is_integer() else value)
    if found is None:
        raise Invalid(f"{name}: {value!r:.40} is not a number of tokens")
    return found


def _asked(metrics: Mapping[str, Any], came: int | None) -> int | None:
    """The reply's length that was asked for."""
    percent = _value(metrics, "osl_mismatch_diff_pct", "%")
    if not came or type(percent) not in (int, float) or not -100 < percent < 1e9:
        return None
    ratio: float = 1 + percent / 100
    return round(came / ratio)


def _failure(told: Mapping[str, Any], error: Any) -> tuple[Failure | None, int | None]:
    """(why it failed, the HTTP status where that tells)."""
    said = mapping(error)
    name, message = text(said, "type") or "", text(said, "message") or ""
    code = said.get("code")
    status = code if type(code) is int and 400 <= code < 600 and code != _CANCELLED else None
    words = (f"{name}: {message}" if name and message else name or message)[:MAX_MESSAGE]
    if told.get("was_cancelled") is True or code == _CANCELLED:
        return Failure(CUT, words or "cancelled by the client"), None
    if told.get("context_overflow_skip") is True:
        return Failure("overflow", words), status
    if error is None:
        return None, None
    if status is not None:
        return told_failure(ServerError(None, words), "http"), status
    return Failure(next((kind for part, kind in _KINDS if part in name), "protocol"), words), None


def second_zero(rows: Iterable[Row]) -> int:
    """Of the run's clock, in ns since the epoch: the first moment of all."""
    return min(row.start if row.due is None else min(row.due, row.start) for row in rows)


def attempts_of(rows: Iterable[Row], zero: int) -> Iterator[Attempt]:
    """In the order in which they ended. A conversation that is played again is another play of it; a lane is a tree of
    conversations."""
    ordered = sorted(rows, key=lambda row: row.start)
    plays: dict[str, dict[str, int]] = {}  # by conversation: which of its plays a correlation id is
    lanes: dict[str, int] = {}
    workers = {name: at for at, name in enumerate(sorted({row.worker for row in ordered}))}
    turns: dict[tuple[str, int], int] = {}
    tries: dict[tuple[str, int, int], int] = {}
    found = []
    for row in ordered:
        mine = plays.setdefault(row.session, {})
        play = mine.setdefault(row.played, len(mine))
        turn = turns.get((row.session, play), 0) if row.turn is None else row.turn
        turns[row.session, play] = turn + 1
        key = row.session, play, turn
        tries[key] = tries.get(key, -1) + 1
        lane = lanes.setdefault(row.root, len(lanes))
        found.append(_attempt(row, zero, play, turn, tries[key], lane, workers[row.worker]))
    return iter(sorted(found, key=lambda one: one.end or one.sent))


def _attempt(row: Row, zero: int, play: int, turn: int, attempt: int, lane: int, worker: int) -> Attempt:
    sent = (row.start - zero) / 1e9
    asked = row.asked if row.asked is not None else row.completion
    length = row.prompt if row.prompt is not None else row.length
    untold = [*(["isl"] if length is None else []), *(["osl"] if row.asked is None else [])]
    return Attempt(
        session=row.session,
        play=play,
        turn=turn,
        thread=0,
        lane=lane,
        worker=worker,
        attempt=attempt,
        phase=row.phase,
        due=sent if row.due is None else (row.due - zero) / 1e9,
        sent=sent,
        isl=length or 0,
        osl=asked or 0,
        first_byte=None if row.ack is None else (row.ack - zero) / 1e9,
        first=None if row.ttft is None else sent + row.ttft,
        last=None if row.latency is None else sent + row.latency,
        end=(row.end - zero) / 1e9,
        chunks=row.chunks,
        prompt_tokens=row.prompt,
        completion_tokens=row.completion,
        cached=None if row.cached is None else Cached(total=row.cached),
        status=row.status,
        failure=row.failure,
        rid=row.rid,
        extra={UNTOLD: untold} if untold else {},
    )
