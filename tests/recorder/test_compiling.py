"""From captures made by hand to traces: the reported faults of recorders, each with the right value."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from capturing import SSE, Maker, assistant, call_of, chat, chat_reply, sse, tool, user

from agentx.cli.trace_lint import lint
from agentx.core import Session, Text, Turn
from agentx.errors import BadInput
from agentx.recorder.compiling import compile_capture
from agentx.recorder.keys import CaptureKey
from agentx.reuse import possible
from agentx.trace import read_trace

SYSTEM = {"role": "system", "content": "You are an agent. " * 20}
CC = "X-Claude-Code-Session-Id"
AGENT = "x-claude-code-agent-id"


@pytest.fixture
def maker(tmp_path: Path) -> Maker:
    return Maker(tmp_path)


def shape(session: Session) -> list[tuple[int, int, tuple[int, ...]]]:
    """(thread, isl, after) of each turn."""
    return [(turn.thread, turn.isl, turn.after) for turn in session.turns]


def tokens(session: Session, index: int) -> list[tuple[str, int]]:
    return [(session.segment(piece.segment).layer, piece.tokens) for piece in session.pieces(index)]


def test_a_tool_loop(maker: Maker, tmp_path: Path) -> None:
    """Lengths are the usage's, new parts get its differences, the reply is a segment that the next prompt holds."""
    call = call_of("t1", "Bash", command="ls")
    first = [SYSTEM, user("list the files")]
    second = [*first, assistant(None, call), tool("t1", "a.py b.py")]
    third = [*second, assistant("Two files."), user("thanks")]
    maker.exchange(0, chat(first), chat_reply(None, 100, 20, tool_calls=[call]), took=2)
    maker.exchange(5, chat(second), chat_reply("Two files.", 130, 5), took=1)
    maker.exchange(66, chat(third), chat_reply("Bye.", 140, 2), took=1)
    (session,), header, done = maker.compile()
    assert shape(session) == [(0, 100, ()), (0, 130, (0,)), (0, 140, (1,))]
    assert [turn.output.tokens for turn in session.turns] == [20, 5, 2]
    assert [(turn.gap.kind, turn.gap.seconds, turn.gap.provenance) for turn in session.turns[1:]] == [
        ("tool", 3.0, "recorded"), ("human", 60.0, "recorded"),
    ]  # fmt: skip
    assert [[tool.name for tool in turn.tools] for turn in session.turns] == [[], ["Bash"], []]
    assert tokens(session, 2)[2:] == [("assistant", 20), ("tool_result", 10), ("assistant", 5), ("user", 5)]
    assert session.pieces(1)[2].segment == session.turns[0].reply
    assert sum(count for _, count in tokens(session, 0)) == 100
    assert done.books.rows.read == done.books.rows.used == 3
    assert lint(tmp_path / "b.trace").errors == 0
    assert header.provenance["canonical"]["version"] == 1


def test_the_same_capture_gives_the_same_bytes(maker: Maker, tmp_path: Path) -> None:
    for number in range(6):
        maker.exchange(number, chat([SYSTEM, user(f"question {number % 3}")]), chat_reply(f"answer {number}", 90, 3))
    folder = maker.write()
    for name in ("one.trace", "two.trace"):
        compile_capture(folder, tmp_path / name, "shape", tmp_path / "key")
    assert (tmp_path / "one.trace").read_bytes() == (tmp_path / "two.trace").read_bytes()


