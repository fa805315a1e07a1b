"""A capture and its client's own files: pauses are taken apart by ids, by replies, by times; what fits not is said."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from beside import Json, export, moment, ran, span
from capturing import EPOCH, Maker, assistant, call_of, chat, chat_reply, tool, user
from logs import lines, written

from agentx.core import Gap, GapParts, Session, Tool
from agentx.errors import BadInput
from agentx.recorder.compiling import Compiled, compile_capture
from agentx.recorder.imports.beside import beside
from agentx.trace import read_trace

SECRET = "marmalade"  # stands in every joined file, and must be in no trace
Joining = Callable[..., tuple[list[Session], Compiled]]


@pytest.fixture
def maker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Maker:
    """Its captures' wall clock is its monotonic one, so that files may say the same times."""
    for name in ("time_ns", "monotonic_ns"):
        monkeypatch.setattr(f"agentx.recorder.writer.time.{name}", lambda: EPOCH)
    return Maker(tmp_path)


@pytest.fixture
def join(maker: Maker, tmp_path: Path) -> Joining:
    folder: list[Path] = []

    def joined(*files: Path, level: Any = "shape") -> tuple[list[Session], Compiled]:
        if not folder:
            folder.append(maker.write())
        out = tmp_path / "b.trace"
        done = compile_capture(folder[0], out, level, tmp_path / "key", beside=beside(files))
        assert SECRET.encode() not in out.read_bytes()
        return list(read_trace(out)), done

    return joined


CALLS = [call_of("c1", "Bash", command="ls"), call_of("c2", "Read", path="a")]
ASKED = [user("look"), assistant(None, *CALLS), tool("c1", "a"), tool("c2", "b")]


@pytest.fixture
def parallel(maker: Maker) -> None:
    """A reply at 10 s asks for two tools, their results are sent at 20 s; another session's pause is 110 to 115 s."""
    maker.exchange(5, chat([user("look")]), chat_reply(None, 100, 20, tool_calls=CALLS), took=5)
    maker.exchange(20, chat(ASKED), chat_reply("done", 150, 5))
    other = [user("other"), assistant(None, call_of("d1", "Bash"))]
    maker.exchange(109, chat(other[:1]), chat_reply(None, 50, 9, tool_calls=[call_of("d1", "Bash")]))
    maker.exchange(115, chat([*other, tool("d1", "x")]), chat_reply("done", 70, 5))


def gaps(sessions: list[Session]) -> list[Gap]:
    return [turn.gap for session in sessions for turn in session.turns if turn.after]


def test_parallel_tools_by_their_ids(parallel: None, join: Joining, tmp_path: Path) -> None:
    spans = written(tmp_path / "spans.json", export(ran("c1", 11, 14), ran("c2", 12, 16.5), ran(SECRET, 1, 2)))
    sessions, done = join(spans)
    assert gaps(sessions) == [Gap("tool", 10.0, "recorded", GapParts(5.5)), Gap("tool", 5.0)]
    assert sessions[0].turns[1].tools == (Tool("Bash", 3.0), Tool("Read", 4.5))
    assert done.joined is not None
    assert done.joined.lines() == [
        "joined spans.json (otel): 2 of its 3 tool calls used; its clock agrees with the capture's, by 1 of 1 pauses",
        "tool calls of the capture: 2 of 3 found in what was joined; pauses: 1 of 2 explained",
    ]


def test_the_same_files_give_the_same_bytes(parallel: None, join: Joining, tmp_path: Path) -> None:
    spans = written(tmp_path / "spans.json", export(ran("c1", 11, 14), ran("d1", 111, 114)))
    made = []
    for _ in range(2):
        join(spans)
        made.append((tmp_path / "b.trace").read_bytes())
    assert made[0] == made[1]
    header = read_trace(tmp_path / "b.trace").header
    assert header.provenance["joined"] == [{"format": "otel", "tool_calls": 2, "used": 2, "clock_offset": 0.0}]


