"""Prometheus text exposition, both ways: SGLang's names with their colon, labels with their escapes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

_NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*,?')
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n"}


@dataclass(frozen=True, slots=True)
class Sample:
    """One series at one moment."""

    name: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Family:
    """A metric: `kind` is counter, gauge or histogram; the samples carry their own full names."""

    name: str
    kind: str
    help: str
    samples: Sequence[Sample]


def encode_metrics(families: Iterable[Family]) -> bytes:
    """The exposition text, format 0.0.4."""
    lines = []
    for family in families:
        lines.append(f"# HELP {family.name} {_escape_help(family.help)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        lines += map(_line, family.samples)
    return "".join(line + "\n" for line in lines).encode()


def parse_metrics(text: str) -> list[Sample]:
    """Every sample in `text`, in order. Comments, and lines that are no sample, are passed over: a server's metrics
    are there to be used as far as they go."""
    samples = []
    for line in text.split("\n"):
        sample = _parse_line(line)
        if sample is not None:
            samples.append(sample)
    return samples


def total(samples: Iterable[Sample], name: str, **labels: str) -> float | None:
    """Sum over the series of `name` that have `labels` at least; None when there is no such series (unknown, not 0)."""
    found = [
        sample.value
        for sample in samples
        if sample.name == name and all(sample.labels.get(key) == value for key, value in labels.items())
    ]
    return sum(found) if found else None


def _parse_line(line: str) -> Sample | None:
    line = line.strip()
    name = _NAME.match(line)
    if name is None:
        return None
    labels: dict[str, str] = {}
    at = name.end()
    if line[at : at + 1] == "{":
        at += 1
        while (label := _LABEL.match(line, at)) is not None:
            labels[label.group(1)] = _ESCAPE.sub(lambda e: _ESCAPED.get(e.group(1), e.group(1)), label.group(2))
            at = label.end()
        if line[at : at + 1] != "}":
            return None
        at += 1
    fields = line[at:].split()
    try:
        return Sample(name.group(), float(fields[0]), labels) if fields else None
    except ValueError:
        return None


def _line(sample: Sample) -> str:
    labels = ",".join(f'{key}="{_escape(value)}"' for key, value in sample.labels.items())
    return f"{sample.name}{{{labels}}} {_number(sample.value)}" if labels else f"{sample.name} {_number(sample.value)}"


def _number(value: float) -> str:
    return {"inf": "+Inf", "-inf": "-Inf", "nan": "NaN"}.get(repr(float(value)), repr(float(value)))


def _escape(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _escape_help(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n")
