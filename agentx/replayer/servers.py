"""What several servers say of themselves: those of `urls`, and those behind a router, by their metrics' addresses.

A run's prompts must fit each of them, so the smallest context and pool hold. What they do not have in common stays in
the record of each, and is a finding of the report.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import aiohttp

from agentx.replayer.probe import server_facts, told_by
from agentx.replayer.targets import Endpoint

SMALLEST = ("context", "max_total_num_tokens")
ROLE = "role"


async def facts_of_all(
    session: aiohttp.ClientSession, endpoint: Endpoint
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """(what holds for the run, what each of several servers told, by its address; empty where there is one).

    Raises Unreachable, and BadInput when one names no model.
    """
    found = await asyncio.gather(*(server_facts(session, base, endpoint.model) for base in endpoint.bases))
    behind = {base: role for base, role in _behind(endpoint).items() if base not in endpoint.bases}
    told = await asyncio.gather(*(told_by(session, base) for base in behind))
    each = dict(zip(endpoint.bases, found, strict=True)) if len(endpoint.bases) > 1 else {}
    for (base, role), facts in zip(behind.items(), told, strict=True):
        each[base] = {**facts, ROLE: role} if role else facts
    return merged(found[0], each), each


def merged(first: Mapping[str, Any], each: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What the first address says, with what all servers agree on where it says nothing, and the smallest limits."""
    facts = dict(first)
    names = {name for told in each.values() for name in told} - {ROLE}
    for name in sorted(names - set(facts)):
        values = [told.get(name) for told in each.values()]
        if all(value == values[0] for value in values):
            facts[name] = values[0]
    for name in SMALLEST:
        limits = [value for told in (first, *each.values()) if isinstance(value := told.get(name), int)]
        if limits:
            facts[name] = min(limits)
    return facts


def _behind(endpoint: Endpoint) -> dict[str, str | None]:
    """The servers whose metrics are read, and their roles."""
    return {url.removesuffix("/metrics"): endpoint.roles.get(url) for url in endpoint.metrics_urls}