def test_a_retry_is_no_turn(maker: Maker) -> None:
    """R18: 429, then 200 with the same body: one turn, two attempts, the times of the second."""
    body = chat([user("hello there")])
    maker.exchange(0, body, b'{"error":{"type":"rate_limit_error"}}', took=0.1, status=429)
    usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 1}}
    stream = [
        (0.5, sse({"choices": [{"delta": {"role": "assistant", "content": ""}}]})),
        (0.75, sse({"choices": [{"delta": {"content": "hi"}, "finish_reason": "stop"}]})),
        (0.8, sse(usage) + b"data: [DONE]\n\n"),
    ]
    again = {"x-stainless-retry-count": "1"}
    maker.exchange(0.2, {**body, "stream": True}, stream, headers=again, reply_headers=[SSE])
    (session,), _, done = maker.compile()
    (turn,) = session.turns
    assert turn.extra["attempts"] == {"count": 2, "failed": [429]}
    assert turn.observed is not None
    assert (turn.observed.start, turn.observed.ttft) == (0.2, 0.75)  # the role alone is no token
    assert (done.books.rows.read, done.books.rows.used, done.books.rows.merged) == (2, 1, 1)


def test_an_attempt_that_found_no_upstream_is_counted(maker: Maker) -> None:
    body = chat([user("hello there")])
    maker.exchange(0, body, b"", took=0.1, status=0, cause="upstream_unreachable")
    maker.exchange(1, body, chat_reply("hi", 7, 1), headers={"x-stainless-retry-count": "1"})
    (session,), _, done = maker.compile()
    (turn,) = session.turns
    assert turn.extra["attempts"] == {"count": 2, "failed": ["upstream_unreachable"]}
    assert (done.books.rows.read, done.books.rows.used, done.books.rows.merged) == (2, 1, 1)


@pytest.mark.parametrize(
    ("status", "later", "count", "turns"),
    [
        (500, 0.5, None, 1),  # within the time that clients back off for
        (529, 100.0, None, 1),
        (500, 1000.0, None, 2),  # too late to be a retry by itself: the failed one was never answered
        (500, 1000.0, "3", 1),  # but not when the client says so
        (200, 0.5, None, 2),  # asked again after a whole reply: another turn
    ],
)
def test_what_is_a_retry(maker: Maker, status: int, later: float, count: str | None, turns: int) -> None:
    body = chat([SYSTEM, user("same question")])
    maker.exchange(0, body, chat_reply("first", 50, 2) if status == 200 else b"busy", took=1, status=status)
    headers = {"x-stainless-retry-count": count} if count else {}
    maker.exchange(1 + later, body, chat_reply("second", 50, 2), headers=headers)
    sessions, _, done = maker.compile()
    assert sum(len(session.turns) for session in sessions) + done.books.rows.dropped.total() == turns


def test_a_broken_stream_asked_again_without_streaming(maker: Maker) -> None:
    """R3's consequence: the twin is an attempt, not a second turn."""
    body = chat([user("hello")])
    broken = sse({"choices": [{"delta": {"content": "he"}}]})
    maker.exchange(0, {**body, "stream": True}, broken, reply_headers=[SSE], cause="client_abort")
    maker.exchange(3, body, chat_reply("hello", 9, 2))
    (session,), _, _ = maker.compile()
    assert [turn.extra["attempts"]["count"] for turn in session.turns] == [2]


def test_a_fallback_to_another_model_is_an_attempt(maker: Maker) -> None:
    body = chat([user("hello")])
    maker.exchange(0, body, b"overloaded", status=529)
    maker.exchange(3, {**body, "model": "smaller"}, chat_reply("hi", 9, 2))
    (session,), _, _ = maker.compile()
    assert session.turns[0].extra["attempts"]["failed"] == [529]


def anthropic_stream(text: str, start: dict[str, int], delta: dict[str, int], whole: bool = True) -> bytes:
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": {"id": "msg", "usage": start}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "ping"},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
    ]
    if whole:
        events += [
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": delta},
            {"type": "message_stop"},
        ]
    return sse(*events, named=True)


MESSAGES: dict[str, Any] = {"path": "/v1/messages", "wire": "messages", "reply_headers": [SSE]}


def test_usage_is_merged_never_added(maker: Maker) -> None:
    """R17: input 7, cached 100, written 30, then output 3 beside a start of 1: 137 in, 3 out."""
    start = {"input_tokens": 7, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 30, "output_tokens": 1}
    reply = anthropic_stream("hello", start, {"output_tokens": 3})
    maker.exchange(0, {"model": "c", "messages": [user("hi")]}, reply, **MESSAGES)
    (session,), _, _ = maker.compile()
    (turn,) = session.turns
    assert (turn.isl, turn.output.tokens, turn.observed and turn.observed.cached) == (137, 3, 100)


