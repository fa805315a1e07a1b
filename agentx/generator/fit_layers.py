"""What sessions share at the front of their first prompts, as far as the identities of a trace tell.

All first prompts are laid into one tree. What nearly all sessions have in common is the tools and the system prompt;
the rest of the leading layers is a context, one of a pool. A trace without such layers (a list of block ids) has as
context the longest prefix that another session has too. A trace of one session, or one whose identities hold only
inside a session, cannot tell: what is not known to be shared is a context that no other session has.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

from agentx.core import LEADING_LAYERS, Piece, Run, Session

ALL = 0.95  # share of the sessions that is taken for all of them
MAX_POOL = 100_000  # contexts that a pool of a spec may have


Document = tuple[Hashable, int]  # identity, tokens


@dataclass(slots=True)
class Edge:
    """Tokens that follow a node: `run` of them, of how many sessions, and what comes after."""

    run: Run
    sessions: int
    after: Node


class Node:
    __slots__ = ("edges",)

    def __init__(self) -> None:
        self.edges: dict[tuple[Hashable, int], Edge] = {}


@dataclass(slots=True)
class Front:
    """One session's first prompt: its tree path is found again by its runs; `leading` tokens stand in front."""

    runs: list[Run]
    leading: int
    opening: Hashable  # the identity of its first message
    shared: list[Document]  # its pieces of the shared layer


@dataclass(frozen=True, slots=True)
class Shared:
    """What all sessions share, and what each has besides: (identity, tokens) of its context, None for none."""

    tools: int
    system: int
    contexts: list[tuple[Hashable, int] | None]
    known: bool  # whether the trace can tell what sessions share
    documents: list[list[Document]]  # of each first prompt


@dataclass(slots=True)
class Fronts:
    """The first prompts of all sessions."""

    fronts: list[Front] = field(default_factory=list)
    root: Node = field(default_factory=Node)
    private: int = 0  # sessions whose block ids mean nothing outside them
    labelled: bool = False
    later: list[list[Document]] = field(default_factory=list)  # shared pieces of each later message

    def add(self, session: Session, pieces: list[Piece]) -> None:
        """Lay the prompt of a session's opening call into the tree."""
        lead = 0
        while lead < len(pieces) and session.segment(pieces[lead].segment).layer in LEADING_LAYERS:
            lead += 1
        self.labelled = self.labelled or lead > 0
        laid = pieces[: lead + 1] if lead else pieces
        runs = _joined([run for piece in laid for run in session.piece_runs(piece)])
        opening = tuple(session.piece_runs(pieces[lead])) if lead < len(pieces) else None
        shared = documents(session, pieces[:lead])
        self.fronts.append(Front(runs, sum(piece.tokens for piece in pieces[:lead]), opening, shared))
        self.private += session.blocks_scope not in ("global", session.scope)
        node = self.root
        for run in runs:
            node = _lay(node, run)

    def shared(self) -> Shared:
        """What the sessions have in common, once all are in."""
        known = len(self.fronts) > 1 and self.private < len(self.fronts)
        common = self._common() if known else []
        tools = sum(run.stop - run.start for run in common if run.layer == "tools")
        length = sum(run.stop - run.start for run in common)
        found = self._documents()
        contexts = [
            self._context(front, length, sum(tokens for _, tokens in mine))
            for front, mine in zip(self.fronts, found, strict=True)
        ]
        return Shared(tools, length - tools, contexts, known, found)

    def _documents(self) -> list[list[Document]]:
        """Of each first prompt's shared pieces those that are documents, as later messages have them.

        The first piece is a context if most sessions begin with one that no later message has.
        """
        known = {each for message in self.later for each in message}
        if not known:
            return [[] for _ in self.fronts]
        firsts = [front.shared[0] in known for front in self.fronts if front.shared]
        skipped = 1 if firsts and sum(firsts) < len(firsts) / 2 else 0
        return [front.shared[skipped:] for front in self.fronts]

    def _common(self) -> list[Run]:
        """The way from the root that nearly all sessions take; shared contexts and messages are not on it."""
        way: list[Run] = []
        node, enough = self.root, ALL * len(self.fronts)
        while True:
            edge = next((each for each in node.edges.values() if each.sessions >= enough), None)
            if edge is None or (self.labelled and edge.run.layer not in ("tools", "system")):
                return way
            way.append(edge.run)
            node = edge.after

    def _context(self, front: Front, common: int, behind: int) -> tuple[Hashable, int] | None:
        """The identity and the tokens of what stands between `common` and the documents."""
        if not self.labelled and self.group() is not None:
            return None
        tokens = (front.leading if self.labelled else self._met(front)) - common - behind
        if tokens <= 0:
            return None
        runs, left = [], common + tokens
        for run in front.runs:
            runs.append(run._replace(stop=min(run.stop, run.start + left)))
            left -= run.stop - run.start
            if left <= 0:
                break
        return tuple((run.stream, run.start, run.stop) for run in runs), tokens

    def _met(self, front: Front) -> int:
        """Tokens of a first prompt that another session has too."""
        node, met = self.root, 0
        for run in front.runs:
            start = run.start
            while start < run.stop:
                edge = node.edges[run.stream, start]
                if edge.sessions < 2:
                    return met
                met += edge.run.stop - start
                node, start = edge.after, edge.run.stop
        return met

    def group(self) -> int | None:
        """How many sessions open with the same message, if most do so with others; None if they do not."""
        counts = Counter(front.opening for front in self.fronts if front.opening is not None)
        alike = sum(count for count in counts.values() if count > 1)
        if alike < 0.5 * len(self.fronts) or len(counts) < 2:
            return None
        return max(counts.values())


