"""Weka sessions become sessions: threads, waits, gaps, and prompts that are the source's blocks exactly."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from importing import Json, agent, call, layers, tokens, weka, weka_session, write

from agentx.core import Gap, Observed, Session, Thread, TurnEvent
from agentx.errors import BadInput
from agentx.recorder.imports.weka import import_weka
from agentx.trace import read_trace


def fan_out() -> Json:
    """A turn, three subagents at once (t = end), and the turn that used their answers."""
    spawned = [
        agent(79.224, [call(0, 8, 2, [10, 11], api_time=2.16), call(6, 16, 3, range(10, 14))], duration_ms=59_750),
        agent(183.906, [call(0, 8, 2, [10, 20]), call(13, 12, 4, [10, 20, 21])], duration_ms=164_445, agent_id="a2"),
        agent(211.347, [call(0, 8, 2, [10, 30])], duration_ms=191_873, agent_id="a3"),
    ]
    first = call(0, 12, 3, range(3), api_time=18.78, input_types=["text"])
    return weka([first, *spawned, call(228, 24, 1, range(6), stop="end_turn"), call(248, 32, 1, range(8))])


def test_subagents_start_together_after_the_turn_that_spawned_them(tmp_path: Path) -> None:
    session = weka_session(tmp_path, fan_out())
    assert session.threads[0] == Thread(0)
    assert [(thread.kind, thread.parent, thread.type) for thread in session.threads[1:]] == [
        ("subagent", 0, "Explore")
    ] * 3
    firsts = [next(turn for turn in session.turns if turn.thread == thread) for thread in (1, 2, 3)]
    assert [turn.observed.start for turn in firsts] == [19.474, 19.461, 19.474]  # type: ignore[union-attr]
    assert [turn.after for turn in firsts] == [(0,)] * 3
    assert [turn.gap for turn in firsts] == [Gap("spawn", at, "inferred") for at in (0.694, 0.681, 0.694)]


def test_the_parents_next_turn_waits_for_the_subagents(tmp_path: Path) -> None:
    session = weka_session(tmp_path, fan_out())
    main = [turn for turn in session.turns if turn.thread == 0]
    lasts = [max(turn.index for turn in session.turns if turn.thread == thread) for thread in (1, 2, 3)]
    assert main[1].after == tuple(sorted([0, *lasts]))
    ended = max(session.turns[index].observed.end for index in main[1].after)  # type: ignore[union-attr, type-var]
    assert main[1].gap == Gap("tool", pytest.approx(228 - ended), "inferred")  # type: ignore[arg-type, operator]
    assert main[2].after == (main[1].index,)
    assert main[2].gap == Gap("human", 19.0, "recorded")
    assert [turn.index for turn in session.turns] == list(range(len(session.turns)))


def test_times_inside_a_subagent_are_recorded_ones(tmp_path: Path) -> None:
    session = weka_session(tmp_path, fan_out())
    second = [turn for turn in session.turns if turn.thread == 1][1]
    assert second.gap == Gap("tool", pytest.approx(6 - 2.16), "recorded")  # type: ignore[arg-type]
    assert second.observed == Observed(start=25.474, end=26.474)


def test_what_starts_after_the_turn_that_waits_is_not_waited_for(tmp_path: Path) -> None:
    """A background subagent: the parent goes on before it ends."""
    background = agent(50, [call(0, 8, 2, [9])], duration_ms=46_000)
    session = weka_session(tmp_path, weka([call(0, 4, 1, [1]), background, call(20, 8, 1, [1, 2])]))
    assert [turn.after for turn in session.turns] == [(), (0,), (0,)]


def test_a_session_of_absolute_times_is_read_like_one_of_relative_times(tmp_path: Path) -> None:
    """The two dialects say the same: t is the start and all times are the session's."""
    other = fan_out()
    for entry in other["requests"]:
        if entry["type"] == "subagent":
            entry["t"] = round(entry["t"] - entry["duration_ms"] / 1000, 3)
            for inner in entry["requests"]:
                inner["t"] = round(inner["t"] + entry["t"], 3)
    first, second = weka_session(tmp_path, fan_out()), weka_session(tmp_path, other)
    assert [turn.observed for turn in first.turns] == [turn.observed for turn in second.turns]
    assert [turn.after for turn in first.turns] == [turn.after for turn in second.turns]
    assert second.turns[1].gap.provenance == "recorded"  # nothing had to be computed there


