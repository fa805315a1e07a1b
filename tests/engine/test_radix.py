"""The device tier by hand: ids are letters, one four-byte token each."""

from __future__ import annotations

import random

import pytest

from agentx.engine.nodes import CacheEvent, Lease
from agentx.engine.radix import RadixCache


def ids(text: str) -> bytes:
    return b"".join(letter.encode() * 4 for letter in text)


def run(cache: RadixCache, prompt: str, reply: str = "", namespace: bytes = b"") -> int:
    """One whole request; returns its hit. The reply's last token has no KV (I2)."""
    lease, hit = start(cache, prompt, namespace)
    if reply:
        lease.ids = ids(prompt + reply)
        end = len(prompt + reply) - 1
        assert cache.make_room(cache.ceil(end) - cache.ceil(lease.allocated))
        cache.extend(lease, end)
        cache.checkpoint(lease, end)
    cache.release(lease)
    return hit


def start(cache: RadixCache, prompt: str, namespace: bytes = b"") -> tuple[Lease, int]:
    match = cache.match(ids(prompt), len(prompt) - 1, namespace)
    lease, _ = cache.open(ids(prompt), namespace, match)
    assert cache.make_room(cache.ceil(len(prompt)) - match.device)
    cache.extend(lease, len(prompt))
    cache.checkpoint(lease, len(prompt))
    return lease, match.device


@pytest.mark.parametrize(
    ("page", "first", "second", "hit"),
    [
        (1, "abcdef", "abcdef", 5),  # K2: the last token is always computed
        (1, "abcdef", "abcxyz", 3),
        (1, "abcdef", "abcdefgh", 6),
        (1, "abcdef", "xbcdef", 0),
        (4, "abcdefgh", "abcdefgh", 4),  # 7 floored to a page
        (4, "abcdefgh", "abcdefghi", 8),
        (4, "abcdefgh", "abcdexxxx", 4),  # the page that differs is no hit
        (4, "abc", "abcd", 0),  # shorter than a page
    ],
)
def test_match_stops_one_token_short_and_at_a_page(page: int, first: str, second: str, hit: int) -> None:
    cache = RadixCache(64, page)
    assert run(cache, first) == 0
    assert run(cache, second) == hit
    cache.check_integrity(0)


def test_bigram_keys_lose_one_more_token() -> None:
    cache = RadixCache(64, 1, bigram=True)
    run(cache, "abcdef")
    assert run(cache, "abcdef") == 4  # K3: floor(len - 2)
    assert run(cache, "abcxyz") == 2  # the pair (c, x) is not (c, d)
    cache.check_integrity(0)


def test_namespaces_never_share() -> None:
    cache = RadixCache(64)
    run(cache, "abcdef", namespace=b"one")
    assert run(cache, "abcdef") == 0
    assert run(cache, "abcdef", namespace=b"two") == 0
    assert run(cache, "abcdef", namespace=b"one") == 5


def test_a_reply_is_cached_without_its_last_token() -> None:
    cache = RadixCache(64)
    run(cache, "abc", "defg")
    assert run(cache, "abcdefgh") == 6


def test_nothing_of_an_aborted_request_is_added() -> None:
    cache = RadixCache(64)
    lease, _ = start(cache, "abc")
    cache.extend(lease, 6)
    cache.release(lease)
    assert cache.free == 64 - 3
    assert run(cache, "abcdef") == 3


def test_a_prompt_can_be_hit_while_it_runs() -> None:
    cache = RadixCache(64)
    lease, _ = start(cache, "abcdef")
    assert start(cache, "abcdefg")[1] == 6
    cache.check_integrity(0)
    cache.release(lease)


def test_doubles_are_given_back() -> None:
    """I4: two requests compute the same prompt; the second then holds the first's pages."""
    cache = RadixCache(64)
    prompt = ids("abcdef")
    leases = [cache.open(prompt, b"", cache.match(prompt, 5))[0] for _ in range(2)]
    for lease in leases:
        cache.extend(lease, 6)
    assert cache.free == 64 - 12
    for lease in leases:
        cache.checkpoint(lease, 6)
    assert cache.free == 64 - 6
    assert leases[0].node is leases[1].node
    cache.check_integrity(0)


