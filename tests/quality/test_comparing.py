"""Two runs of the same problems: each pair is in one of four groups, and what was not asked twice is left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
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


def both(short: Quality, long: Quality) -> Quality:
    """The problems of `short`, and those of `long` as their other variant."""
    others = tuple(replace(one, variant="long") for one in long.outcomes)
    return Quality(short.folder, {"asked": 2 * len(others)}, (*short.outcomes, *others))


def test_two_variants_of_a_problem_are_not_two_problems() -> None:
    """128 problems asked short and long bound a share as 128 do, not as 256."""
    same = quality("a", ["right"] * 128)
    found = compare_quality(both(same, same), both(same, same))
    assert found.bound == pytest.approx(0.0231, abs=1e-4)
    shown = text(found, same, same)
    assert shown.count("0 broken of 128 still allow 2.3 %") == 2
    assert "256 still" not in shown
    assert document(found, same, same)["by_variant"]["long"]["problems"] == 128


@pytest.mark.parametrize(("broken", "worse"), [(6, False), (7, True)])  # p = 2 x 0.031 and 2 x 0.016
def test_one_variant_may_be_worse_alone(broken: int, worse: bool) -> None:
    same = quality("a", ["right"] * 20)
    after = both(same, quality("b", ["wrong"] * broken + ["right"] * (20 - broken)))
    found = compare_quality(both(same, same), after)
    assert found.p == pytest.approx(2 * 2 / 2**broken)
    assert found.worse is worse
    assert [part.worse for part in found.parts.values()] == [False, True]


def test_where_nothing_was_right_nothing_could_break() -> None:
    before = quality("a", ["no_answer"] * 5)
    found = compare_quality(before, before)
    assert found.bound is None
    assert document(found, before, before)["broken_share_upper_bound"] is None
    assert "none was right before, so none could break" in text(found, before, before)


def test_what_was_right_and_fails_now_is_said() -> None:
    before, after = quality("a", ["right", "right", "wrong"]), quality("b", ["right", "failed", "failed"])
    found = compare_quality(before, after)
    assert "FAILED NOW         1" in text(found, before, after)
    assert document(found, before, after)["failed_now"] == [{"id": "p1", "variant": "short"}]
    assert (found.left_out, len(found.broken)) == (2, 0)


def test_other_problems() -> None:
    with pytest.raises(BadInput, match=r"problem p0 \(short\) is another one in a"):
        compare_quality(quality("a", ["right"]), quality("b", ["right"], digest="e"))
    with pytest.raises(BadInput, match="no problem was answered both here and in a"):
        compare_quality(quality("a", [None, "right"]), quality("b", ["right"]))
