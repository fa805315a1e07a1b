"""Specs are YAML as pure data, checked against strict models; every mistake is named with its place, all at once.

YAML here is plain mappings, lists and scalars. Tags are refused (some would run code), and so are duplicate keys and
merge keys (`<<`). A scalar is a number only if it looks like one, `true`, `false` and `null` are the only other words
with a meaning: `on`, `no`, `1:30` and dates stay text. Size, depth and the number of nodes after aliases are limited.
"""

from __future__ import annotations

import difflib
import pathlib
import re
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, TypeVar

import pydantic
import yaml

from agentx.errors import BadInput

MAX_BYTES, MAX_DEPTH, MAX_NODES, MAX_ANCHORS = 2**20, 64, 100_000, 100

Path = tuple[str | int, ...]
M = TypeVar("M", bound=pydantic.BaseModel)

_INT = re.compile(r"[-+]?[0-9][0-9_]*\Z")
_FLOAT = re.compile(r"[-+]?([0-9][0-9_]*)?\.?[0-9]+([eE][-+]?[0-9]+)?\Z|[-+]?[0-9][0-9_]*\.([eE][-+]?[0-9]+)?\Z")
_WORDS: dict[str, bool | None] = {"": None, "~": None, "null": None, "true": True, "false": False}
_DURATION = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([a-zA-Z]*)\s*\Z")
# unit -> (times, divided by); whole numbers, so that 285ms is the double nearest to 0.285
_UNITS = {
    "d": (86400, 1),
    "h": (3600, 1),
    "m": (60, 1),
    "s": (1, 1),
    "ms": (1, 10**3),
    "us": (1, 10**6),
    "ns": (1, 10**9),
}


class Strict(pydantic.BaseModel):
    """Base of all spec models: frozen, unknown keys are errors, defaults are trusted."""

    model_config = pydantic.ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def seconds(value: object) -> float:
    """Seconds of `20us`, `500ms`, `2s`, `1.5m`, `3h` or `1d`. Raises ValueError, also for a number without a unit."""
    match = _DURATION.match(value) if isinstance(value, str) else None
    bare = isinstance(value, int | float) and not isinstance(value, bool)
    if bare or (match is not None and not match[2]):
        raise ValueError(f"a duration needs a unit: write {value}s or {value}ms")
    if match is None or match[2] not in _UNITS:
        raise ValueError("should be a duration: a number with a unit of ns, us, ms, s, m, h or d")
    times, divided = _UNITS[match[2]]
    return float(match[1]) * times / divided


def duration_text(value: float) -> str:
    """The shortest text that `seconds` reads back as the same value."""
    for unit, (times, divided) in _UNITS.items():
        count = value * divided / times
        if value and count == int(count) and seconds(f"{int(count)}{unit}") == value:
            return f"{int(count)}{unit}"
    return f"{value:.17f}".rstrip("0").rstrip(".") + "s" if value < 1e-4 else f"{value!r}s".replace(".0s", "s")


Duration = Annotated[
    float,
    pydantic.BeforeValidator(seconds),
    pydantic.PlainSerializer(duration_text, return_type=str, when_used="json"),
]
"""A field written as text with a unit, held as float seconds, dumped as text again in JSON mode."""


@dataclass(slots=True)
class _Reader:
    """Builds plain data from one YAML text and remembers where each path stands."""

    file: str
    events: Iterator[yaml.Event]
    places: dict[Path, tuple[int, int]] = field(default_factory=dict)
    anchors: dict[str, tuple[Any, dict[Path, tuple[int, int]]]] = field(default_factory=dict)
    nodes: int = 0

    def fail(self, message: str, event: yaml.Event) -> BadInput:
        line, column = _place(event.start_mark)
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
        self.places.setdefault(path, _place(event.start_mark))
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
            self.places[at] = _place(event.start_mark)
            result[key] = self.value(next(self.events), at)
        return result

    def sequence(self, path: Path) -> list[Any]:
        result: list[Any] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            result.append(self.value(event, (*path, len(result))))
        return result


def _place(mark: Any) -> tuple[int, int]:
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


