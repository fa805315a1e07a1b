"""A quality run is read back as it was written; torn and foreign files are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentx.errors import BadInput
from agentx.quality.results import NAME, Outcome, head_line, outcome_line, read_quality

RIGHT = Outcome("p0000", "short", "aa", "4", "right", "4", "Answer: 4", "stop", 10, 3)
FAILED = Outcome("p0001", "long", "bb", "5", "failed", None, "", error="status 500")


def written(folder: Path, text: str) -> Path:
    (folder / NAME).write_text(text)
    return folder


def test_round_trip(tmp_path: Path) -> None:
    text = head_line({"asked": 2}) + outcome_line(RIGHT) + outcome_line(FAILED)
    found = read_quality(written(tmp_path, text))
    assert found.outcomes == (RIGHT, FAILED)
    assert found.complete
    assert (found.count("right"), found.count("right", "long"), found.variants) == (1, 0, ["short", "long"])


def test_a_torn_line_is_left_out(tmp_path: Path) -> None:
    found = read_quality(written(tmp_path, head_line({"asked": 2}) + outcome_line(RIGHT) + outcome_line(FAILED)[:9]))
    assert found.outcomes == (RIGHT,)
    assert not found.complete


MISTAKES = [
    ("", "this is no quality run"),
    ("{}\n", "this is no quality run"),
    (head_line({}) + "nonsense\n" + outcome_line(RIGHT), "jsonl:2: the line is damaged"),
    (head_line({}) + outcome_line(RIGHT).replace('"right"', '"maybe"'), "'maybe' is no verdict"),
]


@pytest.mark.parametrize(("text", "says"), MISTAKES)
def test_mistakes(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_quality(written(tmp_path, text))
    assert says in str(caught.value)


def test_a_folder_without_one(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="agentx quality --target URL"):
        read_quality(tmp_path)
