"""What the doctor makes of what a server says of itself: its facts alone, no requests."""

from __future__ import annotations

import resource
from collections.abc import Iterator, Mapping
from typing import Any

from agentx.core import Sample
from agentx.errors import BadInput
from agentx.replayer.acceptance import Acceptance, bound_of, check_server
from agentx.replayer.doctor_check import Check
from agentx.replayer.limits import files_needed
from agentx.replayer.probe import sglang_version

READ = (0, 5, 16), (0, 5, 23)  # the SGLang versions whose code was read, oldest and newest
LARGE_PAGE = 64  # tokens: a prefix is lost up to a page less one at its end


def told_checks(facts: Mapping[str, Any], acceptance: Acceptance | None, sessions: int) -> Iterator[Check]:
    """Everything that follows from the server's own words and this process's limits."""
    yield _version(facts)
    yield _context(facts)
    yield _page(facts)
    yield _pool(facts, sessions)
    yield _chunk(facts)
    yield _interval(facts)
    yield _acceptance(facts, acceptance)
    yield _files(sessions)


def _version(facts: Mapping[str, Any]) -> Check:
    if "engine_rules" in facts:
        return Check("version", "ok", f"the embedded engine, rules of {facts['engine_rules']}")
    seen, version = sglang_version(facts), facts.get("version")
    if seen is None:
        return Check("version", "unknown", "the server tells no version of SGLang: it may be another one")
    oldest, newest = (".".join(map(str, each)) for each in READ)
    if READ[0] <= seen <= READ[1]:
        return Check("version", "ok", f"SGLang {version}")
    return Check("version", "warning", f"version {version}: what is said here was read in SGLang {oldest} to {newest}")


def _context(facts: Mapping[str, Any]) -> Check:
    context = facts.get("context")
    if context is None:
        mend = "give the plan an overflow policy that bears refusals (overflow: drop_turn)"
        return Check("context", "unknown", "the longest context is not told: turns that do not fit are refused", mend)
    return Check("context", "ok", f"{context:,} tokens")


def _page(facts: Mapping[str, Any]) -> Check:
    page = facts.get("page_size")
    if page is None:
        return Check("page", "unknown", "the page size is not told: the ideal reuse is reckoned for pages of 1 token")
    if page > LARGE_PAGE:
        said = f"{page} tokens: of every shared prefix up to {page - 1} tokens at its end are computed again"
        return Check("page", "warning", said, "a smaller --page-size, where the attention backend allows it")
    return Check("page", "ok", f"{page} token{'s' if page > 1 else ''}")


def _pool(facts: Mapping[str, Any], sessions: int) -> Check:
    pool, context = facts.get("max_total_num_tokens"), facts.get("context")
    if facts.get("disable_radix_cache"):
        return Check("pool", "problem", "the prefix cache is off", "start it without --disable-radix-cache")
    if pool is None:
        return Check("pool", "unknown", "the size of the cache is not told: lost reuse cannot be explained by it")
    host = "; a host tier is on" if facts.get("enable_hierarchical_cache") else ""
    said = f"{pool:,} tokens, {pool // sessions:,} for each of {sessions:,} at a time{host}"
    if context is not None and pool < context:
        return Check("pool", "warning", f"{said}: less than one full context of {context:,}, which is refused")
    return Check("pool", "ok", said)


def _chunk(facts: Mapping[str, Any]) -> Check:
    chunk, page = facts.get("chunked_prefill_size"), facts.get("page_size") or 1
    if chunk is None:
        return Check("chunk", "unknown", "the chunk size of prefills is not told")
    if chunk <= 0:
        said = "prefills are not chunked: a long prompt stops every other session's tokens until it is done"
        return Check("chunk", "warning", said, "--chunked-prefill-size 8192 or more")
    if chunk % page:
        said = f"chunks of {chunk:,} tokens are no whole number of pages of {page}: their ends are cut to pages"
        return Check("chunk", "warning", said)
    return Check("chunk", "ok", f"{chunk:,} tokens")


def _interval(facts: Mapping[str, Any]) -> Check:
    interval = facts.get("stream_interval")
    if interval is None:
        return Check("stream interval", "unknown", "how many tokens the server sends at a time is not told")
    if interval > 1:
        said = f"tokens come {interval} at a time: times between tokens are of groups, and of short replies unknown"
        return Check("stream interval", "warning", said, "--stream-interval 1")
    return Check("stream interval", "ok", "every step is sent")


def _acceptance(facts: Mapping[str, Any], acceptance: Acceptance | None) -> Check:
    algorithm, bound = facts.get("speculative_algorithm"), bound_of(facts)
    if acceptance is None:
        if not algorithm:
            return Check("acceptance", "ok", "no speculative decoding" if "version" in facts else "none that is told")
        said = f"{algorithm}, at most {bound or 'an unknown number of'} tokens a step; the plan states no acceptance"
        mend = "acceptance in the plan (--plan), and SGLANG_SIMULATE_ACC_LEN in the server's environment"
        return Check("acceptance", "warning", f"{said}, so that of synthetic words is measured", mend)
    try:
        check_server(acceptance, facts)
    except BadInput as error:
        return Check("acceptance", "problem", str(error))
    if "version" not in facts:
        return Check("acceptance", "unknown", "the server does not tell whether it decodes speculatively")
    said = f"the plan's {acceptance.asked:g} tokens a step fit {algorithm or 'no speculation'}"
    mend = "a server does not tell what it simulates: a run whose replies show another length is invalid"
    return Check("acceptance", "ok", said, mend if algorithm else None)


def _files(sessions: int) -> Check:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = files_needed(sessions)
    told = "unlimited" if soft == resource.RLIM_INFINITY else f"{soft:,}"
    if soft != resource.RLIM_INFINITY and soft < needed:
        if hard == resource.RLIM_INFINITY or hard >= needed:
            return Check("file limit", "ok", f"{told}, which a replay raises to the {needed:,} that are needed")
        said = f"this process may open {told} files, and {sessions:,} sessions need {needed:,}"
        return Check("file limit", "problem", said, f"ulimit -n {needed}, which root must allow")
    return Check("file limit", "ok", f"{told}, and {needed:,} are needed")


def metrics_check(urls: list[str], samples: list[Sample]) -> Check:
    """Whether the server's counters can be read, and tell what was reused."""
    silent = sorted(set(urls) - {sample.endpoint for sample in samples})
    if silent:
        mend = "SGLang: --enable-metrics; behind a router name the servers' own addresses in the target's metrics"
        return Check("metrics", "problem", f"no counters at {', '.join(silent)}", mend)
    names = set.intersection(*(set(sample.values) for sample in samples))
    if "prefill_input" in names:
        return Check("metrics", "ok", f"counters of {len(samples)} server{'s' if len(samples) > 1 else ''}")
    if "prompt_tokens" in names:
        return Check("metrics", "ok", "counters, of finished requests alone")
    of_decode = all(sample.extra.get("role") == "decode" for sample in samples)
    said = "no counter tells prompt tokens" + (": these are decode servers" if of_decode else "")
    return Check("metrics", "warning", said, "metrics: {prefill: [...], decode: [...]}" if of_decode else None)