def _parse(text: str, file: str) -> tuple[Any, dict[Path, tuple[int, int]]]:
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
        at: tuple[int | None, int | None] = _place(mark) if mark else (None, None)
        problem = " ".join(str(error.problem or error.context).split())
        raise BadInput(f"not YAML: {problem}", file=file, line=at[0], column=at[1]) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise BadInput(f"not YAML: {' '.join(str(error).split())}", file=file) from None
    return None, {}


def _text(path: pathlib.Path) -> str:
    try:
        with path.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except IsADirectoryError:
        raise BadInput("is a directory, not a spec file", file=path) from None
    except FileNotFoundError:
        raise BadInput("no such file", file=path) from None
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", file=path) from None
    if len(raw) > MAX_BYTES:
        raise BadInput(f"larger than {MAX_BYTES // 2**20} MiB: not a spec", file=path)
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise BadInput(f"not UTF-8 text (byte 0x{raw[error.start]:02x})", file=path, line=line) from None


def _mapping(text: str, file: str) -> tuple[dict[str, Any], dict[Path, tuple[int, int]]]:
    data, places = _parse(text, file)
    if data is None:
        raise BadInput("the file is empty", file=file)
    if not isinstance(data, dict):
        raise BadInput(f"should be keys and values, not {_short(data)}", file=file, line=1)
    return data, places


def document(path: pathlib.Path | str) -> dict[str, Any]:
    """The file's plain data, header included, checked against no model. Raises BadInput."""
    return _mapping(_text(pathlib.Path(path)), str(path))[0]


def load(
    model: type[M], source: pathlib.Path | str, *, kind: str, text: str | None = None, sets: Sequence[str] = ()
) -> M:
    """The spec in the file `source` (or in `text`, then `source` is only its name) as `model`.

    The first key must be `agentx: <kind>/1`; the model does not declare it. `sets` are "key.path=value" overrides,
    each value read as YAML. Raises one BadInput that has a line for every mistake.
    """
    file = str(source)
    data, places = _mapping(_text(pathlib.Path(source)) if text is None else text, file)
    _header(data, places, kind, file)
    del data["agentx"]
    origins: dict[Path, str] = {}
    for override in sets:
        _set(data, override, origins)
    try:
        return model.model_validate(data)
    except pydantic.ValidationError as error:
        found = [_line(model, data, item, places, origins, file) for item in error.errors(include_url=False)]
        raise BadInput("\n".join(found)) from None


def _header(data: Mapping[str, Any], places: Mapping[Path, tuple[int, int]], kind: str, file: str) -> None:
    if next(iter(data), None) != "agentx":
        raise BadInput(f"the first key must be 'agentx: {kind}/1'", file=file, line=1)
    line, column = places[("agentx",)]
    found = str(data["agentx"])
    name, _, version = found.partition("/")
    if name != kind:
        message = f"agentx: {found} is not a {kind} spec (it should say 'agentx: {kind}/1')"
        raise BadInput(message, file=file, line=line, column=column)
    if version != "1":
        known = version.isdigit() and int(version) > 1
        message = f"agentx: {found} is {'newer than' if known else 'not a version that'} this agentx reads"
        raise BadInput(message, file=file, line=line, column=column, hint=f"it reads {kind}/1")


def _set(data: dict[str, Any], override: str, origins: dict[Path, str]) -> None:
    """Put one "key.path=value" into `data`; keys on the way are made, the model judges their names."""
    label = f"--set {override}"
    key, equals, value = override.partition("=")
    parts = key.strip().split(".")
    if not equals or not all(parts):
        raise BadInput(f"{label}: should be key.path=value")
    at: Any = data
    path: Path = ()
    for place, part in enumerate(parts):
        last = place == len(parts) - 1
        if isinstance(at, list) and part.isdigit() and int(part) < len(at):
            step: str | int = int(part)
        elif isinstance(at, dict):
            step = part
        else:
            raise BadInput(f"{label}: {'.'.join(map(str, path))} is {_short(at)}, it has no {part!r}")
        path = (*path, step)
        if last:
            at[step] = _parse(value, label)[0]
            origins[path] = label
        else:
            inner = at.get(step) if isinstance(at, dict) else at[step]
            # Copied on the way, so that an override of one alias of a YAML anchor leaves the others alone.
            at[step] = list(inner) if isinstance(inner, list) else dict(inner) if isinstance(inner, dict) else inner
            if inner is None:
                at[step] = {}
            at = at[step]


