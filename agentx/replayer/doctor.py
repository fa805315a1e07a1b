"""`doctor`: what stands between a target and a measurement, found before it costs GPU time.

A server is asked what it is and sent a few short requests; a recipe is read, and nothing is started. Nothing is flushed
or changed, so it may be asked of a server that others use.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import aiohttp

from agentx.content import WordList, lexicon
from agentx.engine.settings import EngineSettings
from agentx.errors import BadInput
from agentx.replayer.asides import Asides
from agentx.replayer.client import open_session
from agentx.replayer.counters import Scraper
from agentx.replayer.doctor_check import Check
from agentx.replayer.doctor_prefix import prefix_checks
from agentx.replayer.doctor_recipe import recipe_checks
from agentx.replayer.doctor_requests import asked_checks, clock_check, keep_alive_check
from agentx.replayer.doctor_server import metrics_check, told_checks
from agentx.replayer.plan import Plan
from agentx.replayer.probe import confirmed_words
from agentx.replayer.servers import facts_of_all
from agentx.replayer.targets import Endpoint, Launch, Target, request_headers
from agentx.replayer.wires import Wire


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found of a target. `server`: what it told of itself, of a recipe nothing."""

    target: str
    kind: str
    checks: tuple[Check, ...]
    server: dict[str, Any]

    @property
    def problems(self) -> int:
        return sum(check.verdict == "problem" for check in self.checks)


def examine(target: Target, plan: Plan | None = None) -> Examination:
    """Every check of a target, for the sessions and the acceptance of `plan`. Raises Unreachable, BadInput."""
    plan, settings = plan or Plan(), target.settings
    if isinstance(settings, Launch):
        return Examination(target.name, settings.kind, tuple(recipe_checks(settings, plan.acceptance)), {})
    if isinstance(settings, EngineSettings):
        from agentx.engine.server import running

        with running(settings) as url:
            checks, server = asyncio.run(_examine(Endpoint(kind="endpoint", url=url), plan))
    else:
        checks, server = asyncio.run(_examine(settings, plan))
    return Examination(target.name, settings.kind, tuple(checks), server)


async def _examine(endpoint: Endpoint, plan: Plan) -> tuple[list[Check], dict[str, Any]]:
    async with open_session(request_headers(endpoint)) as session:
        server, servers = await facts_of_all(session, endpoint)
        found = [Check("reachable", "ok", f"{', '.join(endpoint.bases)} serves {server['model']}")]
        sessions = plan.load.sessions or plan.load.requests or 1
        found += told_checks(server, plan.acceptance, sessions)
        found += _alike(servers)
        samples = await Scraper(session, endpoint.metrics_urls, time.monotonic, endpoint.roles).sample()
        found.append(metrics_check(endpoint.metrics_urls, samples))
        idle = asyncio.ensure_future(keep_alive_check(endpoint.base))
        found.append(await clock_check(session, endpoint.base))
        for base in endpoint.bases:
            found += await _ask(session, base, server, several=len(endpoint.bases) > 1)
        return [*found, await idle], server


async def _ask(session: aiohttp.ClientSession, base: str, server: dict[str, Any], *, several: bool) -> list[Check]:
    """The checks that need requests, of one address."""
    words: WordList | None = None
    found: list[Check] = []
    try:
        words = None if "engine_rules" in server else await confirmed_words(session, base, server["model"])
    except BadInput as error:
        found.append(Check("words", "problem", str(error), "wire: chat with realistic content"))
    known = WordList(lexicon()) if words is None else words
    asides = Asides(session, base, Wire("chat", server["model"]), known, time.monotonic)
    if "engine_rules" in server:
        words = known
    found += await asked_checks(asides, words, server.get("page_size") or 1)
    found += await prefix_checks(session, base, server["model"])
    return (
        [Check(f"{check.name} ({base})", check.verdict, check.said, check.mend) for check in found]
        if several
        else found
    )


def _alike(servers: dict[str, dict[str, Any]]) -> Sequence[Check]:
    """Whether several servers are what each other is."""
    if not servers:
        return []
    names = sorted({name for told in servers.values() for name in told})
    differ = [name for name in names if len({repr(told.get(name)) for told in servers.values()}) > 1]
    if differ:
        said = f"{len(servers)} servers differ in {', '.join(differ)}"
        return [Check("alike", "warning", said, "the report of a run names every value")]
    return [Check("alike", "ok", f"{len(servers)} servers say the same of themselves")]