def test_the_least_recently_used_leaf_leaves_first_and_a_parent_after_its_last_child() -> None:
    seen: list[CacheEvent] = []
    cache = RadixCache(20, subscriber=seen.append)
    run(cache, "abcdef")  # splits into abc + def, abc + xyz
    run(cache, "abcxyz")
    run(cache, "mnop")
    run(cache, "abcdef")  # refreshes abc and def: xyz is the oldest leaf now
    assert cache.make_room(11)
    assert [event.key for event in seen if event.kind == "evict"] == [ids("xyz"), ids("mnop")]
    assert cache.make_room(20)
    assert [event.key for event in seen if event.kind == "evict"][2:] == [ids("f"), ids("de"), ids("abc")]


def test_what_is_locked_stays() -> None:
    cache = RadixCache(12)
    lease, _ = start(cache, "abcdef")
    run(cache, "mnop")
    assert not cache.make_room(10)
    assert cache.free == 6
    cache.release(lease)
    assert cache.make_room(12)


def test_the_reply_can_leave_without_the_prompt() -> None:
    """I5: prompt and reply are nodes of their own even if the prompt was never inserted alone."""
    cache = RadixCache(64)
    prompt = ids("abcd")
    lease, _ = cache.open(prompt, b"", cache.match(prompt, 3))
    cache.extend(lease, 8)
    lease.ids = ids("abcdefgh")
    cache.checkpoint(lease, 8)
    cache.release(lease)
    assert [node.units for node in cache.root.children.values()] == [4]
    assert cache.make_room(60)
    assert run(cache, "abcdefgh") == 4


def test_hits_decide_before_recency_under_lfu() -> None:
    cache = RadixCache(12, policy="lfu")
    run(cache, "abc")
    run(cache, "abc")  # counted again
    run(cache, "xyz")
    assert cache.make_room(9)
    assert run(cache, "abcm") == 3


def test_events_name_nodes_and_places() -> None:
    seen: list[CacheEvent] = []
    cache = RadixCache(64, subscriber=seen.append)
    run(cache, "abcdef")
    run(cache, "abcxyz")
    assert [(e.kind, e.start, e.tokens, e.cause) for e in seen] == [
        ("store", 0, 6, "insert"),
        ("split", 3, 3, "read"),
        ("store", 3, 3, "insert"),
    ]


@pytest.mark.parametrize(("page", "policy", "bigram"), [(1, "lru", False), (4, "slru", False), (2, "fifo", True)])
def test_the_books_balance_through_random_traffic(page: int, policy: str, bigram: bool) -> None:
    rng = random.Random(page)
    cache = RadixCache(160, page, policy, bigram=bigram)
    open_leases: list[Lease] = []
    for _ in range(400):
        prompt = "".join(rng.choice("ab") for _ in range(rng.randrange(1, 24)))
        match = cache.match(ids(prompt), len(prompt) - 1)
        lease, _ = cache.open(ids(prompt), b"", match)
        cache.make_room(len(prompt) - match.device + page)
        cache.extend(lease, len(prompt))
        cache.checkpoint(lease, len(prompt))
        open_leases.append(lease)
        if len(open_leases) > 3:
            cache.release(open_leases.pop(rng.randrange(4)))
        cache.check_integrity(sum(cache.ceil(lease.allocated) - lease.protected for lease in open_leases))


def test_an_allocation_without_room_is_refused() -> None:
    cache = RadixCache(4)
    lease, _ = cache.open(ids("abcdef"), b"", cache.match(ids("abcdef"), 5))
    with pytest.raises(RuntimeError, match="6 tokens wanted, 4 free"):
        cache.extend(lease, 6)
