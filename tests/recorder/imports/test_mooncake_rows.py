"""Mooncake rows as they are read, and what a survey of a file finds out."""

from __future__ import annotations

import hashlib
from array import array
from pathlib import Path
from typing import Any

import pytest
from importing import row, write

from agentx.errors import BadInput
from agentx.recorder.imports.mooncake_rows import Clock, Survey, row_of
from agentx.recorder.imports.source import lines


def survey(tmp_path: Path, *rows: Any, block: int = 4) -> Survey:
    found = Survey(write(tmp_path / "in.jsonl", *rows), block)
    found.read(hashlib.sha256())
    return found


def test_a_row_is_read_whole(tmp_path: Path) -> None:
    value = row(7, 3, [1, 1 << 63], timestamp=5, delay=2, session_id=12, model="m", group_id=3, note="x", hot=True)
    (line,) = lines(write(tmp_path / "in.jsonl", value))
    found = row_of(line, tmp_path)
    assert (found.isl, found.out, found.ids, found.timestamp, found.delay) == (7, 3, array("Q", [1, 1 << 63]), 5.0, 2.0)
    assert (found.session, found.model, found.line) == ("12", "m", 1)
    assert (found.kept, found.left) == ({"group_id": 3, "hot": True}, ("note",))  # texts may be content


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (row(4, 1, [-1]), "hash_ids: -1 is not a block id"),
        (row(4, 1, [1.0]), "hash_ids: 1.0 is not a block id"),
        ({"input_length": 4, "hash_ids": [1]}, "the field 'output_length' is missing"),
        ({"output_length": 4, "hash_ids": [1]}, "the field 'input_length' is missing"),
        (row(-4, 1, [1]), "input_length: -4 is not a whole number"),
        (row(4, 1.5, [1]), "output_length: 1.5 is not a whole number"),  # type: ignore[arg-type]
        (row(4, 1, [1], timestamp="noon"), "timestamp: 'noon' is not a number of seconds"),
        (row(4, 1, [1], delay=-3), "delay: -3.0 is below 0"),
        (row(4, 1, [1], session_id=[1]), "session_id: [1] is not a text or a whole number"),
        ({"text_input": "hello", "output_length": 1}, "the row carries text and no input_length"),
        ({"messages": [], "output_length": 1}, "the row carries text and no input_length"),
        ({"requests": [], "block_size": 64}, "not a Mooncake row: this looks like a Weka session (agentx import weka)"),
        (row(4, 1, [1], chat_id=1, parent_chat_id=-1), "not a Mooncake row: this looks like a Bailian trace"),
        ([1], "not a Mooncake row: this looks like a JSON list"),
    ],
)
def test_what_is_no_row_is_refused_with_its_line(tmp_path: Path, value: Any, message: str) -> None:
    with pytest.raises(BadInput) as error:
        survey(tmp_path, row(4, 1, [1]), value)
    assert str(error.value).startswith(f"{tmp_path / 'in.jsonl'}:2: {message}")


def test_the_rows_of_a_session_are_found_again(tmp_path: Path) -> None:
    rows = [row(4 * n + 4, n, range(n + 1), **({"session_id": "ab"[n % 2]} if n != 3 else {})) for n in range(6)]
    found = survey(tmp_path, *rows)
    assert list(found.first) == [1, 1, 2, 0, 2, 2]
    assert [(each.line, each.isl) for each in found.session("b")] == [(2, 8), (6, 24)]


@pytest.mark.parametrize(
    ("block", "ids", "fails"),
    [
        (4, 2, False),  # 7 tokens: 2 blocks, the last one cut
        (4, 1, False),  # only whole blocks are hashed
        (4, 7, True),
    ],
)
def test_a_block_size_that_does_not_fit_is_refused(tmp_path: Path, block: int, ids: int, fails: bool) -> None:
    rows = [row(7, 1, range(ids))] * 3
    if not fails:
        assert survey(tmp_path, *rows, block=block).rows == 3
        return
    with pytest.raises(BadInput, match=r"3 of 3 rows .* an id stands for some 1 tokens here \(--block N"):
        survey(tmp_path, *rows, block=block)


def times(*values: float, **more: Any) -> list[dict[str, Any]]:
    return [row(4, 100, [1], timestamp=value, **more) for value in values]


def delays(*values: float) -> list[dict[str, Any]]:
    return [row(4, 100, [1], delay=value) for value in values]


@pytest.mark.parametrize(
    ("rows", "scale", "zero", "why"),
    [
        (times(0, 3000), 1e-3, 0, "milliseconds: the format's unit, and it gives a sensible 0.667 rows a second"),
        (times(0, 1, 2, 3), 1.0, 0, "as milliseconds there would be 1,333 rows a second"),
        (times(0, 60, 600), 1e-3, 0, "milliseconds: the format's unit"),  # nothing tells: --unit does
        (times(0, 60.5, 600.25), 1.0, 0, "seconds: they have fractions"),
        (times(0, 60, 90, session_id="s"), 1.0, 0, "replies would have come at over 1,000 tokens a second"),
        (times(1_700_000_000.0, 1_700_000_004.5), 1.0, 1_700_000_000.0, "seconds of a calendar clock"),
        (times(1_700_000_003_000, 1_700_000_000_000), 1e-3, 1_700_000_000_000, "milliseconds of a calendar clock"),
        (times(1_700_000_000_000_000), 1e-6, 1_700_000_000_000_000, "microseconds of a calendar clock"),
        (times(1_700_000_000_000_000_000), 1e-9, 1_700_000_000_000_000_000, "nanoseconds of a calendar clock"),
        (times(5, 5), 1e-3, 0, "nothing speaks for or against it"),
        (delays(2000, 15000), 1e-3, 0, "milliseconds: the format's unit, and the delays' median is 8,500"),
        (delays(0.3, 2.5, 15), 1.0, 0, "as milliseconds half of the delays would be below 50"),
        ([row(4, 1, [1])], 1.0, 0, "no row has a timestamp or a delay"),
    ],
)
def test_the_time_unit_is_found_by_evidence_and_said(
    tmp_path: Path, rows: list, scale: float, zero: float, why: str
) -> None:
    clock = survey(tmp_path, *rows).clock(None)
    assert (clock.scale, clock.zero) == (scale, zero)
    assert why in clock.found


def test_the_time_unit_can_be_told(tmp_path: Path) -> None:
    clock = survey(tmp_path, *times(0, 60, 600)).clock("s")
    assert clock == Clock(1.0, 0.0, "times are read as s, as told")
    assert (clock.at(60), clock.span(1.5)) == (60.0, 1.5)