def test_shape_coarse_blurs_parts_and_tools(parallel: None, join: Joining, tmp_path: Path) -> None:
    sessions, _ = join(
        written(tmp_path / "s.json", export(ran("c1", 11, 14.321), ran("c2", 12, 16.789))), level="shape-coarse"
    )
    parts = gaps(sessions)[0].parts
    assert parts is not None
    assert parts.tool is not None
    for seconds in (parts.tool, *(each.seconds for each in sessions[0].turns[1].tools)):
        assert seconds in {1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0}


def test_another_machines_clock_is_found_and_said(parallel: None, join: Joining, tmp_path: Path) -> None:
    off = 3600.0
    spans = [ran("c1", off + 10.1, off + 14), ran("c2", off + 12, off + 19.9), ran("d1", off + 110.1, off + 114.9)]
    sessions, done = join(written(tmp_path / "spans.json", export(*spans)))
    assert [gap.parts for gap in gaps(sessions)] == [GapParts(9.8), GapParts(4.8)]
    assert done.joined is not None
    assert "its clock is 3,600.000 s ahead of the capture's" in done.joined.lines()[0]


def test_clocks_that_cannot_be_one_runs_are_refused(parallel: None, join: Joining, tmp_path: Path) -> None:
    spans = [ran("c1", 1011, 1014), ran("d1", 111, 114)]
    with pytest.raises(BadInput, match="suits more than 1 of 2 pauses"):
        join(written(tmp_path / "spans.json", export(*spans)))
    assert not (tmp_path / "b.trace").exists()


NOTHING = [
    # spans of another run: ids that the capture has not
    ([export(ran("z1", 11, 14))], "nothing in it is of this capture: 0 of 1 tool calls"),
    # tools without ids, at other times
    ([span("run", 500, 501, openinference__span__kind="TOOL")], "0 of 1 tools without an id, by times .within 0.25 s"),
    # a call that no pause has room for
    ([export(ran("c1", 11, 90))], "suits more than 0 of 1 pauses"),
    # nothing about tools at all
    ([span("chat", 1, 2, gen_ai__operation__name="chat")], "tells of no tool and no message"),
    # another format
    ([{"timestamp": 1, "input_length": 3, "output_length": 3, "hash_ids": [1]}], "a file of mooncake says nothing"),
]


@pytest.mark.parametrize(("values", "says"), NOTHING)
def test_a_file_that_says_nothing_of_the_capture(
    parallel: None, join: Joining, tmp_path: Path, values: list[Json], says: str
) -> None:
    with pytest.raises(BadInput, match=says):
        join(lines(tmp_path / "file.jsonl", *values))


def test_ids_that_several_replies_gave_tell_nothing_apart(maker: Maker, join: Joining, tmp_path: Path) -> None:
    """Some servers number the calls of each session anew."""
    for at, name in ((0, "one"), (20, "other")):
        use = [call_of("call_0", "Bash", command=name), call_of(f"own {name}", "Read")]
        talk = [user(name), assistant(None, *use), tool("call_0", "x"), tool(f"own {name}", "y")]
        maker.exchange(at, chat(talk[:1]), chat_reply(None, 30, 9, tool_calls=use))
        maker.exchange(at + 9, chat(talk), chat_reply("done", 60, 5))
    spans = [ran("call_0", 22, 23), ran("own one", 2, 4)]
    sessions, done = join(written(tmp_path / "spans.json", export(*spans)))
    assert [gap.parts for gap in gaps(sessions)] == [GapParts(2.0), None]
    assert [each.seconds for session in sessions for each in session.turns[1].tools] == [None, 2.0, None, None]
    assert done.joined is not None
    assert "1 of its 2 tool calls used, 1 calls have an id that several replies gave" in done.joined.lines()[0]
    with pytest.raises(BadInput, match="its 1 tool calls have ids that several replies gave"):
        join(written(tmp_path / "one.json", export(spans[0])))


def test_one_useless_file_beside_a_good_one_is_said(parallel: None, join: Joining, tmp_path: Path) -> None:
    good = written(tmp_path / "good.json", export(ran("c1", 11, 14)))
    with pytest.raises(BadInput, match=r"bad\.json.*nothing in it"):
        join(good, written(tmp_path / "bad.json", export(ran("z1", 11, 14))))


