"""How much of a run's prompts a cache of each size could have given, with the size that the run had marked.

*Page-LRU* is the ideal of this run at each size, an upper curve. Beside it the embedded engine's cache at eight sizes:
the run's own requests, at their own times, through a pool of that size (as in `losses_shadow.py`); only sizes that hold
what ran at one time, since a smaller pool would have made requests wait, and so another run. A host tier counts as what
it adds: about the larger of the two under write_through, their sum under write_back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentx.capacity import Curve
from agentx.core import Attempt
from agentx.errors import BadInput
from agentx.reporter.capacity_engine import capacities
from agentx.reporter.capacity_text import Memory
from agentx.reporter.losses import Losses, pool_facts, resent
from agentx.reporter.observed import Ideal
from agentx.reporter.table import Block, Heading, Lines, Table
from agentx.results import RunResults

ENOUGH = 20_000_000  # prompt tokens that eight shadows may play: some ten seconds
REACH = (0.5, 0.8, 0.9, 0.95, 0.99)  # of the ideal


@dataclass(frozen=True, slots=True)
class RunCapacity:
    """`curve` None: there is no ideal. `device`, `host` tokens and the host's `write` policy: None where not known.

    `engine`: (tokens of the pool, reuse); empty where it was not played.
    """

    curve: Curve | None = None
    device: int | None = None
    host: int | None = None
    write: str | None = None
    memory: Memory | None = None
    engine: tuple[tuple[int, float], ...] = ()

    @property
    def usable(self) -> int | None:
        """Tokens that device and host hold together."""
        if self.device is None or self.host is None:
            return None
        return self.device + self.host if self.write == "write_back" else max(self.device, self.host)


def run_capacity(run: RunResults, ideal: Ideal | None, losses: Losses) -> RunCapacity:
    """Of the run's ideal; the engine's sizes where the shadow could be played and the prompts are not too many."""
    if ideal is None or not ideal.curve.possible:
        return RunCapacity()
    facts = pool_facts(run) or {}
    target = run.settings.get("target") or {}
    cache = target.get("cache") or {}
    per_token = cache.get("bytes_per_token") or target.get("bytes_per_token")
    ranks = target.get("ranks") or (run.settings.get("server") or {}).get("tp_size") or target.get("gpus") or 1
    return RunCapacity(
        ideal.curve,
        facts.get("tokens"),
        facts.get("host"),
        facts.get("write") if facts.get("host") else None,
        Memory(per_token, ranks) if isinstance(per_token, int) and isinstance(ranks, int) else None,
        _engine(run, losses.sent, ideal, facts),
    )


def _engine(
    run: RunResults, sent: Sequence[Attempt], ideal: Ideal, facts: Mapping[str, Any]
) -> tuple[tuple[int, float], ...]:
    prompts = sum(attempt.prompt_tokens or attempt.isl for attempt in sent)
    if not sent or not prompts or prompts > ENOUGH or run.addresses > 1:
        return ()
    from agentx.reporter.losses_shadow import NO_LIMITS, Pool, Shadow  # numpy: only when it is wanted

    try:
        requests, stand_ins = resent(run, sent, ideal, keep=True)  # ENOUGH tokens of four bytes each
    except (BadInput, OSError, KeyError):
        return ()
    points = []
    for size in capacities(ideal.curve, _at_one_time(sent)):
        pool = Pool(size, ideal.page, limits=facts.get("limits", NO_LIMITS))
        found = Shadow(ideal.page, pool, pool_alone=True).play(requests, stand_ins)
        given = sum(
            min(each.given or 0, (one.prompt_tokens or one.isl) - 1) for one, each in zip(sent, found, strict=True)
        )
        points.append((size, given / prompts))
    return tuple(points)


def _at_one_time(sent: Sequence[Attempt]) -> int:
    """The most tokens that the requests which ran at one time had between them."""
    moments: list[tuple[float, int]] = []
    for one in sent:
        end = one.end or one.last
        if end is not None:
            tokens = (one.prompt_tokens or one.isl) + (one.completion_tokens or one.osl)
            moments += [(one.sent + (one.queue_seconds or 0.0), tokens), (end, -tokens)]
    most = now = 0
    for _, tokens in sorted(moments):
        now += tokens
        most = max(most, now)
    return most


def run_capacity_document(found: RunCapacity) -> dict[str, Any] | None:
    """None where there is no curve."""
    curve = found.curve
    if curve is None or curve.possible is None:
        return None
    return {
        "device_tokens": found.device,
        "host_tokens": found.host,
        "usable_tokens": found.usable,
        "gb_per_token": None if found.memory is None else found.memory.per_token * found.memory.ranks / 1e9,
        "page": curve.page,
        "ideal": curve.possible,
        "longest_context": curve.longest,
        "distinct_tokens": curve.held,
        "page_lru_at_usable": None if found.usable is None else curve.share(found.usable),
        "needed": {f"{part:g}_of_ideal": curve.needed(part * curve.possible) for part in REACH},
        "page_lru": [{"tokens": size, "reuse": curve.share(size)} for size in curve.capacities[::16]],
        "engine": [{"tokens": size, "reuse": share} for size, share in found.engine],
    }


def run_capacity_blocks(found: RunCapacity) -> list[Block]:
    curve = found.curve
    if curve is None or not curve.possible:
        return []
    rows = []
    for part in REACH:
        needed = curve.needed(part * curve.possible)
        if needed is not None:
            rows.append(_row(f"{part:.0%} of the ideal needs", needed, part * curve.possible, found.memory))
    if found.usable is not None:
        rows.append(_row("the run had", found.usable, curve.share(found.usable), found.memory))
    columns = ("", "tokens", "reuse", *(("memory",) if found.memory else ()))
    blocks: list[Block] = [
        Heading("Reuse by the size of the cache: page-LRU, an upper curve"),
        Table(columns, tuple(rows)),
    ]
    if found.engine:
        told = ", ".join(f"{size:,}: {share * 100:.1f} %" for size, share in found.engine)
        blocks.append(Lines((f"The embedded engine's cache at these sizes: {told}.",)))
    return blocks


def _row(what: str, tokens: int, share: float | None, memory: Memory | None) -> tuple[str, ...]:
    told = "unknown" if share is None else f"{share * 100:.1f} %"
    return (what, f"{tokens:,}", told, *((memory.told(tokens),) if memory else ()))
