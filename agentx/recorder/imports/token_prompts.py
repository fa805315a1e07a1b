"""Prompts of token ids, cut where the next one of their session leaves them, so that both share all that they have.

By themselves ids are cut into blocks from the prompt's start: prompts share whole blocks. A session's prompts mostly go
on from one another, often but for a last token or two, since the end of a prompt and a reply's beginning become other
tokens when they are rendered again. A call waits for the next of its session, and is cut at their common beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import NamedTuple

from agentx.core import Layer
from agentx.recorder.calls import ModelCall
from agentx.recorder.canonical import Item, id_items

SESSIONS = 512  # whose last call is waited with


class Asked(NamedTuple):
    """A call, its prompt's ids and, where told, its reply's; without a session, or without ids, it is whole already."""

    call: ModelCall
    session: str | None = None
    ids: Sequence[int] = ()
    made: Sequence[int] = ()
    cuts: tuple[int, ...] = ()
    fixed: int = 0  # leading ids that the call before has too, and is cut by already


@dataclass(slots=True)
class Prompts:
    """The last call of each session."""

    waiting: dict[str, Asked] = field(default_factory=dict)

    def put(self, asked: Asked) -> Iterator[ModelCall]:
        """Takes a call; gives those that need not wait any longer."""
        if asked.session is None or not asked.ids:
            yield asked.call
            return
        before = self.waiting.pop(asked.session, None)
        if before is not None:
            shared = _common([*before.ids, *before.made], asked.ids)
            # A cut in what the calls before share would part them again: there only their own cuts hold.
            cut = shared if shared >= before.fixed else 0
            yield _finished(before, cut)
            cuts = {each for each in (*before.cuts, len(before.ids), cut) if 0 < each <= shared}
            asked = asked._replace(cuts=tuple(sorted(cuts)), fixed=shared)
        self.waiting[str(asked.session)] = asked
        if len(self.waiting) > SESSIONS:
            yield _finished(self.waiting.pop(next(iter(self.waiting))), 0)

    def rest(self) -> Iterator[ModelCall]:
        """The calls that are waiting: nothing goes on from them."""
        for asked in self.waiting.values():
            yield _finished(asked, 0)
        self.waiting = {}


def _finished(asked: Asked, shared: int) -> ModelCall:
    length = len(asked.ids)
    items = _cut(asked.ids, (*asked.cuts, shared), "user", glued=False)
    reply = _cut(asked.made, (shared - length,), "assistant", glued=True)
    call = asked.call
    return replace(call, request=replace(call.request, items=items), reply=replace(call.reply, items=reply))


def _cut(ids: Sequence[int], cuts: Sequence[int], layer: Layer, *, glued: bool) -> tuple[Item, ...]:
    items: list[Item] = []
    bounds = [0, *sorted({cut for cut in cuts if 0 < cut < len(ids)}), len(ids)]
    for begin, end in pairwise(bounds):
        items += id_items(list(ids[begin:end]), glued or begin > 0, layer)
    return tuple(items)


def _common(left: Sequence[int], right: Sequence[int]) -> int:
    differ = (at for at, (a, b) in enumerate(zip(left, right, strict=False)) if a != b)
    return next(differ, min(len(left), len(right)))
