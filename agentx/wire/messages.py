"""Which chat messages a prompt is sent as: the one rule that the client and the reuse accounting share.

`plain`: a message for each piece, of its layer's role; but leading tools, system and shared pieces join into one
system message. `tools`: tools pieces at the very front are sent as definitions instead, tool results as messages that
answer a call, and the reply before them as the message that made those calls. A result answers a call when a reply of
the same turn's new pieces stands before it with nothing but results between; any other stays a user's message. So a
message never depends on what a later turn appends, and the messages of a turn stand at the front of the next one's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from itertools import takewhile
from typing import Literal, NamedTuple

from agentx.core import LEADING_LAYERS, Layer, Piece, Session

Shape = Literal["plain", "tools"]
Brought = tuple[int, Piece]  # a piece, and the turn that brings it in

ROLES: dict[Layer, str] = {
    "tools": "user",  # tools, system and shared pieces keep the system role only at the start of a prompt
    "system": "user",
    "shared": "user",
    "summary": "user",
    "user": "user",
    "tool_result": "user",
    "assistant": "assistant",
    "reasoning": "assistant",
}
_REPLIES: frozenset[Layer] = frozenset({"assistant", "reasoning"})
_UNNAMED = "Bash"  # a call of which the trace does not say what it was
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")  # what the APIs do not allow in a function's name
_LONGEST_NAME = 64


class Message(NamedTuple):
    role: str
    pieces: tuple[Piece, ...]


class Call(NamedTuple):
    """A tool call: its id, unique in its prompt, and the name of the function."""

    id: str
    name: str


class Placed(NamedTuple):
    """Where a piece goes. `role` is that of the message that it begins, None when it joins what stands before it.

    `leading`: of the definitions or the system message. `definition`: its text is that of tool definitions. `bare`: it
    is the first of a prompt that has to have definitions and brings none. `calls` are made by its message, behind its
    text; `answers` is the call that its message is the result of.
    """

    role: str | None
    leading: bool
    definition: bool = False
    bare: bool = False
    calls: tuple[Call, ...] = ()
    answers: Call | None = None


BEHIND = Placed("user", False)  # any piece that stands behind the leading ones


class Counts(NamedTuple):
    """What a chat template puts something around: `definitions` are the pieces that are sent as such."""

    messages: int
    calls: tuple[tuple[Call, ...], ...] = ()  # of each message that makes some
    definitions: tuple[Piece, ...] = ()
    bare: bool = False


def placed(layer: Layer, leading: bool | None) -> tuple[str | None, bool]:
    """Where a piece of `layer` goes, after a piece that was `leading` or not (None: it is the first).

    Returns (the role of the message that it begins, None when it joins the message before it; whether it leads).
    """
    leads = layer in LEADING_LAYERS and leading is not False
    if not leads:
        return ROLES[layer], False
    return (None if leading else "system"), True


def arranged(
    session: Session, pieces: Iterable[Brought], shape: Shape, *, start: int = 0, before: Placed | None = None
) -> list[Placed]:
    """Where pieces go that stand at `start` and behind in a prompt, after a piece that was placed as `before`.

    Pieces that one turn brings in are its first ones, in order, as `history.introduced` gives them.
    """
    made: list[Placed] = []
    turn, own = -1, 0
    for place, (brought, piece) in enumerate(pieces, start):
        own = own + 1 if brought == turn else 0
        turn = brought
        layer = session.segment(piece.segment).layer
        if shape == "plain":
            before = _plain(layer, None if before is None else before.leading)
        elif layer == "tools" and (before is None or before.definition):
            before = Placed(None, True, definition=True)
        else:
            joins = None if before is None or before.definition else before.leading
            role, leads = placed(layer, joins)
            answers = _answered(session, turn, own, place) if layer == "tool_result" else None
            calls = _calls(session, turn, own, place) if layer in _REPLIES else ()
            before = Placed("tool" if answers else role, leads, False, before is None, calls, answers)
        made.append(before)
    if made and made[-1].definition and not start:  # a prompt needs a message
        return [Placed(None if place else "system", True, bare=not place) for place in range(len(made))]
    return made


@cache
def _plain(layer: Layer, leading: bool | None) -> Placed:
    return Placed(*placed(layer, leading))


def _layer_at(session: Session, turn: int, place: int) -> Layer | None:
    append = session.turns[turn].prompt.append
    return session.segment(append[place].segment).layer if 0 <= place < len(append) else None


def _calls(session: Session, turn: int, own: int, place: int) -> tuple[Call, ...]:
    """What the reply at place `own` of its turn's new pieces calls: as many tools as results stand behind it."""
    count = 0
    while _layer_at(session, turn, own + 1 + count) == "tool_result":
        count += 1
    return tuple(_call(session, turn, own + number, place + number) for number in range(1, count + 1))


def _answered(session: Session, turn: int, own: int, place: int) -> Call | None:
    """The call that the result at place `own` answers, if a reply of the same turn's pieces made one."""
    at = own
    while _layer_at(session, turn, at) == "tool_result":
        at -= 1
    return _call(session, turn, own, place) if at >= 0 and _layer_at(session, turn, at) in _REPLIES else None


def _call(session: Session, turn: int, own: int, place: int) -> Call:
    """The call whose result is at `own` of its turn's new pieces and at `place` of its prompt.

    Nine letters and figures: some templates ask for exactly that.
    """
    asked = session.turns[turn]
    results = (session.segment(piece.segment).layer == "tool_result" for piece in asked.prompt.append[:own])
    number = sum(results)
    name = asked.tools[number].name if number < len(asked.tools) else ""
    return Call(f"call{place:05d}", _NO_NAME.sub("_", name)[:_LONGEST_NAME] or _UNNAMED)


def counted(session: Session, pieces: Sequence[Brought], shape: Shape) -> Counts:
    """The messages, calls and definitions of a resolved prompt."""
    if shape == "plain":
        count = 0
        leading: bool | None = None
        for _, piece in pieces:
            role, leading = placed(session.segment(piece.segment).layer, leading)
            count += role is not None
        return Counts(count)
    made = arranged(session, pieces, shape)
    return Counts(
        sum(one.role is not None for one in made),
        tuple(one.calls for one in made if one.calls),
        tuple(piece for (_, piece), one in zip(pieces, made, strict=True) if one.definition),
        any(one.bare for one in made),
    )


def leading_pieces(session: Session, pieces: Sequence[Piece]) -> int:
    """How many pieces at the front join into the system message (or the definitions)."""
    return sum(1 for _ in takewhile(lambda piece: session.segment(piece.segment).layer in LEADING_LAYERS, pieces))


def messages(session: Session, pieces: Sequence[Piece]) -> list[Message]:
    """The plain messages of a resolved prompt, in order."""
    made: list[Message] = []
    leading: bool | None = None
    for piece in pieces:
        role, leading = placed(session.segment(piece.segment).layer, leading)
        if role is None:
            made[-1] = Message(made[-1].role, (*made[-1].pieces, piece))
        else:
            made.append(Message(role, (piece,)))
    return made
