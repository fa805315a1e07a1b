"""Claude Code's session files: snapshots, duplicates over files, parallel tools, compaction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from logs import Json, at, lines, take

from agentx.core import GapParts, Tool
from agentx.errors import BadInput

SECRET = "the launch code of project Heron"


def said(uuid: str, parent: str | None, when: float, content: Any, **more: Any) -> Json:
    body = {"role": "user", "content": content}
    return {"type": "user", "uuid": uuid, "parentUuid": parent, "sessionId": "s", "timestamp": at(when),
            "version": "2", "message": body, **more}  # fmt: skip


def reply(
    uuid: str, parent: str | None, when: float, id: str, block: Json, usage: tuple[int, int, int, int], **more: Any
) -> Json:
    names = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens", "output_tokens")
    message = {"id": id, "role": "assistant", "model": "claude-x", "content": [block],
               "usage": dict(zip(names, usage, strict=True)), "stop_reason": "tool_use"}  # fmt: skip
    return {"type": "assistant", "uuid": uuid, "parentUuid": parent, "sessionId": "s", "timestamp": at(when),
            "version": "2", "message": message, **more}  # fmt: skip


def text(words: str) -> Json:
    return {"type": "text", "text": words}


def use(id: str, name: str = "Bash", **arguments: Any) -> Json:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def result(id: str, words: str) -> list[Json]:
    return [{"type": "tool_result", "tool_use_id": id, "content": words}]


def session() -> list[Json]:
    """Two calls of parallel tools, whose results branch off their own calls' lines."""
    return [
        {"type": "mode", "mode": "normal", "sessionId": "s"},
        said("u1", None, 0, SECRET),
        reply("a1", "u1", 4, "m1", text("I look."), (3, 100, 900, 50)),
        reply("a2", "a1", 5, "m1", use("t1", command="rm -rf secrets"), (3, 100, 900, 50)),
        reply("a3", "a2", 6, "m1", use("t2", "WebSearch", query="x"), (3, 100, 900, 50)),
        said("r1", "a2", 7, result("t1", "one file")),
        said("r2", "a3", 9, result("t2", "many pages"), toolUseResult={"durationSeconds": 2.5}),
        reply("a4", "r2", 14, "m2", text("Done."), (4, 96, 1000, 20)),
    ]


def test_a_session_becomes_turns_with_what_was_sent(tmp_path: Path) -> None:
    taken = take("claude_code", lines(tmp_path / "s.jsonl", *session()))
    first, second = taken.turns
    assert taken.lengths() == [(1003, 50), (1100, 20)]
    assert (second.after, second.gap.kind, second.gap.seconds) == ((0,), "tool", 3.0)
    assert second.tools == (Tool("Bash"), Tool("WebSearch", 2.5))
    assert second.gap.parts == GapParts(3.0, None, "inferred")  # t1 from its call to its result, t2 from 6.5
    assert second.observed is not None
    assert first.observed is not None
    assert (first.observed.cached, second.observed.cached, second.observed.ttft) == (900, 1000, None)
    # the second prompt keeps the first, goes on with its reply, and brings both results
    assert (second.prompt.base, second.prompt.keep) == (0, len(taken.sessions[0].pieces(0)))
    appended = [taken.sessions[0].segment(piece.segment).layer for piece in second.prompt.append]
    assert appended == ["assistant", "tool_result", "tool_result"]
    assert taken.books.rows.dropped == {"line without model traffic": 1}
    assert (taken.books.rows.used, taken.books.rows.merged) == (2, 5)


def test_what_is_before_the_first_message_is_one_stretch_of_known_length(tmp_path: Path) -> None:
    """Tools and system prompt are not in the file; what two sessions' first calls had cached they share."""
    first = session()
    second = [{**line, "uuid": f"x{line.get('uuid')}", "parentUuid": f"x{line['parentUuid']}" if line.get("parentUuid")
               else None, "sessionId": "z"} for line in first[1:]]  # fmt: skip
    for line in second:
        if line["type"] == "assistant":
            line["message"] = {**line["message"], "id": "z" + line["message"]["id"]}
    taken = take("claude_code", lines(tmp_path / "a.jsonl", *first), lines(tmp_path / "b.jsonl", *second))
    heads = [[s.segment(p.segment).tokens for p in s.pieces(0) if s.segment(p.segment).layer == "system"]
             for s in taken.sessions]  # fmt: skip
    assert [head[0] for head in heads] == [900, 900]
    shared = {s.pieces(0)[0].segment for s in taken.sessions}
    assert len(shared) == 1
    assert shared <= set(taken.sessions[0].shared)


@pytest.mark.parametrize("request_ids", [True, False])  # third-party gateways leave them out
def test_snapshots_of_one_message_are_one_call_and_the_last_counts(tmp_path: Path, request_ids: bool) -> None:
    """R30: four lines of one id with 1, 1, 1, 57 output tokens are one call of 57."""
    more = {"requestId": "req_1"} if request_ids else {}
    grown = [reply(f"a{n}", "u1", 2 + n, "m1", text("word " * (n + 1)), (3, 0, 97, out), **more)
             for n, out in enumerate((1, 1, 1, 57))]  # fmt: skip
    taken = take("claude_code", lines(tmp_path / "s.jsonl", said("u1", None, 0, "hello there"), *grown))
    assert taken.lengths() == [(100, 57)]
    assert taken.books.rows.merged == 1 + 3


