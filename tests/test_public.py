"""The public names are these, each resolves, and none is shadowed by a module."""

from __future__ import annotations

from pathlib import Path

import pytest

import agentx

NAMES = sorted(
    [
        "__version__",
        "AgentxError",
        "Attempt",
        "Report",
        "RunResults",
        "Session",
        "TraceReader",
        "TraceWriter",
        "Turn",
        "areplay",
        "compare",
        "generate",
        "load_plan",
        "load_spec",
        "possible_reuse",
        "read_results",
        "record_client",
        "read_trace",
        "replay",
        "report",
        "simulate",
        "compile_capture",
    ]
)


def test_the_public_names_are_locked() -> None:
    assert sorted(agentx.__all__) == NAMES
    assert dir(agentx) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_every_name_resolves_and_no_room_is_named_after_one(name: str) -> None:
    assert getattr(agentx, name) is not None
    package = Path(agentx.__file__).parent
    assert not (package / name).exists()
    assert not (package / f"{name}.py").exists()


def test_other_names_are_attribute_errors() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        agentx.nonsense  # noqa: B018
