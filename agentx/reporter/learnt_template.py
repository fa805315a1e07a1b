"""What a chat template puts around messages, as token ids, learnt from the prompts that a server says it stored.

The words of a prompt are known, so in the ids that were stored for it each message is found where its words are; what
stands between two of them, before the first and behind the last is the template's. It is taken to hang on the roles
beside it alone. A template that changes the first token of a message (it takes the space away) is learnt word by word.
What was learnt is held against every prompt's length, and against what was stored, by those who use it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np

from agentx.content import Salting, WordList
from agentx.core import Attempt, Session
from agentx.kv_events import Hash, KvBatch, Stored, read_kv_events
from agentx.reporter.sent_ids import Ids, SentIds, Unknowable, embedded, joined, words_of
from agentx.results import RunResults
from agentx.reuse_template import Template
from agentx.wire.history import TEXT_WIRES, introduced
from agentx.wire.messages import Shape, messages

WIDEST = 256  # tokens between two messages, at most
MOST = 2_000_000  # tokens that are learnt from: the first that were stored
NEAR = 2.0  # s around a request in which its prompt was stored
Said = tuple[str, Ids]  # a message: its role and its words
Place = tuple[str, str, int | None]  # the roles before and behind; the first word, where the template changes it


class Untaught(Unknowable):
    """A prompt has a place that was never seen; `said` are its messages, `by` is who may learn it."""

    def __init__(self, said: Sequence[Said], by: ChatIds) -> None:
        super().__init__("the chat template's token ids could not be learnt from what was stored")
        self.said, self.by = said, by


class StoredIds:
    """All that was stored, as token ids from the beginning of a prompt on."""

    def __init__(self, batches: Iterable[KvBatch]) -> None:
        self._runs: list[tuple[int, int, Ids]] = []  # the run before, how much of it, and the ids behind that
        self._ends: dict[Hash, tuple[int, int]] = {}  # by block: its run, and its end in it
        self._at: list[float] = []
        tokens = 0
        for batch in batches:
            for event in batch.events:
                if isinstance(event, Stored) and (event.parent is None or event.parent in self._ends):
                    self._add(event, batch.at)
                    tokens += event.tokens
            if tokens > MOST:
                return

    def _add(self, event: Stored, at: float) -> None:
        before, length = (-1, 0) if event.parent is None else self._ends[event.parent]
        for place, block in enumerate(event.blocks, 1):
            self._ends[block] = len(self._runs), place * event.block
        self._runs.append((before, length, np.array(event.ids, dtype=np.int64).astype(np.uint32)))
        self._at.append(max(at, self._at[-1]) if self._at else at)

    def around(self, begin: float, end: float) -> Iterable[Ids]:
        """What was stored in a time, the latest first."""
        first, stop = bisect_left(self._at, begin), bisect_left(self._at, end)
        return (self._whole(run) for run in range(stop - 1, first - 1, -1))

    def _whole(self, run: int) -> Ids:
        before, length, ids = self._runs[run]
        parts = [ids]
        while before >= 0:
            last = length
            before, length, ids = self._runs[before]
            parts.append(ids[:last])
        return joined(parts[::-1])


class ChatIds(SentIds):
    """Prompts of plain messages to a server whose template is learnt as they are asked for."""

    def __init__(self, words: WordList, template: Template, stored: StoredIds) -> None:
        super().__init__(words, template)
        self._stored = stored
        self._learnt: dict[Place, tuple[int, ...]] = {}

    def prompt(self, session: Session, turn: int, salts: Salting) -> bytes:
        """Raises Untaught for a prompt of which something is not known yet."""
        said = self._said(session, turn, salts)
        parts: list[Ids] = []
        before = ""
        for role, ids in said:
            between = self._learnt.get((before, role, None))
            if between is None:
                between = self._learnt.get((before, role, int(ids[0]))) if len(ids) else None
                ids = ids[1:]
            if between is None:
                raise Untaught(said, self)
            parts += [np.array(between, dtype=np.uint32), ids]
            before = role
        behind = self._learnt.get((before, "", None))
        if behind is None:
            raise Untaught(said, self)
        data: bytes = joined([*parts, np.array(behind, dtype=np.uint32)]).astype("<u4").tobytes()
        return data

    def _said(self, session: Session, turn: int, salts: Salting) -> list[Said]:
        self.learn_literals(session)
        made = []
        for role, pieces in messages(session, [piece for _, piece in introduced(session, turn)]):
            runs = [run for piece in pieces for run in session.piece_runs(piece)]
            parts = [self.content(run.stream, salts(run.layer), run.start, run.stop) for run in runs]
            made.append((role, joined(parts)))
        return made

    def learn(self, attempt: Attempt, said: Sequence[Said]) -> bool:
        """From what was stored for a request. False where its prompt is not found there."""
        end = attempt.end if attempt.end is not None else attempt.sent
        for stored in self._stored.around(attempt.sent - NEAR, end + NEAR):
            found = aligned(said, stored, attempt.prompt_tokens)
            if found is not None:
                self._learnt = {**found, **self._learnt}
                return True  # the latest is the longest: with its reply
        return False


def aligned(said: Sequence[Said], stored: Ids, length: int | None) -> Mapping[Place, tuple[int, ...]] | None:
    """What stands around the messages in what was stored for them; `length`: tokens of the whole prompt.

    None when they are not all there. What is behind the last one is not among it where a page was not full.
    """
    found: dict[Place, tuple[int, ...]] = {}
    at, before = 0, ""
    for role, ids in said:
        place, changed = _find(stored, ids, at), False
        if place is None and len(ids) > 1:
            ids, first, changed = ids[1:], int(ids[0]), True
            place = _find(stored, ids, at)
        if place is None:
            return None
        found[before, role, first if changed else None] = tuple(stored[at:place].tolist())
        at, before = place + len(ids), role
    if length is None or not at <= length <= at + WIDEST:
        return None
    if length <= len(stored):
        found[before, "", None] = tuple(stored[at:length].tolist())
    return found


def _find(stored: Ids, ids: Ids, at: int) -> int | None:
    """Where `ids` begin, not far behind `at`."""
    if not len(ids):
        return at
    near = stored[at : at + WIDEST + 1]
    for shift in np.flatnonzero(near == ids[0]).tolist():
        if np.array_equal(stored[at + shift : at + shift + len(ids)], ids):
            return at + int(shift)
    return None


def real_ids(run: RunResults) -> Callable[[Template, Shape], SentIds]:
    """What makes the prompts of a run, for `losses.resent`. Raises Unknowable where their ids cannot be known."""
    words, known = words_of(run), embedded(run)
    if known or run.settings["plan"]["wire"] not in TEXT_WIRES:
        return lambda template, shape: SentIds(words, template, shape, text=known)
    if run.settings["plan"].get("messages", "plain") != "plain":
        raise Unknowable("what a server's chat template makes of definitions and calls of tools is not learnt")
    stored = StoredIds(read_kv_events(run.folder))
    return lambda template, shape: ChatIds(words, template, stored)
