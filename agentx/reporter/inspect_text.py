"""A trace's statistics for people: what it is, how long, how it waits, and what of it can be reused."""

from __future__ import annotations

from collections.abc import Mapping

from agentx.core import GAP_KINDS, THREAD_KINDS
from agentx.reporter.capacity_text import capacity
from agentx.reporter.inspecting import Inspection, Values
from agentx.reporter.sparks import BLOCKS, bars, histogram
from agentx.reporter.table import Block, Facts, Heading, Lines, Table

SHOWN = (5, 25, 50, 75, 90, 99)
COLUMNS = ("", "n", *(f"p{percent}" for percent in SHOWN), "mean", "max", "shape")
BINS = 10  # of a shape: ranges of equal ratio, from the least value to the largest
MOST = 6  # names listed before "and N more"


def blocks(found: Inspection, shown: str = BLOCKS) -> list[Block]:
    """The whole summary, with shapes of the characters `shown`."""
    lengths = (
        _row("isl", found.isl, shown),
        _row("osl", found.osl, shown),
        _row("new", found.fresh, shown),
        _row("turns", found.turns_each, shown),
    )
    waits = [_row(kind, found.gaps[kind], shown, digits=2) for kind in GAP_KINDS if found.gaps[kind].values]
    waits += [_row("TTFT", found.ttft, shown, digits=2)] if found.ttft.values else []
    return [
        Heading(f"agentx inspect: {found.headers[0].name}"),
        Facts(tuple(_facts(found))),
        Heading("Tokens of prompts, of replies, new ones in a prompt; turns of a session"),
        Table(COLUMNS, lengths),
        Heading("Seconds: gaps by what a turn waited for, and recorded times to the first token"),
        Table(COLUMNS, tuple(waits)) if waits else Lines(("no turn waits for another one",)),
        Heading("Prompt tokens by layer, and what an unbounded cache could reuse of them"),
        _layers(found),
        *capacity(found, shown),
    ]


def _facts(found: Inspection) -> list[tuple[str, str]]:
    header = found.headers[0]
    more = f", the first of {len(found.headers)} headers" if len(found.headers) > 1 else ""
    incomplete = f", {found.incomplete} of them incomplete" if found.incomplete else ""
    kinds = [kind for kind in THREAD_KINDS if found.threads[kind]]
    threads = ", ".join(f"{found.threads[kind]:,} {kind} ({found.thread_turns[kind]:,} turns)" for kind in kinds)
    gaps = ", ".join(f"{count:,} {name}" for name, count in sorted(found.provenance.items()))
    facts = [
        ("content", f"{header.content}, identities hold in one {header.identity}{more}"),
        ("made by", _made_by(header.provenance)),
        ("tear", str(found.tear) if found.tear else ""),
        ("sessions", f"{found.sessions:,}{incomplete}"),
        ("turns", f"{found.turns:,}; the longest context is {found.longest:,} tokens, reply included"),
        ("threads", threads),
        ("arrivals", _arrivals(found)),
        ("models", _names(found.models) or "unknown"),
        ("tools", _names(found.tools)),
        ("events", _names(found.events) or "none"),
        ("gaps", gaps or "none"),
        ("taken apart", _apart(found)),
        ("replies", _replies(found)),
        ("reuse", _reuse(found)),
    ]
    return [(name, text) for name, text in facts if text]


def _apart(found: Inspection) -> str:
    """What the gaps hold that something tells the parts of."""
    apart, total = found.apart, sum(found.provenance.values())
    if not apart.gaps:
        return ""
    tool, human = ("not told" if each is None else f"{each:,.1f} s" for each in (apart.tool, apart.human))
    return f"{apart.gaps:,} of {total:,} gaps: tools {tool}, their user {human}, the rest {apart.rest:,.1f} s"


def _made_by(provenance: object) -> str:
    if not isinstance(provenance, Mapping):
        return "unknown"
    told = [
        f"{key} {provenance[key]}"
        for key in ("importer", "generator", "compiler", "recorder", "level", "seed")
        if key in provenance
    ]
    digest = provenance.get("spec_sha256")
    told += [f"spec sha256 {digest[:16]}"] if isinstance(digest, str) else []
    cuts = provenance.get("cut")
    told += [f"cut {len(cuts)}x"] if isinstance(cuts, list) else []
    return ", ".join(told) or "unknown"


def _arrivals(found: Inspection) -> str:
    if not found.arrivals:
        return "none: a session begins when a lane is free"
    span = max(found.arrivals) - min(found.arrivals)
    rate = f", {(len(found.arrivals) - 1) / span:,.3g} a second" if span > 0 else ""
    return f"{len(found.arrivals):,} sessions over {span:,.1f} s{rate}"


def _names(counts: dict[str, int]) -> str:
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    told = [f"{name} {count:,}" for name, count in ordered[:MOST]]
    return ", ".join(told + ([f"and {len(ordered) - MOST} more"] if len(ordered) > MOST else []))


def _replies(found: Inspection) -> str:
    parts = [f"{found.unknown_reply:,} with content that no later prompt shows"] if found.unknown_reply else []
    parts += [f"{found.no_reply:,} of 0 tokens"] if found.no_reply else []
    return ", ".join(parts)


def _reuse(found: Inspection) -> str:
    share = found.reuse.share
    possible = "unknown" if share is None else f"{share:.1%} of {found.reuse.tokens:,} prompt tokens are possible"
    if not found.cached_of:
        return possible
    return f"{possible}; {found.cached / found.cached_of:.1%} of {found.cached_of:,} were recorded as cached"


def _row(name: str, values: Values, shown: str, digits: int = 0) -> tuple[str, ...]:
    spread = values.spread()
    if spread is None:
        return (name, "0", *("n/a" for _ in COLUMNS[2:]))
    numbers = [*(spread.at(percent) for percent in SHOWN), spread.mean, spread.maximum]
    shape = bars(histogram(values.values, BINS)[0], shown).rstrip() or " "
    return (name, f"{spread.n:,}", *(f"{number:,.{digits}f}" for number in numbers), shape)


def _layers(found: Inspection) -> Table:
    total = found.reuse.tokens
    rows = [(name, tokens, reused) for name, (tokens, reused) in found.reuse.by_layer().items()]
    if found.reuse.unattributed:
        rows.append(("unattributed", found.reuse.unattributed, 0))
    rows.append(("all", total, found.reuse.reused))
    told = [
        (name, f"{tokens:,}", f"{tokens / total:.1%}", f"{reused:,}", f"{reused / tokens:.1%}", f"{tokens - reused:,}")
        for name, tokens, reused in rows
        if tokens
    ]
    return Table(("layer", "tokens", "of all", "reusable", "of layer", "new"), tuple(told))
