"""The schemas of quality runs and their comparisons, held against documents of both."""

from __future__ import annotations

from pathlib import Path

import pytest
from schema_faults import faults, unseen

from agentx.cli.quality import document as run_document
from agentx.quality.comparing import compare_quality, document
from agentx.quality.results import Outcome, Quality
from agentx.quality.schema import quality_compare_schema, quality_run_schema


def quality(name: str, verdicts: str, variants: tuple[str, ...] = ("short", "long")) -> Quality:
    """A run with these verdicts by their first letters; in each variant the same."""
    words = {"r": "right", "w": "wrong", "n": "no_answer", "f": "failed"}
    made = tuple(
        Outcome(f"p{at}", variant, "d", "4", words[one], None if one in "nf" else "5", "")  # type: ignore[arg-type]
        for variant in variants
        for at, one in enumerate(verdicts)
    )
    return Quality(Path(name), {"asked": len(made)}, made)


@pytest.mark.parametrize(("verdicts", "variants"), [("rwnf", ("short", "long")), ("r", ("short",)), ("", ())])
def test_a_run(verdicts: str, variants: tuple[str, ...]) -> None:
    found = run_document(quality("a", verdicts, variants))
    assert faults(found, quality_run_schema()) == []
    assert unseen(found, quality_run_schema()) == []


ROWS = [
    ("rrwwrf", "rwrwff"),  # a problem of every kind
    ("ww", "ww"),  # none was right before: no bound
]


@pytest.mark.parametrize(("before", "after"), ROWS)
def test_a_comparison(before: str, after: str) -> None:
    one, other = quality("a", before), quality("b", after)
    found = document(compare_quality(one, other), one, other)
    assert (found["broken_share_upper_bound"] is None) is ("r" not in before)
    assert faults(found, quality_compare_schema()) == []
    assert unseen(found, quality_compare_schema()) == []
