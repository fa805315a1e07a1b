"""Blocks by their places: against chains made by hand, and histories against a plain dictionary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentx.errors import BadInput
from agentx.kv_events import Cleared, KvBatch, KvEvent, Removed, Stored
from agentx.reporter import stored_blocks
from agentx.reporter.stored_blocks import Blocks, blocks_of, places, root_place


def ids(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.uint32)


def batch(at: float, *events: KvEvent, told: float | None = None, lost: int = 0, publisher: int = 0) -> KvBatch:
    return KvBatch(at, publisher, 0, told, 0, events, lost)


def read(*batches: KvBatch, wall: float = 0.0) -> Blocks:
    (found,) = blocks_of(batches, wall).values()
    return found


def test_a_place_is_made_of_all_ids_before_it() -> None:
    root = root_place("")
    whole = places(ids(1, 2, 3, 4, 5, 6), 2, root)
    assert len(whole) == 3
    assert whole[:2].tolist() == places(ids(1, 2, 3, 4, 9), 2, root).tolist()  # a part of a page has no place
    assert whole[2] == places(ids(5, 6), 2, int(whole[1]), start=4)[0]  # from the place before it on
    assert not set(whole) & set(places(ids(7, 2, 3, 4, 5, 6), 2, root))
    assert not set(whole) & set(places(ids(1, 2, 3, 4, 5, 6), 2, root_place("salt")))
    assert places(ids(2, 1), 2, root)[0] != whole[0]  # in this order
    assert len(places(ids(1), 2, root)) == 0


def test_bigrams_tell_which_token_follows() -> None:
    root = root_place("")
    a, b = (places(ids(1, 2), 1, root, behind=behind) for behind in (3, 4))
    assert (a[0] == b[0], a[1] == b[1]) == (True, False)


def test_a_history_by_hand() -> None:
    """1-2 are stored, 2 goes from the device, comes to the host, and back; then all is cleared."""
    blocks = read(
        batch(1.0, Stored((11, 12), None, (1, 2, 3, 4), 2, "device")),
        batch(2.0, Removed((12,), "device"), Stored((12,), 11, (3, 4), 2, "host")),
        batch(3.0, Stored((12,), 11, (3, 4), 2, "device")),
        batch(4.0, Cleared()),
        batch(5.0, Removed((99,), "device"), Stored((98,), 97, (8, 9), 2, "device")),
    )
    where = places(ids(1, 2, 3, 4, 5, 6), 2, root_place(""))
    assert (blocks.page, blocks.unknown, blocks.orphans, blocks.unread) == (2, 1, 1, 0)
    assert blocks.times.tolist() == [1, 2, 2, 3, 4, 5, 5]
    assert blocks.messages.tolist() == [0, 1, 1, 2, 3, 4, 4]
    device = [blocks.device.at(where, number) for number in range(6)]
    assert [state.there.tolist() for state in device] == [
        [False, False, False],
        [True, True, False],
        [True, False, False],
        [True, False, False],
        [True, True, False],
        [False, False, False],
    ]
    assert device[2].last.tolist() == [0, 1, -1]  # the second left with event 1
    assert device[2].next.tolist() == [4, 3, -1]
    assert device[2].comes.tolist() == [False, True, False]
    assert device[2].told.tolist() == [True, True, False]
    assert blocks.device.first(where).tolist() == [0, 0, -1]
    assert blocks.host.at(where, 4).there.tolist() == [False, True, False]
    assert blocks.host.at(where, np.array([4, 2, 0])).there.tolist() == [False, False, False]
    assert [blocks.number_at(at) for at in (0.5, 2.0, 2.5, 9.0)] == [0, 1, 3, 7]


def test_stored_twice_is_told_once_and_a_namespace_is_its_own() -> None:
    blocks = read(
        batch(1.0, Stored((11,), None, (1, 2), 2, "device"), Stored((11,), None, (1, 2), 2, "device")),
        batch(2.0, Stored((21,), None, (1, 2), 2, "device", salt="x"), Removed((11,), "device")),
    )
    plain, salted = (places(ids(1, 2), 2, root_place(name)) for name in ("", "x"))
    assert len(blocks.rows.place) == 3
    assert blocks.device.at(plain, 9).there.tolist() == [False]
    assert blocks.device.at(salted, 9).there.tolist() == [True]


def test_times_are_the_servers_moved_by_the_shortest_way() -> None:
    """The server's clock is 50 s ahead; messages took 0.2 s, 0.1 s, 0.4 s; the last one tells no time."""
    events = [Stored((n,), None, (n,), 1, "device") for n in range(4)]
    told = [(1.2, 1051.0), (2.1, 1052.0), (3.4, 1053.0), (4.5, None)]
    blocks = read(*(batch(at, e, told=t) for (at, t), e in zip(told, events, strict=True)), wall=1000.0)
    assert blocks.times.tolist() == pytest.approx([1.1, 2.1, 3.1, 4.5])


