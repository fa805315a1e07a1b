"""Turns become threads and sessions: which turn goes on from which, and which line of context each belongs to.

Within what the client itself calls one agent of one session (or, where it says nothing, within one credential), a
turn goes on from

  tool      the turn that emitted the tool call whose result is new in its prompt; of several with a call of that name
            (servers that count them) the one that it shares the longest beginning with, as for partial,
  prefix    the turn whose whole prompt its own begins with,
  partial   the turn that it shares the longest beginning with, an assistant's message included,
  agent     the last turn of the same agent, where a client names agents and the content says nothing.

None of them may still have been running. Without a session's name, `prefix` needs more than equal openings: the
reply must follow, or an assistant's message must be shared. The links make a tree; its heaviest path is a thread,
what branches off it are others. A tree that begins with a text which a tool call of another one has among its
arguments is that call's subagent. What is known by none of this stays unknown.
"""

from __future__ import annotations

from array import array
from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from agentx.core import ThreadKind
from agentx.recorder.attempts import Items, Turn
from agentx.recorder.canonical import ID_BLOCK, TEXT_BLOCK
from agentx.recorder.identity import Said

How = Literal["tool", "prefix", "partial", "agent", "spawn", "none"]
Pool = tuple[str, str | None, str | None]
EMITTERS = 64  # turns that are remembered for one name of a tool call


@dataclass(slots=True)
class Linked:
    """A turn in its tree. `parent` is an index into all turns; `shared` counts the leading items it has in common."""

    index: int
    turn: Turn
    said: Said
    parent: int | None = None
    how: How = "none"
    shared: int = 0
    spawner: int | None = None  # the turn whose tool call started this tree
    spawn_call: str | None = None


@dataclass(slots=True)
class Line:
    """A thread: its turns in order, and the thread that it came from (an index into the session's lines)."""

    turns: list[Linked]
    parent: int | None = None
    kind: ThreadKind = "main"
    forked: bool = False  # it branches off in the middle of its parent


@dataclass(slots=True)
class Kin:
    """A session: its lines, the main one first. `rule` says how it is known."""

    lines: list[Line]
    rule: str


@dataclass(slots=True)
class _Index:
    """What has been seen in one pool, by digests of beginnings of prompts."""

    whole: dict[int, list[int]] = field(default_factory=lambda: defaultdict(list))
    part: dict[int, int] = field(default_factory=dict)
    turns: list[int] = field(default_factory=list)


def link(turns: Sequence[Turn], identities: Sequence[Said], items: Items) -> list[Linked]:
    """Every turn with the one that it goes on from. `turns` are in order of arrival."""
    return _Linker([Linked(i, t, s) for i, (t, s) in enumerate(zip(turns, identities, strict=True))], items).run()


