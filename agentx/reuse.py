"""Possible and ideal reuse: how much of the prompts a cache without limits would not have to compute.

*Possible* goes by the trace's identities: page 1, and what a turn produced counts for the turns after it.
*Ideal* goes by what is sent: salted content with the template's markers, the server's page, in send order; replies
count where history is live, as far as the server has KV of them, and not with recorded history, where nothing that the
server generates is ever sent again. Both leave the last
token of a prompt to be computed, as servers do (`min(isl - 1, longest prefix seen)`), and both are exact: prompts
are compared by runs of token identities, never token by token.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import NamedTuple

from agentx.content import Salting
from agentx.core import LAYERS, Layer, Opaque, Piece, Session, Turn
from agentx.prefix_tree import Node, PrefixTree
from agentx.reuse_template import PLAIN, Frames, SaltedStream, Span, Template, marker_span
from agentx.wire.history import introduced
from agentx.wire.messages import Placed, Shape, arranged
from agentx.wire.tooltext import definitions

_LAYER_INDEX = {layer: index for index, layer in enumerate(LAYERS)}
MARKER = len(LAYERS)  # the layer index of the chat template's own tokens


class Trail(NamedTuple):
    """Where a prompt went in the tree: its first `shared` tokens, reply included, are those of prompt `owner`, and no
    earlier prompt shares more. `length`: its tokens and those of its reply, be they in the tree or not.
    """

    number: int
    owner: int
    shared: int
    length: int


class TurnReuse(NamedTuple):
    """One prompt: its tokens and the reused ones, by layer (indices of LAYERS; the last entry is the template).

    `whole`: the reused ones if the server's pages were of one token.
    `observed`: the same of the tokens that a server found in its cache, where they were given. `common`: tokens that
    the prompt begins with and that the turn before it in its thread had as its prompt and reply; None for the first
    one of a thread.
    """

    session: str
    turn: int
    tokens: tuple[int, ...]
    reused: tuple[int, ...]
    whole: tuple[int, ...]
    trail: Trail
    unattributed: int = 0
    observed: tuple[int, ...] | None = None
    common: int | None = None


@dataclass(slots=True)
class ReuseTable:
    """Sums over turns. `unattributed` tokens were recorded but belong to no piece; they are never reused."""

    turns: int = 0
    unattributed: int = 0
    _tokens: list[int] = field(default_factory=lambda: [0] * (len(LAYERS) + 1))
    _reused: list[int] = field(default_factory=lambda: [0] * (len(LAYERS) + 1))

    def add(self, turn: TurnReuse) -> None:
        self.turns += 1
        self.unattributed += turn.unattributed
        for index, count in enumerate(turn.tokens):
            self._tokens[index] += count
        for index, count in enumerate(turn.reused):
            self._reused[index] += count

    @property
    def tokens(self) -> int:
        """Prompt tokens, the unattributed and the template's included."""
        return sum(self._tokens) + self.unattributed

    @property
    def reused(self) -> int:
        return sum(self._reused)

    @property
    def share(self) -> float | None:
        """Reused tokens over prompt tokens, 0 ... 1; None when there was no prompt."""
        return self.reused / self.tokens if self.tokens else None

    @property
    def template(self) -> int:
        """Tokens that the chat template added."""
        return self._tokens[MARKER]

    def by_layer(self) -> dict[str, tuple[int, int]]:
        """layer -> (tokens, reused tokens), only layers that occur; "template" last."""
        names = [*LAYERS, "template"]
        return {
            name: (tokens, reused)
            for name, tokens, reused in zip(names, self._tokens, self._reused, strict=True)
            if tokens
        }


def table(turns: Iterable[TurnReuse]) -> ReuseTable:
    result = ReuseTable()
    for turn in turns:
        result.add(turn)
    return result


def unsalted(layer: Layer) -> str:
    return ""


class Live(NamedTuple):
    """Replies of the server in the prompts of a play.

    `piece(turn, piece)`: the tokens that were sent for a piece which `turn` brings in; None: those of the trace.
    `reply(turn)`: the tokens of its reply that the server has KV of.
    """

    piece: Callable[[int, Piece], list[Span] | None]
    reply: Callable[[int], list[Span]]


class _Step(NamedTuple):
    """A piece on a prompt's way through the tree: `node` after it, its own `tokens` between `marker` tokens of the
    template, of which `ahead` are before it. Up to here there are `sums` tokens by layer and so many `definitions`;
    `private`: no other session comes this way."""

    node: Node
    layer: int
    tokens: int
    marker: int
    ahead: int
    sums: tuple[int, ...]
    placed: Placed
    definitions: int
    private: bool


