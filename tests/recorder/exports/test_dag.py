"""dag_jsonl: conversations, who spawns them, where they are joined."""

from __future__ import annotations

import json
from pathlib import Path

from exporting import everything, linear
from importing import Json
from making import header

from agentx.core import Gap, Output, Piece, Prompt, Segment, Session, Thread, Turn
from agentx.recorder.exports.writing import export_dag
from agentx.trace import TraceReader, TraceWriter, read_trace


def exported(reader: TraceReader, path: Path) -> list[Json]:
    export_dag(reader, path)
    return [json.loads(line) for line in path.read_text().splitlines()]


def size(turn: Json) -> int:
    return sum(len(message["content"]) // 4 for message in turn["messages"])


def test_a_session_that_grows_is_one_conversation(tmp_path: Path) -> None:
    reader = linear(tmp_path)
    found = exported(reader, tmp_path / "out.jsonl")
    for session, body in zip(reader, found, strict=True):
        assert body["session_id"] == session.id
        history = 0
        for turn, made in zip(session.turns, body["turns"], strict=True):
            assert history + size(made) == turn.isl
            history = turn.isl + turn.output.tokens
            assert made["max_tokens"] == turn.output.tokens
            assert made["extra"] == {"ignore_eos": True, "min_tokens": turn.output.tokens}
            assert made.get("delay", 0) == turn.gap.seconds * 1000
    assert [m["role"] for m in found[0]["turns"][0]["messages"]] == ["system", "user"]


def call(
    index: int, thread: int, *after: int, append: tuple[int, ...] = (), base: int | None = None, keep: int = 0
) -> Turn:
    pieces = tuple(Piece(id, 0, 4) for id in append)
    return Turn(
        index, thread, Prompt(pieces, base, keep), 4 * (keep + len(pieces)), Output(4), after, Gap(), reply=10 + index
    )


def with_agents() -> Session:
    """The main thread starts a subagent, goes on once, then waits for it; a second one nobody waits for."""
    own = {id: Segment(id, "assistant" if id >= 10 else "user", 4) for id in (*range(6), *range(10, 16))}
    turns = (
        call(0, 0, append=(0,)),
        call(1, 1, 0, append=(1,)),
        call(2, 0, 0, append=(10, 2), base=0, keep=1),
        call(3, 0, 1, 2, append=(12, 3), base=2, keep=3),
        call(4, 2, 3, append=(4,)),
    )
    threads = (Thread(0), Thread(1, 0, "subagent", "Explore"), Thread(2, 0, "subagent"))
    return Session("s", turns, threads, own)


def test_subagents_are_spawned_and_joined(tmp_path: Path) -> None:
    with TraceWriter(tmp_path / "t.trace", header()) as writer:
        writer.session(with_agents())
    main, first, second = exported(read_trace(tmp_path / "t.trace"), tmp_path / "out.jsonl")
    assert [body["session_id"] for body in (main, first, second)] == ["s", "s/1", "s/2"]
    assert [turn.get("spawns") for turn in main["turns"]] == [[{"children": ["s/1"], "join_at": 2}], None, ["s/2"]]


def test_everything_is_there_and_every_child_has_one_parent(tmp_path: Path) -> None:
    reader = everything(tmp_path)
    found = exported(reader, tmp_path / "out.jsonl")
    assert sum(len(body["turns"]) for body in found) == sum(len(session.turns) for session in reader)
    names = [body["session_id"] for body in found]
    assert len(set(names)) == len(names)
    children: list[str] = []
    for body in found:
        children += body.get("pre_session_spawns", [])
        for place, turn in enumerate(body["turns"]):
            for entry in turn.get("spawns", []):
                children += [entry] if isinstance(entry, str) else entry["children"]
                assert isinstance(entry, str) or place < entry["join_at"] < len(body["turns"])
    assert len(set(children)) == len(children)
    assert set(names) - set(children) == {session.id for session in reader}  # the roots are the sessions
