"""Two runs of the same problems: each pair is in one of four groups, and what was not asked twice is left out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from agentx.errors import BadInput
from agentx.quality.answers import Verdict
from agentx.quality.comparing import compare_quality, document, text
from agentx.quality.results import Outcome, Quality


def quality(name: str, verdicts: Sequence[Verdict | None], digest: str = "d") -> Quality:
    """A run with these verdicts, one problem each; None: not asked."""
    outcomes = [
        Outcome(f"p{at}", "short", digest, "4", verdict, "5" if verdict == "wrong" else "4", "")
        for at, verdict in enumerate(verdicts)
        if verdict is not None
    ]
    return Quality(Path(name), {"asked": len(outcomes)}, tuple(outcomes))


def test_groups() -> None:
    before = quality("a", ["right", "right", "wrong", "no_answer", "failed", "right", None])
    after = quality("b", ["right", "wrong", "right", "wrong", "right", None, "right"])
    found = compare_quality(before, after)
    assert [len(found.of(*each)) for each in ((True, True), (True, False), (False, True), (False, False))] == [
        1,
        1,
        1,
        1,
    ]
    assert found.left_out == 3  # failed before, not asked after, not asked before
    assert [one.id for _, one in found.broken] == ["p1"]
    shown = text(found, before, after)
    assert "BROKEN             1" in shown
    assert "broken: p1 short: 4 was given, now 5" in shown
    assert document(found, before, after)["broken"][0]["after"] == "5"


WORSE = [  # broken, fixed, worse by more than chance
    (0, 0, False),
    (5, 0, False),  # p = 0.0625
    (6, 0, True),
    (0, 9, False),  # better
    (4, 3, False),
]


@pytest.mark.parametrize(("broken", "fixed", "worse"), WORSE)
def test_worse_is_more_than_chance(broken: int, fixed: int, worse: bool) -> None:
    same: list[Verdict] = ["right"] * 20
    before = quality("a", [*same, *["right"] * broken, *["wrong"] * fixed])
    after = quality("b", [*same, *["wrong"] * broken, *["right"] * fixed])
    assert compare_quality(before, after).worse is worse


def test_none_broken_of_128_still_allows_some() -> None:
    same: list[Verdict] = ["right"] * 128
    found = compare_quality(quality("a", same), quality("b", same))
    assert found.bound == pytest.approx(0.0231, abs=1e-4)
    assert "0 broken of 128 still allow 2.3 % (95 %, one-sided)" in text(found, quality("a", same), quality("b", same))


def test_other_problems() -> None:
    with pytest.raises(BadInput, match=r"problem p0 \(short\) is another one in a"):
        compare_quality(quality("a", ["right"]), quality("b", ["right"], digest="e"))
    with pytest.raises(BadInput, match="no problem was answered both here and in a"):
        compare_quality(quality("a", [None, "right"]), quality("b", ["right"]))
