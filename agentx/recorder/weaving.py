"""Turns with items become turns with pieces: every item a stretch of a segment, its tokens fixed when first seen.

The server's usage says how long a prompt is as a whole. What is new in it gets what the known pieces leave over,
split by bytes; from then on its length is fixed, so that equal content is equal tokens. A reply is a segment of its
own, as long as the usage says, reasoning first; the next prompt's assistant message is that segment, without the
reasoning unless the client sent it back. What no new item can take stays `unattributed` on the turn; pieces that
would hold more than the prompt are cut. Another model is another tokenizer: it shares no segments.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

from agentx.core import Content, Opaque, OpaqueRun, Output, Piece, Prompt, Segment, Text
from agentx.errors import BadInput
from agentx.recorder.attempts import Attempt, Items, Turn
from agentx.recorder.redaction import Redactor, secrets_left

Named = tuple[str, int]  # a model and an item's number
BYTES_PER_TOKEN = 4.0  # where no usage of the capture says better
MOST_TEXT = 12 << 20  # characters of a segment's text, of four bytes at most: a frame has room for 64 MB
COMMON_BLOCK = 16  # tokens of a block of content that several traces know by one name


class Template(NamedTuple):
    """Tokens that the server's chat template adds: to each message, and once to a prompt. They are no part's."""

    message: int = 0
    prompt: int = 0


NO_TEMPLATE = Template()


@dataclass(slots=True)
class Woven:
    """A turn's part of the trace, and what its children need of it."""

    prompt: Prompt
    pieces: list[Piece]  # as resolved, neighbours of one segment joined
    each: list[Piece | None]  # one per item; None for what was cut away
    isl: int
    output: Output
    reply: int | None
    unattributed: int
    estimated: tuple[str, ...]  # which of "isl", "osl" no usage tells
    model: str
    reply_pieces: list[Piece]  # of its reply's items, reasoning left out


@dataclass(slots=True)
class Shelf:
    """Segments by id, and where an item lies in them."""

    segments: dict[int, Segment] = field(default_factory=dict)
    places: dict[Named, Piece] = field(default_factory=dict)


