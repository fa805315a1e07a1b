"""Token identities become numbered blocks: equal numbers exactly where whole prefixes are equal.

A block's number stands for its tokens and for all blocks before it, as in Mooncake files. Numbers are given in order
of first sight. Those of blocks with content of one session are forgotten at its end, so memory grows only with what
sessions share (and with literal text, whose identity is the text wherever it occurs).
"""

from __future__ import annotations

from collections.abc import Sequence

from agentx.core import Run, Session, Stream

Content = tuple[tuple[Stream, int, int], ...]


class Numbering:
    """Numbers of blocks of `block` tokens; `own` forgets between sessions whatever one could share."""

    def __init__(self, block: int, *, own: bool = False) -> None:
        self.block = block
        self._own = own
        self._next = 0
        self._kept: dict[tuple[int, Content], int] = {}
        self._local: dict[tuple[int, Content], int] = {}
        self._locals: set[int] = set()
        self._scope = ""
        self._all_local = False

    def session(self, session: Session) -> None:
        """Begin a session: forget what the one before had of its own."""
        self._local, self._locals = {}, set()
        self._scope = f"{session.scope}/{session.id}"
        self._all_local = self._own
        if self._own:
            self._next = 0

    def ids(self, runs: Sequence[Run], parent: int = -1, *, whole: bool = False) -> list[int]:
        """The numbers of the blocks of `runs`; the last one may be cut, and is left out where `whole` asks for it.

        `parent` is the number of the block in front of them, -1 for none.
        """
        found: list[int] = []
        for content, tokens in self._contents(runs):
            if whole and tokens < self.block:
                break
            parent = self._number(parent, content)
            found.append(parent)
        return found

    def _number(self, parent: int, content: Content) -> int:
        key = parent, content
        known = self._local.get(key)
        if known is None:
            known = self._kept.get(key)
        if known is not None:
            return known
        number = self._next
        self._next += 1
        if parent in self._locals or self._all_local or any(self._is_local(stream) for stream, _, _ in content):
            self._local[key] = number
            self._locals.add(number)
        else:
            self._kept[key] = number
        return number

    def _is_local(self, stream: Stream) -> bool:
        return stream.scope == self._scope or stream.scope.startswith(self._scope + "/")

    def _contents(self, runs: Sequence[Run]) -> list[tuple[Content, int]]:
        """What each block holds, and how many tokens that is."""
        blocks: list[tuple[Content, int]] = []
        open_: list[tuple[Stream, int, int]] = []
        room = self.block
        for run in runs:
            start = run.start
            while start < run.stop:
                stop = min(run.stop, start + room)
                open_.append((run.stream, start, stop))
                room -= stop - start
                start = stop
                if not room:
                    blocks.append((tuple(open_), self.block))
                    open_, room = [], self.block
        if open_:
            blocks.append((tuple(open_), self.block - room))
        return blocks
