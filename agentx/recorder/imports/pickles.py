"""Pickles read without running them: the opcodes that data needs, and objects as plain records.

Nothing is imported and nothing is called. A class is its name; an object of it is a `Record` of that name with its
state. What a pickle would call (`__reduce__`) becomes a record too, so that a hostile file can only describe things.
Memory is bounded by the file: there is no opcode here that makes more than it brings.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MAX_OPCODES = 200_000_000
_MARK = object()


class Refused(ValueError):
    """The bytes are no pickle, or one that needs more than data; the message says what."""


@dataclass(slots=True)
class Record:
    """An object: the name of its class, what it was made from, and its state."""

    name: str
    arguments: Any = ()
    state: dict[str, Any] = field(default_factory=dict)

    def get(self, name: str) -> Any:
        """A field of its state."""
        return self.state.get(name)


def unpickled(data: bytes) -> Any:
    """The value of a pickle, objects as records. Raises Refused."""
    machine = _Machine()
    try:
        for count, (opcode, argument, _) in enumerate(pickletools.genops(data)):
            if count > MAX_OPCODES:
                raise Refused(f"more than {MAX_OPCODES:,} opcodes")
            if opcode.name == "STOP":
                return machine.pop()
            machine.step(opcode.name, argument)
    except (IndexError, KeyError, TypeError, ValueError, OverflowError, MemoryError) as error:
        raise error if isinstance(error, Refused) else Refused(f"not a pickle of data: {error}") from None
    raise Refused("it has no end")


class _Machine:
    def __init__(self) -> None:
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}

    def pop(self) -> Any:
        value = self._stack.pop()
        if value is _MARK:
            raise Refused("a mark where a value should be")
        return value

    def step(self, name: str, argument: Any) -> None:
        if name in _NOTHING:
            return
        if name in _VALUES:
            self._stack.append(_VALUES[name](argument))
        elif name in ("PUT", "BINPUT", "LONG_BINPUT"):
            self._memo[int(argument)] = self._stack[-1]
        elif name == "MEMOIZE":
            self._memo[len(self._memo)] = self._stack[-1]
        elif name in ("GET", "BINGET", "LONG_BINGET"):
            self._stack.append(self._memo[int(argument)])
        elif name in _BUILDS:
            _BUILDS[name](self)
        else:
            raise Refused(f"the opcode {name} is not of data")

    def marked(self) -> list[Any]:
        """What lies above the last mark."""
        at = len(self._stack) - 1
        while self._stack[at] is not _MARK:
            at -= 1
            if at < 0:
                raise Refused("no mark")
        values = self._stack[at + 1 :]
        del self._stack[at:]
        return values

    def push(self, value: Any) -> None:
        self._stack.append(value)

    def append(self, values: list[Any]) -> None:
        target = self._stack[-1]
        if isinstance(target, list):
            target.extend(values)

    def add(self, values: list[Any]) -> None:
        """Pairs into the dict on top; on a record they are its own business."""
        target = self._stack[-1]
        if isinstance(target, dict):
            for key, value in zip(values[::2], values[1::2], strict=True):
                target[_key(key)] = value

    def drop(self, count: int) -> None:
        del self._stack[len(self._stack) - count :]

    def make(self, arguments: Any, name: Any) -> None:
        known = name.name if isinstance(name, Record) else str(name)
        self.push(Record(known, arguments))

    def build(self) -> None:
        state, target = self.pop(), self._stack[-1]
        if isinstance(state, tuple) and len(state) == 2:  # of classes with slots
            state = {**_map(state[0]), **_map(state[1])}
        if isinstance(target, Record):
            target.state.update({str(key): value for key, value in _map(state).items()})


def _map(value: Any) -> dict[Any, Any]:
    return value if isinstance(value, dict) else {}


def _key(key: Any) -> Any:
    """A key as it is, or, where it is no plain value, what it is called."""
    return key if isinstance(key, str | int | float | bytes | bool | None) else repr(type(key))


def _tuple(count: int) -> Callable[[_Machine], None]:
    def build(machine: _Machine) -> None:
        values = [machine.pop() for _ in range(count)]
        machine.push(tuple(reversed(values)))

    return build


def _global(machine: _Machine) -> None:
    name, module = machine.pop(), machine.pop()
    machine.push(Record(f"{module}.{name}"))


def _reduce(machine: _Machine) -> None:
    arguments = machine.pop()
    machine.make(arguments, machine.pop())


def _reduce_keywords(machine: _Machine) -> None:
    keywords, arguments = machine.pop(), machine.pop()
    machine.make((arguments, keywords), machine.pop())


def _dict(machine: _Machine) -> None:
    values = machine.marked()
    machine.push({})
    machine.add(values)


def _set_item(machine: _Machine) -> None:
    value, key = machine.pop(), machine.pop()
    machine.add([key, value])


_NOTHING = frozenset({"PROTO", "FRAME"})
_VALUES: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4"), lambda value: value),
    **dict.fromkeys(("FLOAT", "BINFLOAT", "STRING", "BINSTRING", "SHORT_BINSTRING"), lambda value: value),
    **dict.fromkeys(("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"), lambda value: value),
    **dict.fromkeys(("BINBYTES", "SHORT_BINBYTES", "BINBYTES8", "BYTEARRAY8"), lambda value: value),
    "NONE": lambda _: None,
    "NEWTRUE": lambda _: True,
    "NEWFALSE": lambda _: False,
    "EMPTY_LIST": lambda _: [],
    "EMPTY_DICT": lambda _: {},
    "EMPTY_TUPLE": lambda _: (),
    "EMPTY_SET": lambda _: [],
    "MARK": lambda _: _MARK,
    "GLOBAL": lambda value: Record(str(value).replace(" ", ".")),
}
_BUILDS: dict[str, Callable[[_Machine], None]] = {
    "TUPLE": lambda machine: machine.push(tuple(machine.marked())),
    "TUPLE1": _tuple(1),
    "TUPLE2": _tuple(2),
    "TUPLE3": _tuple(3),
    "LIST": lambda machine: machine.push(machine.marked()),
    "FROZENSET": lambda machine: machine.push(machine.marked()),
    "APPEND": lambda machine: machine.append([machine.pop()]),
    "APPENDS": lambda machine: machine.append(machine.marked()),
    "ADDITEMS": lambda machine: machine.append(machine.marked()),
    "DICT": _dict,
    "SETITEM": _set_item,
    "SETITEMS": lambda machine: machine.add(machine.marked()),
    "STACK_GLOBAL": _global,
    "REDUCE": _reduce,
    "NEWOBJ": _reduce,
    "NEWOBJ_EX": _reduce_keywords,
    "BUILD": lambda machine: machine.build(),
    "POP": lambda machine: machine.drop(1),
    "POP_MARK": lambda machine: machine.drop(len(machine.marked()) * 0),
}