class Walk:
    """One play of a session through the tree, its turns in any order that respects the send order.

    A turn starts from the node where its base left the kept pieces, so its cost is that of what it appends. With
    `possible` it is the trace that is looked at, not what one server is sent: replies count, models are told apart, and
    tokens that belong to no piece are part of the prompt.
    """

    def __init__(
        self,
        session: Session,
        tree: PrefixTree,
        *,
        page: int = 1,
        template: Template = PLAIN,
        shape: Shape = "plain",
        salting: Salting = unsalted,
        possible: bool = False,
        live: Live | None = None,
        namespace: str | None = None,
    ) -> None:
        self.session, self.tree, self.page = session, tree, page
        self.template, self.shape, self.salting, self.possible = template, shape, salting, possible
        self.live, self.namespace = live, namespace
        self._frames = Frames(template, session, self.spans)
        self._paths: dict[int, tuple[Node, list[_Step]]] = {}  # by turn: where it began, and its way
        self._own = f"{session.scope}/{session.id}"  # the scope of what only this session has
        self._keys: dict[int, SaltedStream] = {}  # by segment
        self._fresh: list[tuple[Node, Span]] = []  # edges that were made where others may come
        self._last: dict[int, int] = {}  # by thread: the turn that was walked last

    def turn(self, index: int, cached: int | None = None) -> TurnReuse:
        """Add the prompt of a turn. Returns what of it was there before; `cached`: what a server found of it."""
        turn = self.session.turns[index]
        self.tree.begin()
        root = self.tree.root(self._space(turn.model))
        begun, known = self._paths.get(-1 if turn.prompt.base is None else turn.prompt.base, (None, []))
        path = known[: turn.prompt.keep] if begun is root else []
        rooted = begun is root
        if rooted and self.shape == "tools" and path and path[-1].placed.leading:
            path, rooted = [], False  # what leads is one message, or none, with whatever follows
        matched, unbroken = path[-1].node.depth if path else 0, True
        fresh = [(index, piece) for piece in turn.prompt.append] if rooted else introduced(self.session, index)
        before = path[-1].placed if path else None
        places = arranged(self.session, fresh, self.shape, start=len(path), before=before)
        for (brought, piece), here in zip(fresh, places, strict=True):
            step, found = self._step(root, path[-1] if path else None, brought, piece, here)
            matched += found if unbroken else 0
            unbroken = unbroken and matched == step.node.depth
            path.append(step)
        node = path[-1].node if path else root
        made = None if path and path[-1].private else self._fresh
        if self.template.start:
            found, behind = self.tree.add(node, [marker_span("assistant", self.template.start)], made)
            matched += found if unbroken else 0
        else:
            behind = node
        end, reply = behind, turn.output.tokens
        if self.possible:
            _, end = self.tree.add(node, self._reply(turn), made)
        elif self.live is not None:
            _, end = self.tree.add(behind, self.live.reply(index), made)
            reply = end.depth - behind.depth
        self._paths[index] = root, path
        left = self.tree.left or end
        account = self._account(index, path, matched, left, reply, cached)
        self._last[turn.thread] = index
        return account

    def _space(self, model: str | None) -> str | None:
        """Where the prompt begins: what lies in another space is not shared."""
        if not self.possible:
            return self.namespace
        return model if self.namespace is None else f"{self.namespace} {model}"

    def _common(self, index: int, path: list[_Step]) -> int | None:
        """Tokens in common with the prompt and reply of the turn before in the thread."""
        turn = self.session.turns[index]
        before = self._last.get(turn.thread)
        if before is None or before == index:
            return None
        if turn.prompt.base == before:
            same, fresh = turn.prompt.keep, turn.prompt.append
            rest = self.session.pieces(before)[same:] if same < len(self._paths[before][1]) else []
        else:
            earlier, pieces = self.session.pieces(before), self.session.pieces(index)
            same = next((at for at, (a, b) in enumerate(zip(earlier, pieces, strict=False)) if a != b), -1)
            same = min(len(earlier), len(pieces)) if same < 0 else same
            rest, fresh = earlier[same:], tuple(pieces[same:])
        reply = self.session.turns[before].reply
        behind = [*rest] if reply is None else [*rest, Piece(reply, 0, self.session.segment(reply).tokens)]
        total = path[same - 1].node.depth if same else 0
        for one, other, step in zip(behind, fresh, path[same:], strict=False):
            if (one.segment, one.start) != (other.segment, other.start):
                break
            total += min(one.tokens, other.tokens) + step.marker
            if one != other:
                break
        return total

    def _step(self, root: Node, before: _Step | None, brought: int, piece: Piece, here: Placed) -> tuple[_Step, int]:
        """A piece, and how many tokens of it and of its template were there."""
        sent = None if self.live is None else self.live.piece(brought, piece)
        came, sums, number, private = (
            (root, _NONE, 0, False)
            if before is None
            else (before.node, before.sums, before.definitions, before.private)
        )
        spans, ahead, behind = self._frames.around(here, before.placed if before else None, piece, number, sent)
        found, node = self.tree.add(came, spans, None if private else self._fresh)
        marker = ahead + behind
        tokens = node.depth - came.depth - marker
        number += len(definitions(self.session, piece, number)) if here.definition else 0
        layer = _LAYER_INDEX[self.session.segment(piece.segment).layer]
        private = private or any(span.key[0].scope == self._own for span in spans)
        sums = _plus(sums, layer, tokens, marker)
        return _Step(node, layer, tokens, marker, ahead, sums, here, number, private), found

    def spans(self, piece: Piece) -> list[Span]:
        """The tokens of a piece by the trace."""
        key = self._keys.get(piece.segment)
        if key is None:
            segment = self.session.segment(piece.segment)
            if isinstance(segment.content, Opaque):
                runs = self.session.piece_runs(piece)
                return [Span((run.stream, self.salting(run.layer)), run.start, run.stop) for run in runs]
            stream = self.session.stream(segment)
            salt = "" if stream.kind == "literal" else self.salting(segment.layer)
            key = self._keys[segment.id] = stream, salt
        return [Span(key, piece.start, piece.stop)]

    def _reply(self, turn: Turn) -> list[Span]:
        """What a turn produced, by the trace; empty where that is not known."""
        tokens = 0 if turn.reply is None else min(turn.output.tokens, self.session.segment(turn.reply).tokens)
        return self.spans(Piece(turn.reply, 0, tokens)) if turn.reply is not None and tokens else []

    def _account(
        self, index: int, path: list[_Step], matched: int, left: Node, reply: int, cached: int | None
    ) -> TurnReuse:
        tokens = _plus(path[-1].sums if path else _NONE, MARKER, self.template.start)
        isl = (path[-1].node.depth if path else 0) + self.template.start
        unattributed = max(0, self.session.turns[index].isl - isl) if self.possible else 0
        usable = max(0, min(isl + unattributed - 1, matched))
        paged = usable // self.page * self.page
        whole = _leading(path, usable)
        reused = whole if paged == usable else _leading(path, paged)
        observed = None if cached is None else reused if cached == paged else _leading(path, min(cached, isl))
        trail = Trail(self.tree.prompts, left.owner, left.depth, isl + unattributed + reply)
        common = self._common(index, path)
        return TurnReuse(self.session.key, index, tokens, reused, whole, trail, unattributed, observed, common)

    def forget(self) -> None:
        """No turn follows. Remove what only this session can reach; shared content stays for the sessions to come."""
        for node, span in self._fresh:
            if span.key[0].scope == self._own:
                node.children.pop((span.key, span.start), None)
        self.live = None
        del self._frames  # both point back here: without them the walk is free as soon as nobody has it