def test_two_files_about_one_call(parallel: None, join: Joining, tmp_path: Path) -> None:
    """Exact runs come first, whichever file they are in; waits from whichever has them."""
    coarse = [
        span("claude_code.tool", 10, 19, id="t", tool_use_id="c1"),
        span("claude_code.tool.blocked_on_user", 10, 13, parent="t"),
    ]
    one, other = export(*coarse), export(ran("c1", 13, 15))
    for at, values in enumerate([(one, other), (other, one)]):
        files = [written(tmp_path / f"{at}-{number}.json", value) for number, value in enumerate(values)]
        sessions, _ = join(*files)
        assert gaps(sessions)[0].parts == GapParts(2.0, 3.0)


def test_tools_without_ids_by_times(parallel: None, join: Joining, tmp_path: Path) -> None:
    """OpenInference's tools often have no id: they are laid where they fit, and marked; others are counted."""
    spans = [
        span("Bash", 11, 14, openinference__span__kind="TOOL"),
        span("Read", 13, 15, openinference__span__kind="TOOL"),
        span(SECRET, 90, 91, openinference__span__kind="TOOL"),
    ]
    sessions, done = join(lines(tmp_path / "spans.jsonl", *spans))
    assert gaps(sessions)[0].parts == GapParts(4.0, None, "inferred")
    assert sessions[0].turns[1].tools == (Tool("Bash", 3.0), Tool("Read", 2.0))
    assert done.joined is not None
    said = "\n".join(done.joined.lines())
    assert "2 of 3 tools without an id, 1 tools fit in no pause, or in several" in said
    assert "pauses explained by times alone, within 0.25 s: 1" in said


# --- files of agents ---------------------------------------------------------------------------------------------


