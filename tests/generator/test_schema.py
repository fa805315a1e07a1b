"""The JSON Schema of workload specs accepts the specs that there are, and refuses a slip."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from specs import EVERYTHING, FIXED

from agentx import catalog, yamlspec
from agentx.generator.schema import schema

SCHEMA = schema()


def accepts(rule: dict[str, Any], value: Any) -> bool:
    """As much of JSON Schema as ours uses."""
    if "$ref" in rule:
        return accepts(SCHEMA["$defs"][rule["$ref"].removeprefix("#/$defs/")], value)
    if "anyOf" in rule:
        return any(accepts(each, value) for each in rule["anyOf"])
    if "const" in rule or "enum" in rule:
        return value in rule.get("enum", [rule.get("const")])
    kind = rule.get("type")
    if kind == "object":
        rest = rule.get("additionalProperties", True)
        inner = (
            {name: rule.get("properties", {}).get(name, rest) for name in value} if isinstance(value, dict) else None
        )
        return inner is not None and all(
            each is True or (each and accepts(each, value[name])) for name, each in inner.items()
        )
    if kind == "array":
        return isinstance(value, list) and all(accepts(rule["items"], each) for each in value)
    if kind in ("number", "integer"):
        number = isinstance(value, int if kind == "integer" else int | float) and not isinstance(value, bool)
        return number and rule.get("minimum", value) <= value <= rule.get("maximum", value)
    if kind == "string":
        return isinstance(value, str) and bool(re.search(rule.get("pattern", ""), value))
    return (kind == "null" and value is None) or (kind == "boolean" and isinstance(value, bool))


def plain(tmp_path: Path, text: str) -> dict[str, Any]:
    path = tmp_path / "spec.yaml"
    path.write_text(text)
    return yamlspec.document(path)


def test_it_is_json_with_short_names() -> None:
    assert json.loads(json.dumps(SCHEMA)) == SCHEMA
    assert {"Distribution_of_durations", "Lognormal_of_numbers", "Subagents"} < set(SCHEMA["$defs"])
    assert max(map(len, SCHEMA["$defs"])) < 40


@pytest.mark.parametrize("entry", catalog.entries("workloads"), ids=lambda entry: entry.name)
def test_shipped_specs_are_accepted(entry: catalog.Entry) -> None:
    assert accepts(SCHEMA, yamlspec.document(entry.path))


@pytest.mark.parametrize("text", [FIXED, EVERYTHING])
def test_specs_of_the_tests_are_accepted(text: str, tmp_path: Path) -> None:
    assert accepts(SCHEMA, plain(tmp_path, text))


SLIPS = [
    "turns: 3",
    "layers: {tools: -1}",
    "gaps: {human: 30}",
    "tokens: {replys: 3}",
    "resets: {share: 2}",
    "abuot: x",
]


@pytest.mark.parametrize("slip", SLIPS)
def test_slips_are_refused(slip: str, tmp_path: Path) -> None:
    assert accepts(SCHEMA, plain(tmp_path, "agentx: workload/1\nextends: a\n"))
    assert not accepts(SCHEMA, plain(tmp_path, f"agentx: workload/1\nextends: a\n{slip}\n"))
