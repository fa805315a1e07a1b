"""What a Weka file shows of how it was counted, and what is known of the tools that wrote it.

`in` lies always inside the block behind the last whole one: lengths and blocks are by one tokenizer, whole blocks alone
have an id. A subagent's total is told by its client, from the server's usage; its last call's in + out should be the
same number, and where it is not, lengths are by another tokenizer than the server's. Files with whole seconds and whole
blocks are of kv-cache-tester's pipeline, of which more is known than its files show.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from agentx.recorder.imports.books import Books, Known
from agentx.recorder.imports.weka_rows import Request, WekaSession

SAME = 0.002  # by which a total may differ and still be the same count
OTHER = 2.0  # beyond this ratio a total is a sum over calls, and compares with nothing
PIPELINE = "callanjfox/agentic-coding-analysis"
SIDE = "call beside its line of context: a side thread"


@dataclass(slots=True)
class Counts:
    """Summed up over an import."""

    requests: int = 0
    floored: int = 0  # whose ids end with their last whole block
    tails: int = 0  # tokens behind it
    block: int = 0
    fractions: int = 0  # times that are no whole seconds
    plain: int = 0  # not streamed
    ratios: list[float] = field(default_factory=list)  # a subagent's total / in + out of its last call

    def add(self, session: WekaSession) -> None:
        self.block = session.block
        for request in session.requests:
            self._request(request, session.block)
        for agent in session.agents:
            for request in agent.requests:
                self._request(request, session.block)
            last = max(agent.requests, key=lambda request: request.t, default=None)
            if last is not None and agent.total and last.isl + last.out:
                self.ratios.append(agent.total / (last.isl + last.out))

    def _request(self, request: Request, block: int) -> None:
        tail = request.isl - block * len(request.ids)
        self.requests += 1
        self.floored += 0 <= tail < block
        self.tails += max(tail, 0)
        self.fractions += request.t != int(request.t)
        self.plain += not request.streamed

    def tell(self, books: Books) -> None:
        """What was found goes to the books, and what is known of files like these."""
        whole = self.requests > 0 and self.floored == self.requests and self.tails > 0
        if whole:
            books.find(
                f"ids are of whole blocks of {self.block} tokens: {self.tails:,} tokens at the ends of "
                f"{self.requests:,} prompts have none"
            )
        off = [ratio for ratio in self.ratios if abs(ratio - 1) > SAME]
        if off and all(1 / OTHER < ratio < OTHER for ratio in self.ratios):
            books.find(
                f"lengths are not by the server's tokenizer: the totals that clients told of {len(self.ratios):,} "
                f"subagents are {min(self.ratios):.2f} to {max(self.ratios):.2f} times the in + out of their last calls"
            )
        if whole and not self.fractions:
            books.known = self._known(books)

    def _known(self, books: Books) -> tuple[Known, ...]:
        side = books.notes[SIDE]
        told = [
            Known(
                "lengths of prompts are by tiktoken's gpt-4 encoding of the request's JSON, not by the server's "
                "tokenizer",
                f"{PIPELINE}, docs/TRACE_FORMAT.md",
            ),
            Known(
                "calls that are in no session file of the client (titles, topics, token counts) were left out: "
                f"{side:,} of {self.requests:,} calls here stand beside a conversation",
                f"{PIPELINE}, docs/DATA_SOURCES.md",
            ),
        ]
        if self.plain:
            told.append(
                Known(
                    "the proxy spoilt streams, whereupon the client asked again without one: a call of type n is the "
                    "second asking, and the pause before it holds the first",
                    "seifghazi/claude-code-proxy, pull requests 32 and 33",
                )
            )
        return tuple(told)