def test_a_stream_that_was_cut_is_no_success(maker: Maker) -> None:
    """R12, R15: the turn is there, marked; its prompt is known, its reply estimated."""
    reply = anthropic_stream("some twenty characters", {"input_tokens": 50, "output_tokens": 1}, {}, whole=False)
    maker.exchange(0, {"model": "c", "messages": [user("hi")]}, reply, cause="upstream_abort", **MESSAGES)
    (session,), _, _ = maker.compile()
    (turn,) = session.turns
    assert turn.event is not None
    assert (turn.event.kind, turn.isl, turn.output.tokens) == ("error", 50, 6)
    assert turn.extra["estimated"] == ["osl"]


def test_cache_markers_and_nonces_do_not_break_prefixes(maker: Maker) -> None:
    """A marker that moves, a string instead of a text block, a cch= that changes: the prefix holds."""

    def messages(turn: int) -> list[dict[str, Any]]:
        made: list[dict[str, Any]] = []
        for number in range(turn + 1):
            block: dict[str, Any] = {"type": "text", "text": f"question {number}"}
            if number == turn:
                block["cache_control"] = {"type": "ephemeral"}
            made.append({"role": "user", "content": [block] if number >= turn - 1 else block["text"]})
            if number < turn:
                made.append({"role": "assistant", "content": [{"type": "text", "text": f"answer {number}"}]})
        return made

    for turn in range(4):
        system = [
            {"type": "text", "text": f"x-anthropic-billing-header: cc_version=2.1; cch=a{turn}f;"},
            {"type": "text", "text": "You are Claude. " * 30, "cache_control": {"type": "ephemeral"}},
        ]
        body = {"model": "c", "system": system, "messages": messages(turn)}
        usage = {"input_tokens": 200 + 20 * turn, "output_tokens": 8}
        maker.exchange(10 * turn, body, anthropic_stream(f"answer {turn}", usage, {"output_tokens": 8}), **MESSAGES)
    (session,), _, _ = maker.compile()
    assert [turn.prompt.keep for turn in session.turns] == [0, 3, 5, 7]
    assert all(len(turn.prompt.append) == 2 for turn in session.turns[1:])


def test_two_agents_in_one_session(maker: Maker) -> None:
    """R19: interleaved calls with one session id are kept apart by the agent header."""

    def run(agent: str | None, at: float, turn: int) -> None:
        name = agent or "main"
        messages = [user(f"task of {name}")]
        for number in range(turn):
            messages += [assistant(f"{name} says {number}"), user(f"go on {number}")]
        headers = {CC: "session", **({AGENT: agent} if agent else {})}
        maker.exchange(at, chat(messages), chat_reply(f"{name} says {turn}", 20 + 10 * turn, 4), headers=headers)

    for turn in range(3):
        run(None, 10 * turn, turn)
        run("one", 10 * turn + 3, turn)
        run("two", 10 * turn + 3.5, turn)
    (session,), _, _ = maker.compile()
    assert session.extra["known_by"] == "x-claude-code-session-id"
    assert [(thread.kind, thread.parent) for thread in session.threads] == [
        ("main", None), ("subagent", 0), ("subagent", 0),
    ]  # fmt: skip
    assert [turn.thread for turn in session.turns] == [0, 1, 2] * 3
    assert session.turns[3].after == (0,)
    assert session.turns[1].gap.kind == "spawn"


