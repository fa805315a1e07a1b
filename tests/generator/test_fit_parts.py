"""Parts of a spec from what was seen."""

from __future__ import annotations

import pytest

from agentx.generator.fit_parts import to_one, uncensored


@pytest.mark.parametrize(
    ("values", "sample"),
    [
        ([(1, False), (2, False)], [1, 2]),  # nothing was cut short
        ([(1, False), (2, True), (3, False)], [1, 3, 3]),  # what was cut at 2 would have been longer
        ([(1, True), (2, False), (3, False)], [2, 2, 3]),  # its weight is shared by both: 1.5 and 1.5
        ([(1, False), (5, True)], [1, 5]),  # of the longest nothing more is known
    ],
)
def test_values_that_were_cut_short_count_for_longer_ones(
    values: list[tuple[float, bool]], sample: list[float]
) -> None:
    assert uncensored(values) == sample


def test_weights_are_rounded_to_one() -> None:
    classes = {name: {"weight": 1 / 3} for name in "abc"}
    to_one(classes)
    assert sum(each["weight"] for each in classes.values()) == pytest.approx(1, abs=1e-9)