class _Linker:
    def __init__(self, linked: list[Linked], items: Items) -> None:
        self._all, self._items = linked, items
        self._pools: dict[Pool, _Index] = defaultdict(_Index)
        # (credential, tool call) -> turns: some servers count calls from 0, in every conversation
        self._emitted: dict[tuple[str | None, str], deque[int]] = defaultdict(partial(deque, maxlen=EMITTERS))
        self._spawned: dict[tuple[str | None, bytes], tuple[int, str]] = {}  # a text among a call's arguments

    def run(self) -> list[Linked]:
        for this in self._all:
            pool = self._pools[_pool(this)]
            chain = _chain(this.turn.numbers)
            self._link(this, pool, chain)
            if this.parent is None:
                self._spawn(this)
            self._note(this, pool, chain)
        return self._all

    def _link(self, this: Linked, pool: _Index, chain: list[int]) -> None:
        known = this.said.session is not None
        prefix = self._prefix(this, pool, chain, known)
        tool = self._tool(this)
        if tool is not None and (prefix is None or tool > prefix[0]):
            this.parent, this.how = tool, "tool"
            this.shared = _common(self._all[tool].turn.numbers, this.turn.numbers)
        elif prefix is not None:
            this.parent, this.how, this.shared = prefix[0], "prefix", prefix[1]
        elif (partial := self._partial(this, pool, chain)) is not None:
            this.parent, this.how, this.shared = partial[0], "partial", partial[1]
        elif known and (last := self._last(this, pool)) is not None:
            this.parent, this.how = last, "agent"
            this.shared = _common(self._all[last].turn.numbers, this.turn.numbers)

    def _before(self, index: int, this: Linked) -> bool:
        return self._all[index].turn.ended <= this.turn.opened

    def _prefix(self, this: Linked, pool: _Index, chain: list[int], known: bool) -> tuple[int, int] | None:
        """(turn, its length) of the longest whole prompt that this one begins with and goes beyond."""
        numbers = this.turn.numbers
        for length in range(len(chain) - 1, 0, -1):
            for index in reversed(pool.whole.get(chain[length - 1], ())):
                if not self._before(index, this):
                    continue
                reply = self._all[index].turn.last.reply_numbers
                follows = len(reply) > 0 and numbers[length : length + len(reply)] == reply
                if follows or known or self._talked(numbers[:length]):
                    return index, length
        return None

    def _ends_in_a_cut_block(self, turn: Turn) -> bool:
        """Whether a prompt of text or ids ends inside a block, which a longer one then fills with more."""
        item = self._items.known[turn.numbers[-1]]
        whole = ID_BLOCK if item.tokens is not None else TEXT_BLOCK
        size = item.tokens if item.tokens is not None else item.weight
        return turn.last.wire in ("completions", "generate") and size < whole

    def _tool(self, this: Linked) -> int | None:
        """The turn that emitted the last tool call that this prompt answers."""
        for number in reversed(this.turn.numbers):
            for call in reversed(self._items.known[number].answers):
                emitters = self._emitted.get((this.turn.last.credential, call))
                if emitters is not None:
                    return self._emitter(this, emitters)
        return None

    def _emitter(self, this: Linked, emitters: Sequence[int]) -> int | None:
        able = [at for at in emitters if _pool(self._all[at]) == _pool(this) and self._before(at, this)]
        if len(able) < 2:
            return able[0] if able else None
        shared = {at: _common(_history(self._all[at].turn), this.turn.numbers) for at in able}
        best = max(able, key=lambda at: (shared[at], at))
        return best if self._talked(this.turn.numbers[: shared[best]]) else None

    def _partial(self, this: Linked, pool: _Index, chain: list[int]) -> tuple[int, int] | None:
        for length in range(len(chain), 0, -1):
            index = pool.part.get(chain[length - 1])
            if index is None:
                continue
            if not self._talked(this.turn.numbers[:length]):
                return None
            if self._before(index, this):
                return index, length
        return None

    def _talked(self, numbers: array[int]) -> bool:
        return any(self._items.known[number].layer == "assistant" for number in reversed(numbers))

    def _last(self, this: Linked, pool: _Index) -> int | None:
        """The last turn of the same agent that had ended; of a main thread, one with the same tools and system."""
        for index in reversed(pool.turns):
            if self._before(index, this) and (this.said.agent is not None or self._alike(index, this)):
                return index
        return None

    def _alike(self, index: int, this: Linked) -> bool:
        mine, theirs = this.turn.numbers, self._all[index].turn.numbers
        own = self._items.leading(mine)
        return own > 0 and mine[:own] == theirs[: self._items.leading(theirs)]

    def _spawn(self, this: Linked) -> None:
        for number in this.turn.numbers:
            for digest in self._items.text_digests[number]:
                found = self._spawned.get((this.turn.last.credential, digest))
                if found is None:
                    continue
                spawner = self._all[found[0]]
                apart = spawner.said.session is not None and this.said.session not in (None, spawner.said.session)
                if not apart and self._before(found[0], this):
                    this.spawner, this.spawn_call, this.how = found[0], found[1], "spawn"
                    return

    def _note(self, this: Linked, pool: _Index, chain: list[int]) -> None:
        if chain:
            pool.whole[chain[-1]].append(this.index)
        if len(chain) > 1 and this.said.session is not None and self._ends_in_a_cut_block(this.turn):
            pool.whole[chain[-2]].append(this.index)
        for digest in chain:
            pool.part[digest] = this.index
        pool.turns.append(this.index)
        credential = this.turn.last.credential
        for call in this.turn.last.calls:
            self._emitted[credential, call.id].append(this.index)
            for text in call.texts:
                self._spawned[credential, bytes.fromhex(text)] = (this.index, call.id)


def _pool(this: Linked) -> Pool:
    if this.said.session is not None:
        return ("session", this.said.session, this.said.agent)
    return ("credential", this.turn.last.credential, this.turn.last.wire)


