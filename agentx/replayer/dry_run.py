"""What a replay would send, without sending it: the run's own schedule in virtual time, with assumed call times.

Turns and tokens of a fixed amount of work (`measure` once, or so many sessions) do not hang on how long calls take, so
they are exactly those of the run; so is what does not fit the target, which is asked for its context and pool as a run
would ask. Duration and cost rest on the call times: the recorded ones where the trace has them, an embedded engine's
timing for a prompt that is not cached, else the constants of `starts.py`.
"""

from __future__ import annotations

import asyncio
import heapq
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from agentx.core import Session
from agentx.engine.settings import EngineSettings
from agentx.replayer.acceptance import check_server
from agentx.replayer.client import open_session
from agentx.replayer.embedded import facts_of
from agentx.replayer.fates import Fates
from agentx.replayer.folder import Facts
from agentx.replayer.found import Found
from agentx.replayer.launch_recipe import stated_facts
from agentx.replayer.moves import MEASURE, Cancel, Cut, Done, Ended, Fate, Send, Wait
from agentx.replayer.order import Order, fates_of, order_of, source_of
from agentx.replayer.plan import Plan
from agentx.replayer.schedule import Schedule
from agentx.replayer.servers import facts_of_all
from agentx.replayer.starts import CALL, PER_TOKEN
from agentx.replayer.targets import Launch, request_headers

HOUR = 3600.0
STATED = "nothing was started: context, pool and page are what the launch target's command says"


@dataclass(frozen=True, slots=True)
class DryRun:
    """Tokens and turns are those of the measured phase, `warmup` ones apart. `fixed`: they hang on no call time.

    `template_known`: `prompt_tokens` holds what the target's chat template adds. `dollars` None: no price, or no GPUs.
    """

    plays: int
    turns: int
    prompt_tokens: int
    output_tokens: int
    warmup_turns: int
    warmup_prompt_tokens: int
    overflows: int
    aborted: int
    found: Found
    empty_sessions: int
    seconds: float
    dollars: float | None
    fixed: bool
    template_known: bool
    notes: tuple[str, ...]

    def text(self) -> str:
        """A few lines for a terminal."""
        warm = f", {self.warmup_turns:,} more to warm up ({self.warmup_prompt_tokens:,} tokens)"
        template = "" if self.template_known else ", without what the server's chat template adds"
        unknown = "unknown: the target has no price.gpu_hour, or no gpus"
        cost = unknown if self.dollars is None else f"$ {self.dollars:,.2f}"
        sure = "what the run sends" if self.fixed else "an estimate: this plan's work hangs on how long calls take"
        lines = [
            ("turns", f"{self.turns:,} of {self.plays:,} plays{warm if self.warmup_turns else ''}"),
            ("prompts", f"{self.prompt_tokens:,} tokens{template}"),
            ("replies", f"{self.output_tokens:,} tokens"),
            (
                "left out",
                f"{self.overflows:,} turns that do not fit, {self.aborted:,} that were aborted; "
                f"{self.empty_sessions:,} sessions with nothing to send",
            ),
            ("these are", sure),
            ("duration", f"about {self.seconds:,.0f} s, by assumed call times"),
            ("cost", cost),
        ]
        if self.found.skipped:
            lines.insert(4, ("skipped", f"sessions with a turn that does not fit: {self.found.share}"))
        if (short := self.found.shortened).sessions:
            lost = (
                f"{short.turns:,} turns of {short.sessions:,} sessions lose {short.tokens:,} tokens of history to fit"
            )
            lines.insert(4, ("shortened", lost))
        told = "\n".join(f"  {name:<10} {value}" for name, value in lines)
        return "\n".join(["nothing was sent", told, *(f"  - {note}" for note in self.notes)])


def dry_run(
    trace: str | Path | None = None,
    *,
    plan: Plan | str | Path | None = None,
    target: str | None = None,
    sets: Sequence[str] = (),
) -> DryRun:
    """What `replay` with these arguments would send. Raises what it would raise before its first request."""
    with tempfile.TemporaryDirectory(prefix="agentx-") as scratch:
        order = order_of(trace, plan, target, sets, folder=Path(scratch), scratch=Path(scratch), salt="")
        server = asyncio.run(_server(order))
        check_server(order.plan.acceptance, server)
        facts = Facts(order.plan, order.target, order.trace, "", server, None, False, "engine_rules" in server)
        return _planned(order, facts)


