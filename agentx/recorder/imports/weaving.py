"""A line of context, given as prompts of block ids, becomes turns' prompts, replies and events.

Three things are inferred here, and counted. The tokens behind a prompt's last id are the head of what the line's
next prompt has there, when that goes on exactly. The first `out` tokens after the previous prompt are its reply,
when the prompt grew by as much. A prompt that is shorter than the one before, and that later ones build on, is a
compaction: the common prefix was kept, and nothing says how long the summary is.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from agentx.core import Layer, Piece, Prompt, TurnEvent
from agentx.recorder.imports.blocks import Weaver, blocks_of, common, marks
from agentx.recorder.imports.books import Books

Lead = Sequence[tuple[int, Layer]]  # (end, layer) of the leading tokens, ascending


@dataclass(frozen=True, slots=True)
class Link:
    """One prompt of a line: its turn, lengths in tokens, block ids, and the layer of what is new in it."""

    turn: int
    isl: int
    out: int
    ids: array[int]
    fresh: Layer = "user"


class Root(NamedTuple):
    """What a line branches from: a turn, its ids and its resolved pieces."""

    turn: int
    isl: int
    ids: array[int]
    pieces: tuple[Piece, ...]


class Spun(NamedTuple):
    """A link's part of the trace. `root` is what a side line branches from here; `reply` this turn's own."""

    prompt: Prompt
    root: Root
    event: TurnEvent | None
    reply: int | None


def spin(
    weaver: Weaver,
    links: Sequence[Link],
    lead: Lead,
    books: Books,
    root: Root | None = None,
    *,
    by_length: bool = False,
) -> list[Spun]:
    """The prompts of a line in order; the first one branches from `root`.

    `by_length`: nothing identifies the prompts, and each is taken to keep all that it can of the one before.
    """
    if not by_length:
        links = _extended([_clipped(link, weaver.block, books) for link in links], weaver.block, books)
    spun: list[Spun] = []
    base = root
    for position, link in enumerate(links):
        previous = links[position - 1] if position else None
        kept = _kept(base, link, weaver.block, by_length) if base else 0
        happened = _event(previous, link, kept, last=position == len(links) - 1, books=books)
        bounds, reply_at = lead, None
        if base is not None and previous is not None:
            on = by_length or _continues(previous, link, weaver.block)
            reply_at = _reply_start(previous, link, on, books)
            if reply_at is not None:
                bounds = _around_reply(lead, weaver, base, previous.out)
        fresh = _fresh(link, happened, kept, lead, weaver.block)
        parts = marks(kept, link.isl, bounds, fresh)
        woven = weaver.prompt(link.ids, parts, (base.turn, base.pieces) if base else None, kept)
        if reply_at is not None:
            at = next(i for i, mark in enumerate(parts) if mark.start == reply_at)
            spun[-1] = spun[-1]._replace(reply=woven.segments[at])
            books.note("reply cut by the end of the ids: left unknown", woven.segments[at] is None)
        base = Root(link.turn, link.isl, link.ids, woven.pieces)
        spun.append(Spun(woven.prompt, base, happened, None))
    books.note("reply of a line's last turn: no later prompt shows it", bool(links and links[-1].out))
    return spun


def _clipped(link: Link, block: int, books: Books) -> Link:
    """The link without ids that lie behind its length."""
    need = blocks_of(link.isl, block)
    if len(link.ids) <= need:
        return link
    books.note("prompt with more hash ids than its length has blocks: the surplus left out")
    return Link(link.turn, link.isl, link.out, link.ids[:need], link.fresh)


def _extended(links: list[Link], block: int, books: Books) -> list[Link]:
    """The links with the ids of their unhashed tails, where the next one of the line has them."""
    result = list(links)
    for position in range(len(links) - 1, -1, -1):
        link, have = links[position], len(links[position].ids)
        need = blocks_of(link.isl, block)
        if have >= need:
            continue
        following = result[position + 1] if position + 1 < len(result) else None
        if following is None or not have or not _goes_on(link, following, have, need):
            books.note("prompt tail without a hash id: a synthetic segment of its own (inferred)")
            continue
        books.note("prompt tail without a hash id: the head of the next prompt's block (inferred)")
        ids = link.ids + following.ids[have:need]
        result[position] = Link(link.turn, link.isl, link.out, ids, link.fresh)
    return result


def _goes_on(link: Link, following: Link, have: int, need: int) -> bool:
    if following.isl < link.isl or len(following.ids) < need:
        return False
    return common(link.ids, following.ids) == have


def _kept(base: Root, link: Link, block: int, by_length: bool) -> int:
    """Leading tokens that a prompt shares with its base."""
    if by_length:
        return min(base.isl, link.isl)
    return min(common(base.ids, link.ids) * block, base.isl, link.isl)


def _continues(previous: Link, link: Link, block: int) -> bool:
    """Whether all whole blocks of the previous prompt stand at the head of this one."""
    shared = common(previous.ids, link.ids)
    return shared > 0 and shared >= min(len(previous.ids), previous.isl // block)


def _reply_start(previous: Link, link: Link, on: bool, books: Books) -> int | None:
    """Where the previous turn's reply begins in this prompt, which goes `on` from it or not; None: nowhere."""
    if not previous.out:
        return None
    if not on:
        books.note("reply unknown: the next prompt does not go on from this one")
        return None
    if link.isl - previous.isl < previous.out:
        books.note("reply unknown: the next prompt grew by less")
        return None
    books.note("reply taken from the next prompt's growth (inferred)")
    return previous.isl


def _around_reply(lead: Lead, weaver: Weaver, base: Root, out: int) -> list[tuple[int, Layer]]:
    """The bounds of a prompt that holds a reply of `out` tokens behind its base: nothing behind that is leading."""
    bounds = [(min(end, base.isl), layer) for end, layer in lead]
    if base.pieces:
        bounds.append((base.isl, weaver.segments[base.pieces[-1].segment].layer))
    return [*bounds, (base.isl + out, "assistant")]


def _event(previous: Link | None, link: Link, kept: int, *, last: bool, books: Books) -> TurnEvent | None:
    if previous is None:
        return None
    if link.isl < previous.isl:
        if last:
            books.note("shorter prompt at a line's end: not called a compaction")
            return None
        books.note("compaction" if kept else "reset of the context")
        return TurnEvent("compaction" if kept else "reset", before=previous.isl, kept=kept)
    books.note("prompt that rewrites the end of the one before", kept < previous.isl)
    return None


def _fresh(link: Link, happened: TurnEvent | None, kept: int, lead: Lead, block: int) -> Layer:
    """The layer of the new tokens: a summary where a compaction kept no more than the leading layers."""
    leading = lead[-1][0] if lead else 0
    compacted = happened is not None and happened.kind == "compaction"
    return "summary" if compacted and kept <= leading + block else link.fresh
