"""Specs are YAML as pure data, checked against strict models; every mistake is named with its place, all at once.

What YAML may hold is in `yamldata.py`. One spec may begin with another (`extends`), and the command line may override
keys; a mistake is named where it was written, in whichever file or argument.
"""

from __future__ import annotations

import difflib
import pathlib
import re
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, TypeVar

import pydantic

from agentx.errors import BadInput
from agentx.yamldata import Path, parse, short

MAX_BYTES = 2**20

M = TypeVar("M", bound=pydantic.BaseModel)

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

    @pydantic.field_validator("*", mode="before")
    @classmethod
    def _no_truth_for_a_number(cls, value: object, info: pydantic.ValidationInfo) -> object:
        """YAML's true is no 1, and its false no 0."""
        field = cls.model_fields.get(info.field_name or "")
        if field is None or _takes_bool(field.annotation):
            return value
        inside = value.values() if isinstance(value, Mapping) and typing.get_origin(field.annotation) is dict else ()
        if isinstance(value, bool) or any(isinstance(each, bool) for each in inside):
            raise ValueError("should be something other than true or false")
        return value


def _takes_bool(annotation: object) -> bool:
    inside = typing.get_args(annotation)
    return annotation in (bool, typing.Any, object) or any(
        isinstance(each, bool) or _takes_bool(each) for each in inside
    )


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
    pydantic.WithJsonSchema({"type": "string", "pattern": r"^\s*[0-9]+(\.[0-9]+)?\s*(ns|us|ms|s|m|h|d)\s*$"}),
]
"""A field written as text with a unit, held as float seconds, dumped as text again in JSON mode."""


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
    data, places = parse(text, file)
    if data is None:
        raise BadInput("the file is empty", file=file)
    if not isinstance(data, dict):
        raise BadInput(f"should be keys and values, not {short(data)}", file=file, line=1)
    return data, places


def document(path: pathlib.Path | str) -> dict[str, Any]:
    """The file's plain data, header included, checked against no model. Raises BadInput."""
    return _mapping(_text(pathlib.Path(path)), str(path))[0]


Base = Callable[[str, pathlib.Path], pathlib.Path]


def load(
    model: type[M],
    source: pathlib.Path | str,
    *,
    kind: str,
    text: str | None = None,
    sets: Sequence[str] = (),
    extended: Base | None = None,
) -> M:
    """The spec in the file `source` (or in `text`, then `source` is only its name) as `model`.

    The first key must be `agentx: <kind>/1`; the model does not declare it. `sets` are "key.path=value" overrides,
    each value read as YAML. With `extended`, a spec may begin with `extends: name`; `extended(name, file)` says which
    file that is, and what it holds is there unless this file says otherwise. Raises one BadInput that has a line for
    every mistake.
    """
    file = str(source)
    data, places = _mapping(_text(pathlib.Path(source)) if text is None else text, file)
    where = _header(data, places, kind, file)
    if extended is not None and "extends" in data:
        data, where = _extend(model, data, where, [pathlib.Path(source)], kind, extended)
    for override in sets:
        _set(data, override, where)
    try:
        return model.model_validate(data)
    except pydantic.ValidationError as error:
        found = [_line(model, data, item, where, file) for item in error.errors(include_url=False)]
        raise BadInput("\n".join(found)) from None


Where = dict[Path, str]  # the place of each path in the data, as the user reads it


def _header(data: dict[str, Any], places: Mapping[Path, tuple[int, int]], kind: str, file: str) -> Where:
    """Check the first key and take it out of `data`. Returns where everything stands."""
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
    del data["agentx"]
    return {path: f"{file}:{line}:{column}" for path, (line, column) in places.items()}