def _chain(numbers: array[int]) -> list[int]:
    """A digest of each beginning of a prompt. Hashes of integers are the same in every process."""
    digest, chain = 0, []
    for number in numbers:
        digest = hash((digest, number))
        chain.append(digest)
    return chain


def _history(turn: Turn) -> array[int]:
    """What a prompt that goes on from a turn begins with, where nothing was rewritten."""
    return turn.numbers + turn.last.reply_numbers


def _common(a: array[int], b: array[int]) -> int:
    return next((at for at, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))


# --- trees to threads and sessions -------------------------------------------------------------------------------


def sessions(linked: Sequence[Linked]) -> list[Kin]:
    """The sessions in the order of their first turns."""
    children: dict[int, list[int]] = defaultdict(list)
    for this in linked:
        if this.parent is not None:
            children[this.parent].append(this.index)
    weight = [1] * len(linked)
    for this in reversed(linked):  # a parent comes before its children
        if this.parent is not None:
            weight[this.parent] += weight[this.index]
    homes = _homes(linked)
    groups: dict[str, list[Line]] = defaultdict(list)
    places: dict[int, tuple[str, int]] = {}  # turn -> (session, line)
    for this in linked:
        if this.parent is not None and _heir(children[this.parent], weight) == this.index:
            home, number = places[this.parent]
            groups[home][number].turns.append(this)
        else:
            home = homes[this.index]
            forked = this.parent is not None
            groups[home].append(
                Line([this], places[this.parent][1] if this.parent is not None else None, forked=forked)
            )
            number = len(groups[home]) - 1
        places[this.index] = (home, number)
    return [_kin(lines, places) for lines in groups.values()]


def _heir(children: Sequence[int], weight: Sequence[int]) -> int:
    """The child that goes on with its parent's thread: the one that most turns come from, of equals the first."""
    return max(children, key=lambda index: (weight[index], -index))


def _homes(linked: Sequence[Linked]) -> list[str]:
    """The name of each turn's session: what the client said, else its tree's, else that of what spawned its tree."""
    homes: list[str] = []
    for this in linked:
        if this.said.session is not None:
            homes.append(f"said {this.said.session}")
        elif this.parent is not None:
            homes.append(homes[this.parent])
        elif this.spawner is not None:
            homes.append(homes[this.spawner])
        else:
            homes.append(f"tree {this.index}")
    return homes


def _kin(lines: list[Line], places: dict[int, tuple[str, int]]) -> Kin:
    first = lines[0].turns[0]
    roots = [at for at, line in enumerate(lines) if not line.forked]
    candidates = [at for at in roots if lines[at].turns[0].said.agent is None and lines[at].turns[0].spawner is None]
    candidates = candidates or [at for at in roots if lines[at].turns[0].said.parent is None] or roots
    main = max(candidates, key=lambda at: (len(lines[at].turns), -at))
    by_agent = {line.turns[0].said.agent: at for at, line in reversed(list(enumerate(lines))) if not line.forked}
    for at, line in enumerate(lines):
        root = line.turns[0]
        if at == main:
            line.kind, line.parent = "main", None
        elif line.forked:
            line.kind = "side"
        elif root.spawner is not None and places[root.spawner][1] != at:
            line.kind, line.parent = "subagent", places[root.spawner][1]
        elif root.said.agent is not None:
            parent = by_agent.get(root.said.parent, main) if root.said.parent is not None else main
            line.kind, line.parent = "subagent", parent if parent != at else main
        else:
            line.kind, line.parent = "side", main
    rule = first.said.rule or ("linked" if any(line.turns[-1].how != "none" for line in lines) else "none")
    return Kin(_ordered(lines, main), rule)


def _ordered(lines: list[Line], main: int) -> list[Line]:
    """Parents before children, the main line first; a parent that would make a circle becomes the main line."""
    order, placed = [main], {main: 0}
    waiting = [at for at in range(len(lines)) if at != main]
    while waiting:
        ready = [at for at in waiting if lines[at].parent in placed]
        if not ready:
            lines[waiting[0]].parent = main
            continue
        for at in ready:
            placed[at] = len(order)
            order.append(at)
        waiting = [at for at in waiting if at not in placed]
    for at in order:
        parent = lines[at].parent
        lines[at].parent = placed[parent] if parent is not None else None
    return [lines[at] for at in order]
