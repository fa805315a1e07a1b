"""AIPerf's Mooncake rows, which the mooncake importer reads: delta rows with a delay, a group and restarts."""

from __future__ import annotations

from pathlib import Path

from importing import layers, row, tokens, write

from agentx.core import Gap
from agentx.recorder.imports.mooncake import import_mooncake
from agentx.trace import read_trace


def test_delta_rows_of_an_agentic_code_file(tmp_path: Path) -> None:
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
