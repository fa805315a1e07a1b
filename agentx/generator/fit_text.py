"""A spec as YAML for people: sections as blocks, a distribution on one line, remarks behind the values."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import Any

from agentx.generator.fit_families import Fit
from agentx.generator.fit_parts import Noted

WIDTH = 118
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_./-]*( [A-Za-z0-9_./-]+)*\Z|[0-9.]+(e[+-]?[0-9]+)?(ms|us|s|m|h|d|%)\Z")
_WORDS = {"null", "true", "false", "~", "yes", "no", "on", "off"}


def as_yaml(head: Sequence[str], spec: dict[str, Any], tail: Sequence[str]) -> str:
    """`head` and `tail` are comments, one to a paragraph; `spec` has leaves that are `Fit`, `Noted` or plain data."""
    lines = [*_comment(head), *_block(spec, ""), *_comment(tail)]
    return "\n".join(lines) + "\n"


def _comment(paragraphs: Sequence[str]) -> Iterator[str]:
    for each in paragraphs:
        text = " ".join(each.split())  # one that holds a line break must not leave its comment
        text = "".join(letter if letter.isprintable() else "?" for letter in text)
        yield from textwrap.wrap(text, WIDTH, initial_indent="# ", subsequent_indent="#   ", break_on_hyphens=False)


def _block(section: dict[str, Any], indent: str) -> Iterator[str]:
    for key, value in section.items():
        name = f"{indent}{_scalar(key)}:"
        if isinstance(value, Fit):
            yield from _line(f"{name} {_flow(value.shape)}", value.told)
        elif isinstance(value, Noted):
            yield from _line(f"{name} {_flow(value.value)}", value.remark)
        elif isinstance(value, dict) and not _is_flat(value):
            yield name
            yield from _block(value, indent + "  ")
        else:
            yield f"{name} {_flow(value)}"


def _line(text: str, remark: str) -> Iterator[str]:
    if len(text) + len(remark) + 6 <= WIDTH:
        yield f"{text:<58}  # {remark}"
    else:
        indent = " " * (len(text) - len(text.lstrip()))
        yield f"{indent}# {remark}"
        yield text


def _is_flat(value: Any) -> bool:
    """Whether nothing in it has a remark, and it is short."""
    return _is_bare(value) and len(_flow(value)) < WIDTH - 30


def _is_bare(value: Any) -> bool:
    if isinstance(value, Fit | Noted):
        return False
    return all(_is_bare(each) for each in value.values()) if isinstance(value, dict) else True


def _flow(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(key)}: {_flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_flow(each) for each in value) + "]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return str(value)
    text = str(value)
    return text if _PLAIN.match(text) and text.lower() not in _WORDS else _quoted(text)


def _quoted(text: str) -> str:
    """Text in quotation marks; what does not print is escaped, since YAML takes some of it for line ends."""
    plain = json.dumps(text, ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in plain)
