"""docs/reproductions.md was made by the script that is here: a slice of it, simulated again, has every digit."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.reproductions import cliff  # noqa: E402
from benchmarks.reproductions.__main__ import SLICE, SLICE_FIGURES  # noqa: E402
from benchmarks.reproductions.facts import Corpus  # noqa: E402
from benchmarks.reproductions.points import Point, run_all  # noqa: E402
from benchmarks.reproductions.statistics import interval, mean, rank, share  # noqa: E402
from benchmarks.reproductions.verdicts import judged  # noqa: E402

TEXT = (ROOT / "docs/reproductions.md").read_text()


def row(name: str) -> list[str]:
    """The cells of the slice's table behind a configuration's name."""
    found = re.findall(rf"^\| {re.escape(name)} \| (.*) \|$", TEXT.partition(f"One seed, {SLICE}")[2], re.MULTILINE)
    assert len(found) == 1
    return [cell.strip() for cell in found[0].split("|")]


@pytest.mark.parametrize("configuration", [cliff.lanes(4), cliff.JUDGED], ids=lambda each: each.name)
def test_one_seed_has_every_digit_of_the_document(configuration, tmp_path):
    figures = Point(configuration, SLICE).answer(tmp_path)
    assert [f"{figures[name]:.6g}" for name in SLICE_FIGURES] == row(configuration.name)


def test_the_workloads_facts_are_those_of_the_document(tmp_path):
    figures = Corpus(sessions=40).answer(tmp_path)
    assert 0.15 < figures["subagent_share"] < 0.45
    assert 90 < figures["in_per_out"] < 150
    assert 0.96 < figures["unbounded"] < 0.995
    shown = re.search(r"unbounded hit, replies not sent back \| 98 to 99 % \| ([\d.]+)%", TEXT)
    assert shown is not None
    assert float(shown[1]) / 100 == pytest.approx(figures["unbounded"], abs=0.01)


def test_what_was_promised_is_said():
    assert "predicted" in TEXT.lower()
    assert "Fitted" in TEXT
    assert "reproduced" not in TEXT.lower()
    assert cliff.JUDGED_HOST == 2_100_000


@pytest.mark.parametrize(
    ("figure", "published", "values", "word"),
    [
        ("output", 5.0, [float(each) for each in range(3, 9)] * 4, "pass"),
        ("output", 20.0, [float(each) for each in range(3, 9)] * 4, "miss"),
        ("output", 5.0, [1.0, 9.0] * 12, "not informative"),  # more than a factor of 3
        ("reuse", 0.8, [0.5, 0.9] * 12, "not informative"),  # more than 30 points
        ("reuse", 0.4, [0.5, 0.9] * 12, "miss"),  # a miss stays one, however wide the band
        ("reuse", 0.8, [0.7, 0.9] * 12, "pass"),
        ("output", 5.0, [4.0, 6.0] * 5, "too few runs"),
    ],
)
def test_verdicts(figure, published, values, word):
    assert judged(figure, published, values).word == word


def test_statistics():
    assert rank([1, 2, 3, 4], 2.5) == 50
    assert rank([1, 2, 2, 3], 2) == 50
    low, high = interval([float(each) for each in range(100)], mean)
    assert low < 49.5 < high
    assert high - low == pytest.approx(4 * 29 / 10, rel=0.2)
    assert share(0, 10)[0] == 0
    assert share(5, 10) == pytest.approx((0.237, 0.763), abs=0.002)


def test_kept_answers_are_not_simulated_again(tmp_path):
    class Counted:
        key = "one"
        calls = 0

        def answer(self, folder: Path) -> dict[str, float]:
            raise AssertionError("not to be called")

    (tmp_path / "one.json").write_text('{"figures": {"output": 1.0}, "cpu": 2.0}')
    (found,) = run_all([Counted()], tmp_path, workers=1, until=0.0)
    assert (found.figures, found.cpu) == ({"output": 1.0}, 2.0)