def documents(session: Session, pieces: Sequence[Piece]) -> list[Document]:
    """The pieces of the shared layer, by identity."""
    mine = (piece for piece in pieces if session.segment(piece.segment).layer == "shared")
    return [(tuple(run[:3] for run in session.piece_runs(piece)), piece.tokens) for piece in mine]


def _joined(runs: list[Run]) -> list[Run]:
    """Runs that follow one another in a stream and a layer, as one."""
    joined: list[Run] = []
    for run in runs:
        if joined and joined[-1][0] == run.stream and joined[-1].stop == run.start and joined[-1].layer == run.layer:
            joined[-1] = joined[-1]._replace(stop=run.stop)
        else:
            joined.append(run)
    return joined


def _lay(node: Node, run: Run) -> Node:
    """Add a session's run below a node. Returns the node at its end."""
    start = run.start
    while start < run.stop:
        edge = node.edges.get((run.stream, start))
        if edge is None:
            edge = Edge(run._replace(start=start), 0, Node())
            node.edges[run.stream, start] = edge
        elif edge.run.stop > run.stop:
            middle = Node()
            middle.edges[run.stream, run.stop] = Edge(edge.run._replace(start=run.stop), edge.sessions, edge.after)
            edge.run, edge.after = edge.run._replace(stop=run.stop), middle
        edge.sessions += 1
        node, start = edge.after, edge.run.stop
    return node


def pool(contexts: list[Hashable]) -> tuple[int, float]:
    """How many contexts there are, and the exponent of their popularity, from one context of each session.

    For each exponent, so many that as many different ones are expected as there are; of these the one that makes two
    sessions meet as often as they do. All different, or all alike, needs no search.
    """
    sessions, counts = len(contexts), Counter(contexts)
    different = len(counts)
    if different == sessions:
        return MAX_POOL, 0.0
    met = sum(count * (count - 1) for count in counts.values()) / (sessions * (sessions - 1))
    tried = [(_size(step / 20, different, sessions), step / 20) for step in range(0, 41)]
    return min(tried, key=lambda pair: abs(math.log(_meeting(*pair) / met)))


def _weights(count: int, zipf: float) -> list[tuple[float, float]]:
    """(probability, how many ranks have about that) of a pool; far ranks are taken together."""
    ranks, low = [], 1
    while low <= count:
        high = min(count, max(low, int(low * 1.05)))
        ranks.append((((low + high) / 2) ** -zipf, float(high - low + 1)))
        low = high + 1
    total = sum(weight * many for weight, many in ranks)
    return [(weight / total, many) for weight, many in ranks]


def _meeting(count: int, zipf: float) -> float:
    return sum(many * p * p for p, many in _weights(count, zipf))


def _size(zipf: float, different: int, sessions: int) -> int:
    """How many contexts make `different` ones expected in so many sessions, by halving."""
    low, high = different, MAX_POOL
    while low < high:
        middle = (low + high) // 2
        if (
            sum(many * -math.expm1(sessions * math.log1p(-min(p, 1 - 1e-12))) for p, many in _weights(middle, zipf))
            < different
        ):
            low = middle + 1
        else:
            high = middle
    return low