_NONE = (0,) * (len(LAYERS) + 1)


def _plus(sums: tuple[int, ...], layer: int, tokens: int, template: int = 0) -> tuple[int, ...]:
    """Sums by layer with so many tokens more."""
    if not tokens and not template:
        return sums
    more = list(sums)
    more[layer] += tokens
    more[MARKER] += template
    return tuple(more)


_depth = attrgetter("node.depth")


def _leading(path: list[_Step], count: int) -> tuple[int, ...]:
    """The first `count` tokens of a prompt, by layer; what stands behind its last piece is the template's."""
    whole = bisect_right(path, count, key=_depth)
    sums, left = (path[whole - 1].sums, count - path[whole - 1].node.depth) if whole else (_NONE, count)
    if whole == len(path):
        return _plus(sums, MARKER, left)
    cut = path[whole]
    own = min(max(0, left - cut.ahead), cut.tokens)
    return _plus(sums, cut.layer, own, left - own)


def possible(sessions: Iterable[Session]) -> ReuseTable:
    """Possible reuse of a trace, its sessions one after another."""
    return table(possible_by_turn(sessions))


def possible_by_turn(sessions: Iterable[Session]) -> Iterator[TurnReuse]:
    """Possible reuse, turn by turn. What only one session can reach is forgotten when it ends."""
    tree = PrefixTree()
    for session in sessions:
        walk = Walk(session, tree, possible=True)
        yield from (walk.turn(index) for index in range(len(session.turns)))
        walk.forget()


def ideal(sessions: Iterable[Session], *, page: int = 1, template: Template = PLAIN) -> ReuseTable:
    """Ideal reuse of a trace that is sent once with recorded history, its sessions one after another."""
    tree, result = PrefixTree(), ReuseTable()
    for session in sessions:
        walk = Walk(session, tree, page=page, template=template)
        for index in range(len(session.turns)):
            result.add(walk.turn(index))
        walk.forget()
    return result
