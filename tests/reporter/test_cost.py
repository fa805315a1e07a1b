from __future__ import annotations

import pytest

from agentx.errors import BadInput
from agentx.reporter.compare import compare
from agentx.reporter.reporting import report
from agentx.reporter.table import WIDTH


@pytest.fixture
def priced(attempt, play, run):
    """An hour on 8 GPUs: two turns of one whole session, 100 prompt and 2 reply tokens each."""

    def make(price=2.5, gpus=8, cached=(0, 75), told=2, **other):
        target = {"gpus": gpus, "price": {"gpu_hour": price}}
        made = [attempt("a", turn, sent=9.0 * turn, cached=hit, told=told) for turn, hit in enumerate(cached)]
        end = {"outcome": "done", "window": [0.0, 3600.0]}
        return run(made, [play("a", turns=2)], settings={"target": target}, end=end, **other)

    return make


def test_by_hand(priced):
    # 8 GPU-hours at 2.50 are 20 dollars, over 4 reply tokens, 200 prompt tokens of which 125 were computed, 1 session
    found = report(priced()).document()["cost"]
    assert found == {
        "dollars_per_gpu_hour": 2.5,
        "gpus": 8,
        "gpu_hours": 8.0,
        "dollars": 20.0,
        "dollars_per_million_output_tokens": 5e6,
        "dollars_per_million_input_tokens": 1e5,
        "dollars_per_million_uncached_input_tokens": 1.6e5,
        "dollars_per_session": 20.0,
        "output_tokens_per_dollar": 0.2,
        "upper_bounds": [],
        "missing": None,
    }


def test_a_price_of_the_command_line_stands_for_the_targets(priced):
    assert report(priced(), price=5.0).document()["cost"]["dollars"] == 40.0
    assert report(priced(price=None), price=5.0).document()["cost"]["dollars"] == 40.0


@pytest.mark.parametrize(
    ("price", "gpus", "words"),
    [(None, 8, "no price is known"), (0, 8, "nothing costs nothing"), (2.5, None, "number of GPUs")],
)
def test_unknown(priced, price, gpus, words):
    found = report(priced(price=price, gpus=gpus)).document()["cost"]
    assert words in found["missing"]
    figures = [name for name in found if name.startswith("dollars_per_") and name != "dollars_per_gpu_hour"]
    assert {found[name] for name in (*figures, "dollars", "output_tokens_per_dollar")} == {None}


def test_an_empty_run_costs_nothing_known(run):
    target = {"gpus": 8, "price": {"gpu_hour": 1.0}}
    found = report(run(settings={"target": target})).document()["cost"]
    assert (found["dollars"], found["dollars_per_session"]) == (None, None)
    assert "window is not known" in found["missing"]


@pytest.mark.parametrize("price", [0.0, -1.0, float("nan"), float("inf")])
def test_a_price_that_is_none(priced, price):
    with pytest.raises(BadInput, match=r"--price .* should be above 0"):
        report(priced(), price=price)
    with pytest.raises(BadInput, match="should be above 0"):
        compare([[priced()], [priced()]], price=price)


def test_tokens_that_were_not_told_make_an_upper_bound(priced):
    found = report(priced(cached=(0, None)))
    # of 100 told prompt tokens all were computed; the other turn does not say
    assert found.document()["cost"]["dollars_per_million_uncached_input_tokens"] == 2e5
    assert found.document()["cost"]["upper_bounds"] == ["input", "uncached_input"]
    assert "uncached input at most $200,000" in " ".join(found.text().split())


def test_the_report_shows_it_only_with_a_price(priced):
    text = report(priced()).text()
    assert "per million  output $5.00M, input $100,000, uncached input $160,000" in text
    assert [line for line in text.splitlines() if len(line) > WIDTH] == []
    assert "Cost" not in report(priced(price=None)).text()
    assert "Unknown: the price is 0" in report(priced(price=0)).text()


def test_compared(priced):
    found = compare([[priced()], [priced(price=5.0, cached=(0, 25))]])
    rows = {row["name"]: row["all_answered"]["ratio"] for row in found.document()["pairs"][0]["figures"]}
    assert rows["dollars_per_million_output_tokens"] == 2.0
    assert rows["dollars_per_million_uncached_input_tokens"] == pytest.approx(2 * 125 / 175)
    assert "$ per million output" in found.text()
    assert "$ per" not in compare([[priced(price=None)], [priced(price=None)]]).text()
    same = compare([[priced(price=None)], [priced(price=7.0)]], price=1.0).document()
    assert same["pairs"][0]["figures"][-1]["all_answered"]["ratio"] == 1.0


def test_a_session_costs_its_share(attempt, play, run):
    """An hour of one GPU at 6 dollars and two whole sessions: 3 dollars each."""
    settings = {"target": {"gpus": 1, "price": {"gpu_hour": 6}}}
    end = {"outcome": "done", "window": [0.0, 3600.0]}
    found = report(run([attempt("a"), attempt("b", sent=9.0)], [play("a"), play("b")], settings=settings, end=end))
    assert found.metrics.jobs.equivalents == 2
    assert found.document()["cost"]["dollars_per_session"] == pytest.approx(3.0)
