"""Errors are one line that names the place and the way out, and carry the exit code."""

from __future__ import annotations

import pytest

from agentx.errors import AgentxError, BadInput, InvalidMeasurement, Unreachable


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (BadInput("wrong"), "wrong"),
        (BadInput("wrong", file="a.yaml"), "a.yaml: wrong"),
        (BadInput("wrong", file="a.yaml", line=3), "a.yaml:3: wrong"),
        (BadInput("wrong", file="a.yaml", line=3, column=7), "a.yaml:3:7: wrong"),
        (BadInput("wrong", line=3), "line 3: wrong"),
        (BadInput("wrong", hint="try this"), "wrong (try this)"),
    ],
)
def test_the_place_comes_first_and_the_way_out_last(error: BadInput, text: str) -> None:
    assert str(error) == text


@pytest.mark.parametrize(("kind", "code"), [(BadInput, 2), (Unreachable, 4), (InvalidMeasurement, 5), (AgentxError, 2)])
def test_exit_codes(kind: type[AgentxError], code: int) -> None:
    assert kind("x").exit_code == code