def _extend(
    model: type[pydantic.BaseModel],
    data: dict[str, Any],
    where: Where,
    heirs: list[pathlib.Path],
    kind: str,
    extended: Base,
) -> tuple[dict[str, Any], Where]:
    """`data` on top of the spec that it extends, and where each part stands. `heirs`: the files on the way here."""
    name, place = data.pop("extends"), where[("extends",)]
    if not isinstance(name, str):
        raise BadInput(f"{place}: extends: should be a name or a path, not {short(name)}")
    try:
        path = extended(name, heirs[-1])
        base, places = _mapping(_text(path), str(path))
    except BadInput as error:
        raise BadInput(f"{place}: extends: {error}") from None
    chain = [*heirs, path]
    if path.resolve() in {heir.resolve() for heir in heirs}:
        raise BadInput(f"{place}: extends: {' extends '.join(map(str, chain))}: that is a circle")
    inherited = _header(base, places, kind, str(path))
    if "extends" in base:
        base, inherited = _extend(model, base, inherited, chain, kind, extended)
    for key in getattr(model, "own_keys", ()):
        base.pop(key, None)
    _merge(model, base, data, (), inherited, where)
    return base, inherited


def _merge(annotation: Any, base: dict[str, Any], data: dict[str, Any], at: Path, where: Where, own: Where) -> None:
    """Put `data` over `base`: sections key by key; a drawn quantity, a list or a table of names as a whole."""
    fields = {name: info.annotation for name, info in annotation.model_fields.items()}
    for key, value in data.items():
        path = (*at, key)
        section = _section(fields.get(key))
        if section and isinstance(value, dict) and isinstance(base.get(key), dict):
            base[key] = dict(base[key])  # it may be a YAML anchor that others are aliases of
            _merge(section, base[key], value, path, where, own)
            continue
        base[key] = value
        for old in [old for old in where if old[: len(path)] == path]:
            del where[old]
        where.update({new: place for new, place in own.items() if new[: len(path)] == path})


def _section(annotation: Any) -> type[Strict] | None:
    """The one model that a key's value can be, if it is a section of a spec."""
    inner = [part for part in typing.get_args(annotation) or (annotation,) if part is not type(None)]
    only = inner[0] if len(inner) == 1 else None
    return only if isinstance(only, type) and issubclass(only, Strict) else None


def _set(data: dict[str, Any], override: str, where: Where) -> None:
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
            raise BadInput(f"{label}: {'.'.join(map(str, path))} is {short(at)}, it has no {part!r}")
        path = (*path, step)
        if last:
            at[step] = parse(value, label)[0]
            for old in [old for old in where if old[: len(path)] == path]:
                del where[old]
            where[path] = label
        else:
            inner = at.get(step) if isinstance(at, dict) else at[step]
            # Copied on the way, so that an override of one alias of a YAML anchor leaves the others alone.
            at[step] = list(inner) if isinstance(inner, list) else dict(inner) if isinstance(inner, dict) else inner
            if inner is None:
                at[step] = {}
            at = at[step]


def _line(model: type[pydantic.BaseModel], data: Mapping[str, Any], item: Any, where: Where, file: str) -> str:
    """One validation error as `file:line:column: key: what, value, did you mean 'x'?`."""
    path = _inside(data, item["loc"])
    missing = item["type"] == "missing"
    prefix = _where(path, where, file)
    what, guess = _what(item, model, path)
    shown = (*path, item["loc"][-1]) if missing else path
    key = ".".join(part if part.isprintable() else repr(part) for part in map(str, shown))
    value = "" if missing or item["type"] in ("extra_forbidden", "value_error") else f", not {short(item['input'])}"
    if item["type"] == "value_error" and not isinstance(item["input"], dict | list | pydantic.BaseModel):
        value = f", not {short(item['input'])}"
    return f"{prefix}: {key + ': ' if key else ''}{what}{value}{guess}"


def _inside(data: Any, loc: Sequence[str | int]) -> Path:
    """The part of a validation location that exists in the file; steps through unions and defaults are dropped."""
    path: Path = ()
    for step in loc:
        if (isinstance(data, dict) and step in data) or (isinstance(data, list) and isinstance(step, int)):
            data = data[step]  # type: ignore[index]
            path = (*path, step)
    return path


def _where(path: Path, where: Where, file: str) -> str:
    """The place of the path, or of what it is in."""
    return next((where[path[:length]] for length in range(len(path), -1, -1) if path[:length] in where), file)


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
