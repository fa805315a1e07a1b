"""A validator of the few words of JSON Schema that agentx's own schemas use, stricter than theirs: no key more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

TYPES: dict[str, Any] = {
    "object": dict,
    "array": list,
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "null": type(None),
}
WORDS = {"$schema", "title", "description", "type", "properties", "required", "items", "anyOf", "allOf", "$ref"}
WORDS |= {"const", "additionalProperties", "$defs"}
NULL = {"type": "null"}


def faults(document: Any, schema: dict[str, Any]) -> list[str]:
    """Every way in which the document, as JSON, is not as the schema says; a key that it does not have is one."""
    value = json.loads(json.dumps(document, allow_nan=False))
    if "anyOf" in schema:  # forms: of the nearest one
        return min((_faults(value, form, {}, "document") for form in schema["anyOf"]), key=len)
    return _faults(value, schema, schema.get("$defs", {}), "document")


def merged(schema: dict[str, Any], definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema without references: an alternative of something and null, or of a definition and more keys."""
    assert set(schema) <= WORDS, "the validator below does not know all words"
    if "$ref" in schema:
        return merged(definitions[schema["$ref"].removeprefix("#/$defs/")], definitions)
    if "anyOf" in schema:
        one, null = schema["anyOf"]
        assert null == NULL
        return merged(one, definitions)
    if "allOf" in schema:
        parts = [merged(part, definitions) for part in schema["allOf"]]
        properties = {key: value for part in parts for key, value in part["properties"].items()}
        return {**parts[0], "properties": properties, "required": sorted(properties)}
    return schema


def _faults(value: Any, schema: dict[str, Any], definitions: dict[str, Any], at: str) -> list[str]:
    schema = merged(schema, definitions)
    if not schema:  # anything
        return []
    if "const" in schema:
        return [] if value == schema["const"] else [f"{at}: {value!r}"]
    kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    if not any(_fits(value, kind) for kind in kinds):
        return [f"{at}: {value!r} is none of {kinds}"]
    if isinstance(value, list):
        return [fault for each in value for fault in _faults(each, schema["items"], definitions, f"{at}[]")]
    if not isinstance(value, dict):
        return []
    if "properties" not in schema:
        free = schema["additionalProperties"]
        known = {} if free is True else dict.fromkeys(value, free)
        wrong = []
    else:
        known = schema["properties"]
        wrong = [f"{at}.{key}: not in the schema" for key in value.keys() - known.keys()]
        wrong += [f"{at}.{key}: missing" for key in set(schema["required"]) - value.keys()]
    inner = ((key, known[key]) for key in value.keys() & known.keys())
    return wrong + [fault for key, kind in inner for fault in _faults(value[key], kind, definitions, f"{at}.{key}")]


def _fits(value: Any, kind: str) -> bool:
    return isinstance(value, TYPES[kind]) and not (isinstance(value, bool) and kind in ("integer", "number"))


def unseen(document: Any, schema: dict[str, Any]) -> list[str]:
    """Objects of the document in which a key that is not in the schema would pass; maps of anything are such."""
    whole = json.loads(json.dumps(document))
    found = []
    for at, inner in list(_objects(whole, "document")):
        inner["planted"] = [["no figure"]]
        if not faults(whole, schema):
            found.append(at)
        del inner["planted"]
    return found


def _objects(value: Any, at: str) -> Iterator[tuple[str, dict[str, Any]]]:
    if isinstance(value, dict):
        yield at, value
    for key, each in value.items() if isinstance(value, dict) else enumerate(value if isinstance(value, list) else ()):
        yield from _objects(each, f"{at}.{key}")
