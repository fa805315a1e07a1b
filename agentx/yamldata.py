"""YAML as pure data: mappings, lists and scalars, and the place of each.

Tags are refused (some would run code), and so are duplicate keys and merge keys (`<<`). A scalar is a number only if it
looks like one; `true`, `false` and `null` are the only other words with a meaning: `on`, `no`, `1:30` and dates stay
text. Depth, anchors and the number of nodes after aliases are limited.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import yaml

from agentx.errors import BadInput

MAX_DEPTH, MAX_NODES, MAX_ANCHORS = 64, 100_000, 100

Path = tuple[str | int, ...]

_INT = re.compile(r"[-+]?[0-9][0-9_]*\Z")
_FLOAT = re.compile(r"[-+]?([0-9][0-9_]*)?\.?[0-9]+([eE][-+]?[0-9]+)?\Z|[-+]?[0-9][0-9_]*\.([eE][-+]?[0-9]+)?\Z")
_WORDS: dict[str, bool | None] = {"": None, "~": None, "null": None, "true": True, "false": False}


@dataclass(slots=True)
class _Reader:
    """Builds plain data from one YAML text and remembers where each path stands."""

    file: str
    events: Iterator[yaml.Event]
    places: dict[Path, tuple[int, int]] = field(default_factory=dict)
    anchors: dict[str, tuple[Any, dict[Path, tuple[int, int]]]] = field(default_factory=dict)
    nodes: int = 0

    def fail(self, message: str, event: yaml.Event) -> BadInput:
        line, column = place_of(event.start_mark)
        return BadInput(message, file=self.file, line=line, column=column)

    def value(self, event: yaml.Event, path: Path) -> Any:
        """The data that begins with `event`."""
        self.count(1, event)
        if len(path) > MAX_DEPTH:
            raise self.fail(f"nested deeper than {MAX_DEPTH} levels", event)
        if isinstance(event, yaml.AliasEvent):
            return self.alias(event, path)
        assert isinstance(event, yaml.NodeEvent)  # the parser's own grammar, not input
        if getattr(event, "tag", None) is not None:
            message = f"the YAML tag {event.tag} is not allowed: a spec is plain data"  # type: ignore[attr-defined]
            raise self.fail(message, event)
        self.places.setdefault(path, place_of(event.start_mark))
        result: Any
        if isinstance(event, yaml.MappingStartEvent):
            result = self.mapping(path)
        elif isinstance(event, yaml.SequenceStartEvent):
            result = self.sequence(path)
        else:
            assert isinstance(event, yaml.ScalarEvent)
            result = _plain(event.value) if event.style is None else event.value
        if event.anchor is not None:
            if len(self.anchors) == MAX_ANCHORS:
                raise self.fail(f"more than {MAX_ANCHORS} anchors", event)
            depth = len(path)
            inner = {at[depth:]: place for at, place in self.places.items() if at[:depth] == path}
            self.anchors[event.anchor] = (result, inner)
        return result

    def alias(self, event: yaml.AliasEvent, path: Path) -> Any:
        if event.anchor not in self.anchors:
            raise self.fail(f"*{event.anchor} refers to no complete &{event.anchor} before it", event)
        result, inner = self.anchors[event.anchor]
        self.count(len(inner), event)
        self.places.update({path + rest: place for rest, place in inner.items()})
        return result

    def count(self, nodes: int, event: yaml.Event) -> None:
        self.nodes += nodes
        if self.nodes > MAX_NODES:
            raise self.fail(f"more than {MAX_NODES} values (aliases counted each time)", event)

    def mapping(self, path: Path) -> dict[str, Any]:
        result: dict[str, Any] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            if not isinstance(event, yaml.ScalarEvent) or event.tag is not None:
                raise self.fail("a key must be plain text", event)
            key: str = event.value
            if key == "<<" and event.style is None:
                raise self.fail("merge keys (<<) are not supported: write the keys out", event)
            at: Path = (*path, key)
            if key in result:
                raise self.fail(f"duplicate key {key!r} (first on line {self.places[at][0]})", event)
            self.places[at] = place_of(event.start_mark)
            result[key] = self.value(next(self.events), at)
        return result

    def sequence(self, path: Path) -> list[Any]:
        result: list[Any] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            result.append(self.value(event, (*path, len(result))))
        return result


def place_of(mark: Any) -> tuple[int, int]:
    """(line, column) from 1 of one of the parser's marks."""
    return mark.line + 1, mark.column + 1


def _plain(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    if _INT.match(text) and len(text) < 30:
        return int(text.replace("_", ""))
    if _FLOAT.match(text) and len(text) < 60:
        return float(text.replace("_", ""))
    return text


def parse(text: str, file: str) -> tuple[Any, dict[Path, tuple[int, int]]]:
    """Plain data of one YAML document and the (line, column) of each path in it."""
    loader = yaml.SafeLoader
    reader = _Reader(file, yaml.parse(text, Loader=loader))
    try:
        for event in reader.events:
            if isinstance(event, yaml.DocumentStartEvent):
                data = reader.value(next(reader.events), ())
                next(reader.events)
                if not isinstance(extra := next(reader.events), yaml.StreamEndEvent):
                    raise reader.fail("a second document: one file holds one spec", extra)
                return data, reader.places
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise BadInput(f"not YAML: {error.reason}", file=file, line=line) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at: tuple[int | None, int | None] = place_of(mark) if mark else (None, None)
        problem = " ".join(str(error.problem or error.context).split())
        raise BadInput(f"not YAML: {problem}", file=file, line=at[0], column=at[1]) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise BadInput(f"not YAML: {' '.join(str(error).split())}", file=file) from None
    return None, {}


def short(value: Any) -> str:
    """A value as a short piece of one line."""
    if isinstance(value, dict):
        return "keys and values"
    if isinstance(value, list | tuple):
        return "a list"
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
