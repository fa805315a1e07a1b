from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.chunks import Chunks
from agentx.core import Chunk

MANY = st.lists(st.builds(Chunk, st.integers(0, 2**62), st.none() | st.integers(0, 2**40)))


@given(MANY, MANY)
def test_they_are_a_tuple_of_chunks(one, other):
    packed = Chunks.of(one)
    assert packed == tuple(one)
    assert tuple(one) == packed
    assert list(packed) == one
    assert len(packed) == len(one)
    assert (packed == Chunks.of(other)) == (one == other)
    assert packed[:1] == tuple(one[:1])
    assert pickle.loads(pickle.dumps(packed)) == packed
    assert Chunks.of(packed) is packed
    assert hash(packed) == hash(tuple(one))


def test_none_are_as_good_as_an_empty_tuple():
    assert Chunks.of(()) == ()
    assert not Chunks.of(())


@pytest.mark.parametrize(
    ("flat", "wrong"),
    [
        ([1], ValueError),  # half a chunk
        ([1.5, 1], TypeError),  # no whole microseconds
        ([1, "a"], TypeError),
        ([1 << 63, 1], OverflowError),
    ],
)
def test_what_is_no_chunk(flat, wrong):
    with pytest.raises(wrong):
        Chunks.read(flat)
