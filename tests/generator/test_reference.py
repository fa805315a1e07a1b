"""The reference says what the models say: no key missing, none stale."""

from __future__ import annotations

from pathlib import Path

import pytest

from agentx.distributions import Burr12, Gamma, Geometric, Lognormal, Normal, Uniform, Weibull
from agentx.generator import reference
from agentx.generator.quantities import ByGap, Counts
from agentx.generator.spec import WorkloadSpec, load_spec

PATH = Path(__file__).parents[2] / "docs/reference/workload.md"
TEXT = PATH.read_text()


def test_the_tables_are_those_of_the_models() -> None:
    # Stale? python -m agentx.generator.reference docs/reference/workload.md
    assert reference.fill(TEXT) == TEXT


def test_all_three_tables_are_there() -> None:
    assert TEXT.count(": made from the models -->") == TEXT.count("<!-- end -->") == 3
    assert reference.fill("<!-- keys: made from the models -->\nold\n<!-- end -->").count("\n") > 80


def test_a_mark_of_no_table_is_an_error() -> None:
    with pytest.raises(KeyError):
        reference.fill("<!-- kys: made from the models -->\n<!-- end -->")


ROWS = [
    "| `context_limit` | whole number from 1 | required | tokens; a session ends before prompt + reply exceed it |",
    "| `layers.repos.zipf` | number from 0 to 10 | 0 |",
    "| `tokens.reply` | number, drawn, or `by_gap` | required |",
    "| `gaps.tools.NAME.time` | duration, drawn | required |",
    "| `compaction.keep` | list of `tools`, `system`, `shared` | `[tools, system]` |",
    "| `arrivals.steps.N.lasts` | duration | required |",
    "| `tokens.strip_reasoning` | true or false | false |",
    "| `models.weights` | names of number | required |",
]


@pytest.mark.parametrize("row", ROWS)
def test_rows(row: str) -> None:
    assert row in reference.fill("<!-- keys: made from the models -->\n<!-- end -->")


def test_every_key_has_a_meaning() -> None:
    assert [key for key, info in reference.walk(WorkloadSpec) if not info.description] == []


def test_every_shape_and_parameter_is_explained() -> None:
    names = set(Counts.model_fields) | set(ByGap.model_fields)
    for shape in (Uniform, Normal, Lognormal, Weibull, Gamma, Burr12, Geometric):
        names |= set(shape.model_fields)
    prose = TEXT.split("## Distributions")[1].split("## Expectations")[0]
    assert [name for name in names if f"`{name}`" not in prose and f"{name}:" not in prose] == []


def test_the_examples_are_specs() -> None:
    examples = [part.split("```")[0] for part in TEXT.split("```yaml\n")[1:]]
    assert len(examples) == 2
    for example in examples:
        assert load_spec("workload.md", text=example).turns.parallel.quantile(0.1) == 1
