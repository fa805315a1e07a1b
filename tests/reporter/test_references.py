from __future__ import annotations

import pytest

from agentx import catalog
from agentx.errors import BadInput
from agentx.reporter.references import load_reference, rows_for

NAMES = [entry.name for entry in catalog.entries("references")]
HEAD = "agentx: reference/1\nsource: {by: us, what: a test, date: null}\n"


@pytest.mark.parametrize("name", NAMES)
def test_every_built_in_has_a_source_and_says_what_is_unknown(name):
    found = load_reference(name)
    assert found.source.by
    assert found.unknown
    assert found.rows or found.statements


def test_the_published_pair():
    found = load_reference("prosgrow-mi325x-glm-5.2-fp8")
    rates = [found.rows[row].figures["output_tokens_per_second_per_gpu"] for row in ("baseline", "optimised")]
    assert rates[1] / rates[0] == pytest.approx(2.99, abs=0.005)
    for row in found.rows.values():  # the server's rate over its 8 GPUs, to the published digits
        per_server, per_gpu = (
            row.figures["output_tokens_per_second"], row.figures["output_tokens_per_second_per_gpu"],
        )  # fmt: skip
        assert per_server / 8 == pytest.approx(per_gpu, abs=0.006)


def test_the_curve_has_its_cliff_and_the_record():
    found = load_reference("inferencex-mi325x-glm-5.2-fp8")
    rates = {name: row.figures["output_tokens_per_second_per_gpu"] for name, row in found.rows.items()}
    assert rates == {
        "c1": 7.37, "c2": 8.78, "c3": 10.94, "c4": 5.88, "c4-row-443210": 4.14, "c5": 6.25, "c6": 3.17, "c8": 2.37,
    }  # fmt: skip
    assert found.rows["c4-row-443210"].source.date == "2026-09-25"
    assert found.conditions_of(found.rows["c3"])["max_running"] == 6


@pytest.mark.parametrize(
    ("sessions", "row", "want"),
    [
        (4, None, ["c4", "c4-row-443210"]),  # of as many sessions
        (3, None, ["c3"]),
        (7, None, ["c1", "c2", "c3", "c4", "c4-row-443210", "c5", "c6", "c8"]),  # there is none: all
        (None, "c5", ["c5"]),
        (4, "c5", ["c5"]),  # what was asked for wins
    ],
)
def test_rows_for(sessions, row, want):
    assert list(rows_for(load_reference("inferencex-mi325x-glm-5.2-fp8"), sessions, row)) == want


def test_a_row_that_is_not_there():
    with pytest.raises(BadInput, match=r"no row 'c9' \(it has baseline, optimised\)"):
        rows_for(load_reference("prosgrow-mi325x-glm-5.2-fp8"), None, "c9")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD + "rows: {a: {figures: {ttft: 1}}}\n", "ttft is no figure of agentx"),
        (HEAD + "rows: {a: {figures: {ttft_p50_seconds: 0}}}\n", "should be above 0"),
        (HEAD + "rows: {a: {figures: {}}}\n", "at least 1"),
        (HEAD + "condition: {gpus: 8}\n", "did you mean 'conditions'"),
        ("agentx: reference/1\nrows: {}\n", "source is missing|source: is missing"),
    ],
)
def test_mistakes(tmp_path, text, message):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(BadInput, match=message):
        load_reference(str(path))


def test_a_missing_reference_shows_the_nearest():
    with pytest.raises(BadInput, match=r"no reference named 'prosgrow'.*did you mean 'prosgrow-mi325x"):
        load_reference("prosgrow")
