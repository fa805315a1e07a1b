"""A trace as SGLang's agentic-trace dataset: `{"metadata", "conversations": [[{"messages", "prompt_tokens"}, ...]]}`.

A turn has the messages that come behind the live reply before it. A prompt that does not go on from the prompt and
reply before begins a conversation of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentx.core import Session
from agentx.recorder.exports.messages import Texts, stretches
from agentx.recorder.imports.books import Books

CANNOT_HOLD = (
    "how long replies are: the bench asks for one length (--sharegpt-output-len) everywhere",
    "pauses, arrivals and models",
    "the recorded reply: the server's own takes its place, so later prompts differ in length where that is shorter",
    "subagents and what waits for them: a thread is a conversation of its own",
    "a prompt that does not go on from the one before: it begins a conversation of its own",
    "layers: leading ones are one system message, tool results are users' messages",
)


class Conversations:
    """Makes the conversations of one file."""

    def __init__(self, books: Books) -> None:
        self.books = books
        self.texts = Texts()

    def session(self, session: Session) -> Iterator[list[dict[str, Any]]]:
        """The conversations of one session, one for each thread and break in it."""
        called = 0
        for thread in session.threads:
            turns = [turn for turn in session.turns if turn.thread == thread.id]
            parts = list(stretches(session, turns))
            self.books.note("prompt that does not go on from the one before: a conversation", max(0, len(parts) - 1))
            self.books.note("thread beside the main one: a conversation", bool(called and turns))
            called += bool(turns)
            for news in parts:
                self.books.rows.used += len(news)
                yield [
                    {
                        "messages": self.texts.messages(session, pieces, first=not place),
                        "prompt_tokens": turn.isl,
                    }
                    for place, (turn, pieces) in enumerate(news)
                ]