def iso(seconds: float) -> str:
    at = datetime(1970, 1, 1, tzinfo=timezone.utc) + timedelta(microseconds=moment(seconds) // 1000)
    return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


SESSION = {"x-claude-code-session-id": "s1"}


def message(content: list[Json], prompt: int) -> bytes:
    usage = {"input_tokens": prompt, "output_tokens": 9}
    return json.dumps({"type": "message", "id": f"m{prompt}", "role": "assistant", "content": content,
                       "usage": usage}).encode()  # fmt: skip


def claude(
    maker: Maker, at: float, messages: list[Json], reply: list[Json], *, agent: str = "", took: float = 1
) -> None:
    body = {"model": "m", "system": "You are " + (agent or "it"), "messages": messages}
    headers = {**SESSION, **({"x-claude-code-agent-id": agent} if agent else {})}
    maker.exchange(at, body, message(reply, 100 + 10 * len(messages) + 5 * bool(agent)), took=took, path="/v1/messages",
                   wire="messages", headers=headers)  # fmt: skip


def use(id: str, name: str = "Bash") -> Json:
    return {"type": "tool_use", "id": id, "name": name, "input": {}}


def result(*ids: str) -> Json:
    return user([{"type": "tool_result", "tool_use_id": id, "content": "x"} for id in ids])  # type: ignore[arg-type]


DONE = [{"type": "text", "text": "done"}]


def talk(maker: Maker) -> None:
    """A tool from 1 to 9 s, and a user from 10 to 40 s."""
    first = [user("look"), {"role": "assistant", "content": [use("t1")]}, result("t1")]
    claude(maker, 0, first[:1], [use("t1")])
    claude(maker, 9, first, DONE)
    claude(maker, 40, [*first, {"role": "assistant", "content": DONE}, user("thanks")], DONE)


def test_claude_codes_spans(maker: Maker, join: Joining, tmp_path: Path) -> None:
    talk(maker)
    spans = [
        span("claude_code.interaction", 39.5, 41, id="i", session__id="s1", user_prompt=SECRET),
        span("claude_code.tool", 1, 8.9, id="t", tool_use_id="t1"),
        span("claude_code.tool.blocked_on_user", 1.5, 6, id="b", parent="t"),
        span("claude_code.tool.execution", 6, 8.5, id="e", parent="t"),
    ]
    sessions, done = join(written(tmp_path / "spans.json", export(*spans)))
    assert gaps(sessions) == [
        Gap("tool", 8.0, "recorded", GapParts(2.5, 4.5)),
        Gap("human", 30.0, "recorded", GapParts(None, 29.5)),
    ]
    assert done.joined is not None
    assert "1 of 1 messages of its user" in done.joined.lines()[0]


def test_claude_codes_session_file(maker: Maker, join: Joining, tmp_path: Path) -> None:
    """From a call's line to its result's: a wait for leave is inside, so that it is inferred."""
    talk(maker)
    base = {"sessionId": "s1", "cwd": SECRET, "version": "2"}
    file = lines(
        tmp_path / "s1.jsonl",
        {**base, "type": "user", "uuid": "a", "timestamp": iso(-0.1), "message": user("look")},
        {**base, "type": "assistant", "uuid": "b", "parentUuid": "a", "timestamp": iso(0.95),
         "message": {"id": "m1", "model": "m", "content": [use("t1")], "usage": {}}},
        {**base, "type": "user", "uuid": "c", "parentUuid": "b", "timestamp": iso(8.8), "message": result("t1")},
        {**base, "type": "user", "uuid": "e", "parentUuid": "c", "timestamp": iso(39), "message": user("thanks")},
    )  # fmt: skip
    sessions, _ = join(file)
    assert [gap.parts for gap in gaps(sessions)] == [GapParts(7.8, None, "inferred"), GapParts(None, 29.0)]


def test_codexs_session_file(maker: Maker, join: Joining, tmp_path: Path) -> None:
    """As long as a tool's output says, up to its result; else from the call to the result."""
    asked = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]}
    made = [{"type": "function_call", "name": "exec_command", "arguments": "{}", "call_id": id} for id in ("k1", "k2")]
    answers = [{"type": "function_call_output", "call_id": id, "output": "x"} for id in ("k1", "k2")]
    for at, given, output in ((0.0, [asked], made), (9.0, [asked, *made, *answers], [])):
        reply = {"id": f"r{at}", "object": "response", "status": "completed", "output": output,
                 "usage": {"input_tokens": 50, "output_tokens": 5}}  # fmt: skip
        maker.exchange(at, {"model": "m", "input": given}, json.dumps(reply).encode(), path="/v1/responses",
                       wire="responses", headers={"session-id": "s"})  # fmt: skip
    told = {"type": "function_call_output", "call_id": "k1", "output": f"Wall time: 2.5 seconds\n{SECRET}"}
    file = lines(
        tmp_path / "rollout-1.jsonl",
        {"timestamp": iso(0), "type": "session_meta", "payload": {"id": "s"}},
        {"timestamp": iso(1), "type": "response_item", "payload": made[0]},
        {"timestamp": iso(1), "type": "response_item", "payload": made[1]},
        {"timestamp": iso(4), "type": "response_item", "payload": told},
        {"timestamp": iso(5), "type": "response_item", "payload": answers[1]},
    )
    sessions, _ = join(file)
    assert gaps(sessions) == [Gap("tool", 8.0, "recorded", GapParts(4.0, None, "inferred"))]
    assert [each.seconds for each in sessions[0].turns[1].tools] == [2.5, None]


def test_a_trajectory_whose_commands_have_no_ids(maker: Maker, join: Joining, tmp_path: Path) -> None:
    """The reply's id joins them; what looks like a user's message is what a command printed."""
    maker.exchange(0, chat([user("go")]), chat_reply("run ls", 40, 5))
    maker.exchange(6, chat([user("go"), assistant("run ls"), user("<output>")]), chat_reply("ok", 60, 5))
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "run ls", "extra": {"response": {"id": "c"}, "timestamp": moment(1.1) / 1e9}},
        {"role": "user", "content": SECRET, "extra": {"returncode": 0, "timestamp": moment(5.1) / 1e9}},
    ]
    sessions, _ = join(written(tmp_path / "a.traj.json", {"info": {}, "messages": messages}))
    assert gaps(sessions) == [Gap("tool", 5.0, "recorded", GapParts(4.0, None, "inferred"))]
    assert [each.name for each in sessions[0].turns[1].tools] == ["bash"]
    assert "linked_by" not in sessions[0].turns[1].extra


