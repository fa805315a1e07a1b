"""A trace as AIPerf's dag_jsonl: one JSON line is a conversation, which its parent's turn spawns.

A conversation only appends: each turn has what comes behind the prompt and the reply before it, and the live reply
joins it. So a thread is cut where a prompt does not go on from the one before, and the next stretch is spawned by the
last turn of the one before it, with its whole first prompt. A thread is spawned by the last turn of its parent in front
of it, and joined by the first one of the same stretch that waits for its end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from agentx.core import Session, Thread, Turn
from agentx.recorder.exports.messages import News, Texts, stretches
from agentx.recorder.exports.threads import name
from agentx.recorder.imports.books import Books

CANNOT_HOLD = (
    "arrivals; tools' names and times; what the pause before a call was",
    "the recorded reply: the server's own takes its place, so later prompts differ in length where that is shorter",
    "a prompt that does not go on from the one before: a conversation of its own, which the one before spawns",
    "layers: leading ones are one system message, tool results are users' messages",
    "waits on anything but a parent's turn: serial subagents start together; each child has one join, before a cut",
    "reasoning tokens, compactions, resets, aborts and failures as such",
)


@dataclass(slots=True)
class Talk:
    """A stretch of a thread on its way to become a conversation."""

    id: str
    thread: Thread
    news: list[News]
    spawns: dict[int, list[Any]] = field(default_factory=dict)  # place of a turn -> entries
    before: list[str] = field(default_factory=list)  # children that start before the first turn

    @property
    def turns(self) -> list[Turn]:
        return [each.turn for each in self.news]


class Dag:
    """Makes the lines of one file."""

    def __init__(self, books: Books) -> None:
        self.books = books
        self.texts = Texts()

    def session(self, session: Session) -> Iterator[bytes]:
        """The lines of one session, its main conversation first."""
        threads: dict[int, list[Talk]] = {}
        for thread in session.threads:
            turns = [turn for turn in session.turns if turn.thread == thread.id]
            parts = [
                Talk(name(session, thread, part), thread, news) for part, news in enumerate(stretches(session, turns))
            ]
            self.books.note("prompt that does not go on from the one before: a conversation", max(0, len(parts) - 1))
            for before, after in pairwise(parts):
                before.spawns.setdefault(len(before.news) - 1, []).append(after.id)
            threads[thread.id] = parts
        for parts in threads.values():
            if parts and parts[0].thread.parent is not None:
                self._hang(parts, threads[parts[0].thread.parent])
        for parts in threads.values():
            for talk in parts:
                yield json.dumps(self._body(session, talk), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"

    def _hang(self, child: list[Talk], parents: list[Talk]) -> None:
        """Say at which turn of its parent a thread is spawned, and where it is joined."""
        first, last = child[0].turns[0], child[-1].turns[-1]
        if not parents:
            self.books.note("thread whose parent never calls: a conversation of its own")
            return
        ahead = [talk for talk in parents if talk.turns[0].index < first.index]
        if not ahead:
            parents[0].before.append(child[0].id)
            return
        parent = ahead[-1]
        at = max(place for place, turn in enumerate(parent.turns) if turn.index < first.index)
        early = any(index != parent.turns[at].index for index in first.after)
        self.books.note("thread that waits for something else than its parent: it starts early", early)
        parent.spawns.setdefault(at, []).append(self._entry(child, parent, at, last))

    def _entry(self, child: list[Talk], parent: Talk, at: int, last: Turn) -> Any:
        join = next((n for n in range(at + 1, len(parent.turns)) if last.index in parent.turns[n].after), None)
        self.books.note("thread that no turn of the stretch waits for: the next one does, if any", join is None)
        self.books.note("thread that is joined before its last stretch ends", join is not None and len(child) > 1)
        return child[0].id if join is None or join == at + 1 else {"children": [child[0].id], "join_at": join}

    def _body(self, session: Session, talk: Talk) -> dict[str, Any]:
        turns = [self._turn(session, talk, place) for place in range(len(talk.news))]
        body: dict[str, Any] = {"session_id": talk.id, "turns": turns}
        if talk.before:
            body["pre_session_spawns"] = talk.before
        return body

    def _turn(self, session: Session, talk: Talk, place: int) -> dict[str, Any]:
        turn, pieces = talk.news[place]
        self.books.rows.used += 1
        short = sum(piece.tokens for piece in session.pieces(turn.index)) < turn.isl
        self.books.note("prompt with tokens that no piece accounts for: they are left out", short)
        self.books.note("reply of no tokens: one is asked for", not turn.output.tokens)
        tokens = max(1, turn.output.tokens)
        body: dict[str, Any] = {
            "messages": self.texts.messages(session, pieces, first=place == 0),
            "max_tokens": tokens,
            "extra": {"ignore_eos": True, "min_tokens": tokens},
        }
        if turn.model is not None:
            body["model"] = turn.model
        if turn.gap.seconds:
            body["delay"] = round(turn.gap.seconds * 1000, 3)
        if place in talk.spawns:
            body["spawns"] = talk.spawns[place]
        return body