@pytest.mark.parametrize("header", [{}, {CC: "s"}])
def test_a_subagent_without_a_header(maker: Maker, header: dict[str, str]) -> None:
    """By its task, which a tool call has among its arguments; the turn that brings its result waits for it."""
    task = "Explore the scheduler and report what it does"
    spawn = call_of("t9", "Task", prompt=task, description="explore")
    main = [SYSTEM, user("how does it schedule?")]
    maker.exchange(0, chat(main), chat_reply(None, 80, 10, tool_calls=[spawn]), headers=header)
    child = [{"role": "system", "content": "You explore."}, user(task)]
    look = call_of("t10", "Grep", pattern="schedule")
    maker.exchange(2, chat(child), chat_reply(None, 30, 6, tool_calls=[look]), headers=header)
    more = [*child, assistant(None, look), tool("t10", "schedule.py")]
    maker.exchange(5, chat(more), chat_reply("It is fifo.", 40, 4), headers=header)
    back = [*main, assistant(None, spawn), tool("t9", "It is fifo.")]
    maker.exchange(8, chat(back), chat_reply("fifo", 110, 2), headers=header)
    (session,), _, _ = maker.compile()
    assert [thread.kind for thread in session.threads] == ["main", "subagent"]
    assert shape(session) == [(0, 80, ()), (1, 30, (0,)), (1, 40, (1,)), (0, 110, (0, 2))]
    assert [(turn.gap.kind, turn.gap.seconds) for turn in session.turns[1:]] == [
        ("spawn", 1.0), ("tool", 2.0), ("tool", 2.0),
    ]  # fmt: skip


def test_a_fork_is_a_tree(maker: Maker) -> None:
    """A side call with the whole context does not take the thread over."""
    base = [SYSTEM, user("one")]
    maker.exchange(0, chat(base), chat_reply("first", 60, 3))
    side = [*base, assistant("first"), user("suggest a title")]
    maker.exchange(2, chat(side), chat_reply("Title", 75, 2))
    talk = [*base, assistant("first"), user("two")]
    maker.exchange(10, chat(talk), chat_reply("second", 70, 3))
    maker.exchange(20, chat([*talk, assistant("second"), user("three")]), chat_reply("third", 80, 3))
    (session,), _, _ = maker.compile()
    assert [thread.kind for thread in session.threads] == ["main", "side"]
    assert [(turn.thread, turn.after) for turn in session.turns] == [(0, ()), (1, (0,)), (0, (0,)), (0, (2,))]
    assert session.turns[2].prompt.base == 0
    assert session.pieces(2)[:3] == session.pieces(1)[:3]


def test_equal_openings_are_no_session(maker: Maker) -> None:
    """Two people ask the same thing: without an id, that is two sessions that share a beginning."""
    for at in (0, 100):
        maker.exchange(at, chat([SYSTEM, user("hello")]), chat_reply("Hello!", 90, 3))
        more = [SYSTEM, user("hello"), assistant("Hello!"), user(f"I ask at {at}")]
        maker.exchange(at + 10, chat(more), chat_reply(f"at {at}", 110, 3))
    sessions, _, _ = maker.compile()
    assert [len(session.turns) for session in sessions] in ([2, 2], [3, 1])
    assert {piece.segment for piece in sessions[0].pieces(0)} == {piece.segment for piece in sessions[1].pieces(0)}


def test_a_compaction(maker: Maker) -> None:
    head = {CC: "s"}
    long = [SYSTEM, user("start")]
    for number in range(3):
        maker.exchange(10 * number, chat(long), chat_reply(f"reply {number}", 500 + 100 * number, 10), headers=head)
        long = [*long, assistant(f"reply {number}"), user(f"more {number} " * 30)]
    short = [SYSTEM, user("This session continues from a summary: we did things.")]
    maker.exchange(60, chat(short), chat_reply("ok", 520, 5), headers=head)
    (session,), _, _ = maker.compile()
    event = session.turns[3].event
    assert event is not None
    assert (event.kind, event.before) == ("compaction", 700)
    assert event.kept == tokens(session, 0)[0][1]
    assert session.turns[3].thread == 0