def test_an_earlier_snapshot_with_more_tokens_counts_too(tmp_path: Path) -> None:
    """The most, never the sum and never the first."""
    grown = [reply(f"a{n}", "u1", 2 + n, "m1", text("word"), (3, 0, 97, out)) for n, out in enumerate((1, 57, 3))]
    taken = take("claude_code", lines(tmp_path / "s.jsonl", said("u1", None, 0, "hello there"), *grown))
    assert taken.lengths() == [(100, 57)]


def test_a_call_in_a_session_and_its_subagents_file_is_one(tmp_path: Path) -> None:
    """R29: the same message id in both files, in the second under a new request id."""
    task = "look at every file of the scheduler and report"
    main = [
        said("u1", None, 0, "please explore"),
        reply("a1", "u1", 2, "m1", use("t1", "Task", prompt=task), (3, 0, 97, 10)),
        reply("b1", None, 5, "m2", text("found it"), (2, 0, 48, 5), requestId="r1", isSidechain=True),
        said("r1", "a1", 9, result("t1", "found it"), toolUseResult={"totalDurationMs": 6500}),
        reply("a2", "r1", 12, "m3", text("so it is"), (2, 8, 110, 7)),
    ]
    side = [
        said("v1", None, 2.5, task, isSidechain=True, agentId="ag"),
        reply("w1", "v1", 5, "m2", text("found it"), (2, 0, 48, 5), requestId="r2", isSidechain=True, agentId="ag"),
    ]
    lines(tmp_path / "p" / "s.jsonl", *main)
    lines(tmp_path / "p" / "s" / "subagents" / "agent-ag.jsonl", *side)
    taken = take("claude_code", tmp_path / "p", folder=tmp_path)
    (found,) = taken.sessions
    assert sorted(turn.isl for turn in found.turns) == [50, 100, 120]
    assert [(thread.kind, thread.parent) for thread in found.threads] == [("main", None), ("subagent", 0)]
    assert taken.books.rows.dropped == {"line of a message that another file holds": 1}
    spawned = next(turn for turn in found.turns if turn.thread == 1)
    assert (spawned.gap.kind, spawned.after) == ("spawn", (0,))
    joined = found.turns[-1]
    assert joined.after == (0, spawned.index)  # it brings the subagent's result
    assert joined.tools == (Tool("Task", 6.5),)


def test_a_compaction_starts_a_chain_of_its_own(tmp_path: Path) -> None:
    before = [said("u1", None, 0, "long " * 400), reply("a1", "u1", 2, "m1", text("ok " * 50), (3, 0, 997, 60))]
    after = [
        {"type": "system", "subtype": "compact_boundary", "uuid": "c", "parentUuid": None, "timestamp": at(5)},
        said("u2", "c", 6, "summary of it all", isCompactSummary=True),
        reply("a2", "u2", 8, "m2", text("go on"), (3, 500, 97, 9)),
    ]
    taken = take("claude_code", lines(tmp_path / "s.jsonl", *before, *after))
    assert [turn.isl for turn in taken.turns] == [1000, 600]
    event = taken.turns[1].event
    assert event is not None
    assert event.kind == "compaction"
    assert (event.before, event.kept) == (1000, 97 + 403)  # the head: what the first call had beyond its message


def test_no_content_is_in_the_trace(tmp_path: Path) -> None:
    path = lines(tmp_path / "s.jsonl", *session())
    taken = take("claude_code", path)
    coarse = take("claude_code", path, level="shape-coarse")
    for words in (SECRET, "one file", "many pages", "claude-x", "secrets", "2026", str(tmp_path)):
        assert words.encode() not in taken.data + coarse.data
    assert SECRET.encode() in take("claude_code", path, level="text").data  # only when asked for


def test_the_same_files_give_the_same_trace(tmp_path: Path) -> None:
    path = lines(tmp_path / "s.jsonl", *session())
    assert take("claude_code", path).data == take("claude_code", path).data


def test_what_holds_no_call_says_so(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "s.jsonl", said("u1", None, 0, "hello"), {"type": "summary", "summary": "x"}, "no json", [1]
    )
    with pytest.raises(BadInput, match=r"0 model calls .*4 lines: 2 line that is no JSON object; 1 line without model"):
        take("claude_code", path)


def test_odd_lines_do_no_harm(tmp_path: Path) -> None:
    """Circles of parents, a parent that is not there, times that are none, an error that the client shows."""
    odd = [
        reply("c1", "c2", 1, "m1", text("a"), (1, 0, 9, 1)),
        reply("c2", "c1", 2, "m2", text("b"), (1, 0, 9, 1)),
        reply("c3", "gone", 3, "m3", text("c"), (1, 0, 9, 1)) | {"timestamp": "yesterday"},
        {"type": "assistant", "uuid": "e", "message": {"id": "m4", "model": "<synthetic>", "content": [text("error")]}},
        {"type": "assistant", "uuid": "n", "message": None},
        {"type": "user", "uuid": 7, "message": {"content": {"a": 1}}},
    ]
    taken = take("claude_code", lines(tmp_path / "s.jsonl", *odd))
    assert len(taken.turns) == 3
    assert taken.books.notes["call whose beginning is not in its file"] >= 1
