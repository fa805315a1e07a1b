"""The JSON around tool definitions, calls and results, on each wire and as the embedded engine renders it.

A piece of tools becomes one definition for every 512 of its tokens: a name that public agents have, the words of the
piece as its description, one parameter. Nothing of it depends on the session, so sessions that share their tools share
these. Definitions, names and arguments are chosen so that the words behind them begin at a whole token of the
embedded engine, whose tokens are four bytes each: they stay the tokens that they are in a plain prompt.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Literal, NamedTuple

from agentx.core import Piece, Session, Text, TokenIds
from agentx.wire.messages import Call

Dialect = Literal["chat", "messages", "words"]  # OpenAI's, Anthropic's, and the embedded engine's rendering of both

PER_DEFINITION = 512  # tokens of a tools piece
WORD = 4  # bytes of a token of the embedded engine
BARE = b"a tool"  # the description where a prompt brings no tools
NAMES = (
    *("Write", "Bash", "Read", "Edit", "Grep", "Glob", "Task", "WebFetch", "WebSearch", "TodoWrite"),
    *("NotebookEdit", "MultiEdit", "BashOutput", "KillShell", "LS", "AskUserQuestion", "ExitPlanMode", "Skill"),
)
_PARAMETERS = ("path", "input", "script", "command")  # lengths 4, 5, 6, 7: one of them fills up to a whole token
_INPUT = b'{"path":"."}'  # of every call

_OPEN: dict[Dialect, bytes] = {
    "chat": b'{"type":"function","function":{"name":"%b","description":"',
    "messages": b'{"name":"%b","description":"',
    "words": b'{"name":"%b","description":"',
}
_CLOSE: dict[Dialect, bytes] = {
    "chat": b'","parameters":%b}}',
    "messages": b'","input_schema":%b}',
    "words": b'","parameters":%b}',
}


class Definition(NamedTuple):
    """Definition number `number` of a prompt, whose description is a part of a tools piece."""

    number: int
    part: Piece


def definitions(session: Session, piece: Piece, first: int) -> list[Definition]:
    """The definitions that a tools piece is sent as; `first` is the number of its first one."""
    literal = isinstance(session.segment(piece.segment).content, Text | TokenIds)
    count = 1 if literal else max(1, piece.tokens // PER_DEFINITION)
    cuts = [piece.start + piece.tokens * place // count for place in range(count + 1)]
    return [Definition(first + place, Piece(piece.segment, cuts[place], cuts[place + 1])) for place in range(count)]


def definition_opens(number: int, dialect: Dialect) -> bytes:
    """What stands before a description, without the comma or bracket in front."""
    return _OPEN[dialect] % _name(number)


def definition_closes(number: int, dialect: Dialect) -> bytes:
    """What stands behind a description."""
    return _CLOSE[dialect] % _schema(number)


def bare_definition(dialect: Dialect) -> bytes:
    """The one definition of a prompt that brings no tools."""
    return definition_opens(0, dialect) + BARE + definition_closes(0, dialect)


def calls_text(calls: Sequence[Call], dialect: Dialect) -> bytes:
    """The calls of a message, joined by commas, without brackets."""
    return b",".join(_call(call, dialect) for call in calls)


def whole_words(text: bytes) -> bytes:
    """`text` filled up with spaces to whole tokens of the embedded engine."""
    return text.ljust(-(-len(text) // WORD) * WORD)


def _call(call: Call, dialect: Dialect) -> bytes:
    id, name = call.id.encode(), call.name.encode()
    if dialect == "chat":
        arguments = json.dumps(_INPUT.decode()).encode()
        shape = b'{"id":"%b","type":"function","function":{"name":"%b","arguments":%b}}'
        return shape % (id, name, arguments)
    if dialect == "messages":
        return b'{"type":"tool_use","id":"%b","name":"%b","input":%b}' % (id, name, _INPUT)
    return b'{"name":"%b","arguments":%b}' % (name, _INPUT)


def _name(number: int) -> bytes:
    again, place = divmod(number, len(NAMES))
    return (NAMES[place] + (str(again + 1) if again else "")).encode()


def _schema(number: int) -> bytes:
    """A parameter whose name is as long as it takes for the next description to begin at a whole token."""
    shape = b'{"type":"object","properties":{"%b":{"type":"string"}}}'
    between = len(_CLOSE["words"] % (shape % b"")) + len(b",") + len(_OPEN["words"] % _name(number + 1))
    return shape % _PARAMETERS[-between % WORD].encode()
