"""Runs beside the compared ones: found by their load, nothing else differing, and a cliff between them is said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from making import header, linear

from agentx.replayer.simulate import simulate
from agentx.reporter.compare import compare
from agentx.results import SETTINGS
from agentx.trace import TraceWriter

POOL = 5000


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs at 1 to 4 sessions at a time of some 2,500 tokens in a pool of 5,000; another pool; another seed."""
    folder = tmp_path_factory.mktemp("neighbours")
    with TraceWriter(folder / "a.trace", header("agents")) as file:
        for name in "abcdefgh":
            file.session(linear(6, id=name, fresh=400))
    for sessions in (1, 2, 3, 4):
        sets = [f"load.sessions={sessions}", f"target.cache.pool={POOL}", "gaps.scale=0.2"]
        simulate(folder / "a.trace", out=folder / f"c{sessions}", sets=sets)
    simulate(
        folder / "a.trace", out=folder / "big", sets=["load.sessions=3", "target.cache.pool=90000", "gaps.scale=0.2"]
    )
    return folder


def test_the_nearest_load_on_each_side(runs: Path) -> None:
    found = compare([[runs / "c2"], [runs / "big"]])
    mine = [(one.side, one.key, one.there, one.run.name) for one in found.neighbours]
    assert mine == [("A", "load.sessions", 1.0, "c1"), ("A", "load.sessions", 3.0, "c3")]  # none has B's pool
    assert "Runs next to these" in found.text()
    document = found.document()["neighbours"]
    assert [one["value"] for one in document] == [1.0, 3.0]
    assert document[0]["figures"][2]["name"] == "reuse_share"


def test_a_cliff_is_a_caveat(runs: Path) -> None:
    """Two sessions fit into the pool and three do not."""
    found = compare([[runs / "c2"], [runs / "big"]])
    cliffs = [caveat for caveat in found.pairs[0].caveats if caveat.kind == "cliff"]
    assert len(cliffs) == 1
    assert cliffs[0].text.startswith("A stands next to a cliff: at load.sessions 3 instead of 2, ")
    assert "reuse" in cliffs[0].text
    assert (cliffs[0].size, cliffs[0].breaks) == (1.0, False)


def test_compared_runs_are_no_neighbours_of_each_other(runs: Path) -> None:
    found = compare([[runs / "c2"], [runs / "c3"]])
    assert [(one.side, one.there) for one in found.neighbours] == [("A", 1.0), ("B", 4.0)]


def test_what_cannot_be_read_is_no_neighbour(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "broken").mkdir()
    settings = json.loads((runs / "c1" / SETTINGS).read_text())
    (tmp_path / "broken" / SETTINGS).write_text(json.dumps(settings))  # and no results
    (tmp_path / "noise").mkdir()
    (tmp_path / "noise" / SETTINGS).write_text("{")
    for name in ("c2", "big"):
        (tmp_path / name).symlink_to(runs / name)
    # a link's neighbours are those of the place that it leads to
    assert {one.run.name for one in compare([[tmp_path / "c2"], [tmp_path / "big"]]).neighbours} == {"c1", "c3"}


def test_a_run_alone_has_none(attempt, run) -> None:
    settings = {"trace": {"name": "t", "sha256": "aa"}}
    found = compare([[run([attempt("a")], settings=settings)], [run([attempt("a")], settings=settings)]])
    assert found.neighbours == ()
    assert found.decisions == ()
