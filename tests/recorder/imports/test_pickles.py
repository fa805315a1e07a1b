"""Pickles are read as data: no class is imported, no call is made, whatever the file asks for."""

from __future__ import annotations

import os
import pickle
import struct
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.recorder.imports.pickles import Record, Refused, unpickled

RAN: list[str] = []


@dataclass
class Thing:
    name: str = "a"
    ids: list[int] = field(default_factory=lambda: [1, 2, 3])


@dataclass(slots=True)
class Slotted:
    name: str = "b"


class Hostile:
    def __reduce__(self) -> Any:
        return RAN.append, ("called",)


class Shell:
    def __reduce__(self) -> Any:
        return os.system, ("touch /nowhere",)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=6) | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4)
    | st.tuples(inner, inner),
    max_leaves=15,
)  # fmt: skip


@given(PLAIN, st.sampled_from([3, 4, 5]))  # protocol 2 makes bytes by a call
def test_plain_values_come_back(value: Any, protocol: int) -> None:
    assert unpickled(pickle.dumps(value, protocol)) == value


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_objects_are_records(protocol: int) -> None:
    record = unpickled(pickle.dumps(Thing(), protocol))
    assert isinstance(record, Record)
    assert (record.get("name"), record.get("ids"), record.get("other")) == ("a", [1, 2, 3], None)
    slotted = unpickled(pickle.dumps(Slotted(), protocol))
    assert isinstance(slotted, Record)


def test_shared_parts_are_the_same() -> None:
    part = [1]
    first, second = unpickled(pickle.dumps([part, part]))
    assert first is second


def test_a_list_that_holds_itself() -> None:
    value: list[Any] = []
    value.append(value)
    found = unpickled(pickle.dumps(value))
    assert found[0] is found


@pytest.mark.parametrize("hostile", [Hostile(), Shell()])
def test_what_it_would_call_is_only_described(hostile: Any) -> None:
    record = unpickled(pickle.dumps(hostile))
    assert isinstance(record, Record)
    assert RAN == []


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "not a pickle"),
        (b"hello", "not a pickle|not of data"),
        (b"\x80\x04", "not a pickle|no end"),
        (b"\x80\x04.", "not a pickle"),
        (b"\x80\x04(.", "a mark where a value should be"),
        (b"\x80\x04]e.", "no mark|not a pickle"),
        (b"\x80\x04h\x05.", "not a pickle"),  # a memo that is not there
        (b"cos\nsystem\n(S'x'\ntR.", None),  # of old: described, not run
        (b"(cos\nsystem\nS'x'\no.", "the opcode OBJ is not of data"),
        (b"(S'x'\nios\nsystem\n.", "the opcode INST is not of data"),
        (b"\x80\x02U\x03xyzQ.", "the opcode BINPERSID is not of data"),
        (b"\x80\x02\x82\x01.", "the opcode EXT1 is not of data"),
        (b"\x80\x05\x96" + struct.pack("<Q", 1 << 40) + b"x.", "not a pickle"),  # bytes that are not there
        (b"\x80\x04]r" + struct.pack("<I", 0xFFFFFFFF) + b".", None),  # a far place in the memo costs nothing
        (b"\x80\x04\x8b" + struct.pack("<i", 1 << 30) + b"1.", "not a pickle"),
    ],
)
def test_hostile_bytes(data: bytes, why: str | None) -> None:
    if why is None:
        unpickled(data)
    else:
        with pytest.raises(Refused, match=why):
            unpickled(data)


@given(st.binary(max_size=80))
def test_any_bytes_are_a_value_or_refused(data: bytes) -> None:
    for begin in (b"", b"\x80\x04"):
        with suppress(Refused):
            assert unpickled(begin + data) is not RAN
    assert RAN == []
