"""Canonical JSON: two values that differ only in what does not count have the same bytes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

VOLATILE = frozenset({"cache_control", "signature", "encrypted_content"})  # change from call to call, or mark a cache


def clean(value: Any) -> Any:
    """`value` without what does not count."""
    if isinstance(value, dict):
        kept = {key: clean(item) for key, item in value.items() if key not in VOLATILE}
        return {key: item for key, item in kept.items() if item is not None and item != []}
    if isinstance(value, list):
        return [clean(item) for item in value]
    return value


def key_of(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)
