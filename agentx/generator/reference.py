"""The tables of docs/reference/workload.md, made from the models: keys, distributions, statistics.

`python -m agentx.generator.reference docs/reference/workload.md` renews them in place; what stands between the marks
`<!-- NAME: made from the models -->` and `<!-- end -->` is replaced, the rest is prose and stays.
"""

from __future__ import annotations

import re
import sys
import types
import typing
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import pydantic
from pydantic.fields import FieldInfo

from agentx import distributions
from agentx.generator.expectation import QUANTITIES, SHARES, Expectation
from agentx.generator.quantities import ByGap, Counts, Shares, Times
from agentx.generator.spec import WorkloadSpec
from agentx.yamlspec import Strict

_BLOCK = re.compile(r"(<!-- (\w+): made from the models -->\n).*?(<!-- end -->)", re.DOTALL)
_SHAPES: tuple[tuple[str, str, str], ...] = (
    # (shape, its parameters, what it is)
    ("fixed", "the quantity", "always the same; a bare quantity is short for it"),
    ("uniform", "`low`, `high`", "every value between them alike"),
    ("normal", "`mean`, `sd`", "the bell curve; give it a `min`"),
    ("lognormal", "`median`, `sigma`", "exp of a normal; `sigma` is the standard deviation of the logarithm"),
    ("weibull", "`shape`, `scale`", "`shape` below 1 has a heavier tail than the exponential"),
    ("gamma", "`shape`, `scale`", "the mean is their product; standard deviation over mean is 1 / root of `shape`"),
    ("burr12", "`c`, `d`, `scale`", "P(X > x) = (1 + (x / scale)^c)^-d: a sharp lower edge, a power-law tail"),
    ("geometric", "`mean`", "whole numbers from 1, `mean` of them on average"),
    ("quantiles", "probability: quantity", "an empirical curve; linear between its points, level outside"),
    ("mixture", "a list of shapes, each with a `weight`", "the weights sum to 1"),
)


def fill(text: str) -> str:
    """The reference with its tables renewed. Raises KeyError for a mark of no table."""
    tables = {"keys": keys, "distributions": shapes, "statistics": statistics}
    return _BLOCK.sub(lambda match: f"{match[1]}{tables[match[2]]()}{match[3]}", text)


def keys() -> str:
    """One row for each key that a spec may have."""
    rows = [(f"`{key}`", _value(info), _default(info), _meaning(info)) for key, info in walk(WorkloadSpec)]
    return _table(("key", "value", "default", "meaning"), rows)


def shapes() -> str:
    """One row for each distribution."""
    return _table(("shape", "parameters", "what it is"), [(f"`{name}`", *rest) for name, *rest in _SHAPES])


def statistics() -> str:
    """One row for each quantity and each share that `expect` knows."""
    rows = [(f"`{name}`", "`_mean`, `_p1` to `_p99`, `_ks`", meaning) for name, meaning in QUANTITIES.items()]
    return _table(
        ("name", "with", "over"), rows + [(f"`{name}`", "", f"share: {what}") for name, what in SHARES.items()]
    )


def walk(model: type[pydantic.BaseModel], prefix: str = "") -> Iterator[tuple[str, FieldInfo]]:
    """Every key of a model and of the sections in it; NAME stands for a name that the author chooses."""
    for name, info in model.model_fields.items():
        yield prefix + name, info
        for inner, step in _sections(info.annotation):
            yield from walk(inner, f"{prefix}{name}.{step}")


def _sections(annotation: Any) -> Iterator[tuple[type[Strict], str]]:
    origin = typing.get_origin(annotation)
    for inner in _alternatives(annotation):
        if isinstance(inner, type) and issubclass(inner, Strict) and inner is not ByGap:
            step = "NAME." if origin is dict else "N." if origin is tuple else ""
            yield inner, step


def _alternatives(annotation: Any) -> list[Any]:
    """The types that a value may have, without None and without the keys of a mapping."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return _alternatives(arguments[0])
    if origin in (typing.Union, types.UnionType):
        return [inner for each in arguments if each is not type(None) for inner in _alternatives(each)]
    if origin is dict:
        return [arguments[1]]
    return [arguments[0]] if origin is tuple else [annotation]


_NAMES = {
    Counts: "number, drawn",
    Times: "duration, drawn",
    Shares: "0 to 1, drawn",
    str: "text",
    bool: "true or false",
}


def _value(info: FieldInfo) -> str:
    origin, parts = typing.get_origin(info.annotation), _alternatives(info.annotation)
    if info.annotation is Expectation.model_fields["target"].annotation:
        return "number, duration or distribution"
    if ByGap in parts:
        return "number, drawn, or `by_gap`"
    if len(parts) > 1:
        return "number or text"
    (part,) = parts
    if typing.get_origin(part) is typing.Literal:
        choices = ", ".join(f"`{choice}`" for choice in typing.get_args(part))
        return f"list of {choices}" if origin is tuple else choices
    if isinstance(part, type) and issubclass(part, Strict):
        return "names" if origin is dict else "list" if origin is tuple else "section"
    if part in _NAMES:
        return _NAMES[part]
    if any(isinstance(each, pydantic.BeforeValidator) for each in info.metadata):
        return "duration"
    return ("names of " if origin is dict else "") + ("whole number" if part is int else "number") + _bounds(info)


def _bounds(info: FieldInfo) -> str:
    found = {name: getattr(each, name) for each in info.metadata for name in ("ge", "gt", "le") if hasattr(each, name)}
    low = f"from {found['ge']:g}" if "ge" in found else f"above {found['gt']:g}" if "gt" in found else ""
    return " ".join(["", low] if low else []) + (
        f" to {found['le']:g}" if "le" in found and found["le"] < 2**30 else ""
    )


def _default(info: FieldInfo) -> str:
    value = info.default
    if info.is_required():
        return "required"
    if isinstance(value, distributions.Plain):
        value = value.fixed
    if value is None or value in ({}, (), "") or isinstance(value, pydantic.BaseModel):
        return "none"
    if isinstance(value, tuple):
        return f"`[{', '.join(value)}]`"
    return f"{value:g}" if isinstance(value, float) else str(value).lower()


def _meaning(info: FieldInfo) -> str:
    return info.description or ""


def _table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


if __name__ == "__main__":
    path = Path(sys.argv[1])
    path.write_text(fill(path.read_text(encoding="utf-8")), encoding="utf-8")
    print(f"{path}: the tables are renewed", file=sys.stderr)
