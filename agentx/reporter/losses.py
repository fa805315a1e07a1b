"""Where the reuse between the ideal and the observed was lost, token by token, in sums that are exact.

Of each answered request that told its cached tokens, the tokens between what it got and its ideal are labelled, each
once: *in flight* if they were first computed only after it was sent; else *evicted*, *not backed up* or *host dropped*
if no tier held them any more, *load-back refused* if the host tier did and they were not loaded; else *unexplained*.
More than the ideal is a surplus, which counts against the losses and is never clipped.

What a tier held is *measured* where the server's KV events tell it whole (losses_measured.py); else it is *modelled* by
a shadow of the server's cache (the embedded engine's rules, the server's pool), of the whole run: never some of each.
Without either nothing can be called evicted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from agentx.core import Attempt
from agentx.errors import BadInput
from agentx.reporter.metrics import Metrics
from agentx.reporter.observed import Ideal
from agentx.reporter.table import Block, Heading, Lines, Table
from agentx.reporter.throughput import MEASURED, cached_tokens
from agentx.results import AttemptKey, RunResults, key_of

if TYPE_CHECKING:
    from agentx.reporter.block_removers import Prompt
    from agentx.reporter.losses_graves import Grave
    from agentx.reporter.losses_serving import Limits
    from agentx.reporter.losses_shadow import Found, Pool, Request, StandIns
    from agentx.reuse_template import Template
    from agentx.wire.messages import Shape


NOT_BACKED_UP, HOST_DROPPED = "not_backed_up", "host_dropped"  # causes of graves
LIMIT, TURNS = 200_000_000, 8_000  # prompt tokens and requests that the shadow plays: some 15 s; beyond, it is left out
BY_EVENTS = "by the server's KV events, block by block"
MODELLED = "by a shadow cache of the server's pool with the embedded engine's rules"


@dataclass(frozen=True, slots=True)
class TurnLoss:
    """What one request lost, tokens by cause, which sum to its ideal less what it got. `surplus` is not above 0.

    The four that a shadow tells are None without one. `graves`: when the evicted ones were removed, and for whom, as
    far as it is known; `by` in them is a place in the run's list of requests that have an ideal.
    """

    attempt: Attempt
    in_flight: int
    evicted: int | None
    not_backed_up: int | None
    host_dropped: int | None
    load_back_refused: int | None
    unexplained: int
    surplus: int
    graves: tuple[Grave, ...] = ()

    @property
    def total(self) -> int:
        return sum(getattr(self, name) or 0 for name in CAUSES)


CAUSES = (
    "in_flight",
    "evicted",
    "not_backed_up",
    "host_dropped",
    "load_back_refused",
    "unexplained",
    "surplus",
)


@dataclass(frozen=True, slots=True)
class Losses:
    """By request, over the same responses as `missing_to_ideal`. `missing` says why there is no split at all.

    `sent`: the requests that have an ideal, in the order of the run's records.
    """

    turns: tuple[TurnLoss, ...] = ()
    sent: tuple[Attempt, ...] = ()
    shadowed: bool = False  # the pool is known
    missing: str | None = None
    measured: bool = False  # by the server's KV events
    unmeasured: str | None = None  # why not, where some were recorded
    prompts: Sequence[Prompt] = field(default=(), repr=False)  # of `sent`, with their blocks, where it is measured

    @property
    def source(self) -> str | None:
        """How the evicted are known: measured or modelled; None: they are not."""
        return "measured" if self.measured else "modelled" if self.shadowed else None

    def over(self, turns: Set[tuple[str, int, int]]) -> Losses:
        """Of these turns alone, each (session, play, turn)."""
        kept = [one for one in self.turns if (one.attempt.session, one.attempt.play, one.attempt.turn) in turns]
        return replace(self, turns=tuple(kept))

    def of(self, cause: str) -> int | None:
        """Tokens of one of CAUSES; None when it is not known."""
        parts = [getattr(turn, cause) for turn in self.turns]
        shadow = cause in CAUSES[1:5]
        return None if self.missing is not None or (shadow and self.source is None) else sum(parts)

    @property
    def total(self) -> int | None:
        """Ideal less observed tokens."""
        return None if self.missing is not None else sum(turn.total for turn in self.turns)


def label(ideal: int, cached: int, found: Found) -> tuple[int, int, int, int, int]:
    """One request: (in flight, gone, load-back refused, unexplained, surplus), which sum to `ideal - cached`.

    A later token is never computed, held, nor given, before an earlier one of the same prompt.
    """
    if cached >= ideal:
        return 0, 0, 0, 0, ideal - cached
    known = min(ideal, max(cached, found.computed))
    held = known if found.held is None else min(known, max(cached, found.held))
    given = held if found.given is None else min(held, max(cached, found.given))
    return ideal - known, known - held, held - given, given - cached, 0


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
    sent = [attempt for attempt in run.attempts if key_of(attempt) in by_attempt]
    if len(sent) > TURNS or sum(attempt.prompt_tokens or attempt.isl for attempt in sent) > LIMIT:
        return Losses(
            missing=f"more than {TURNS} requests or {LIMIT // 10**6} million prompt tokens: it takes too long"
        )
    try:
        return _split(run, sent, reuse.ideal)
    except (BadInput, OSError, KeyError) as error:
        return Losses(missing=f"the prompts cannot be recomputed: {type(error).__name__}")


def _split(run: RunResults, sent: list[Attempt], ideal: Ideal) -> Losses:
    from agentx.reporter.losses_shadow import Pool  # numpy: only when it is wanted

    facts = pool_facts(run)
    prompts, found, unmeasured = _measured(run, sent, ideal)
    measured = bool(prompts)
    if not measured:
        found = shadowed(run, sent, ideal, None if facts is None else Pool(**facts, page=ideal.page))
    turns = []
    for attempt in sent:
        cached = cached_tokens(attempt)
        if attempt.phase == MEASURED and attempt.ok and attempt.prompt_tokens is not None and cached is not None:
            turns.append(_turn_loss(attempt, ideal.by_attempt[key_of(attempt)], cached, found[key_of(attempt)]))
    return Losses(tuple(turns), tuple(sent), facts is not None, None, measured, unmeasured, prompts)


def _measured(
    run: RunResults, sent: Sequence[Attempt], ideal: Ideal
) -> tuple[Sequence[Prompt], Mapping[AttemptKey, Found], str | None]:
    """By the server's KV events; or nothing, and why they cannot be used where there are any."""
    from agentx.reporter.learnt_template import ChatIds, real_ids
    from agentx.reporter.losses_measured import blocks_by_server, measure_losses, prompts_of, recorded
    from agentx.reporter.sent_ids import Unknowable

    if not recorded(run):
        return (), {}, None
    try:
        servers = blocks_by_server(run)
        requests, made = resent(run, sent, ideal, prompts=real_ids(run))
        prompts = prompts_of(run, requests, servers, learns=isinstance(made, ChatIds))
        found = measure_losses(prompts, [ideal.by_attempt[key_of(attempt)] for attempt in sent])
    except Unknowable as error:
        return (), {}, str(error)
    return prompts, {key_of(sent[place]): one for place, one in found.items()}, None


