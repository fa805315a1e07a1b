"""Factories of the import tests: rows as other tools write them, and a plain reference for identities."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from agentx.core import Session
from agentx.recorder.imports.weka import import_weka
from agentx.trace import read_trace

Json = dict[str, Any]
Token = tuple[int, int] | None  # (block id, offset), None: no block identifies it


def call(t: float, isl: int, out: int, ids: range | list[int], **more: Any) -> Json:
    """A Weka request of one second unless `api_time` says otherwise."""
    row = {"t": t, "type": "n", "model": "m", "in": isl, "out": out, "hash_ids": list(ids), "api_time": 1.0}
    return {**row, "stop": "tool_use", "input_types": ["tool_result"], **more}


def agent(t: float, requests: list[Json], **more: Any) -> Json:
    """A Weka subagent entry."""
    return {"t": t, "type": "subagent", "agent_id": "a1", "subagent_type": "Explore", "requests": requests, **more}


def weka(requests: list[Json], **more: Any) -> Json:
    """A Weka session of 4-token blocks."""
    return {"id": "s", "models": ["m"], "block_size": 4, "hash_id_scope": "local", "requests": requests, **more}


def row(isl: int, out: int, ids: range | list[int] | None, **more: Any) -> Json:
    """A Mooncake row."""
    hashed = {} if ids is None else {"hash_ids": list(ids)}
    return {"input_length": isl, "output_length": out, **hashed, **more}


def write(path: Path, *values: Any) -> Path:
    """JSON values, one a line."""
    path.write_text("".join(json.dumps(value) + "\n" for value in values))
    return path


def weka_session(tmp_path: Path, value: Json) -> Session:
    """A Weka session after a whole import."""
    import_weka([write(tmp_path / "in.json", value)], tmp_path / "out.trace")
    (session,) = read_trace(tmp_path / "out.trace")
    return session


def tokens(session: Session, index: int, block: int) -> list[Token]:
    """The block and offset of every token of a prompt."""
    found: list[Token] = []
    for run in session.runs(index):
        for position in range(run.start, run.stop):
            found.append(divmod(position, block) if run.stream.kind == "blocks" else None)
    return found


def layers(session: Session, index: int) -> list[tuple[str, int]]:
    """The layers of a prompt's pieces, with their tokens."""
    return [(session.segment(piece.segment).layer, piece.tokens) for piece in session.pieces(index)]


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.sampled_from(
        [1 << 70, 1e300, -0.0, 1.5, "", "x", "9", "\ud800", "2026-06-01T05:40:20Z", [], [1], [None], {}, {"a": 1}]
    ),
)


def changed(data: st.DataObject, value: Any) -> Any:
    """A JSON value with one thing in it replaced, left out or doubled."""
    if isinstance(value, dict) and value and data.draw(st.integers(0, 9)):
        key = data.draw(st.sampled_from(sorted(value)))
        if data.draw(st.integers(0, 5)):
            return {**value, key: changed(data, value[key])}
        return {other: each for other, each in value.items() if other != key}
    if isinstance(value, list) and value and data.draw(st.integers(0, 9)):
        at = data.draw(st.integers(0, len(value) - 1))
        twice = [value[at]] if not data.draw(st.integers(0, 3)) else []
        return [*value[:at], *twice, changed(data, value[at]), *value[at + 1 :]]
    return data.draw(VALUES)
