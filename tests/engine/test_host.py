"""The host tier by hand: ids are letters, one four-byte token each; runs of 12 are worth loading back."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from agentx.engine.host import HostedCache
from agentx.engine.nodes import CacheEvent, Lease

A, B, C, D = ("".join(chr(start + i) for i in range(12)) for start in (97, 109, 65, 77))


def ids(text: str) -> bytes:
    return b"".join(letter.encode() * 4 for letter in text)


def cache_with(
    host: int, write: str = "write_through", pool: int = 26, **options: int
) -> tuple[HostedCache, list[CacheEvent]]:
    seen: list[CacheEvent] = []
    return HostedCache(pool, host_capacity=host, write=write, subscriber=seen.append, **options), seen


def run(cache: HostedCache, prompt: str) -> tuple[int, int]:
    """One request without a reply; returns its hits on the device and on the host."""
    lease, device, host = start(cache, prompt)
    cache.release(lease)
    cache.settle()
    cache.check_integrity(0)
    return device, host


def start(cache: HostedCache, prompt: str) -> tuple[Lease, int, int]:
    match = cache.match(ids(prompt), len(prompt) - 1)
    lease, loaded = cache.open(ids(prompt), b"", match)
    assert cache.make_room(len(prompt) - match.device - loaded)
    cache.extend(lease, len(prompt))
    cache.checkpoint(lease, len(prompt))
    return lease, match.device, loaded


def test_what_is_evicted_comes_back_from_the_host() -> None:
    cache, seen = cache_with(100)
    for prompt in (A, B, C):  # two fit
        assert run(cache, prompt) == (0, 0)
    assert run(cache, A) == (0, 11)
    assert run(cache, A) == (11, 0)
    assert (cache.backed_up, cache.loaded_back) == (36, 11)
    assert Counter((event.kind, event.tier) for event in seen)["load_back", "device"] == 1


def test_without_a_host_copy_it_is_lost() -> None:
    cache, seen = cache_with(6)  # no room for any
    for prompt in (A, B, C):
        run(cache, prompt)
    assert run(cache, A) == (0, 0)
    assert (cache.dropped_unbacked, cache.backed_up) == (24, 0)
    assert [event.cause for event in seen if event.kind == "drop"] == ["unbacked", "unbacked"]


@pytest.mark.parametrize(
    ("write", "after_one", "after_two"),
    [
        ("write_through", 12, 12),
        ("write_through_selective", 0, 12),  # copied at the second insertion that passes it
        ("write_back", 0, 0),  # copied when it is evicted
    ],
)
def test_when_a_copy_is_made(write: str, after_one: int, after_two: int) -> None:
    cache, _ = cache_with(100, write)
    run(cache, A)
    assert cache.host_capacity - cache.host_free == after_one
    run(cache, A)
    assert cache.host_capacity - cache.host_free == after_two
    assert cache.make_room(26)
    assert run(cache, A) == ((0, 11) if after_two or write == "write_back" else (0, 0))


def test_a_short_run_is_not_worth_loading_back() -> None:
    cache, _ = cache_with(100)
    run(cache, A[:10])
    assert cache.make_room(26)
    assert run(cache, A[:10]) == (0, 0)  # 9 tokens on the host, the threshold is 10
    assert cache.make_room(26)
    assert run(cache, A[:10] + "x") == (0, 10)


def test_a_match_goes_on_through_the_host() -> None:
    cache, _ = cache_with(100)
    run(cache, A)
    run(cache, A + B)
    assert cache.make_room(14)  # B's node leaves, A's stays
    assert run(cache, A + B) == (12, 11)


def test_the_host_gives_up_its_least_recently_used_leaf() -> None:
    cache, _ = cache_with(24)
    for prompt in (A, B):
        run(cache, prompt)
    assert cache.make_room(26)  # both are on the host only
    run(cache, A)  # refreshed, and on both tiers
    run(cache, C)  # its copy needs room: B goes
    assert cache.match(ids(B), 11).host == 0
    assert cache.make_room(26)
    assert cache.match(ids(A), 11).host == 11


def test_write_back_gives_up_copies_of_what_the_device_has() -> None:
    cache, seen = cache_with(24, "write_back")
    for prompt in (A, B):
        run(cache, prompt)
    assert cache.make_room(26)
    lease, _, loaded = start(cache, A)  # now on both tiers, its host copy is a double
    assert loaded == 11
    cache.settle()
    run(cache, C)
    assert cache.make_room(13)  # C must be copied out: the double goes, not B
    assert "double" in {event.cause for event in seen}
    cache.release(lease)
    assert run(cache, B) == (0, 11)


def test_write_back_drops_what_a_full_host_can_not_take() -> None:
    cache, seen = cache_with(6, "write_back")
    run(cache, A)
    run(cache, B)
    run(cache, C)
    assert cache.dropped_host_pressure == 12
    assert run(cache, A) == (0, 0)
    assert ("drop", "host_pressure") in {(event.kind, event.cause) for event in seen}


def test_a_copy_under_way_is_locked_until_it_is_done() -> None:
    cache, _ = cache_with(100)
    lease, _, _ = start(cache, A)
    cache.release(lease)
    assert not cache.make_room(26)
    cache.settle()
    assert cache.make_room(26)


def test_clear_empties_both_tiers() -> None:
    cache, _ = cache_with(100)
    run(cache, A)
    cache.clear()
    assert (cache.free, cache.host_free) == (26, 100)
    assert run(cache, A) == (0, 0)


@pytest.mark.parametrize("write", ["write_through", "write_through_selective", "write_back"])
@pytest.mark.parametrize("host", [8, 40, 200])
def test_the_books_balance_through_random_traffic(write: str, host: int) -> None:
    rng = random.Random(host)
    cache, _ = cache_with(host, write, pool=120, page=4)
    open_leases: list[Lease] = []
    for _ in range(300):
        prompt = "".join(rng.choice("ab") for _ in range(rng.randrange(1, 28)))
        match = cache.match(ids(prompt), len(prompt) - 1)
        lease, _ = cache.open(ids(prompt), b"", match)
        cache.make_room(len(prompt) + 4)
        cache.extend(lease, len(prompt))
        cache.checkpoint(lease, len(prompt))
        open_leases.append(lease)
        if len(open_leases) > 2:
            cache.release(open_leases.pop(rng.randrange(3)))
        cache.settle()
        cache.check_integrity(sum(cache.ceil(lease.allocated) - lease.protected for lease in open_leases))
