"""A sequential test: what it decides, when it stops, and that looking often does not find what is not there."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from agentx.errors import BadInput
from agentx.reporter.compare_caveats import Side
from agentx.reporter.compare_decide import Decision, decide, decision_blocks, decision_document
from agentx.reporter.compare_figures import measured
from agentx.reporter.compare_pair import pair_of
from agentx.reporter.table import as_text

TRACE = {"trace": {"name": "t", "sha256": "aa"}}


@pytest.fixture
def decided(attempt, play, run):
    """The decision on TTFT of runs whose one turn took these seconds."""

    def side(label: str, times: Sequence[float]) -> Side:
        made = (run([attempt("a", chunks=[(ttft, 1), (ttft + 1, 1)])], [play("a")], settings=TRACE) for ttft in times)
        return Side(label, tuple(measured(one) for one in made))

    def make(a: Sequence[float], b: Sequence[float]) -> Decision:
        return decide(pair_of(side("A", a), side("B", b)), "ttft_mean_seconds")

    return make


ROWS = [
    ([1.0, 1.01, 0.99], [2.0, 2.02, 1.98], "higher", 1),  # at the first look
    ([2.0, 2.02, 1.98, 2.0], [1.0, 1.01, 0.99, 5.0], "lower", 1),  # and it stops there
    ([1.0, 1.001, 0.999], [1.0, 1.0005, 0.9995], "same", 1),
    ([1.0, 1.5, 0.8], [1.2, 0.9, 1.4], "undecided", 1),
    ([1.0, 1.1], [2.0, 2.1], "undecided", 0),  # too few to look at
    ([1.0, 1.3, 0.8, 1.0, 1.01, 0.99, 1.0, 1.0], [1.6, 1.4, 1.7, 1.5, 1.52, 1.49, 1.5, 1.5], "higher", 3),
]


@pytest.mark.parametrize(("a", "b", "verdict", "looks"), ROWS)
def test_verdicts(decided, a: list[float], b: list[float], verdict: str, looks: int) -> None:
    found = decided(a, b)
    assert (found.verdict, len(found.looks)) == (verdict, looks)
    assert found.same_turns
    assert decision_document(found)["verdict"] == verdict
    shown = as_text(decision_blocks(found))
    assert verdict in shown or "the same within 5 %" in shown


def test_undecided_says_how_much_it_would_take(decided) -> None:
    """Runs of 100 s: so many more of each side are so many times 200 s."""
    found = decided([1.0, 1.2, 0.8], [1.25, 1.05, 1.45])
    assert found.verdict == "undecided"
    assert found.more is not None
    assert 2 <= found.more <= 40
    assert found.hours == pytest.approx(found.more * 200 / 3600)
    assert f"some {found.more} more runs of each side would decide" in " ".join(as_text(decision_blocks(found)).split())


def test_the_outlook_is_about_right(decided) -> None:
    """With as many more runs of the same spread and ratio as it says, it decides."""
    a, b = [1.0, 1.2, 0.8], [1.25, 1.05, 1.45]
    more = decided(a, b).more
    assert more is not None
    repeats = -(-(more + 3) // 3) + 1
    assert decided(a * repeats, b * repeats).verdict == "higher"


def test_no_spread_decides_nothing(decided) -> None:
    found = decided([1.0] * 4, [2.0] * 4)
    assert found.verdict == "undecided"
    assert [look.low for look in found.looks] == [None, None]
    assert found.more is None  # as many more of the same would show none either
    told = " ".join(as_text(decision_blocks(found)).split())
    assert "no spread between runs" in told
    assert "more runs of each side would decide" not in told


def test_looking_often_does_not_find_what_is_not_there(decided) -> None:
    """200 pairs of equal sides, looked at up to eight times each: at most 5 % are called different, and some margin."""
    dice = random.Random(4)
    different = 0
    for _ in range(200):
        a, b = ([dice.lognormvariate(0, 0.2) for _ in range(10)] for _ in range(2))
        different += decided(a, b).verdict in ("higher", "lower")
    assert different <= 16  # 10 expected at most; 16 has a chance of 3 % at 5 %


def test_a_planted_effect_is_found(decided) -> None:
    """20 % with a spread of 5 % between runs: nearly always within ten runs."""
    dice = random.Random(5)
    found = 0
    for _ in range(40):
        a = [dice.lognormvariate(0, 0.05) for _ in range(10)]
        b = [dice.lognormvariate(0, 0.05) * 1.2 for _ in range(10)]
        found += decided(a, b).verdict == "higher"
    assert found >= 38


def test_an_unknown_figure(attempt, run) -> None:
    one, other = (Side(label, (measured(run([attempt("a")], settings=TRACE)),)) for label in "AB")
    with pytest.raises(BadInput, match="--decide speed: no such figure"):
        decide(pair_of(one, other), "speed")