def _line(
    model: type[pydantic.BaseModel],
    data: Mapping[str, Any],
    item: Any,
    places: Mapping[Path, tuple[int, int]],
    origins: Mapping[Path, str],
    file: str,
) -> str:
    """One validation error as `file:line:column: key: what, value, did you mean 'x'?`."""
    path = _inside(data, item["loc"])
    missing = item["type"] == "missing"
    prefix = _where(path, places, origins, file)
    what, guess = _what(item, model, path)
    shown = (*path, item["loc"][-1]) if missing else path
    key = ".".join(part if part.isprintable() else repr(part) for part in map(str, shown))
    value = "" if missing or item["type"] in ("extra_forbidden", "value_error") else f", not {_short(item['input'])}"
    if item["type"] == "value_error" and not isinstance(item["input"], dict | list | pydantic.BaseModel):
        value = f", not {_short(item['input'])}"
    return f"{prefix}: {key + ': ' if key else ''}{what}{value}{guess}"


def _inside(data: Any, loc: Sequence[str | int]) -> Path:
    """The part of a validation location that exists in the file; steps through unions and defaults are dropped."""
    path: Path = ()
    for step in loc:
        if (isinstance(data, dict) and step in data) or (isinstance(data, list) and isinstance(step, int)):
            data = data[step]  # type: ignore[index]
            path = (*path, step)
    return path


def _where(path: Path, places: Mapping[Path, tuple[int, int]], origins: Mapping[Path, str], file: str) -> str:
    for length in range(len(path), -1, -1):
        if path[:length] in origins:
            return origins[path[:length]]
    for length in range(len(path), -1, -1):
        if path[:length] in places:
            line, column = places[path[:length]]
            return f"{file}:{line}:{column}"
    return file


def _what(item: Any, model: type[pydantic.BaseModel], path: Path) -> tuple[str, str]:
    """(what is wrong, a suggestion or nothing)."""
    kind, context = item["type"], item.get("ctx", {})
    if kind == "extra_forbidden":
        names = sorted(_keys(model, path[:-1]))
        return "unknown key", _suggest(str(path[-1]), names) or f" (known: {', '.join(names)})"
    if kind == "missing":
        return "is missing", ""
    if kind == "literal_error":
        names = re.findall(r"'([^']*)'", context.get("expected", ""))
        return f"should be {context.get('expected')}", _suggest(str(item["input"]), names)
    if kind == "value_error":
        return str(context["error"]), ""
    if kind in ("model_type", "model_attributes_type", "dict_type"):
        return "should be keys and values", ""
    message = str(item["msg"]).removeprefix("Input ")
    return message[:1].lower() + message[1:], ""


def _suggest(word: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    return f", did you mean {near[0]!r}?" if near else ""


def _keys(annotation: Any, path: Path) -> set[str]:
    """Every key that the models allow at `path` under `annotation`."""
    if isinstance(annotation, type) and issubclass(annotation, pydantic.BaseModel):
        fields = {info.alias or name: info.annotation for name, info in annotation.model_fields.items()}
        if not path:
            return set(fields)
        return _keys(fields[str(path[0])], path[1:]) if path[0] in fields else set()
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _keys(arguments[0], path)
    if origin in (typing.Union, types.UnionType):
        return set().union(*(_keys(argument, path) for argument in arguments))
    if origin in (dict, list, tuple, Mapping, Sequence) and path and arguments:
        return _keys(arguments[-1] if origin in (dict, Mapping) else arguments[0], path[1:])
    return set()


def _short(value: Any) -> str:
    """A value as a short piece of one line."""
    if isinstance(value, dict):
        return "keys and values"
    if isinstance(value, list | tuple):
        return "a list"
    text = "null" if value is None else str(value).lower() if isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
