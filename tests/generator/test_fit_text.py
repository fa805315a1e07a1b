"""A spec as YAML for people."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.generator.fit_families import Fit
from agentx.generator.fit_parts import Noted
from agentx.generator.fit_text import as_yaml
from agentx.yamldata import parse


def test_remarks_stand_behind_the_values_or_above_long_ones() -> None:
    spec = {"tokens": {"reply": Fit(110, "fixed", 9, 0.0)}, "limit": Noted(5, "why")}
    text = as_yaml(["head"], spec, ["tail"])
    assert text.splitlines()[0] == "# head"
    assert text.splitlines()[2].split("#") == ["  reply: 110".ljust(60), " fixed, KS 0.000, n 9"]
    long = as_yaml([], {"reply": Fit({"quantiles": {p / 20: 1000 + p for p in range(20)}}, "quantiles", 9, 0.1)}, [])
    assert long.startswith("# quantiles, KS 0.100, n 9\nreply: {quantiles: {0.0: 1000")


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1))
def test_any_text_is_read_back(text: str) -> None:
    data, _ = parse(as_yaml([text], {"names": {text: 1}, "value": text}, [text]), "spec")
    assert data == {"names": {text: 1}, "value": text}


@pytest.mark.parametrize("text", ["null", "true", "1.5", "a: b", "# c", "x\ny", "- z", "", "12"])
def test_words_with_a_meaning_stay_text(text: str) -> None:
    data, _ = parse(as_yaml([], {"value": text}, []), "spec")
    assert data == {"value": text}
