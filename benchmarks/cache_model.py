"""Prompt tokens per second through the cache model: match, insert and finish of agent traffic, on one core.

    python benchmarks/cache_model.py [HARNESS_DIR]

Sessions take turns; each prompt is the one before, the reply and some 500 new tokens, from 20k to 100k tokens, under
one shared prefix. Two baselines: a bare pass (one comparison of each prompt with the session's last, which is the
least that any exact cache has to do) and, with HARNESS_DIR and a Python that has SGLang 0.5.23 (see
benchmarks/fidelity), SGLang's own classes on the first part of the same traffic.
"""

from __future__ import annotations

import argparse
import gc
import pathlib
import random
import sys
import time
from array import array
from collections.abc import Callable, Iterator

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

from agentx.engine.host import HostedCache
from agentx.engine.nodes import ID_BYTES
from agentx.engine.radix import RadixCache

SESSIONS, FIRST, LAST, TURN, REPLY = 12, 20_000, 100_000, 500, 200


def traffic() -> Iterator[tuple[int, bytes, bytes]]:
    """(session, prompt, reply) of every turn, the sessions in random order."""
    rng = random.Random(7)
    shared = rng.randbytes(8000 * ID_BYTES)
    contexts = [shared + rng.randbytes((FIRST - 8000) * ID_BYTES) for _ in range(SESSIONS)]
    open_sessions = list(range(SESSIONS))
    while open_sessions:
        session = rng.choice(open_sessions)
        reply = rng.randbytes(REPLY * ID_BYTES)
        yield session, contexts[session], reply
        contexts[session] += reply + rng.randbytes(rng.randrange(1, 2 * TURN) * ID_BYTES)
        if len(contexts[session]) > LAST * ID_BYTES:
            open_sessions.remove(session)


def play(cache: RadixCache, turns: list[tuple[int, bytes, bytes]]) -> int:
    """All turns through the cache; returns the hit tokens."""
    hits = 0
    for _, prompt, reply in turns:
        tokens = len(prompt) // ID_BYTES
        match = cache.match(prompt, tokens - 1)
        lease, loaded = cache.open(prompt, b"", match)
        hits += match.device + loaded
        cache.make_room(tokens - match.device - loaded + cache.page)
        cache.extend(lease, tokens)
        cache.checkpoint(lease, tokens)
        end = tokens + len(reply) // ID_BYTES - 1
        cache.make_room(end - tokens + cache.page)
        cache.extend(lease, end)
        lease.ids = prompt + reply
        cache.checkpoint(lease, end)
        cache.release(lease)
        cache.settle()
    return hits


def bare(turns: list[tuple[int, bytes, bytes]]) -> int:
    last: dict[int, bytes] = {}
    return sum(prompt.startswith(last.get(s, b"")) and not last.update({s: prompt}) for s, prompt, _ in turns)  # type: ignore[func-returns-value]


def timed(work: Callable[[], int]) -> tuple[float, int]:
    gc.collect()
    gc.disable()  # SGLang's classes leave millions of objects to walk over
    started = time.thread_time()
    result = work()
    seconds = time.thread_time() - started
    gc.enable()
    return seconds, result


def sglang(harness: str, turns: list[tuple[int, bytes, bytes]], page: int, pool: int) -> tuple[float, int]:
    sys.path.insert(0, harness)
    from sgl_cache_harness import Req, SglCache  # type: ignore[import-not-found]

    cache = SglCache(pool, page, "rust", max_ctx=LAST + 8192)
    work = [array("I", prompt).tolist() for _, prompt, _ in turns]

    def run() -> int:
        hits = 0
        for number, prompt in enumerate(work):
            request = Req(str(number), prompt)
            device, _, _ = cache.prefill(request)
            hits += device
            cache.finish(request)  # the reply's decode steps are left out: they would cost SGLang's classes more
        return hits

    return timed(run)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("harness", nargs="?")
    args = parser.parse_args()
    turns = list(traffic())
    tokens = sum(len(prompt) for _, prompt, _ in turns) // ID_BYTES
    print(f"{len(turns)} turns, {tokens / 1e6:.1f} M prompt tokens, {SESSIONS} sessions")
    base, _ = timed(lambda: bare(turns))
    print(f"{'bare pass':34} {tokens / base / 1e6:8.0f} M tokens/s")
    for page in (1, 64):
        for name, cache in (
            ("all fits", RadixCache(2**21, page)),
            ("half fits", RadixCache(600_000 // page * page, page)),
            ("half fits, host takes all", HostedCache(600_000 // page * page, page, host_capacity=2**21)),
        ):
            seconds, hits = timed(lambda cache=cache: play(cache, turns))  # type: ignore[misc]
            rate = tokens / seconds / 1e6
            print(
                f"page {page:2}, {name:25} {rate:8.0f} M tokens/s, {seconds / base:5.1f}x bare, hit {hits / tokens:.3f}"
            )
        if args.harness:
            some = turns[:200]
            count = sum(len(prompt) for _, prompt, _ in some) // ID_BYTES
            ours, _ = timed(lambda: play(RadixCache(2**21, page), some))  # noqa: B023
            theirs, _ = sglang(args.harness, some, page, 2**21)
            shown = f"{count / theirs / 1e6:8.1f} M tokens/s: ours {theirs / ours:.0f}x"
            print(f"page {page:2}, SGLang's classes, first 200   {shown}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