async def _server(order: Order) -> dict[str, Any]:
    settings = order.target.settings
    if isinstance(settings, EngineSettings):
        return facts_of(settings)
    if isinstance(settings, Launch):
        return stated_facts(settings)
    async with open_session(request_headers(settings)) as session:
        return (await facts_of_all(session, settings))[0]


def _planned(order: Order, facts: Facts) -> DryRun:
    plan, fates, seen, passed = facts.plan, fates_of(facts), Counter[str](), Counter[str]()

    def fate(session: Session, turn: int) -> Fate:
        found = fates(session, turn)
        if found != "send":
            aborted = fates.skip_aborted and session.turns[turn].output.tokens == 0
            passed["aborted" if aborted else "overflow"] += 1
        return found

    source = source_of(facts)
    schedule = Schedule(iter(source), plan.rules, fate)
    plays, end = _play(schedule, _call_seconds(order), lambda send: _count(seen, send, fates))
    settings, measure = order.target.settings, plan.measure
    hours, price = (end - schedule.began) / HOUR, settings.price.gpu_hour
    return DryRun(
        plays=plays,
        turns=seen["turns"],
        prompt_tokens=seen["prompt"],
        output_tokens=seen["output"],
        warmup_turns=seen["warmup turns"],
        warmup_prompt_tokens=seen["warmup prompt"],
        overflows=passed["overflow"],
        aborted=passed["aborted"],
        found=source.found,
        empty_sessions=len(source.found.dropped) + schedule.empty,
        seconds=end,
        dollars=None if price is None or settings.gpus is None else hours * price * settings.gpus,
        fixed=measure.seconds is None and measure.turns is None and plan.wire != "messages",
        template_known=facts.template is not None or plan.wire not in ("chat", "messages"),
        notes=(*order.notes, *([STATED] if isinstance(settings, Launch) else [])),
    )


def _count(seen: Counter[str], send: Send, fates: Fates) -> None:
    prompt = fates.room.prompt_tokens(send.session, send.key.turn)
    if send.phase == MEASURE:
        seen.update({"turns": 1, "prompt": prompt, "output": send.tokens})
    else:
        seen.update({"warmup turns": 1, "warmup prompt": prompt})


def _call_seconds(order: Order) -> Callable[[Send], float]:
    settings = order.target.settings
    if not isinstance(settings, EngineSettings):
        return _recorded_seconds
    timing, length = settings.timing, settings.speculation.acceptance.length

    def seconds(send: Send) -> float:
        prompt = send.session.turns[send.key.turn].isl
        prefill = timing.prefill_batch + prompt * (timing.prefill_token + timing.prefill_token_context * prompt / 2)
        step = timing.decode_step + timing.decode_request + timing.decode_context * prompt
        return timing.request + prefill + step * (send.tokens - 1) / length

    return seconds


def _recorded_seconds(send: Send) -> float:
    observed = send.session.turns[send.key.turn].observed
    if send.phase == MEASURE and observed is not None and observed.start is not None and observed.end is not None:
        return max(0.0, observed.end - observed.start)
    return CALL + PER_TOKEN * send.tokens


def _play(schedule: Schedule, seconds: Callable[[Send], float], sent: Callable[[Send], None]) -> tuple[int, float]:
    """Run a schedule to its end in virtual time. Returns how many plays there were, and when it ended."""
    now, plays, order = 0.0, 0, count()
    flying: list[tuple[float, int, Send]] = []
    while True:
        step = schedule.next(now)
        plays += len(schedule.take_finished())
        if isinstance(step, Done):
            return plays, now
        if isinstance(step, Cancel):
            flying = [each for each in flying if each[2].key not in step.keys]
            heapq.heapify(flying)
            for key in step.keys:
                schedule.feed(now, Cut(key))
        elif isinstance(step, Wait):
            times = [at for at in (step.until, flying[0][0] if flying else None) if at is not None]
            now = max(now, min(times))
            if flying and flying[0][0] <= now:
                schedule.feed(now, Ended(heapq.heappop(flying)[2].key))
        else:
            for send in step:
                sent(send)
                heapq.heappush(flying, (now + seconds(send), next(order), send))
