"""A trace as Weka sessions: one JSON object each, block ids local to it, subagents as entries with their own requests.

Times are on the session's clock in both: a subagent's `t` is its start and its requests count from the session's
start, as in SemiAnalysis' files.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentx.core import Layer, Session, Thread
from agentx.recorder.exports.blocks import Numbering
from agentx.recorder.exports.threads import Call, Line, cut, lines
from agentx.recorder.imports.books import Books

BLOCK = 64
UNNAMED = "unknown"  # a model's or a subagent's type, where the trace does not tell; the format needs one
CANNOT_HOLD = (
    "text, and which messages a prompt has: only tools and system are told apart",
    "what sessions share: block ids are local to a session",
    "arrivals; tools' names and times; reasoning tokens apart from visible ones",
    "what a turn waits for: readers infer it from times; subagents of subagents are listed as the session's",
    "what prompts share inside a block of 64 tokens",
    "compactions, resets, aborts and failures are requests like others",
)


def document(session: Session, books: Books) -> dict[str, Any]:
    """A session as a Weka object."""
    numbering = Numbering(BLOCK, own=True)
    numbering.session(session)
    entries: list[tuple[float, int, dict[str, Any]]] = []
    models: set[str] = set()
    for line in lines(session, books):
        requests = _requests(session, line, numbering, books)
        models |= {request["model"] for request in requests}
        first = line.calls[0]
        if line.thread.kind == "subagent":
            entries.append((first.start, first.turn.index, _agent(session, line, requests, books)))
        else:
            books.note("side thread: listed among the session's own requests", line.thread.kind == "side")
            entries += [
                (call.start, call.turn.index, request) for call, request in zip(line.calls, requests, strict=True)
            ]
        books.rows.used += len(requests)
    tools, system = _lead(session, 0)
    return {
        "id": session.key,
        "models": sorted(models),
        "block_size": BLOCK,
        "hash_id_scope": "local",
        "tool_tokens": tools,
        "system_tokens": system,
        "requests": [entry for _, _, entry in sorted(entries, key=lambda each: each[:2])],
    }


def _agent(session: Session, line: Line, requests: list[dict[str, Any]], books: Books) -> dict[str, Any]:
    thread, last = line.thread, line.calls[-1]
    books.note("subagent of a subagent: listed as the session's", bool(thread.parent))
    tools, system = _lead(session, line.calls[0].turn.index)
    status = thread.extra.get("status")
    return {
        "t": line.calls[0].start,
        "type": "subagent",
        "agent_id": _agent_id(thread),
        "subagent_type": thread.type or UNNAMED,
        "duration_ms": round((last.start + (last.took or 0.0) - line.calls[0].start) * 1000),
        "status": status if isinstance(status, str) else "completed",
        "models": sorted({request["model"] for request in requests}),
        "tool_tokens": tools,
        "system_tokens": system,
        "requests": requests,
    }


def _agent_id(thread: Thread) -> str:
    given = thread.extra.get("agent")
    return (
        f"{given}-{thread.id}"
        if isinstance(given, str) and not given.endswith(f"-{thread.id}")
        else given or f"agent-{thread.id}"
    )


def _requests(session: Session, line: Line, numbering: Numbering, books: Books) -> list[dict[str, Any]]:
    found, ids = [], list[int]()
    for place, call in enumerate(line.calls):
        same = call.kept // BLOCK
        same = min(same, len(ids))
        ids = ids[:same] + numbering.ids(cut(call.runs, same * BLOCK), ids[same - 1] if same else -1, whole=True)
        following = line.calls[place + 1] if place + 1 < len(line.calls) else None
        found.append(_request(session, call, following, ids, books))
    return found


def _request(session: Session, call: Call, following: Call | None, ids: list[int], books: Books) -> dict[str, Any]:
    turn = call.turn
    books.note("call without a model: called unknown", turn.model is None)
    body: dict[str, Any] = {
        "t": call.start,
        "type": "n" if turn.observed is None or turn.observed.ttft is None else "s",
        "model": turn.model or UNNAMED,
        "in": turn.isl,
        "out": turn.output.tokens,
        "hash_ids": ids,
        "input_types": ["tool_result" if "tool_result" in _fresh_layers(session, call) else "text"],
        "output_types": ["tool_use"] if following is not None and following.turn.gap.kind == "tool" else ["text"],
        "stop": _stop(call, following),
    }
    if call.took is not None:
        body["api_time"] = round(call.took, 6)
    if body["type"] == "s" and turn.observed is not None:
        body["ttft"] = turn.observed.ttft
    return body


def _fresh_layers(session: Session, call: Call) -> set[Layer]:
    return {session.segment(piece.segment).layer for piece in call.turn.prompt.append}


def _stop(call: Call, following: Call | None) -> str:
    given = call.turn.extra.get("stop")
    if isinstance(given, str):
        return given
    if following is None:
        return "end_turn"
    return {"tool": "tool_use", "human": "end_turn"}.get(following.turn.gap.kind, "")


def _lead(session: Session, index: int) -> tuple[int, int]:
    """Leading tokens of tools and of system in a turn's prompt."""
    counts: dict[str, int] = {"tools": 0, "system": 0}
    order: Sequence[str] = ("tools", "system")
    at = 0
    for piece in session.pieces(index):
        layer = session.segment(piece.segment).layer
        if layer not in order[at:]:
            break
        at = order.index(layer)
        counts[layer] += piece.tokens
    return counts["tools"], counts["system"]