class Weaver:
    """Weaves one session after the other. `shared` are the (model, item) that more than one session has.

    With a `redactor` segments hold their text, redacted; what it cannot clean raises BadInput.
    """

    def __init__(
        self,
        items: Items,
        shared: set[Named],
        ratios: Mapping[str, float],
        template: Template,
        redactor: Redactor | None = None,
    ) -> None:
        self._items, self._shared, self._ratios = items, shared, ratios
        self._template, self._redactor = template, redactor
        self.file = Shelf()
        self._own = Shelf()
        self._next = 1
        self.notes: Counter[str] = Counter()

    def open(self) -> dict[int, Segment]:
        """Begin a session; gives the map that its segments will be in."""
        self._own = Shelf()
        return self._own.segments

    def weave(self, turn: Turn, parent: Woven | None, base: int | None, shared: int, before: Turn | None) -> Woven:
        """One turn. `parent`, the trace's turn `base`, is what it goes on from: `shared` leading items are the same."""
        last, numbers = turn.last, turn.numbers
        model = last.model
        if parent is not None and parent.model != model:
            parent, shared = None, 0
        each = self._resolved(turn, parent, shared, before)
        carried = 0
        if parent is not None and before is not None and shared == len(before.numbers):
            carried = parent.unattributed
        estimated: list[str] = []
        told, frame = last.reply.usage.prompt, self._frame(numbers)
        known = sum(piece.tokens for piece in each if piece is not None)
        if told is None:
            estimated.append("isl")
            new = [number for number, piece in zip(numbers, each, strict=True) if piece is None]
            told = known + carried + frame + self._estimate(new, model)
        isl, content = told, max(told - frame, 0)
        self._fill(numbers, each, content - carried - known, model)
        self._cut(each, content)
        pieces = joined(piece for piece in each if piece is not None and piece.tokens)
        unattributed = content - sum(piece.tokens for piece in pieces)
        self.notes["prompt with tokens that no part accounts for"] += unattributed > carried
        output, reply, reply_pieces = self._reply(last, model, estimated)
        keep = _kept(parent.pieces, pieces) if parent is not None else 0
        prompt = Prompt(tuple(pieces[keep:]), base if keep else None, keep)
        told_not = tuple(estimated)
        return Woven(prompt, pieces, each, isl, output, reply, unattributed, told_not, model, reply_pieces)

    def _frame(self, numbers: array[int]) -> int:
        """The tokens of a prompt that are its chat template's: tools and system texts are one message."""
        leading = self._items.leading(numbers)
        rest = sum(1 for number in numbers[leading:] if not self._items.known[number].glued)
        return self._template.message * (rest + bool(leading)) + self._template.prompt

    def _resolved(self, turn: Turn, parent: Woven | None, shared: int, before: Turn | None) -> list[Piece | None]:
        """Where each item lies that is known; None for new ones."""
        numbers, model = turn.numbers, turn.last.model
        each: list[Piece | None] = []
        if parent is not None:
            for piece, number in zip(parent.each[:shared], numbers, strict=False):
                each.append(piece or self._place(model, number))
            each += self._follows(turn, parent, shared, before)
        return each + [self._place(model, number) for number in numbers[len(each) :]]

    def _follows(self, turn: Turn, parent: Woven, shared: int, before: Turn | None) -> list[Piece | None]:
        """The parent's reply, when this prompt goes on with it."""
        if before is None or shared != len(before.numbers) or not parent.reply_pieces:
            return []
        reply = before.last.reply_numbers
        if turn.numbers[shared : shared + len(reply)] != reply:
            return []
        result: list[Piece | None] = list(parent.reply_pieces)
        if shared - (len(turn.numbers) - len(turn.last.numbers)) in turn.last.reasoned:
            first = parent.reply_pieces[0]
            result[0] = Piece(first.segment, 0, first.stop)
        return result

    def _place(self, model: str, number: int) -> Piece | None:
        return self._shelf(model, number).places.get((model, number))

    def _shelf(self, model: str, number: int) -> Shelf:
        return self.file if (model, number) in self._shared else self._own

    def _fill(self, numbers: array[int], each: list[Piece | None], left: int, model: str) -> None:
        """Give the new items their segments and tokens; `left` tokens are there for all of them."""
        new = [at for at, piece in enumerate(each) if piece is None]
        times = Counter(numbers[at] for at in new)
        places = [at for at, number in ((at, numbers[at]) for at in new) if times.pop(number, 0)]
        times = Counter(numbers[at] for at in new)
        sizes = {at: tokens for at in places if (tokens := self._items.known[numbers[at]].tokens) is not None}
        weighed = [at for at in places if at not in sizes]
        spare = left - sum(tokens * times[numbers[at]] for at, tokens in sizes.items())
        weights = [self._items.known[numbers[at]].weight * times[numbers[at]] for at in weighed]
        for at, share in zip(weighed, split(max(spare, 0), weights), strict=True):
            sizes[at] = share // times[numbers[at]]
        self.notes["prompt whose new parts have fewer tokens than parts"] += bool(places) and left < len(new)
        for group in self._groups(numbers, places, model):
            self._segment(numbers, group, [sizes[at] for at in group], model)
        for at in new:
            each[at] = self._place(model, numbers[at])

    def _groups(self, numbers: array[int], places: Sequence[int], model: str) -> Iterator[list[int]]:
        """Glued neighbours of one shelf together, all others alone."""
        group: list[int] = []
        for at in places:
            glued = group and at == group[-1] + 1 and self._items.known[numbers[at]].glued
            if group and not (glued and self._shelf(model, numbers[at]) is self._shelf(model, numbers[group[0]])):
                yield group
                group = []
            group.append(at)
        if group:
            yield group

    def _segment(self, numbers: array[int], group: Sequence[int], sizes: Sequence[int], model: str) -> None:
        """One new segment that holds the items at `group`."""
        shelf, total = self._shelf(model, numbers[group[0]]), sum(sizes)
        id = self._new_id()
        if total:
            layer = self._items.known[numbers[group[0]]].layer
            shelf.segments[id] = Segment(id, layer, total, self._content([numbers[at] for at in group], total))
        begin = 0
        for at, size in zip(group, sizes, strict=True):
            shelf.places[model, numbers[at]] = Piece(id, begin, begin + size)
            begin += size

    def _content(self, numbers: Sequence[int], tokens: int) -> Content:
        """The redacted text of some items, or their name in all traces; None where neither is wanted or known."""
        names = [self._items.common[number] for number in numbers if number in self._items.common]
        if len(names) == len(numbers) > 0:
            first = int.from_bytes(blake2b(b"".join(names), digest_size=5).digest(), "little")
            return Opaque(COMMON_BLOCK, (OpaqueRun(first << 20, 0, tokens),))
        texts = [text for number in numbers for text in self._items.known[number].texts]
        if self._redactor is None or not texts:
            return None
        if sum(map(len, texts)) > MOST_TEXT:
            self.notes[f"text over {MOST_TEXT >> 20} MB, left out: a replay makes other words of its length"] += 1
            return None
        text = self._redactor.redact("\n".join(texts).encode("utf-8", "replace").decode())
        if left := secrets_left(text):
            raise BadInput(
                f"a text still holds a known secret after redaction: {', '.join(left)}", hint="--level shape"
            )
        return Text(text)

    def _new_id(self) -> int:
        self._next += 1
        return self._next - 1

    def _estimate(self, numbers: Sequence[int], model: str) -> int:
        total = 0
        for number in set(numbers):
            item = self._items.known[number]
            total += item.tokens if item.tokens is not None else self._tokens(item.weight, model)
        return total

    def _tokens(self, size: int, model: str) -> int:
        return max(1, round(size / self._ratios.get(model, BYTES_PER_TOKEN)))

    def _cut(self, each: list[Piece | None], content: int) -> None:
        """Take from the end what is more than the prompt holds."""
        over = sum(piece.tokens for piece in each if piece is not None) - content
        if over > 0:
            self.notes["prompt shorter by the usage than its parts: cut at its end"] += 1
        for at in range(len(each) - 1, -1, -1):
            piece = each[at]
            if over <= 0 or piece is None:
                continue
            less = min(over, piece.tokens)
            each[at] = Piece(piece.segment, piece.start, piece.stop - less) if less < piece.tokens else None
            over -= less

    def _reply(self, last: Attempt, model: str, estimated: list[str]) -> tuple[Output, int | None, list[Piece]]:
        usage = last.reply.usage
        tokens = usage.completion
        cut = not last.reply.whole and last.wire == "messages"  # its usage is then what it was at the start
        if tokens is None or cut:
            guess = self._tokens(last.reply.size, model) if last.reply.size else 0
            tokens = max(guess, tokens or 0)
            estimated.append("osl")
        reasoning = min(usage.reasoning or 0, tokens)
        output = Output(tokens - reasoning, reasoning)
        if not tokens:
            return output, None, []
        return output, *self._reply_segment(last, model, tokens, reasoning)

    def _reply_segment(self, last: Attempt, model: str, tokens: int, reasoning: int) -> tuple[int, list[Piece]]:
        numbers = last.reply_numbers
        named = [(model, number) for number in numbers]
        shelf = self.file if named and all(name in self._shared for name in named) else self._own
        before = shelf.places.get(named[0]) if len(named) == 1 else None
        if before is not None and before == Piece(before.segment, reasoning, tokens):
            known = shelf.segments.get(before.segment)
            if known is not None and known.tokens == tokens:
                return before.segment, [before]  # the same words again
        id = self._new_id()
        shelf.segments[id] = Segment(id, "assistant", tokens, self._content(numbers, tokens))
        pieces, at = [], reasoning
        shares = split(tokens - reasoning, [self._items.known[number].weight for number in numbers])
        for name, share in zip(named, shares, strict=True):
            piece = Piece(id, at, at + share)
            at += share
            pieces.append(piece)
            shelf.places.setdefault(name, piece)
        return id, pieces


