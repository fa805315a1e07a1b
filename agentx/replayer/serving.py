"""The server that a run is played against: one that runs already, the embedded engine, or one that is launched."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from aiohttp import ClientSession

from agentx.content import WordList, lexicon
from agentx.engine.settings import EngineSettings
from agentx.replayer.acceptance import launched_notes, server_environment
from agentx.replayer.launch import Launched, launched
from agentx.replayer.launch_warm import warm_up
from agentx.replayer.order import Order
from agentx.replayer.probe import all_told_by
from agentx.replayer.targets import NOT_KEPT, Endpoint, Launch, is_secret
from agentx.replayer.wires import Wire

SERVER_INFO = "server_info.json"


@dataclass(slots=True)
class Serving:
    """`launched` None: it was there. `notes` are of its start, for the run's own."""

    endpoint: Endpoint
    launched: Launched | None = None
    notes: list[str] = field(default_factory=list)

    async def prepare(
        self, session: ClientSession, order: Order, server: Mapping[str, Any], words: WordList | None
    ) -> None:
        """What a server that was just started needs before a run; nothing for another. Raises Unreachable.

        All that it says of itself is written to `server_info.json`, without secrets.
        """
        settings, plan = order.target.settings, order.plan
        if self.launched is None or not isinstance(settings, Launch):
            return
        told = await all_told_by(session, self.endpoint.base)
        kept = {name: NOT_KEPT if is_secret(name) and value else value for name, value in told.items()}
        (order.out / SERVER_INFO).write_text(json.dumps(kept, indent=1, default=str) + "\n", encoding="utf-8")
        self.notes += launched_notes(plan.acceptance, server)
        if settings.jit_warmup:
            wire = Wire(plan.wire, server["model"])
            lanes = plan.load.sessions or plan.load.requests or 1
            known = words or WordList(lexicon())
            self.notes.append(await warm_up(session, self.endpoint.base, wire, known, server, lanes))

    @property
    def facts(self) -> dict[str, Any]:
        """What a run folder keeps of how it was started."""
        return {} if self.launched is None else {"launch": self.launched.facts}

    def ending(self) -> list[str]:
        """What is to be said when the run is over."""
        code = None if self.launched is None else self.launched.ended
        return [] if code is None else [f"the launched server ended by itself, with {code}, before the run was over"]


@contextlib.asynccontextmanager
async def serving(order: Order, *, progress: bool) -> AsyncIterator[Serving]:
    """The server of an order, for as long as the block goes on. Raises BadInput, and Unreachable for one that does not
    come up."""
    settings = order.target.settings
    if isinstance(settings, Endpoint):
        yield Serving(settings)
    elif isinstance(settings, EngineSettings):
        from agentx.engine.server import running

        with running(settings) as url:
            yield Serving(Endpoint(kind="endpoint", url=url, gpus=settings.gpus))
    else:
        notes: list[str] = []

        def say(text: str) -> None:
            notes.append(text)
            if progress:
                print(f"agentx replay: {text}", file=sys.stderr)

        simulated = server_environment(order.plan.acceptance)
        async with launched(settings, folder=order.out, simulated=simulated, tell=say) as server:
            yield Serving(server.endpoint, server, notes)
