"""Answers are taken from the last line that says so, and from nowhere else."""

from __future__ import annotations

import pytest

from agentx.quality.answers import answered, verdict

ROWS = [
    ("Answer: 42", "42", "right"),
    ("work\nAnswer: 42\n", "42", "right"),
    ("**Answer:** 1,234.", "1234", "right"),
    ("Answer: 42.0", "42", "right"),
    ("Answer: 41\nno, wait\nAnswer: 42", "42", "right"),  # the last one counts
    ("Answer: 42\nAnswer: 41", "42", "wrong"),
    ("Answer: 42 apples", "42", "wrong"),  # strictly
    ("The answer is 42", "42", "no_answer"),
    ("42", "42", "no_answer"),
    ("Answer:", "42", "no_answer"),
    ("", "42", "no_answer"),
    ("ANSWER: Blue  Whale", "blue whale", "right"),
    ("Answer: -7", "7", "wrong"),
    ("Answer: 1,23", "123", "wrong"),  # no number as people write them
]


@pytest.mark.parametrize(("reply", "answer", "want"), ROWS)
def test_verdict(reply: str, answer: str, want: str) -> None:
    assert verdict(reply, answer) == want


def test_what_was_given() -> None:
    assert answered("Answer: 1\nAnswer: ` 2 `") == "2"
    assert answered("none") is None