def split(total: int, weights: Sequence[int]) -> list[int]:
    """`total` in shares proportional to `weights`, at least one each where there is enough; they add up to it."""
    whole = sum(weights)
    if not whole:
        return [0] * len(weights)
    shares, seen = [], 0
    for weight in weights:  # the difference of running totals: remainders even out
        shares.append(total * (seen + weight) // whole - total * seen // whole)
        seen += weight
    empty = [at for at, weight in enumerate(weights) if weight and not shares[at]]
    if empty and total >= sum(1 for weight in weights if weight):
        for donor in sorted(range(len(shares)), key=lambda at: -shares[at]):
            while empty and shares[donor] > 1:
                shares[donor] -= 1
                shares[empty.pop()] = 1
    return shares


def joined(pieces: Iterator[Piece]) -> list[Piece]:
    """Pieces with neighbours of one segment made one."""
    result: list[Piece] = []
    for piece in pieces:
        if result and result[-1].segment == piece.segment and result[-1].stop == piece.start:
            result[-1] = Piece(piece.segment, result[-1].start, piece.stop)
        else:
            result.append(piece)
    return result


def _kept(base: Sequence[Piece], pieces: Sequence[Piece]) -> int:
    """How many leading pieces are equal."""
    differ = (at for at, (a, b) in enumerate(zip(base, pieces, strict=False)) if a != b)
    return next(differ, min(len(base), len(pieces)))