def test_what_overlaps_or_leaves_the_context_is_a_side_thread(tmp_path: Path) -> None:
    rows = [call(0, 8, 1, [1, 2]), call(0.5, 4, 1, [7]), call(3, 4, 1, [1], stop=""), call(6, 12, 1, [1, 2, 3])]
    session = weka_session(tmp_path, weka(rows, tool_tokens=2))
    assert session.threads == (Thread(0), Thread(1, 0, "side"), Thread(2, 0, "side"))
    assert [(turn.thread, turn.after) for turn in session.turns] == [(0, ()), (1, ()), (2, (0,)), (0, (0,))]
    assert layers(session, 1) == [("tool_result", 4)]  # a context of its own: where its tools end is unknown
    assert (session.turns[2].prompt.base, layers(session, 2)) == (0, [("tools", 2), ("tool_result", 2)])
    assert session.turns[3].gap == Gap("tool", 5.0, "recorded")


@pytest.mark.parametrize(
    ("stop", "kind"), [("tool_use", "tool"), ("end_turn", "human"), ("", "unknown"), ("max_tokens", "unknown")]
)
def test_the_stop_before_says_what_was_waited_for(tmp_path: Path, stop: str, kind: str) -> None:
    session = weka_session(tmp_path, weka([call(0, 4, 1, [1], stop=stop), call(5, 8, 1, [1, 2])]))
    assert session.turns[1].gap == Gap(kind, 4.0, "recorded")  # type: ignore[arg-type]


def test_without_the_time_of_a_call_its_end_is_unknown_and_gaps_are_inferred(tmp_path: Path) -> None:
    rows = [call(7, 4, 1, [1], api_time=None), call(12, 8, 1, [1, 2], api_time=0.5, type="s", ttft=0.25)]
    session = weka_session(tmp_path, weka(rows))
    assert session.turns[0].observed == Observed(start=0.0)  # the session starts with its first call
    assert session.turns[1].observed == Observed(5.0, 0.25, 5.5)
    assert session.turns[1].gap == Gap("tool", 5.0, "inferred")


def test_another_model_is_an_event(tmp_path: Path) -> None:
    session = weka_session(tmp_path, weka([call(0, 4, 1, [1]), call(5, 8, 1, [1, 2], model="n")]))
    assert [turn.event for turn in session.turns] == [None, TurnEvent("model_switch")]
    assert [turn.model for turn in session.turns] == ["m", "n"]


def test_a_reply_of_nothing_is_kept(tmp_path: Path) -> None:
    session = weka_session(tmp_path, weka([call(0, 4, 0, [1]), call(5, 8, 1, [1, 2])]))
    assert [turn.output.tokens for turn in session.turns] == [0, 1]


def test_subagents_without_a_parent_turn_still_have_a_main_thread(tmp_path: Path) -> None:
    session = weka_session(tmp_path, weka([agent(9, [call(0, 4, 1, [1])], duration_ms=1000)]))
    assert session.threads[0] == Thread(0)
    assert (session.threads[1].kind, session.turns[0].thread, session.turns[0].after) == ("subagent", 1, ())


