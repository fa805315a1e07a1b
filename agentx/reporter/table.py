"""The few shapes a report is made of, and their two renderings: plain ASCII for terminals, and markdown."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

WIDTH = 100


@dataclass(frozen=True, slots=True)
class Heading:
    text: str


@dataclass(frozen=True, slots=True)
class Lines:
    """Sentences, each wrapped on its own; `bullet` sets a dash in front."""

    lines: tuple[str, ...]
    bullet: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """(name, what it is) pairs, names in one column."""

    pairs: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Table:
    """The first column is left-aligned, the others right. Every row has as many cells as `columns`."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


Block = Heading | Lines | Facts | Table


def as_text(blocks: Sequence[Block]) -> str:
    """At most WIDTH columns wide, as far as no single word or table is wider."""
    parts = [_text(block) for block in blocks if not _empty(block)]
    return "\n".join(parts).strip("\n") + "\n"


def as_markdown(blocks: Sequence[Block]) -> str:
    parts = [_markdown(block) for block in blocks if not _empty(block)]
    return "\n\n".join(parts) + "\n"


def _empty(block: Block) -> bool:
    return (isinstance(block, Table) and not block.rows) or (isinstance(block, Lines) and not block.lines)


def _text(block: Block) -> str:
    if isinstance(block, Heading):
        return "\n" + _wrap("", "  ", block.text)
    if isinstance(block, Lines):
        return "\n".join(_wrap("  - " if block.bullet else "  ", "    ", line) for line in block.lines)
    if isinstance(block, Facts):
        width = max(len(name) for name, _ in block.pairs)
        return "\n".join(_wrap(f"  {name:<{width}}  ", " " * (width + 4), text) for name, text in block.pairs)
    cells = [block.columns, *block.rows]
    widths = [max(len(row[at]) for row in cells) for at in range(len(block.columns))]
    return "\n".join(_row(row, widths) for row in cells)


def _wrap(first: str, further: str, text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=first, subsequent_indent=further, break_on_hyphens=False)


def _row(row: Sequence[str], widths: Sequence[int]) -> str:
    rest = (f"  {cell:>{width}}" for cell, width in zip(row[1:], widths[1:], strict=True))
    return f"  {row[0]:<{widths[0]}}{''.join(rest)}".rstrip()


def _markdown(block: Block) -> str:
    if isinstance(block, Heading):
        return f"### {block.text}"
    if isinstance(block, Lines):
        return "\n".join(f"- {line}" for line in block.lines) if block.bullet else "\n\n".join(block.lines)
    if isinstance(block, Facts):
        return "\n".join(f"- **{name}**: {text}" for name, text in block.pairs)
    bars = ["---", *["---:"] * (len(block.columns) - 1)]
    rows = (block.columns, bars, *block.rows)
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in rows)