def test_what_is_not_whole_is_counted_or_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = read(
        batch(1.0, Stored((1, 2), None, (1, 2, 3), 2, "device")),  # a block of one token
        batch(2.0, Stored((1,), None, (1,), 1, "storage"), lost=3),  # below the host: no part of it
    )
    assert (blocks.unread, blocks.lost, len(blocks.rows.place)) == (1, 3, 0)
    monkeypatch.setattr(stored_blocks, "LIMIT", 2)
    with pytest.raises(BadInput, match="more than 2 stores and removals of blocks"):
        read(batch(1.0, Stored((1, 2, 3), None, (1, 2, 3), 1, "device")))


def test_publishers_stand_apart() -> None:
    stored = Stored((1,), None, (1,), 1, "device")
    found = blocks_of([batch(1.0, stored), batch(2.0, Removed((1,), "device"), publisher=1)], 0.0)
    assert (found[0].unknown, found[1].unknown) == (0, 1)


CHAINS = st.lists(st.tuples(st.lists(st.integers(0, 2), min_size=1, max_size=5), st.booleans()), max_size=25)


@given(CHAINS, st.sampled_from(["device", "host"]))
def test_histories_are_those_of_a_dictionary(chains: list[tuple[list[int], bool]], tier: str) -> None:
    """Chains of blocks of one token are stored, or cut at their end."""
    there: dict[tuple[int, ...], bool] = {}
    told: dict[tuple[int, ...], list[int]] = {}
    events: list[KvEvent] = []
    for chain, comes in chains:
        path = tuple(chain)
        below = [other for other in there if there[other] and len(other) > len(path) and other[: len(path)] == path]
        if comes:
            new = next((n for n in range(1, len(path) + 1) if not there.get(path[:n])), None)
            if new is None:
                continue
            names = tuple(repr(path[:n]) for n in range(new, len(path) + 1))
            parent = None if new == 1 else repr(path[: new - 1])
            events.append(Stored(names, parent, path[new - 1 :], 1, tier))
            changed = [path[:n] for n in range(new, len(path) + 1)]
        elif there.get(path) and not below:
            events.append(Removed((repr(path),), tier))
            changed = [path]
        else:
            continue
        for each in changed:
            there[each] = comes
            told.setdefault(each, []).append(len(events) - 1)
    if not events:
        return
    blocks = read(*(batch(float(n), event) for n, event in enumerate(events)))
    found = getattr(blocks, tier)
    for path, numbers in told.items():
        where = places(ids(*path), 1, root_place(""))[-1:]
        assert found.first(where).tolist() == numbers[:1]
        for at in range(len(events) + 1):
            before = [number for number in numbers if number < at]
            state = found.at(where, at)
            assert state.last.tolist() == [before[-1] if before else -1]
            assert state.there.tolist() == [bool(before) and len(before) % 2 == 1]
            assert state.next.tolist() == [next((number for number in numbers if number >= at), -1)]