def shadowed(run: RunResults, sent: Sequence[Attempt], ideal: Ideal, pool: Pool | None) -> dict[AttemptKey, Found]:
    """What each of the requests `sent` finds in a shadow of this pool, each server's in one of its own.

    Raises what reading the trace raises.
    """
    from agentx.reporter.losses_shadow import Shadow

    requests, stand_ins = resent(run, sent, ideal)
    found: dict[AttemptKey, Found] = {}
    for server in range(run.addresses):
        places = [place for place, attempt in enumerate(sent) if run.server_of(attempt.lane) == server]
        seen = Shadow(ideal.page, pool).play([requests[place] for place in places], stand_ins)
        for place, each in zip(places, seen, strict=True):
            each.lost = tuple(grave._replace(by=places[grave.by or 0]) for grave in each.lost)
            found[key_of(sent[place])] = each
    return found


def resent(
    run: RunResults,
    sent: Sequence[Attempt],
    ideal: Ideal,
    *,
    keep: bool = False,
    prompts: Callable[[Template, Shape], StandIns] | None = None,
) -> tuple[list[Request], StandIns]:
    """The requests `sent` as a shadow wants them; with `keep` their prompts are made once, and held.

    `prompts` make other ids than stand-ins. Raises what reading the trace raises.
    """
    from agentx.reporter.losses_shadow import StandIns, requests_of
    from agentx.run_reuse import as_played
    from agentx.trace import read_trace
    from agentx.wire.salting import namespace, salting

    wanted = {attempt.session for attempt in sent}
    traced = {session.key: session for session in read_trace(run.trace_path) if session.key in wanted}
    sessions = as_played(run, traced)
    policy, salt = run.settings["plan"]["salt"], run.settings["salt"]
    salts = {
        (name, play): (salting(policy, salt, name, play), namespace(policy, salt, name, play).encode())
        for name, play in {(attempt.session, attempt.play) for attempt in sent}
    }
    stand_ins = (prompts or StandIns)(ideal.template, run.settings["plan"].get("messages", "plain"))
    return requests_of(sent, sessions, stand_ins, salts, keep=keep), stand_ins


def _turn_loss(attempt: Attempt, ideal: int, cached: int, found: Found) -> TurnLoss:
    in_flight, gone, refused, unexplained, surplus = label(ideal, cached, found)
    if found.held is None:
        return TurnLoss(attempt, in_flight, None, None, None, None, unexplained, surplus)
    graves = _cut(found.lost, gone)
    unbacked, dropped = (
        sum(one.tokens for one in graves if one.cause == cause) for cause in (NOT_BACKED_UP, HOST_DROPPED)
    )
    evicted = gone - unbacked - dropped
    return TurnLoss(attempt, in_flight, evicted, unbacked, dropped, refused, unexplained, surplus, graves)


