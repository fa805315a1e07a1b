"""Losses side by side: hand-made splits, the sums in comments."""

from __future__ import annotations

import pytest

from agentx.reporter.compare_caveats import Side
from agentx.reporter.compare_figures import measured
from agentx.reporter.compare_losses import (
    TOTAL,
    losses_blocks,
    losses_document,
    losses_lines,
    losses_table,
    pair_losses,
)
from agentx.reporter.losses import Losses, TurnLoss
from agentx.reporter.table import as_text


@pytest.fixture
def one(attempt, run):
    """A run whose turn t of session a lost (in flight, evicted, host dropped, surplus); without a pool None."""

    def make(name, lost, shadowed=True, missing=None):
        made = measured(run([attempt("a", turn) for turn in lost]))
        turns = []
        for turn, (flight, evicted, dropped, surplus) in lost.items():
            tiers = (evicted, 0, dropped, 0) if shadowed else (None,) * 4
            turns.append(TurnLoss(attempt("a", turn), flight, *tiers, 0 if shadowed else evicted, surplus))
        vars(made).update(name=name, losses=Losses(tuple(turns), (), shadowed, missing))
        return made

    return make


def rows_of(found):
    return {row.cause: row for row in found.rows}


def test_each_cause_over_all_and_over_the_same_turns(one):
    # turn 0 in both; A alone answered turn 1, B alone turn 2
    a = Side("A", (one("a", {0: (10, 100, 0, 0), 1: (0, 900, 0, 0)}),))
    b = Side("B", (one("b", {0: (10, 40, 7, 0), 2: (0, 0, 0, -3)}),))
    rows = rows_of(pair_losses(a, b, {("a", 0, 0)}))
    assert (rows["evicted"].all.a, rows["evicted"].all.b) == ((1000,), (40,))
    assert (rows["evicted"].all.change, rows["evicted"].same.change) == (-960, -60)
    assert (rows["host_dropped"].all.change, rows["surplus"].all.change) == (7, -3)
    assert rows["surplus"].same.change == 0  # that turn is not in both
    assert rows[TOTAL].all.means == (1010, 54)  # 10 + 100 + 900; 10 + 40 + 7 - 3
    assert rows[TOTAL].all.change == sum(row.all.change for cause, row in rows.items() if cause != TOTAL)
    assert rows_of(pair_losses(a, b, None))["evicted"].same is None


def test_repeats_by_their_mean_with_an_interval(one):
    sides = [
        Side(label, tuple(one(f"{label}{n}", {0: (5, base + step, 0, 0)}) for n, step in enumerate((-10, 0, 10))))
        for label, base in (("A", 100), ("B", 40))
    ]
    found = pair_losses(*sides, {("a", 0, 0)})
    row = rows_of(found)["evicted"].all
    assert (row.means, row.change) == ((100, 40), -60)
    low, high = row.interval  # variance 100 each: 2.7764 x sqrt(200 / 3) = 22.67
    assert (low, high) == pytest.approx((-82.67, -37.33), abs=0.01)
    cells = {cells[0]: cells[1:] for cells in losses_table(found, "A", "B").rows}
    assert cells["evicted"] == ("100", "40", "-60 +- 23", "-60 +- 23")
    assert cells["in flight at the time"] == ("5", "5", "0", "0")  # no spread, no change
    assert "dropped from the host" not in cells
    assert any("95 % t-interval" in line for line in losses_lines(found, "A", "B"))


def test_what_one_run_cannot_tell_is_unknown_for_its_side(one):
    a = Side("A", (one("a1", {0: (0, 100, 0, 0)}), one("a2", {0: (0, 100, 0, 0)}, shadowed=False)))
    b = Side("B", (one("b", {0: (0, 40, 0, 0)}),))
    found = pair_losses(a, b, None)
    row = rows_of(found)["evicted"].all
    assert (row.a, row.means, row.change, row.interval) == ((100, None), (None, 40), None, None)
    assert rows_of(found)[TOTAL].all.means == (100, 40)
    cells = {cells[0]: cells[1:] for cells in losses_table(found, "A", "B").rows}
    assert cells["evicted"] == ("unknown", "40", "unknown")
    assert cells["unexplained"] == ("50", "0", "-50")
    assert losses_lines(found, "A", "B") == (
        "What was evicted: A modelled and unknown (the pool is not known), B modelled.",
        "Not all runs know it in the same way: a change between causes may be the method's.",
    )
    assert losses_document(found)["baseline_evicted_sources"] == ["modelled", None]


def test_a_run_without_a_split_leaves_no_table_but_its_reason(one):
    a, b = Side("A", (one("a", {0: (0, 1, 0, 0)}),)), Side("B", (one("b", {}, missing="nobody told"),))
    found = pair_losses(a, b, set())
    assert found.rows == ()
    assert losses_document(found)["split_missing_because"] == [{"run": "B", "text": "nobody told"}]
    assert "B: the lost reuse is not split: nobody told." in as_text(losses_blocks(found, "A", "B"))
    without = Side("A", (one("a", {}, missing="no ideal"),))
    assert losses_blocks(pair_losses(without, b, set()), "A", "B") == []  # nothing to lose from