# --- subagents ---------------------------------------------------------------------------------------------------


def delegated(maker: Maker) -> None:
    """A reply at 1 s starts two subagents, known by their headers alone; they work from 3 to 12 s. Back at 14 s."""
    spawn = [use("T1", "Task"), use("T2", "Task")]
    claude(maker, 0, [user("look")], spawn)
    for agent, begin in (("a1", 3.0), ("a2", 4.0)):
        task = [user(f"task of {agent}"), {"role": "assistant", "content": [use(f"x{agent}")]}, result(f"x{agent}")]
        claude(maker, begin, task[:1], [use(f"x{agent}")], agent=agent)
        claude(maker, begin + 7, task, DONE, agent=agent)
    claude(maker, 14, [user("look"), {"role": "assistant", "content": spawn}, result("T1", "T2")], DONE)


NESTED = [
    span("claude_code.llm_request", 3, 4, id="r1", parent="e1", agent_id="a1"),
    span("claude_code.llm_request", 4, 5, id="r2", parent="e2", agent_id="a2"),
]
TASKS = [
    span("claude_code.tool", 1, 13, id="T1", tool_use_id="T1", subagent_type="Explore"),
    span("claude_code.tool.blocked_on_user", 1, 2, id="b1", parent="T1"),
    span("claude_code.tool.execution", 2, 12, id="e1", parent="T1"),
    span("claude_code.tool", 1, 13, id="T2", tool_use_id="T2", subagent_type="Explore"),
    span("claude_code.tool.execution", 1, 13, id="e2", parent="T2"),
]


@pytest.mark.parametrize("more", [NESTED, []], ids=["spans that stand below their task", "by times"])
def test_subagents_are_started_and_awaited_by_their_spans(
    maker: Maker, join: Joining, tmp_path: Path, more: list[Json]
) -> None:
    delegated(maker)
    without, _ = join()
    last = max(without[0].turns, key=lambda turn: turn.index)
    assert (last.after, last.gap.seconds) == ((0,), 13.0)  # the subagents' work is inside
    sessions, _ = join(written(tmp_path / "spans.json", export(*TASKS, *more)))
    (session,) = sessions
    assert [(thread.kind, thread.parent) for thread in session.threads] == [("main", None), *[("subagent", 0)] * 2]
    roots = [turn for turn in session.turns if turn.gap.kind == "spawn"]
    assert [(turn.after, turn.gap.seconds) for turn in roots] == [((0,), 2.0), ((0,), 3.0)]
    assert roots[0].gap.parts == GapParts(1.0, 1.0, "recorded" if more else "inferred")
    last = max(session.turns, key=lambda turn: turn.index)
    assert last.after == (0, 3, 4)
    assert last.gap == Gap("tool", 2.0, "recorded", GapParts(1.0, 0.0))


def test_a_session_file_names_its_subagents(maker: Maker, join: Joining, tmp_path: Path) -> None:
    delegated(maker)
    base = {"sessionId": "s1", "version": "2", "type": "user"}
    results = [
        {**base, "uuid": agent, "timestamp": iso(13), "message": result(task),
         "toolUseResult": {"agentId": agent, "totalDurationMs": 11_500, "content": SECRET}}
        for task, agent in (("T1", "a2"), ("T2", "a1"))
    ]  # fmt: skip
    (session,), _ = join(lines(tmp_path / "s1.jsonl", *results))
    last = max(session.turns, key=lambda turn: turn.index)
    assert (last.after, last.gap.seconds, last.gap.parts) == ((0, 3, 4), 2.0, GapParts(1.0))
