"""Mooncake rows become sessions: cumulative and delta rows, interleaved sessions, times."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from importing import Json, layers, row, tokens, write

from agentx.core import Gap, Observed, Session
from agentx.errors import BadInput
from agentx.recorder.imports.books import Books
from agentx.recorder.imports.mooncake import import_mooncake
from agentx.trace import read_trace

BLOCK = 4


def imported(tmp_path: Path, *rows: Json, **more: object) -> tuple[list[Session], Books]:
    books = import_mooncake(write(tmp_path / "in.jsonl", *rows), tmp_path / "out.trace", block=BLOCK, **more)  # type: ignore[arg-type]
    return list(read_trace(tmp_path / "out.trace")), books


def test_rows_without_a_session_are_sessions_of_one_turn(tmp_path: Path) -> None:
    rows = row(6, 2, [0, 9], timestamp=0), row(9, 0, [0, 9, 5], timestamp=3000), row(4, 1, [7], timestamp=3000)
    sessions, books = imported(tmp_path, *rows)
    assert [(session.id, session.arrival) for session in sessions] == [("row-1", 0.0), ("row-2", 3.0), ("row-3", 3.0)]
    assert [(session.turns[0].isl, session.turns[0].output.tokens) for session in sessions] == [(6, 2), (9, 0), (4, 1)]
    assert tokens(sessions[1], 0, BLOCK) == [(id, offset) for id in (0, 9) for offset in range(4)] + [(5, 0)]
    assert len({session.blocks_scope for session in sessions}) == 1  # ids are comparable in the whole file
    assert read_trace(tmp_path / "out.trace").header.identity == "file"
    assert (books.sessions.used, books.rows.used) == (3, 3)


def test_cumulative_rows_give_the_whole_prompt(tmp_path: Path) -> None:
    rows = [row(8, 4, [0, 1]), row(16, 3, [0, 1, 2, 3]), row(24, 1, [0, 1, 2, 3, 4, 5])]
    (session,), books = imported(tmp_path, *({**each, "session_id": "s"} for each in rows))
    assert [turn.isl for turn in session.turns] == [8, 16, 24]
    assert layers(session, 2) == [("user", 8), ("assistant", 4), ("user", 4), ("assistant", 3), ("user", 5)]
    assert [turn.after for turn in session.turns] == [(), (0,), (1,)]
    assert books.notes["session of cumulative rows"] == 1


def test_delta_rows_are_put_behind_history_and_reply(tmp_path: Path) -> None:
    rows = [row(10, 4, [0, 1, 2]), row(5, 3, [8, 9]), row(6, 0, [12, 13]), row(4, 1, [14])]
    (session,), books = imported(tmp_path, *({**each, "session_id": "s"} for each in rows))
    assert [turn.isl for turn in session.turns] == [10, 19, 28, 32]  # nothing comes between a reply of 0 and a row
    assert layers(session, 3) == [
        *[("user", 10), ("assistant", 4), ("user", 5), ("assistant", 3), ("user", 6)],
        ("user", 4),
    ]
    assert tokens(session, 1, BLOCK)[14:] == [(8, 0), (8, 1), (8, 2), (8, 3), (9, 0)]
    assert [session.segment(turn.reply).tokens for turn in session.turns if turn.reply is not None] == [4, 3]
    assert books.notes["session of delta rows"] == 1


@pytest.mark.parametrize(
    ("rows", "isl"),
    [
        # cumulative by the ids, although one prompt shrank: a compaction
        ([(16, 1, [0, 1, 2, 3]), (8, 1, [0, 9]), (12, 1, [0, 9, 10])], [16, 8, 12]),
        # shorter than a block, so that ids cannot tell: the lengths grow by at least the reply
        ([(1, 0, [5]), (3, 1, [6]), (6, 1, [7, 8])], [1, 3, 6]),
        ([(1, 9, [5]), (3, 9, [5]), (6, 1, [5, 8])], [1, 3, 6]),  # an id that stays says it too
        ([(100, 50, None), (300, 20, None), (600, 1, None)], [100, 300, 600]),  # no ids at all
        ([(0, 5, None), (9, 1, None)], [0, 9]),  # an empty prompt
        ([(100, 50, None), (120, 20, None), (600, 1, None)], [100, 270, 890]),  # grew by less than the reply: deltas
        ([(40, 8, range(10)), (41, 7, range(20, 31))], [40, 89]),  # longer, but of other ids: a delta
    ],
)
def test_what_the_rows_of_a_session_hold_is_found_out(tmp_path: Path, rows: list, isl: list[int]) -> None:
    (session,), _ = imported(tmp_path, *(row(*each, session_id="s") for each in rows))
    assert [turn.isl for turn in session.turns] == isl
    assert [sum(n for _, n in layers(session, index)) for index in range(len(rows))] == isl


@pytest.mark.parametrize(("reading", "isl"), [("cumulative", [8, 8]), ("delta", [8, 17])])
def test_what_the_rows_hold_can_be_told(tmp_path: Path, reading: str, isl: list[int]) -> None:
    rows = [row(8, 1, [0, 1], session_id="s"), row(8, 1, [4, 5], session_id="s")]
    (session,), _ = imported(tmp_path, *rows, rows=reading)
    assert [turn.isl for turn in session.turns] == isl


def test_without_ids_nothing_is_shared_but_the_history(tmp_path: Path) -> None:
    rows = [row(100, 50, None, session_id="s"), row(300, 20, None, session_id="s")]
    (session,), books = imported(tmp_path, *rows)
    assert layers(session, 1) == [("user", 100), ("assistant", 50), ("user", 150)]
    assert session.turns[0].reply is not None
    assert books.notes["row without hash ids: its tokens occur nowhere else"] == 2


def test_interleaved_sessions_are_put_together_in_the_order_of_their_first_rows(tmp_path: Path) -> None:
    rows = [
        row(4, 1, [0], session_id="b", timestamp=1000),
        row(4, 1, [7], timestamp=2000),
        row(8, 1, [20, 21], session_id="a", timestamp=3000),
        row(8, 1, [0, 1], session_id="b", timestamp=9000),
        row(12, 1, [20, 21, 22], session_id="a", timestamp=4500),
    ]
    sessions, books = imported(tmp_path, *rows)
    assert [(session.id, len(session.turns)) for session in sessions] == [("b", 2), ("row-2", 1), ("a", 2)]
    assert [session.arrival for session in sessions] == [1.0, 2.0, 3.0]
    assert sessions[2].turns[1].observed == Observed(start=1.5)
    assert sessions[2].turns[1].gap == Gap("unknown", 1.5, "inferred")
    assert books.notes["gap taken from two starts: it includes the reply before (inferred)"] == 2


def test_time_stamps_out_of_order_are_sorted_within_the_session(tmp_path: Path) -> None:
    rows = [row(8, 1, [0, 1], timestamp=5000), row(4, 1, [0], timestamp=1000), row(12, 1, [0, 1, 2], timestamp=9000)]
    (session,), books = imported(tmp_path, *({**each, "session_id": "s"} for each in rows))
    assert [turn.isl for turn in session.turns] == [4, 8, 12]
    assert session.arrival == 1.0
    assert books.notes["row out of order in time: sorted within its session"] == 1


def test_delays_are_gaps_behind_the_turn_before(tmp_path: Path) -> None:
    rows = [
        row(40, 8, range(10), timestamp=0),
        row(4, 7, [83], delay=2000),
        row(5, 1, [91, 92], delay=15000),
        row(4, 1, [95]),
    ]
    (session,), _ = imported(tmp_path, *({**each, "session_id": "s"} for each in rows))
    assert [turn.gap for turn in session.turns] == [
        Gap(),
        Gap("unknown", 2.0, "recorded"),
        Gap("unknown", 15.0, "recorded"),
        Gap("unknown", 0.0, "inferred"),  # no time is told
    ]


def test_calendar_times_are_counted_from_the_earliest(tmp_path: Path) -> None:
    rows = [row(4, 1, [0], timestamp=1_700_000_003.5), row(4, 1, [0], timestamp=1_700_000_000.0)]
    sessions, _ = imported(tmp_path, *rows)
    assert [session.arrival for session in sessions] == [3.5, 0.0]


def test_unknown_keys_are_counted_and_only_numbers_are_kept(tmp_path: Path) -> None:
    (session,), books = imported(tmp_path, row(4, 1, [0], group_id=3, is_restart=False, user="ada", model="m"))
    assert session.turns[0].extra == {"source": {"group_id": 3, "is_restart": False}}
    assert session.turns[0].model == "m"
    assert books.notes["key 'user' is not part of the format: left out"] == 1
    assert books.notes["key 'group_id' is not part of the format: kept as it is"] == 1


def test_too_few_and_too_many_ids_are_counted(tmp_path: Path) -> None:
    right = [row(4, 1, [0])] * 3
    sessions, books = imported(tmp_path, *right, row(12, 1, [0]), row(4, 1, [0, 1, 2]))
    assert tokens(sessions[3], 0, BLOCK) == [(0, 0), (0, 1), (0, 2), (0, 3), *[None] * 8]
    assert layers(sessions[4], 0) == [("user", 4)]
    assert books.notes["row with fewer hash ids than its length has blocks: the rest is not identified"] == 1
    assert books.notes["prompt with more hash ids than its length has blocks: the surplus left out"] == 1


def test_a_row_is_not_named_like_a_session(tmp_path: Path) -> None:
    sessions, _ = imported(tmp_path, row(4, 1, [0]), row(4, 1, [0], session_id="row-1"))
    assert [session.id for session in sessions] == ["row-1#", "row-1"]


def test_a_file_of_blank_lines_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text("\n\n")
    with pytest.raises(BadInput, match="the file has no rows"):
        import_mooncake(tmp_path / "in.jsonl", tmp_path / "out.trace")


def test_a_bad_row_far_in_the_file_leaves_no_trace_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agentx.recorder.imports.mooncake_rows.SAMPLE", 1)
    with pytest.raises(BadInput, match=r"in.jsonl:3: hash_ids: -1 is not"):
        imported(tmp_path, row(4, 1, [0]), row(4, 1, [0]), row(4, 1, [-1]))
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_aiperfs_delta_rows_have_groups_and_restarts(tmp_path: Path) -> None:
    rows = [
        row(1100, 80, [0, 1, 2], session_id="s0", timestamp=0, group_id=3, is_restart=False),
        row(600, 70, [3, 4], session_id="s0", delay=2000),
        row(100, 12, [5], session_id="s0", delay=15000),
        row(1600, 9, [0, 1, 6, 7], session_id="s1", timestamp=500, group_id=3, is_restart=True),
        row(700, 9, [8, 9], session_id="s1", delay=1000),
    ]
    books = import_mooncake(write(tmp_path / "in.jsonl", *rows), tmp_path / "out.trace")
    first, second = read_trace(tmp_path / "out.trace")
    assert books.notes["session of delta rows"] == 2
    assert [turn.isl for turn in first.turns] == [1100, 1780, 1950]
    assert layers(first, 2) == [("user", 1100), ("assistant", 80), ("user", 600), ("assistant", 70), ("user", 100)]
    assert [turn.gap for turn in first.turns[1:]] == [Gap("unknown", 2.0), Gap("unknown", 15.0)]
    assert (first.arrival, second.arrival) == (0.0, 0.5)
    # layers that sessions share have the same ids in each one's first row
    assert tokens(first, 0, 512)[:1024] == tokens(second, 0, 512)[:1024]
    assert first.runs(0)[0].stream == second.runs(0)[0].stream
    # what the format of others does not have is kept beside the turn
    assert second.turns[0].extra["source"] == {"group_id": 3, "is_restart": True}


# --- any file ----------------------------------------------------------------------------------------------------

ids = st.lists(st.sampled_from([0, 1, 2, (1 << 64) - 2, (1 << 64) - 1]), min_size=1, max_size=5)
any_row = st.tuples(ids, st.integers(0, BLOCK - 1), st.integers(0, 9), st.sampled_from([None, "a", "b"]))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(any_row, min_size=1, max_size=9), st.sampled_from(["cumulative", "delta"]))
def test_prompts_are_the_sources_blocks_exactly(tmp_path: Path, drawn: list, reading: str) -> None:
    rows = [
        row(len(chain) * BLOCK - cut, out, chain, **({} if name is None else {"session_id": name}))
        for chain, cut, out, name in drawn
    ]
    sessions, books = imported(tmp_path, *rows, rows=reading)
    assert books.rows.read == len(rows) == books.rows.used == sum(len(session.turns) for session in sessions)
    by_session: dict[str, list[Json]] = {}
    for number, each in enumerate(rows, start=1):
        by_session.setdefault(each.get("session_id", f"row-{number}"), []).append(each)
    assert [session.id for session in sessions] == list(by_session)
    for session in sessions:
        history = 0
        for turn, each in zip(session.turns, by_session[session.id], strict=True):
            start = history if reading == "delta" else 0
            want = [(each["hash_ids"][at // BLOCK], at % BLOCK) for at in range(each["input_length"])]
            assert tokens(session, turn.index, BLOCK)[start:] == want
            assert turn.isl == start + each["input_length"]
            assert turn.output.tokens == each["output_length"]
            history = turn.isl + each["output_length"]
