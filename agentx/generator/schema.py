"""The workload spec as JSON Schema, for editors: names, types and meanings of all keys.

Of the sections nothing is required, because a spec that extends another may say any part of them; agentx itself names
what is missing. What holds between keys (weights that sum to 1, layers that fit) is beyond a schema.
"""

from __future__ import annotations

import json
from typing import Any

from agentx.generator.spec import WorkloadSpec
from agentx.yamlspec import Strict

HEADER = {
    "agentx": {"const": "workload/1", "description": "the first key: kind and version"},
    "extends": {"type": "string", "description": "a workload's name or path; this spec says what is different"},
}


def schema() -> dict[str, Any]:
    """JSON Schema, draft 2020-12, of `agentx: workload/1`."""
    made = _readable(WorkloadSpec.model_json_schema())
    needed = made.pop("required")
    sections = {each.__name__ for each in _all(Strict)}
    for name, definition in made["$defs"].items():
        if name in sections:
            definition.pop("required", None)
    alone = {"not": {"required": ["extends"]}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **made,
        "properties": {**HEADER, **made["properties"]},
        "required": ["agentx"],
        "if": alone,
        "then": {"required": needed},
    }


def _readable(made: dict[str, Any]) -> dict[str, Any]:
    """Short names for the definitions of generic models; `anyOf`, as a bare number may be two of the alternatives."""
    text = json.dumps(made).replace('"oneOf"', '"anyOf"')
    for name in made["$defs"]:
        shape, generic, quantity = name.partition("_Annotated_float_")
        if generic:
            unit = "durations" if "BeforeValidator" in quantity else "shares" if "_Le_" in quantity else "numbers"
            text = text.replace(f'#/$defs/{name}"', f'#/$defs/{shape}_of_{unit}"').replace(
                f'"{name}": ', f'"{shape}_of_{unit}": '
            )
    result: dict[str, Any] = json.loads(text)
    return result


def _all(model: type[Any]) -> list[type[Any]]:
    found: list[type[Any]] = list(model.__subclasses__())
    return found + [inner for each in found for inner in _all(each)]
