"""Public tools keep their names, nothing else does."""

from __future__ import annotations

from agentx.recorder.names import Names


def test_names() -> None:
    names = Names()
    asked = ["Bash", "acme_lookup", "Read", "acme_pay", "acme_lookup"]
    assert [names.tool(name) for name in asked] == ["Bash", "tool-1", "Read", "tool-2", "tool-1"]
    assert [names.model(name) for name in ("acme-ft", "gpt", "acme-ft", "")] == ["model-1", "model-2", "model-1", None]
    roles = ["Explore", "acme-auditor", "review", "acme-auditor"]
    assert [names.role(role) for role in roles] == ["Explore", "role-1", "review", "role-1"]
