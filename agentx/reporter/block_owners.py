"""Whose a block is: the play whose prompts hold it, or that had it made for its reply; or several share it.

Exact, by the places of the prompts' blocks. A block that no prompt holds is of a reply: it is whose the block before it
is. What no request of the run led to has no owner.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from agentx.reporter.block_removers import Prompt, Removers
from agentx.reporter.stored_blocks import TIERS, Blocks, Numbers, Places

NOBODY, SHARED = -1, -2
Play = tuple[str, int]  # a session and its play


class Removal(NamedTuple):
    """Blocks of one owner that one event removed from a tier. `by`: the request for whom, inferred."""

    tier: str
    owner: Play | None
    shared: bool
    tokens: int
    at: float
    by: int | None


def removals(prompts: Sequence[Prompt]) -> Iterator[Removal]:
    """Of all servers that had one of the prompts, each server's in the order of its events."""
    servers = {id(prompt.blocks): prompt.blocks for prompt in prompts}
    for blocks in servers.values():
        yield from _removals(
            blocks, [prompt for prompt in prompts if prompt.blocks is blocks], Removers(blocks, prompts)
        )


def _removals(blocks: Blocks, prompts: Sequence[Prompt], removers: Removers) -> Iterator[Removal]:
    rows, page = blocks.rows, blocks.page or 1
    owners = owners_of(blocks, prompts)
    gone = np.flatnonzero(~rows.stored)
    span = len(owners.plays) - SHARED  # of one number for event, tier and owner: to be counted fast
    keys = (rows.number[gone] * len(TIERS) + rows.tier[gone]) * span + owners.of[owners.index[gone]] - SHARED
    kinds, counts = np.unique(keys, return_counts=True)
    for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True):
        event, tier, owner = kind // span // len(TIERS), kind // span % len(TIERS), kind % span + SHARED
        play = owners.plays[owner] if owner >= 0 else None
        at = float(blocks.times[event])
        yield Removal(TIERS[tier], play, owner == SHARED, count * page, at, removers.of(event))


@dataclass(frozen=True, slots=True)
class Owners:
    """`index`: of each row of the recording, its place among all places; `of`: the owner of each of those, a number of
    `plays`, NOBODY or SHARED."""

    index: Numbers
    of: Numbers
    plays: Sequence[Play]


def owners_of(blocks: Blocks, prompts: Sequence[Prompt]) -> Owners:
    """`prompts` are those that this server had, in the order in which they were sent."""
    known, index = np.unique(blocks.rows.place, return_inverse=True)
    of = np.full(len(known), NOBODY, dtype=np.int64)
    plays: dict[Play, int] = {}
    for prompt in prompts:
        play = plays.setdefault((prompt.attempt.session, prompt.attempt.play), len(plays))
        begin = _leading(known, prompt.where, {play, SHARED}, of)
        stop = _leading(known, prompt.where, None, of)
        mine = np.searchsorted(known, prompt.where[begin:stop])
        of[mine] = np.where((of[mine] == NOBODY) | (of[mine] == play), play, SHARED)
    _replies(blocks, known, index, of)
    return Owners(index.astype(np.int64), of, list(plays))


def _leading(known: Places, where: Places, owners: set[int] | None, of: Numbers) -> int:
    """How many of a prompt's blocks at its front were ever stored, and have one of these owners already (None: any).

    By halves: a place says that all before it were stored, and who has one has those before it, alone or with others.
    """
    low, high = 0, len(where)
    while low < high:
        middle = (low + high) // 2
        at = int(np.searchsorted(known, where[middle]))
        there = at < len(known) and known[at] == where[middle]
        if there and (owners is None or int(of[at]) in owners):
            low = middle + 1
        else:
            high = middle
    return low


def _replies(blocks: Blocks, known: Places, index: Numbers, of: Numbers) -> None:
    """Blocks that no prompt holds, each after the one before it."""
    rows = blocks.rows
    left = np.flatnonzero(rows.stored & (of[index] == NOBODY) & (rows.parent != 0))
    above = np.minimum(np.searchsorted(known, rows.parent[left]), len(known) - 1)
    for own, before in zip(index[left].tolist(), above.tolist(), strict=True):
        of[own] = of[before]
