"""Codex's rollout-trace bundles (`CODEX_ROLLOUT_TRACE_ROOT`): exact requests, one per attempt, with tools and agents.

`trace.jsonl` holds events, `payloads/` what they name. An attempt is from `inference_started` to its one terminal
event; a tool ran between the two runtime events of its call, and waited for leave before the first of them. A request
that goes on from a response of the bundle is resolved from it; one that goes on from an untraced response brings the
prefix along. Requests that compact a context are calls too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from agentx.errors import BadInput
from agentx.recorder.calls import ModelCall
from agentx.recorder.imports.books import Fidelity
from agentx.recorder.imports.bundles import named_bytes
from agentx.recorder.imports.instants import listing, mapping, of_number, text
from agentx.recorder.imports.logged import LoggedFormat, Reading, parsed
from agentx.recorder.pauses import Interval, ToolTime
from agentx.recorder.replies import Reply, reply_of, usage_of

Json = dict[str, Any]
_TERMINAL = {"completed": "done", "failed": "upstream_abort", "cancelled": "client_abort"}
MAX_EVENTS = 5_000_000


@dataclass(slots=True)
class Bundle:
    """The events of one bundle, by what they are about."""

    folder: Path
    root: str | None = None
    rollout: str | None = None
    started: list[tuple[int, Json]] = field(default_factory=list)  # milliseconds, payload
    ended: dict[str, tuple[int, str, Json]] = field(default_factory=dict)  # the call's id -> (ms, how, payload)
    paths: dict[str, str] = field(default_factory=dict)  # thread -> its agent path
    parents: dict[str, str] = field(default_factory=dict)
    tools: dict[str, dict[str, Any]] = field(default_factory=lambda: defaultdict(dict))


def read(path: Path, reading: Reading) -> Iterator[ModelCall]:
    """The calls of a bundle, or of its trace.jsonl."""
    events = path / "trace.jsonl" if path.is_dir() else path
    bundle = Bundle(events.parent)
    for _, line in reading.rows(events):
        if reading.books.rows.read > MAX_EVENTS:
            raise BadInput(f"more than {MAX_EVENTS:,} events", file=events)
        _event(bundle, line, reading)
    _tool_times(bundle, reading)
    for at, payload in bundle.started:
        call = _call(bundle, at, payload, reading)
        if isinstance(call, str):
            reading.books.rows.drop(call)
        else:
            yield call
    reading.books.rows.drop("end of a request whose start is not there", len(bundle.ended))


def _event(bundle: Bundle, line: Json, reading: Reading) -> None:
    payload, at = mapping(line.get("payload")), line.get("wall_time_unix_ms")
    kind = text(payload, "type") or ""
    rows = reading.books.rows
    bundle.rollout = bundle.rollout or text(line, "rollout_id")
    if type(at) is not int or of_number(at, 0.001) is None:
        rows.drop("event without a time")
        return
    request, _, what = kind.rpartition("_")
    if request in ("inference", "compaction_request") and what == "started":
        bundle.started.append((at, payload))
        return
    if request in ("inference", "compaction_request") and what in _TERMINAL:
        id = text(payload, "inference_call_id", "compaction_request_id")
        if id is not None and id not in bundle.ended:
            bundle.ended[id] = (at, what, payload)
            return
    if kind.startswith("tool_call_") and (id := text(payload, "tool_call_id")):
        bundle.tools[id].setdefault(kind.removeprefix("tool_call_"), at)
        if visible := text(payload, "model_visible_call_id"):
            bundle.tools[id]["call"] = visible
        rows.merged += 1
        return
    rows.drop(_about_threads(bundle, kind, payload))


def _about_threads(bundle: Bundle, kind: str, payload: Json) -> str:
    thread = text(payload, "thread_id", "child_thread_id")
    if kind == "rollout_started":
        bundle.root = text(payload, "root_thread_id")
    elif kind == "thread_started" and thread:
        bundle.paths[thread] = text(payload, "agent_path") or ""
    elif kind == "agent_result_observed" and thread and (parent := text(payload, "parent_thread_id")):
        bundle.parents[thread] = parent
    else:
        return "event that is about no model call"
    return "event about threads"


def _tool_times(bundle: Bundle, reading: Reading) -> None:
    for times in bundle.tools.values():
        call, begun, ended = times.get("call"), times.get("runtime_started"), times.get("runtime_ended")
        if call is None:
            continue
        ran = (ended - begun) / 1000 if begun is not None and ended is not None and ended >= begun else None
        asked = times.get("started")
        waited = (begun - asked) / 1000 if begun is not None and asked is not None and begun >= asked else None
        reading.tool_times[call] = ToolTime(ran, waited, _interval(begun, ended), _interval(asked, begun))


def _interval(begin: int | None, end: int | None) -> tuple[Interval, ...]:
    """A stretch between two milliseconds; none where one of them is not told."""
    if begin is None or end is None or end < begin:
        return ()
    return ((begin * 1_000_000, end * 1_000_000),)


def _call(bundle: Bundle, at: int, payload: Json, reading: Reading) -> ModelCall | str:
    id = text(payload, "inference_call_id", "compaction_request_id")
    ended = bundle.ended.pop(id, None) if id is not None else None
    reading.books.rows.merged += ended is not None
    body = _payload(bundle, payload.get("request_payload"))
    if body is None:
        return "request whose payload is not in the bundle"
    request = reading.request("responses", _whole(bundle, body, payload))
    if isinstance(request, str):
        return request
    if not request.model:
        request = replace(request, model=text(payload, "model") or "")
    thread = text(payload, "thread_id")
    child = thread is not None and bundle.root is not None and thread != bundle.root
    compact = "compaction_request_id" in payload
    ids = (
        ("session-id", bundle.rollout or bundle.root),
        ("thread-id", thread if child else None),
        ("x-codex-parent-thread-id", _parent(bundle, thread) if child else None),
        ("x-codex-inference-call-id", id),
    )
    how = _TERMINAL[ended[1]] if ended is not None else "recorder_stopped"
    end = of_number(ended[0], 0.001) if ended is not None else None
    reply = _reply(bundle, ended)
    kind = "compact" if compact else _role(bundle, thread)
    return reading.call(of_number(at, 0.001), end, "responses", request, reply, ids, kind=kind, cause=how)


def _role(bundle: Bundle, thread: str | None) -> str | None:
    path = bundle.paths.get(thread or "", "")
    return path.rpartition("/")[2] or None


def _parent(bundle: Bundle, thread: str | None) -> str | None:
    """The thread that started another one: who got its result, else the one whose path its own goes on from."""
    if thread is None or thread in bundle.parents:
        return _unless_root(bundle, bundle.parents.get(thread or ""))
    path = bundle.paths.get(thread, "")
    outer = [(len(p), t) for t, p in bundle.paths.items() if t != thread and p and path.startswith(p + "/")]
    return _unless_root(bundle, max(outer)[1]) if outer else None


def _unless_root(bundle: Bundle, thread: str | None) -> str | None:
    return thread if thread != bundle.root else None


def _whole(bundle: Bundle, body: Json, payload: Json) -> Json:
    """A request with what its input mode says: whole, going on from a response, or from a prefix that is beside."""
    mode = mapping(payload.get("request_input_mode"))
    kind = mode.get("type")
    if kind == "full_snapshot":
        return {**body, "previous_response_id": None}
    prefix = _payload(bundle, mode.get("prefix_payload")) if kind == "incremental_with_untraced_prefix" else None
    if prefix is not None:
        before = listing(prefix.get("input"))
        return {**body, "input": [*before, *listing(body.get("input"))], "previous_response_id": None}
    return {**body, "previous_response_id": text(mode, "previous_response_id") or body.get("previous_response_id")}


def _payload(bundle: Bundle, reference: Any) -> Json | None:
    data = named_bytes(bundle.folder, mapping(reference).get("path"))
    value = parsed(data) if data is not None else None
    return value if isinstance(value, dict) else None


def _reply(bundle: Bundle, ended: tuple[int, str, Json] | None) -> Reply:
    if ended is None:
        return Reply(False, error="the bundle ends before it")
    _, how, payload = ended
    response = _payload(bundle, payload.get("response_payload") or payload.get("partial_response_payload"))
    if response is None:
        return Reply(False, error="its payload is not in the bundle" if how == "completed" else f"request {how}")
    told = mapping(response.get("token_usage") or response.get("usage"))
    items = response.get("output_items") if "output_items" in response else response.get("output")
    usage = {
        **told,
        "input_tokens_details": {"cached_tokens": told.get("cached_input_tokens")},
        "output_tokens_details": {"reasoning_tokens": told.get("reasoning_output_tokens")},
    }
    id = text(payload, "response_id") or text(response, "response_id", "id")
    value = {"id": id, "output": [mapping(item) for item in listing(items)], "status": "completed"}
    return replace(reply_of("responses", value), usage=usage_of("responses", usage), whole=how == "completed")


def find(folder: Path) -> list[Path]:
    """The bundles at or below a folder."""
    found = sorted(path.parent for path in folder.rglob("trace.jsonl"))
    if not found:
        raise BadInput("the folder holds no trace.jsonl of a bundle", file=folder)
    return found


def make_format() -> LoggedFormat:
    """What `agentx import codex-trace` reads."""
    return LoggedFormat(
        name="codex-trace",
        row="event",
        read=read,
        fidelity=Fidelity("exact", "start-end", "header", "server", "split"),
        unknowable=("when the first token came: a bundle has no deltas", "what a human did between two tasks"),
        find=find,
    )
