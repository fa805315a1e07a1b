"""A context that is known by what was appended to it: one thread of a source that gives lengths or texts, no ids.

Content that is only a length is a synthetic segment of its own, which occurs nowhere else; a text is its own identity.
A reply joins the context when the source shows it there, as a whole or from some token on (reasoning that was dropped).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from agentx.core import Content, Layer, Piece, Prompt, Segment, Text

WORD = 4  # bytes of UTF-8 that are a token where no tokenizer is known


def tokens_of(text: str) -> int:
    """Tokens of a text where no tokenizer is known: four bytes each, the last one perhaps cut."""
    return -(-len(text.encode()) // WORD)


@dataclass(slots=True)
class Growth:
    """One thread's context as it grows and is cut; `segments` may be shared by the threads of a session."""

    segments: dict[int, Segment] = field(default_factory=dict)
    pieces: list[Piece] = field(default_factory=list)
    last: int | None = None  # the turn whose prompt is kept
    kept: int = 0  # leading pieces that are those of turn `last`
    _known: dict[tuple[Layer, Content], int] = field(default_factory=dict)

    @property
    def tokens(self) -> int:
        return sum(piece.tokens for piece in self.pieces)

    def segment(self, layer: Layer, tokens: int, content: Content = None) -> int | None:
        """A new segment's id; None for one of no tokens, which a prompt cannot hold."""
        if not tokens:
            return None
        known = None if content is None else self._known.get((layer, content))
        if known is not None:
            return known
        id = len(self.segments)
        self.segments[id] = Segment(id, layer, tokens, content)
        if content is not None:
            self._known[layer, content] = id
        return id

    def add(self, layer: Layer, tokens: int, content: Content = None) -> int | None:
        """Append new content; its segment's id."""
        id = self.segment(layer, tokens, content)
        self.append(id, 0)
        return id

    def text(self, layer: Layer, text: str) -> int | None:
        """Append a text."""
        return self.add(layer, tokens_of(text), Text(text))

    def append(self, id: int | None, start: int = 0) -> None:
        """Append a segment from token `start` on."""
        if id is not None and start < self.segments[id].tokens:
            self.pieces.append(Piece(id, start, self.segments[id].tokens))

    def cut(self, tokens: int) -> None:
        """Keep no more than the first `tokens` tokens."""
        pieces: list[Piece] = []
        for piece in self.pieces:
            if piece.tokens > tokens:
                if tokens:
                    pieces.append(Piece(piece.segment, piece.start, piece.start + tokens))
                break
            pieces.append(piece)
            tokens -= piece.tokens
        same = sum(1 for old, new in zip(self.pieces, pieces, strict=False) if old == new)
        self.pieces, self.kept = pieces, min(self.kept, same)

    def prompt(self, turn: int) -> Prompt:
        """The context as the prompt of turn number `turn`, which later prompts build on."""
        base = self.last if self.kept else None
        kept = self.kept if base is not None else 0
        prompt = Prompt(tuple(self.pieces[kept:]), base, kept)
        self.last, self.kept = turn, len(self.pieces)
        return prompt
