"""Counts as a user writes them."""

from __future__ import annotations

import argparse

import pytest

from agentx.cli.numbers import MOST, count


@pytest.mark.parametrize(("text", "number"), [("1", 1), ("007", 7), (str(MOST), MOST)])
def test_counts(text: str, number: int) -> None:
    assert count(text) == number


@pytest.mark.parametrize(
    "text",
    [
        "0", "-1", "1.5", "x", "",  # no number of things
        "²", "٣",  # digits to Python, not to a reader of this command line
        str(MOST + 1), "9" * 5000,  # more than there can be, and more digits than int() takes
    ],
)  # fmt: skip
def test_what_is_no_count(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match=r"should be a whole number from 1 to 10\^12, not "):
        count(text)
