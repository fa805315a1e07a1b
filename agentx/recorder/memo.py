"""Parts of request bodies are parsed once: an agent sends the same messages with every turn.

A body comes as the parts that the capture stored (`parts.py`). A part that is a JSON object by itself, with or without
a comma before it, stands for the same object wherever it occurs; it is replaced by a short one that names it, and the
JSON parser puts the object back. It cannot be a piece of a string: an object that is not empty has a quote in it, which
inside a string would be escaped. What is made of such an object can then be kept by its identity.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

SHORTEST = 64  # bytes of a part that is worth naming
MOST_BYTES = 256 << 20  # of parts that are remembered; then all is forgotten
T = TypeVar("T")


class Memo(Generic[T]):
    """Parses bodies; `made` keeps what was made of objects that came from a part."""

    def __init__(self) -> None:
        self._name = f"\0part {os.urandom(8).hex()}"  # a key that no body has
        self._forget()

    def _forget(self) -> None:
        self._short: dict[bytes, bytes | None] = {}
        self._objects: list[dict[str, Any]] = []
        self._made: dict[int, T] = {}
        self._mine: set[int] = set()
        self._bytes = 0

    def load(self, parts: Sequence[bytes]) -> Any:
        """The JSON value of a body. Raises ValueError or RecursionError as json.loads does."""
        if self._bytes > MOST_BYTES:
            self._forget()
        return json.loads(b"".join(self._shortened(part) or part for part in parts), object_hook=self._restored)

    def made(self, value: dict[str, Any], make: Callable[[dict[str, Any]], T]) -> T:
        """`make(value)`, made once for an object that came from a part. What is made must not be changed."""
        known = self._made.get(id(value))
        if known is None:
            known = make(value)
            if id(value) in self._mine:
                self._made[id(value)] = known
        return known

    def _shortened(self, part: bytes) -> bytes | None:
        if len(part) < SHORTEST:
            return None
        if part not in self._short:
            self._short[part] = self._named(part)
            self._bytes += len(part)
        return self._short[part]

    def _named(self, part: bytes) -> bytes | None:
        """The short object for a part that is one by itself, else None."""
        begin = part.find(b"{", 0, 4)
        if begin < 0 or part[:begin].strip(b", \t\r\n") or not part.rstrip().endswith(b"}"):
            return None
        try:
            value = json.loads(part[begin:])
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict) or not value:
            return None
        self._objects.append(value)
        self._mine.add(id(value))
        return part[:begin] + json.dumps({self._name: len(self._objects) - 1}).encode()

    def _restored(self, value: dict[str, Any]) -> dict[str, Any]:
        number = value.get(self._name)
        return self._objects[number] if number is not None else value
