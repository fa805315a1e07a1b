"""What a template adds, fitted to rows that a known one made."""

from __future__ import annotations

import pytest

from agentx.reuse_fit import Row, fitted
from agentx.reuse_template import PLAIN, Template


def rows(template: Template, shapes: list[tuple[int, int, int]]) -> list[Row]:
    """(messages, calls, definitions) of each prompt, counted as `template` has it."""
    made = [Row(0, *shape, tools=True) for shape in shapes]
    return [row._replace(excess=-row.left(template)) for row in made]


CASES = [
    # the template, prompts, and what must come out: all of it, or what explains the prompts as well
    (Template(4, 4, 90, 11, 20), [(3, 0, 2), (5, 1, 3), (9, 4, 2), (12, 4, 5)], None),
    (Template(4, 4, 90, 11, 20), [(3, 0, 2), (5, 1, 2), (9, 4, 2), (12, 4, 2)], Template(4, 4, 112, 0, 20)),
    (Template(0, 5, 0, 0, 30), [(1, 0, 1), (3, 1, 1), (5, 2, 1)], ...),  # each call comes with two messages
    (Template(2, 2, 7, 0, 3), [(4, 1, 1)] * 3, ...),
]


@pytest.mark.parametrize(("template", "shapes", "expected"), CASES)
def test_tools(template: Template, shapes: list[tuple[int, int, int]], expected: object) -> None:
    made = rows(template, shapes)
    found = fitted(made)
    assert [row.left(found) for row in made] == [0] * len(made)
    if expected is not ...:
        assert found == (expected or template)


def test_one_odd_prompt_moves_nothing() -> None:
    made = rows(Template(4, 4, 90, 0, 20), [(3, 0, 1), (5, 1, 1), (9, 4, 1), (12, 4, 1), (20, 9, 1), (22, 8, 1)])
    odd = [made[0]._replace(excess=made[0].excess + 2), *made[1:]]
    assert sum(abs(row.left(fitted(odd))) for row in odd) <= 4


def test_no_rows() -> None:
    assert fitted([]) == PLAIN