def _cut(graves: Sequence[Grave], tokens: int) -> tuple[Grave, ...]:
    """The first ones, of `tokens` in all."""
    kept = []
    for grave in graves:
        if tokens <= 0:
            break
        kept.append(grave._replace(tokens=min(grave.tokens, tokens)))
        tokens -= grave.tokens
    return tuple(kept)


def pool_facts(run: RunResults) -> dict[str, Any] | None:
    """What the run says of the server's pool, by the fields of the shadow's; None: its size is not known.

    Also None for rules that the shadow does not have, for servers that differ in it, and behind a router, which alone
    knows who had which turn.
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
    several = run.settings.get("servers") or {}
    pools = {told.get("max_total_num_tokens") for told in several.values() if isinstance(told, Mapping)}
    if several and (run.addresses == 1 or len(pools) > 1 or tiered):
        return None
    if not isinstance(tokens, int) or policy not in ("lru", "lfu", "slru", "fifo") or (tiered and not held):
        return None
    eagle = str(server.get("speculative_algorithm") or "").upper().startswith("EAGLE")
    return {
        "tokens": tokens,
        "policy": policy,
        "host": held if tiered and held else 0,
        "write": write,
        "bigram": bool(cache.get("bigram", eagle)),
        "limits": _limits(server),
    }


def _limits(server: Mapping[str, Any]) -> Limits:
    """Of the server's batches; what it does not tell is SGLang's default, or no limit."""
    from agentx.engine.settings import ahead
    from agentx.reporter.losses_serving import Limits

    told = {
        "chunk": server.get("chunked_prefill_size"),
        "inputs": server.get("max_prefill_tokens"),
        "running": server.get("max_running_requests"),
    }
    limits = Limits(**{name: value for name, value in told.items() if isinstance(value, int) and value > 0})
    if not server.get("speculative_algorithm"):
        return limits
    steps, drafts = server.get("speculative_num_steps"), server.get("speculative_num_draft_tokens")
    return replace(limits, ahead=ahead(steps or 0, drafts or 0))


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
        **{f"{cause}_tokens": found.of(cause) for cause in CAUSES},
        "evicted_source": found.source,
        "evicted_source_text": source_text(found),
        "not_measured_because": found.unmeasured,
        "sum_tokens": found.total,
        "split_missing_because": found.missing,
    }


CAUSE_WORDS = {
    "in_flight": "in flight: first computed after this request was sent",
    "evicted": "evicted",
    "not_backed_up": "evicted without a copy on the host",
    "host_dropped": "dropped from the host",
    "load_back_refused": "on the host and not loaded back",
    "unexplained": "unexplained",
    "surplus": "surplus above the ideal",
}
CAUSE_NAMES = {
    "in_flight": "in flight at the time",
    "evicted": "evicted",
    "not_backed_up": "evicted without a host copy",
    "host_dropped": "dropped from the host",
    "load_back_refused": "not loaded back",
    "unexplained": "unexplained",
    "surplus": "surplus above the ideal",
}
OF_A_HOST = ("not_backed_up", "host_dropped", "load_back_refused")
_BY_A_TIER = ("evicted", *OF_A_HOST)


def cause_words(cause: str, source: str | None) -> str:
    """One of CAUSES in a sentence, and how it is known where that can differ."""
    known = f", {source}" if cause in _BY_A_TIER and source else ""
    return f"{CAUSE_WORDS[cause]}{known}"


def cause_name(cause: str, source: str | None) -> str:
    """The same in few words."""
    known = f" ({source})" if cause in _BY_A_TIER and source else ""
    return f"{CAUSE_NAMES[cause]}{known}"


def losses_blocks(found: Losses) -> list[Block]:
    """Nothing where there is no ideal to lose from."""
    if found.total is None:
        return []

    def row(name: str, value: int | None) -> tuple[str, str]:
        return name, "unknown" if value is None else f"{value:,d}"

    shown = [cause for cause in CAUSES if found.of(cause) or cause not in OF_A_HOST]
    rows = [row(cause_words(cause, found.source), found.of(cause)) for cause in shown]
    rows.append(row("ideal less observed", found.total))
    notes = [f"{source_text(found) or 'The pool is not known: nothing is called evicted'}."]
    if found.unmeasured is not None:
        notes.append(f"KV events were recorded and are not used: {found.unmeasured}.")
    return [Heading("Reuse that was lost, by cause"), Table(("", "tokens"), tuple(rows)), Lines(tuple(notes))]


def source_text(found: Losses) -> str | None:
    """How the evicted are known, in words."""
    return {"measured": f"Measured: {BY_EVENTS}", "modelled": f"Modelled: {MODELLED}"}.get(found.source or "")
