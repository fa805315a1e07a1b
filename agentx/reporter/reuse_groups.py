"""Reuse by groups of requests: by layer, kind of turn, kind of thread and context length; and what was eligible.

Over the measured responses that told prompt and cached tokens, so that possible, ideal and observed of a group are of
the same prompts. Layers are told apart by our own count of a prompt; the observed tokens of a layer are those of the
leading cached tokens that lie in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from agentx.core import LAYERS, THREAD_KINDS
from agentx.reporter.observed import Reuse
from agentx.reporter.table import Block, Heading, Lines, Table
from agentx.turn_kinds import TURN_KINDS

if TYPE_CHECKING:
    from agentx.run_reuse import Row

BOUNDS = (4_096, 16_384, 32_768, 65_536, 131_072, 262_144)  # prompt tokens between two groups of context length


@dataclass(frozen=True, slots=True)
class Group:
    """Sums over the requests of a group, tokens. `requests` None: a layer is in all of them."""

    by: str
    name: str
    requests: int | None
    prompt: int
    possible: int
    ideal: int
    observed: int | None


@dataclass(frozen=True, slots=True)
class Eligible:
    """Of the tokens that a prompt has in common with the prompt and reply before it in its thread, how many were
    cached: `requests` that had one before them."""

    requests: int
    tokens: int
    cached: int

    @property
    def share(self) -> float | None:
        return self.cached / self.tokens if self.tokens else None


@dataclass(frozen=True, slots=True)
class Grouped:
    """`eligible` None: the observed reuse is not known."""

    groups: tuple[Group, ...] = ()
    eligible: Eligible | None = None


def grouped(reuse: Reuse) -> Grouped:
    """Nothing where there is no ideal."""
    if reuse.ideal is None:
        return Grouped()
    rows, known = reuse.ideal.rows, not reuse.by_request.doubtful
    groups = [
        *_layers(rows, known),
        *_by("turn_kind", rows, TURN_KINDS, lambda row: row.turn_kind, known),
        *_by("thread_kind", rows, THREAD_KINDS, lambda row: row.thread_kind, known),
        *_by("context", rows, _CONTEXTS, lambda row: _context(row.attempt.prompt_tokens or 0), known),
    ]
    return Grouped(tuple(groups), _eligible(rows) if known else None)


def _layers(rows: Sequence[Row], known: bool) -> Iterator[Group]:
    prompt = _columns(row.ideal.tokens for row in rows)
    possible, ideal = _columns(row.possible.reused for row in rows), _columns(row.ideal.reused for row in rows)
    observed = _columns(row.ideal.observed for row in rows if row.ideal.observed)
    for at, name in enumerate((*LAYERS, "template")):
        if prompt[at]:
            yield Group("layer", name, None, prompt[at], possible[at], ideal[at], observed[at] if known else None)


def _columns(counts: Iterable[Sequence[int]]) -> list[int]:
    """Sums by layer."""
    return [sum(column) for column in zip(*counts, strict=True)] or [0] * (len(LAYERS) + 1)


def _by(
    by: str, rows: Sequence[Row], names: Sequence[str], name_of: Callable[[Row], str], known: bool
) -> Iterator[Group]:
    split: dict[str, list[Row]] = {name: [] for name in names}
    for row in rows:
        split[name_of(row)].append(row)
    for name, mine in split.items():
        if mine:
            yield Group(
                by,
                name,
                len(mine),
                sum(row.attempt.prompt_tokens or 0 for row in mine),
                sum(sum(row.possible.reused) for row in mine),
                sum(sum(row.ideal.reused) for row in mine),
                sum(_cached(row) for row in mine) if known else None,
            )


def _cached(row: Row) -> int:
    cached = row.attempt.cached
    return (cached.tokens or 0) if cached is not None else 0


def _context(tokens: int) -> str:
    return _CONTEXTS[sum(tokens >= bound for bound in BOUNDS)]


def _named(tokens: int) -> str:
    return f"{tokens // 1024}k"


_CONTEXTS = (
    f"under {_named(BOUNDS[0])}",
    *(f"{_named(low)} to {_named(high)}" for low, high in pairwise(BOUNDS)),
    f"{_named(BOUNDS[-1])} and more",
)


def _eligible(rows: Sequence[Row]) -> Eligible:
    pairs = [(row.ideal.common, _cached(row)) for row in rows if row.ideal.common is not None]
    return Eligible(len(pairs), sum(common for common, _ in pairs), sum(min(common, hit) for common, hit in pairs))


def groups_document(found: Grouped) -> dict[str, Any]:
    """Plain values only; a list for each way to group."""
    document: dict[str, Any] = {"layer": [], "turn_kind": [], "thread_kind": [], "context": []}
    for group in found.groups:
        document[group.by].append(
            {
                "name": group.name,
                "requests": group.requests,
                "prompt_tokens": group.prompt,
                "possible_tokens": group.possible,
                "ideal_tokens": group.ideal,
                "observed_tokens": group.observed,
            }
        )
    eligible = found.eligible
    document["eligible"] = (
        None
        if eligible is None
        else {
            "requests": eligible.requests,
            "tokens": eligible.tokens,
            "cached_tokens": eligible.cached,
            "share": eligible.share,
        }
    )
    return document


_TITLES = {"layer": "layer", "turn_kind": "kind of turn", "thread_kind": "kind of thread", "context": "context"}


def groups_blocks(found: Grouped) -> list[Block]:
    if not found.groups:
        return []
    rows: list[tuple[str, ...]] = []
    last = ""
    for group in found.groups:
        if group.by != last:
            rows.append((f"by {_TITLES[group.by]}", "", "", "", "", ""))
            last = group.by
        shares = [_share(part, group.prompt) for part in (group.possible, group.ideal, group.observed)]
        requests = "" if group.requests is None else f"{group.requests:,d}"
        rows.append((f"  {group.name}", requests, f"{group.prompt:,d}", *shares))
    columns = ("", "requests", "prompt tokens", "possible", "ideal", "observed")
    blocks: list[Block] = [Heading("Reuse by groups of requests"), Table(columns, tuple(rows))]
    if found.eligible is not None and found.eligible.share is not None:
        words = (
            f"Eligible: of {found.eligible.tokens:,d} tokens that a prompt had in common with its thread's last prompt "
            f"and reply, {found.eligible.share * 100:.1f} % were cached ({found.eligible.requests:,d} requests)."
        )
        blocks.append(Lines((words,)))
    return blocks


def _share(part: int | None, whole: int) -> str:
    return "unknown" if part is None else f"{part / whole * 100:.1f} %" if whole else "n/a"
