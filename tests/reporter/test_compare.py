from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from agentx.errors import BadInput, InvalidMeasurement
from agentx.reporter.compare import compare
from agentx.reporter.table import WIDTH

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "metrics.md"


@pytest.fixture
def made(attempt, play, run, tmp_path):
    """A run of turns 0 ... n - 1 of session a, the first token after `ttft` seconds."""

    def make(name, ttft=1.0, n=4, sha="aa", plan=None):
        settings = {"trace": {"name": "t", "sha256": sha}, "target": {"name": "here", "gpus": 8}, "plan": plan or {}}
        made = [attempt("a", turn, sent=9.0 * turn, chunks=[(ttft, 1), (ttft + 1, 1)], cached=90) for turn in range(n)]
        return run(made, [play("a", turns=n)], settings=settings, folder=tmp_path / name)

    return make


def test_every_key_and_kind_is_in_the_reference(made):
    found = compare([[made("x")], [made("y", 2.0)], [made("z", sha="bb")]]).document()
    documented = set(re.findall(r"`([a-z0-9_/]+)`", REFERENCE.read_text()))
    source = Path(__file__).parents[2] / "agentx" / "reporter"
    texts = [(source / f"compare_{name}.py").read_text() for name in ("caveats", "conditions")]
    kinds = {kind for text in texts for kind in re.findall(r'Caveat\(\s*"([a-z_]+)"', text)}
    assert len(kinds) > 15
    keys = set(keys_of(found)) | {row["name"] for row in found["pairs"][0]["figures"]} | kinds | {found["schema"]}
    assert sorted(keys - documented) == []


def keys_of(value):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from keys_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from keys_of(inner)


def test_the_first_side_against_each_other(made):
    found = compare([[made("x")], [made("y", 2.0)], [made("z", 4.0)]]).document()
    assert [(pair["baseline"], pair["other"]) for pair in found["pairs"]] == [("A", "B"), ("A", "C")]
    ratios = [pair["figures"][0]["same_turns"]["ratio"] for pair in found["pairs"]]
    assert ratios == [2.0, 4.0]
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert [side["runs"][0]["name"] for side in found["sides"]] == ["x", "y", "z"]


def test_a_side_of_one_run_needs_no_list_and_a_folder_is_no_list_of_letters(made, tmp_path):
    x, y = made("x"), made("y", 2.0)
    assert compare([x, [y]]).document() == compare([[x], [y]]).document()
    for folder in (tmp_path / "none", str(tmp_path / "none")):
        with pytest.raises(BadInput, match="none"):
            compare([folder, folder + "2" if isinstance(folder, str) else folder.with_name("none2")])


def test_a_clean_pair_has_no_caveat_and_no_interval(made):
    found = compare([[made("x")], [made("y")]])
    (pair,) = found.document()["pairs"]
    kinds = [caveat["kind"] for caveat in pair["caveats"]]
    assert kinds == ["server_unknown"]  # made by hand: it is not known what answered
    assert pair["comparable"]
    assert pair["figures"][0]["all_answered"] == {
        "baseline_runs": [1.0], "other_runs": [1.0], "ratio": 1.0, "interval_low": None, "interval_high": None,
    }  # fmt: skip
    text = " ".join(found.text().split())
    assert "one pair, 1 session: no interval" in text
    assert "paired by (session, play, turn): 4 answered in every run" in text
    assert re.search(r"TTFT p50, s 1\.00 1\.00 x1\.00 1\.00 1\.00 x1\.00", text)
    found.check()


def test_what_is_not_comparable_stands_first_and_is_refused(made):
    found = compare([[made("x")], [made("y", sha="bb", plan={"load": {"sessions": 3}})]])
    text = found.text()
    assert text.index("not comparable as they stand") < text.index("B / A")
    assert "compared as distributions" in text
    with pytest.raises(InvalidMeasurement, match=r"not comparable. B: .*Different traces"):
        found.check()


def test_repeats_show_their_intervals(made):
    sides = [[made(f"{name}{n}", ttft + 0.1 * n) for n in range(3)] for name, ttft in (("x", 1.0), ("y", 3.0))]
    found = compare(sides)
    row = found.document()["pairs"][0]["figures"][0]["same_turns"]
    assert row["baseline_runs"] == pytest.approx([1.0, 1.1, 1.2])
    assert row["interval_low"] < row["ratio"] < row["interval_high"]
    line = next(line for line in found.text().splitlines() if line.startswith("  TTFT p50, s"))
    assert re.search(r"1\.10 +3\.10 +x2\.83 \(2\.\d\d-3\.\d\d\) +x2\.83 \(2\.\d\d-3\.\d\d\)$", line)


def test_it_fits_the_terminal(made):
    sides = [[made(f"a-long-name-of-a-run-{name}{n}", 123.4 + n) for n in range(3)] for name in "xy"]
    for text in (compare(sides).text(), compare([[made("x")], [made("y", 200.0)]]).text()):
        assert [line for line in text.splitlines() if len(line) > WIDTH] == []
        assert text.isascii()


def test_markdown_holds_the_same_table(made):
    markdown = compare([[made("x")], [made("y", 2.0)]]).markdown()
    assert "| TTFT p50, s | 1.00 | 2.00 | x2.00 | 1.00 | 2.00 | x2.00 |" in markdown


@pytest.mark.parametrize("sides", [[], [[]], [["x"]], [["x"], []], "xy"])
def test_too_few_sides(sides):
    with pytest.raises(BadInput, match="two sides are needed"):
        compare(sides)


def test_a_side_without_a_letter_is_not_left_out_in_silence(tmp_path):
    with pytest.raises(BadInput, match="27 sides: at most 26"):
        compare([tmp_path / str(number) for number in range(27)])


def test_a_run_against_itself(tmp_path):
    with pytest.raises(BadInput, match="this run is given twice"):
        compare([[tmp_path], [tmp_path / "." / ""]])
