"""The few words of JSON Schema (draft 2020-12) in which every document that agentx prints is described.

All keys of an object are always there; others may be added within a document's number, so a reader lets those pass that
it does not know. Every leaf, and every part that a document may not have, is also null: unknown.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]

NUMBER: Schema = {"type": ["number", "null"]}
COUNT: Schema = {"type": ["integer", "null"]}
TEXT: Schema = {"type": ["string", "null"]}
FLAG: Schema = {"type": ["boolean", "null"]}
ANY: Schema = {}  # as a user, a publisher or a server gave it


def published(name: str, keys: Schema, where: str, definitions: Mapping[str, Schema] | None = None) -> Schema:
    """A whole document, plain values ready for json.dumps. `name` is what stands in its key `schema`; `where`: the
    page that defines its keys."""
    return {**_head(name, where), **_named(name, keys), **({"$defs": dict(definitions)} if definitions else {})}


def published_forms(name: str, forms: list[Schema], where: str) -> Schema:
    """A document of which there are several forms, each an object of keys of its own."""
    return {**_head(name, where), "anyOf": [_named(name, form) for form in forms]}


def _head(name: str, where: str) -> Schema:
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": name,
        "description": f"{where} defines each key; null is unknown; keys may be added",
    }


def _named(name: str, keys: Schema) -> Schema:
    properties = {"schema": {"const": name}, **keys["properties"]}
    return {"type": "object", "properties": properties, "required": list(properties)}


def record(**keys: Schema) -> Schema:
    """An object that has all of these keys, or null."""
    return {"type": ["object", "null"], "properties": keys, "required": list(keys)}


def list_of(item: Schema) -> Schema:
    return {"type": ["array", "null"], "items": item}


def map_of(value: Schema | None = None) -> Schema:
    """An object whose keys are the user's, or the server's."""
    return {"type": ["object", "null"], "additionalProperties": True if value is None else value}


def ref(name: str) -> Schema:
    """One of the document's definitions, or null."""
    return {"anyOf": [{"$ref": f"#/$defs/{name}"}, {"type": "null"}]}


def extended(name: str, **keys: Schema) -> Schema:
    """One of the definitions, with more keys."""
    return {"allOf": [{"$ref": f"#/$defs/{name}"}, record(**keys)]}


def each(kind: Schema, words: str) -> dict[str, Schema]:
    """Each of the words is a key of that kind."""
    return dict.fromkeys(words.split(), kind)