def test_several_files_are_one_trace(tmp_path: Path) -> None:
    write(tmp_path / "b.json", weka([call(0, 4, 1, [1])], id="x"))
    write(tmp_path / "a.json", weka([call(0, 4, 1, [1])], id="x"))
    write(tmp_path / "c.json", weka([], id="empty"))
    books = import_weka([tmp_path], tmp_path / "out.trace")
    reader = read_trace(tmp_path / "out.trace")
    first, second = reader
    assert (first.id, second.id) == ("x", "x#2")
    assert first.blocks_scope != second.blocks_scope  # equal ids of two sessions are not equal content
    assert (reader.header.identity, reader.header.content, len(reader.header.provenance["sources"])) == (
        "session",
        "opaque",
        3,
    )
    assert books.sessions.dropped == {"without requests": 1}
    assert books.notes["session id that occurs again: numbered"] == 1


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    source = write(tmp_path / "in.json", fan_out())
    made = [
        import_weka([source], tmp_path / name) and (tmp_path / name).read_bytes() for name in ("a.trace", "b.trace")
    ]
    assert made[0] == made[1]


def test_a_refused_file_leaves_no_trace_behind(tmp_path: Path) -> None:
    good, bad = write(tmp_path / "a.json", fan_out()), tmp_path / "b.json"
    bad.write_text('{"id": "s", "requests": [')
    with pytest.raises(BadInput, match=r"b\.json:1: the JSON is cut in the middle"):
        import_weka([good, bad], tmp_path / "out.trace")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "b.json"]


# --- any session -------------------------------------------------------------------------------------------------

BLOCK = 4


@st.composite
def rows(draw: st.DrawFn) -> list[Json]:
    """Calls whose prompts are paths in a tree of blocks, as chains of prefix hashes are."""
    paths: list[list[int]] = [[]]
    made = []
    t = 0.0
    for _ in range(draw(st.integers(1, 7))):
        head = draw(st.sampled_from(paths))
        head = head[: draw(st.integers(0, len(head)))]
        fresh = 1 + max((id for path in paths for id in path), default=0)
        path = head + list(range(fresh, fresh + draw(st.integers(0, 4))))
        paths.append(path)
        tail = draw(st.integers(0, BLOCK - 1))
        t += draw(st.sampled_from([0.0, 0.4, 2.0, 9.5]))
        took = draw(st.sampled_from([None, 0.5, 3.0]))
        out = draw(st.integers(0, 9))
        stop = draw(st.sampled_from(["tool_use", "end_turn"]))
        made.append(call(t, len(path) * BLOCK + tail, out, path, api_time=took, stop=stop))
    return made


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows(), rows(), st.floats(0.1, 90), st.booleans(), st.integers(0, 9))
def test_prompts_are_the_sources_blocks_exactly(
    tmp_path: Path, own: list[Json], inner: list[Json], at: float, absolute: bool, tools: int
) -> None:
    shift = at if absolute else 0.0
    inner = [{**row, "t": row["t"] + shift} for row in inner]
    value = weka([*own, agent(at, inner, duration_ms=2000)], tool_tokens=tools, system_tokens=3)
    books = import_weka([write(tmp_path / "in.json", value)], tmp_path / "out.trace")
    (session,) = read_trace(tmp_path / "out.trace")
    assert books.rows.read == len(own) + len(inner) == books.rows.used + books.rows.dropped.total()
    assert len(session.turns) == books.rows.used
    wanted = [(row["in"], row["out"], row["hash_ids"]) for row in own + inner]
    found = [(turn.isl, turn.output.tokens, hashed(session, turn.index)) for turn in session.turns]
    assert {(isl, out, tuple(ids)) for isl, out, ids in wanted} == {(isl, out, tuple(ids)) for isl, out, ids in found}
    for turn in session.turns:
        assert sum(piece.tokens for piece in session.pieces(turn.index)) == turn.isl
        assert all(earlier < turn.index for earlier in turn.after)
        assert turn.gap.seconds >= 0


def hashed(session: Session, index: int) -> list[int]:
    """The ids of the whole blocks of a prompt, checked to lie in it without a gap; a tail shorter than one is left."""
    found = tokens(session, index, BLOCK)
    whole = len(found) // BLOCK
    ids = []
    for place in range(whole):
        block = found[place * BLOCK : (place + 1) * BLOCK]
        assert None not in block
        id = block[0][0]  # type: ignore[index]
        assert block == [(id, offset) for offset in range(BLOCK)]
        ids.append(id)
    return ids