def test_a_prompt_that_the_server_kept(maker: Maker) -> None:
    """previous_response_id: the prompt is what was there and what is new."""
    kind: dict[str, Any] = {"path": "/v1/responses", "wire": "responses"}

    def reply(id: str, text: str, given: int) -> bytes:
        output = [{"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}]
        usage = {"input_tokens": given, "output_tokens": 5, "input_tokens_details": {"cached_tokens": 0}}
        return json.dumps({"id": id, "status": "completed", "output": output, "usage": usage}).encode()

    maker.exchange(0, {"model": "m", "instructions": "Be brief.", "input": "one"}, reply("r1", "first", 40), **kind)
    second = {"model": "m", "instructions": "Be brief.", "input": "two", "previous_response_id": "r1"}
    maker.exchange(5, second, reply("r2", "second", 50), **kind)
    lost = {"model": "m", "input": "three", "previous_response_id": "elsewhere"}
    maker.exchange(9, lost, reply("r3", "third", 90), **kind)
    sessions, _, done = maker.compile()
    assert [len(session.turns) for session in sessions] == [2, 1]
    assert [layer for layer, _ in tokens(sessions[0], 1)] == ["system", "user", "assistant", "user"]
    assert sessions[0].turns[1].prompt.keep == 2
    assert sessions[1].turns[0].extra["prefix_unknown"] is True
    assert any("not in the source" in what for what in done.books.notes)


def test_another_model_shares_nothing(maker: Maker) -> None:
    """Another tokenizer, another cache: the same text is other segments."""
    talk = [SYSTEM, user("one")]
    maker.exchange(0, chat(talk), chat_reply("first", 100, 4))
    maker.exchange(5, {**chat([*talk, assistant("first"), user("two")]), "model": "n"}, chat_reply("second", 150, 4))
    (session,), _, _ = maker.compile()
    second: Turn = session.turns[1]
    assert second.event is not None
    assert (second.event.kind, second.prompt.keep, second.after) == ("model_switch", 0, (0,))
    assert not {p.segment for p in session.pieces(0)} & {p.segment for p in session.pieces(1)}
    assert [turn.model for turn in session.turns] == ["model-1", "model-2"]


def test_no_usage_is_estimated_and_said(maker: Maker) -> None:
    """E4's kind: never max_tokens, never 0."""
    maker.exchange(0, chat([user("x" * 400)], max_tokens=512), chat_reply("y" * 40, None, 0))
    (session,), _, _ = maker.compile()
    (turn,) = session.turns
    assert (turn.isl, turn.output.tokens, turn.extra["estimated"]) == (100, 10, ["isl", "osl"])


def test_usage_that_contradicts_itself_never_breaks_a_trace(maker: Maker, tmp_path: Path) -> None:
    """A prompt that grew and is said to be shorter: its parts are cut, and it is noted."""
    talk = [SYSTEM, user("one")]
    maker.exchange(0, chat(talk), chat_reply("first", 100, 4))
    maker.exchange(5, chat([*talk, assistant("first"), user("two")]), chat_reply("second", 60, 4))
    (session,), _, done = maker.compile()
    assert [turn.isl for turn in session.turns] == [100, 60]
    assert lint(tmp_path / "b.trace").errors == 0
    assert any("cut at its end" in what for what in done.books.notes)


def test_a_gateway_that_tells_no_input_tokens(maker: Maker, tmp_path: Path) -> None:
    """0 is not a length: the prompt is estimated, and said to be."""
    reply = {"type": "message", "id": "m", "content": [{"type": "text", "text": "hello"}], "stop_reason": "end_turn",
             "usage": {"input_tokens": 0, "output_tokens": 2}}  # fmt: skip
    body = {"model": "c", "messages": [user("what is it")]}
    maker.exchange(0, body, json.dumps(reply).encode(), path="/v1/messages", wire="messages")
    (session,), _, _ = maker.compile()
    assert (session.turns[0].isl > 0, session.turns[0].extra["estimated"]) == (True, ["isl"])
    assert lint(tmp_path / "b.trace").errors == 0


@pytest.mark.parametrize("value", [10**30, -(10**20), float("inf"), float("nan"), True, "0.5", None])
def test_a_sampling_parameter_that_is_no_usable_number_is_left_out(maker: Maker, value: Any) -> None:
    maker.exchange(0, chat([user("one")], max_tokens=9, top_k=value), chat_reply("first", 10, 2))
    (session,), _, _ = maker.compile()
    assert session.turns[0].sampling == {"max_tokens": 9}


@pytest.mark.parametrize("count", [-1, 10**13, 10**25, 1e999, "9", True])
def test_usage_that_is_no_number_of_tokens_is_as_none(maker: Maker, tmp_path: Path, count: Any) -> None:
    """One reply's nonsense does not cost the whole capture."""
    maker.exchange(0, chat([user("one")]), chat_reply("first", count, count))
    (session,), _, _ = maker.compile()
    assert session.turns[0].extra["estimated"] == ["isl", "osl"]
    assert lint(tmp_path / "b.trace").errors == 0


def test_reasoning_comes_first_and_leaves_the_history(maker: Maker) -> None:
    """R16's neighbour: 30 of 40 tokens are reasoning; the next prompt holds the other ten."""
    talk = [user("think")]
    first = {"choices": [{"message": {"content": "done", "reasoning_content": "hm " * 40}, "finish_reason": "stop"}],
             "usage": {"prompt_tokens": 10, "completion_tokens": 40,
                       "completion_tokens_details": {"reasoning_tokens": 30}}}  # fmt: skip
    maker.exchange(0, chat(talk), json.dumps(first).encode())
    maker.exchange(5, chat([*talk, assistant("done"), user("next")]), chat_reply("x", 28, 1))
    (session,), _, _ = maker.compile()
    assert (session.turns[0].output.reasoning, session.turns[0].output.visible) == (30, 10)
    piece = session.pieces(1)[1]
    assert (piece.segment, piece.start, piece.stop) == (session.turns[0].reply, 30, 40)


def test_nothing_of_the_content_is_in_the_trace(maker: Maker, tmp_path: Path) -> None:
    """Keys wherever a key can be, names of tools, models, sessions and people: none, at either shape level."""
    key = "sk-ant-api03-planted0123456789"
    call = call_of("t1", f"tool_{key}", **{key: "value", "path": f"/home/{key}"})
    talk = [{"role": "system", "content": key}, user(f"my key is {key}")]
    more = [*talk, assistant(None, call), tool("t1", f"env: {key}")]
    head = {CC: key, "x-request-id": key, "x-openai-subagent": "review"}
    body = {**chat(talk, user=key, metadata={"user_id": key}, prompt_cache_key=key), "model": f"ft:{key}"}
    maker.exchange(0, body, chat_reply(key, 50, 9, tool_calls=[call]), headers=head)
    maker.exchange(
        5, {**body, "messages": more}, json.dumps({"error": {"type": key, "message": key}}).encode(), headers=head
    )
    maker.exchange(9, {**body, "messages": more}, b"<html>" + key.encode(), status=502, headers=head)
    coded = [("content-encoding", key)]
    maker.exchange(12, chat([user("a")]), b"x", reply_headers=coded, headers={f"x-{key}-session-id": "s"})
    maker.exchange(15, chat([user("b")]), b"x", headers={"content-encoding": key})
    maker.exchange(18, chat([user("c")]), chat_reply("d", 9, 1), headers={f"x-{key}-session-id": "s"})
    for level in ("shape", "shape-coarse"):
        maker_folder = tmp_path / "cap" if (tmp_path / "cap").exists() else maker.write()
        compile_capture(maker_folder, tmp_path / f"{level}.jsonl", level, tmp_path / "key")  # type: ignore[arg-type]
        text = (tmp_path / f"{level}.jsonl").read_text()
        assert not [key[i : i + 8] for i in range(len(key) - 7) if key[i : i + 8].lower() in text.lower()]
        assert "/home" not in text
        assert '"model-1"' in text


def test_lone_surrogates_are_text_like_any_other(maker: Maker) -> None:
    body = chat([user("\ud800")], prompt_cache_key="\ud800")
    maker.exchange(0, body, chat_reply("\ud83d", 10, 1, tool_calls=[call_of("t", "f", a="\udfff")]))
    (session,), _, _ = maker.compile()
    assert session.turns[0].isl == 10


def test_the_coarse_level(maker: Maker, tmp_path: Path) -> None:
    talk = [SYSTEM, user("one")]
    maker.exchange(0, chat(talk), chat_reply("first", 1000, 37))
    maker.exchange(4.3, chat([*talk, assistant("first"), user("two")]), chat_reply("second", 1100, 70))
    (session,), _, _ = maker.compile("shape-coarse")
    assert [turn.output.tokens for turn in session.turns] == [32, 64]
    assert 2.0 <= session.turns[1].gap.seconds <= 5.0  # 3.3 s, blurred
    assert session.turns[1].prompt.keep == 2
    assert all(turn.observed is None for turn in session.turns)
    sizes = {count for _, count in tokens(session, 1)}
    assert all(count & (count - 1) == 0 for count in sizes)
    assert lint(tmp_path / "b.trace").errors == 0


@pytest.mark.parametrize(
    ("reply", "more", "reason"),
    [
        (b"<html>hello</html>", {}, "never answered: the reply is not JSON"),
        (b'{"error": {"type": "overloaded_error"}}', {}, "never answered: overloaded_error"),  # with status 200
        (b"", {"reply_headers": [SSE]}, "never answered: an empty reply"),
        (b"", {"status": 0, "cause": "client_abort"}, "given up before an answer"),
        (b"no", {"status": 500}, "never answered: status 500"),
        (b"", {"status": 0, "cause": "upstream_unreachable"}, "never answered: no answer"),
        (b"x", {"reply_headers": [("Content-Encoding", "br")]}, "never answered: "),
    ],
)
def test_what_no_model_computed_is_no_turn(maker: Maker, reply: bytes, more: dict[str, Any], reason: str) -> None:
    maker.exchange(0, chat([user("one")]), reply, **more)
    maker.exchange(500, chat([user("two")]), chat_reply("hi", 5, 1))
    (session,), _, done = maker.compile()
    assert len(session.turns) == 1
    assert [text.startswith(reason) for text in done.books.rows.dropped] == [True]


def test_the_text_level(maker: Maker) -> None:
    """Text as it was, without the secrets; the redacted prompts still go on from each other."""
    key = "sk-" + "ant-api03-planted0123456789"
    talk = [SYSTEM, user(f"use {key} for <task-notification>")]
    maker.exchange(0, chat(talk), chat_reply(f"the key {key} works", 120, 9))
    maker.exchange(5, chat([*talk, assistant(f"the key {key} works"), user("good")]), chat_reply("ok", 140, 1))
    (session,), header, done = maker.compile("text")
    assert header.content == "text"
    texts = [segment.content.text for segment in (*session.segments.values(),) if isinstance(segment.content, Text)]
    assert key not in "".join(texts)
    assert "<task-notification>" in "".join(texts)
    assert any(text.startswith("the key <anthropic:") for text in texts)
    assert done.redacted == {"anthropic": 2}
    assert session.turns[1].prompt.keep == 2


def test_a_text_that_no_frame_holds_is_left_out_and_said(maker: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """An endless reply: its length stays, and all the other texts."""
    monkeypatch.setattr("agentx.recorder.weaving.MOST_TEXT", 1000)
    maker.exchange(0, chat([SYSTEM, user("go on for ever")]), chat_reply("on and " * 500, 20, 1000))
    (session,), _, done = maker.compile("text")
    texts = {s.layer: s.content for s in session.segments.values()}
    assert texts["user"] == Text("go on for ever")
    assert texts["assistant"] is None
    assert session.turns[0].output.tokens == 1000
    assert done.books.notes["text over 0 MB, left out: a replay makes other words of its length"] == 1


def test_what_is_no_capture(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such folder"):
        compile_capture(tmp_path / "gone", tmp_path / "b.trace")


def test_a_capture_without_calls(maker: Maker, tmp_path: Path) -> None:
    """R34: nothing usable is an error that says what there was."""
    maker.exchange(0, b"junk", b"{}", path="/health", wire=None)
    maker.exchange(1, b"not json", b"{}")
    folder = maker.write()
    with pytest.raises(BadInput, match=r"0 model calls that can be used.*2 exchanges") as caught:
        compile_capture(folder, tmp_path / "b.trace", "shape", tmp_path / "key")
    assert "it is not JSON" in str(caught.value)
    assert not (tmp_path / "b.trace").exists()
    with pytest.raises(BadInput, match="cannot be read"):
        compile_capture(folder, tmp_path / "b.trace", "shape", tmp_path / "nokey")


def two_sessions(maker: Maker, name: str) -> Path:
    """Two clients with one system text and questions of their own, as a capture."""
    for number in range(2):
        body = chat([SYSTEM, user(f"question {number} of {name}")])
        maker.exchange(number * 9, body, chat_reply("yes", 100, 3), headers={CC: f"{name}{number}"})
    return maker.write()


SCOPES: list[tuple[Any, str, bool]] = [
    ("session", "session", False),  # what two sessions share is not told
    ("file", "file", True),  # it is, inside of the trace
    ("global", "global", True),
]


@pytest.mark.parametrize(("scope", "identity", "shares"), SCOPES)
def test_scopes(maker: Maker, tmp_path: Path, scope: Any, identity: str, shares: bool) -> None:
    key = CaptureKey(b"t" * 32)
    compile_capture(two_sessions(maker, "a"), tmp_path / "a.trace", "shape", tmp_path / "key", scope=scope, across=key)
    reader = read_trace(tmp_path / "a.trace")
    reused = possible(reader).reused
    assert reader.header.identity == identity
    assert (reused > 0) is shares
    assert lint(tmp_path / "a.trace").errors == 0


@pytest.mark.parametrize("same", [True, False], ids=["one key", "two keys"])
@pytest.mark.parametrize("level", ["shape", "shape-coarse"])
def test_a_global_scope_shares_the_system_text_across_captures(tmp_path: Path, same: bool, level: Any) -> None:
    """Two captures with keys of their own: with one scope key their system text is one, with two it is not."""
    for name, key in (("a", b"t"), ("b", b"t" if same else b"u")):
        folder = tmp_path / name
        folder.mkdir()
        out, across = tmp_path / f"{name}.trace", CaptureKey(key * 32)
        capture = two_sessions(Maker(folder), name)
        compile_capture(capture, out, level, folder / "key", scope="global", across=across)
    alone = possible(read_trace(tmp_path / "a.trace")).reused
    (tmp_path / "both.trace").write_bytes((tmp_path / "a.trace").read_bytes() + (tmp_path / "b.trace").read_bytes())
    both = possible(read_trace(tmp_path / "both.trace")).reused
    assert both == alone * (3 if same else 2)  # of four sessions all but the first, or two of each pair


def test_bodies_that_are_nested_too_deeply_are_counted(maker: Maker) -> None:
    """JSON that can be parsed, and is too deep to be walked."""
    nested = b"[" * 900 + b"]" * 900
    deep = b'{"model": "m", "tools": [{"x": %b}], "messages": [{"role": "user", "content": "hi"}]}' % nested
    maker.exchange(0, deep, chat_reply("hi", 9, 1))
    calls = b'[{"id": "t", "function": {"name": "f", "arguments": %b}}]' % nested
    reply = b'{"choices": [{"message": {"content": "x", "tool_calls": %b}}], "usage": {"prompt_tokens": 9}}' % calls
    maker.exchange(5, chat([user("hello")]), reply)
    maker.exchange(9, chat([user("other")]), chat_reply("hi", 9, 1))
    sessions, _, done = maker.compile()
    assert done.books.rows.dropped == {"no model call: it is nested too deeply": 1}
    assert sum(len(session.turns) for session in sessions) == 2
