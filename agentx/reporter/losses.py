"""Where the reuse between the ideal and the observed was lost, token by token, in sums that are exact.

Of each answered request that told its cached tokens, the tokens between what it got and its ideal are labelled: *in
flight* if they were first computed only after it was sent; else *evicted* if a shadow of the server's cache (the
embedded engine's rules, the server's pool) no longer held them; else *unexplained*. More than the ideal is a surplus,
which counts against the losses and is never clipped. Without a known pool nothing can be called evicted.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agentx.core import Attempt
from agentx.errors import BadInput
from agentx.reporter.metrics import Metrics
from agentx.reporter.observed import Ideal
from agentx.reporter.table import Block, Heading, Lines, Table
from agentx.reporter.throughput import MEASURED, cached_tokens
from agentx.results import RunResults

LIMIT, TURNS = 200_000_000, 8_000  # prompt tokens and requests that the shadow plays: some 15 s; beyond, it is left out
MODELLED = "modelled by a shadow cache of the server's pool with the embedded engine's rules"


@dataclass(frozen=True, slots=True)
class Losses:
    """Tokens, over the same responses as `missing_to_ideal`. `evicted` None: the pool is not known.

    `surplus` is not above 0. `missing` says why there is no split at all; the others are None then.
    """

    in_flight: int | None = None
    evicted: int | None = None
    unexplained: int | None = None
    surplus: int | None = None
    missing: str | None = None

    @property
    def total(self) -> int | None:
        """Ideal less observed tokens."""
        parts = (self.in_flight, self.evicted or 0, self.unexplained, self.surplus)
        known = [part for part in parts if part is not None]
        return sum(known) if len(known) == len(parts) else None


def label(ideal: int, cached: int, computed: int, held: int | None) -> tuple[int, int, int, int]:
    """One request: (in flight, evicted, unexplained, surplus), which sum to `ideal - cached`.

    `computed`: its leading tokens that had been computed when it was sent; `held`: those that the shadow still held,
    None without a shadow. A later token is never computed, nor held, before an earlier one of the same prompt.
    """
    if cached >= ideal:
        return 0, 0, 0, ideal - cached
    known = min(ideal, max(cached, computed))
    kept = known if held is None else min(known, max(cached, held))
    return ideal - known, known - kept, kept - cached, 0


def losses_of(run: RunResults, metrics: Metrics) -> Losses:
    """Recomputes what was sent a second time, into the shadow."""
    reuse = metrics.reuse
    if reuse.ideal is None:
        return Losses(missing=reuse.ideal_missing)
    if reuse.missing_to_ideal is None:
        return Losses(missing="the observed reuse is not known")
    history = (run.settings.get("plan") or {}).get("history", "recorded")
    if history != "recorded":
        return Losses(missing=f"with {history} history the shadow cache does not know the replies")
    by_attempt = reuse.ideal.by_attempt
    sent = [attempt for attempt in run.attempts if _key(attempt) in by_attempt]
    if len(sent) > TURNS or sum(attempt.prompt_tokens or attempt.isl for attempt in sent) > LIMIT:
        return Losses(
            missing=f"more than {TURNS} requests or {LIMIT // 10**6} million prompt tokens: it takes too long"
        )
    try:
        return _split(run, sent, reuse.ideal)
    except (BadInput, OSError, KeyError) as error:
        return Losses(missing=f"the prompts cannot be recomputed: {type(error).__name__}")


def _key(attempt: Attempt) -> tuple[str, int, int, int]:
    return attempt.session, attempt.play, attempt.turn, attempt.attempt


def _split(run: RunResults, sent: list[Attempt], ideal: Ideal) -> Losses:
    from agentx.reporter.losses_shadow import Pool, Shadow, StandIns, requests_of  # numpy: only when it is wanted
    from agentx.trace import read_trace
    from agentx.wire.salting import namespace, salting

    wanted = {attempt.session for attempt in sent}
    sessions = {session.key: session for session in read_trace(run.trace_path) if session.key in wanted}
    policy, salt = run.settings["plan"]["salt"], run.settings["salt"]
    salts = {
        (name, play): (salting(policy, salt, name, play), namespace(policy, salt, name, play).encode())
        for name, play in {(attempt.session, attempt.play) for attempt in sent}
    }
    facts = pool_facts(run)
    stand_ins = StandIns(ideal.template, run.settings["plan"].get("messages", "plain"))
    shadow = Shadow(ideal.page, None if facts is None else Pool(**facts, page=ideal.page))
    found = shadow.play(requests_of(sent, sessions, stand_ins, salts), stand_ins)
    sums = [0, 0, 0, 0]
    for attempt, each in zip(sent, found, strict=True):
        cached = cached_tokens(attempt)
        if attempt.phase != MEASURED or not attempt.ok or attempt.prompt_tokens is None or cached is None:
            continue
        for at, part in enumerate(label(ideal.by_attempt[_key(attempt)], cached, each.computed, each.held)):
            sums[at] += part
    return Losses(sums[0], None if facts is None else sums[1], sums[2], sums[3])


def pool_facts(run: RunResults) -> dict[str, Any] | None:
    """What the run says of the server's pool, by the fields of the shadow's; None: its size is not known.

    Also None for rules that the shadow does not have.
    """
    server = run.settings.get("server") or {}
    target = run.settings.get("target") or {}
    cache = target.get("cache") or {}
    host = cache.get("host") or {}
    tokens = server.get("max_total_num_tokens", cache.get("pool"))
    policy = server.get("radix_eviction_policy", cache.get("policy", "lru"))
    write = server.get("hicache_write_policy", host.get("write", "write_through"))
    tiered = bool(server.get("enable_hierarchical_cache", host.get("tokens")))
    held = host.get("tokens") or _host_gauge(run)
    if not isinstance(tokens, int) or policy not in ("lru", "lfu", "slru", "fifo") or (tiered and not held):
        return None
    eagle = str(server.get("speculative_algorithm") or "").upper().startswith("EAGLE")
    return {
        "tokens": tokens,
        "policy": policy,
        "host": held if tiered and held else 0,
        "write": write,
        "bigram": bool(cache.get("bigram", eagle)),
    }


def _host_gauge(run: RunResults) -> int | None:
    """Tokens of the host tier as the server's counters show them."""
    for sample in reversed(run.samples):
        gauges: Mapping[str, float] = sample.extra.get("gauges") or {}
        if gauges.get("host_total"):
            return round(gauges["host_total"])
    return None


def losses_document(found: Losses) -> dict[str, Any]:
    """Plain values only."""
    return {
        "in_flight_tokens": found.in_flight,
        "evicted_tokens": found.evicted,
        "evicted_source": None if found.evicted is None else MODELLED,
        "unexplained_tokens": found.unexplained,
        "surplus_tokens": found.surplus,
        "sum_tokens": found.total,
        "split_missing_because": found.missing,
    }


def losses_blocks(found: Losses) -> list[Block]:
    """Nothing where there is no ideal to lose from."""
    if found.total is None:
        return []

    def row(name: str, value: int | None) -> tuple[str, str]:
        return name, "unknown" if value is None else f"{value:,d}"

    rows = (
        row("in flight: first computed after this request was sent", found.in_flight),
        row("evicted, modelled", found.evicted),
        row("unexplained", found.unexplained),
        row("surplus above the ideal", found.surplus),
        row("ideal less observed", found.total),
    )
    unknown = "The pool is not known: nothing is called evicted."
    note = unknown if found.evicted is None else f"Evicted is {MODELLED}."
    return [Heading("Reuse that was lost, by cause"), Table(("", "tokens"), rows), Lines((note,))]
