"""The embedded engine's own cache at some capacities, over a trace: what whole nodes that leave cost, beside page-LRU.

The cache alone, without timing: requests come one after another in the order of `interleaving.py`, each is matched,
admitted, inserted with its reply and over before the next one. A prompt that does not fit is not served at all. Tokens
are stand-ins by their identities (`losses_shadow.py`), so prompts and replies share what they share in the trace;
tokens of a prompt that belong to no piece take room behind its reply, and are never found.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from agentx.capacity import Curve
from agentx.core import Session
from agentx.engine.radix import RadixCache
from agentx.reporter.interleaving import interleaved
from agentx.reporter.losses_shadow import StandIns
from agentx.reuse import unsalted
from agentx.reuse_template import PLAIN
from agentx.trace import read_trace

POINTS = 8
ENOUGH = 500_000_000  # prompt tokens that take some ten seconds


def capacities(curve: Curve, least: int = 1) -> tuple[int, ...]:
    """Eight sizes at equal ratios, from the longest prompt with its reply (or `least`) to all distinct tokens; fewer
    where near."""
    low = max(least, curve.longest) + curve.page
    high = max(low, curve.held)
    steps = {round(low * (high / low) ** (step / (POINTS - 1))) for step in range(POINTS)}
    return tuple(sorted({-(-size // curve.page) * curve.page for size in steps}))


def engine_reuse(path: Path | str, sizes: Sequence[int], page: int = 1, at_once: int | None = None) -> tuple[int, ...]:
    """Prompt tokens that a pool of each size, in tokens, gives again."""
    caches = [RadixCache(size, page) for size in sizes]
    reused = [0] * len(caches)
    ids = _Ids()
    for number, (session, turn, _) in enumerate(interleaved(read_trace(path), at_once)):
        prompt = ids.prompt(session, turn, unsalted)
        nameless = max(0, session.turns[turn].isl - len(prompt) // 4)
        more = ids.reply(session, turn, number) + ids.stretch(("nameless", number), 0, nameless)
        limit = len(prompt) // 4 - (not nameless)  # the last token of a prompt is always computed
        namespace = (session.turns[turn].model or "").encode()
        for place, cache in enumerate(caches):
            reused[place] += _serve(cache, prompt, more, limit, namespace)
    return tuple(reused)


def _serve(cache: RadixCache, prompt: bytes, more: bytes, limit: int, namespace: bytes) -> int:
    """What the cache gives for a prompt; then it holds the prompt and what comes behind it, as far as there is room."""
    length, whole = len(prompt) // 4, (len(prompt) + len(more)) // 4
    match = cache.match(prompt, limit, namespace)
    lease, _ = cache.open(prompt, namespace, match)
    if cache.make_room(cache.ceil(length) - cache.ceil(lease.allocated)):
        cache.extend(lease, length)
        cache.checkpoint(lease, length)
        if cache.make_room(cache.ceil(whole) - cache.ceil(length)):
            lease.ids += more
            cache.extend(lease, whole)
            cache.checkpoint(lease, whole)
    cache.release(lease)
    return match.device


class _Ids(StandIns):
    """Stand-ins for whole traces: stretches that occur again are kept, a reply that nobody knows is like no other."""

    def __init__(self) -> None:
        super().__init__(PLAIN)
        self.stretch = lru_cache(4096)(super().stretch)  # type: ignore[method-assign]

    def reply(self, session: Session, turn: int, number: int) -> bytes:
        runs = session.reply_runs(turn)
        parts = [self.stretch((run.stream, ""), run.start, run.stop) for run in runs]
        rest = session.turns[turn].output.tokens - sum(run.stop - run.start for run in runs)
        return b"".join([*parts, self.stretch(("reply", number), 0, max(0, rest))])
