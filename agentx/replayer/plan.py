"""The replay plan: `agentx: replay/1`, checked. Every key has a default, and none is accepted that does nothing.

A plan says how a trace is turned into load: how many sessions, in which order and how often, how pauses are treated,
what goes over the wire, and what a failure means. `--set key.path=value` overrides a key; a path that begins with
`target.` goes to the target's own file.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

import pydantic
from pydantic import Field

from agentx import catalog
from agentx.replayer.acceptance import Acceptance
from agentx.replayer.arrivals import RateKind, RateRule
from agentx.replayer.fates import Overflow
from agentx.replayer.moves import OnFailure, Rules, StartBy, StartPhase, StartRule
from agentx.replayer.slo import Slo
from agentx.wire.history import TEXT_WIRES, History, WireKind, histories_of
from agentx.wire.messages import Shape
from agentx.wire.salting import Policy
from agentx.yamlspec import Duration, Strict, duration_text, load, seconds

EMPTY = "agentx: replay/1\n"  # the plan without a plan: every default
TARGET_PREFIX = "target."


class Rate(Strict):
    """An open loop: sessions begin by the clock, `per_second` of them (`recorded`: as in the trace)."""

    kind: RateKind = "poisson"
    per_second: float | None = Field(default=None, gt=0)
    cv: float = Field(default=1.0, gt=0.01, le=10)
    to: float | None = Field(default=None, gt=0)
    over: Duration | None = None

    @pydantic.model_validator(mode="after")
    def _complete(self) -> Rate:
        if (self.per_second is None) != (self.kind == "recorded"):
            raise ValueError(
                f"kind {self.kind} {'takes no' if self.kind == 'recorded' else 'needs'} per_second, sessions per second"
            )
        if (self.kind == "ramp") != (self.to is not None) or (self.to is None) != (self.over is None):
            raise ValueError("to and over belong to kind ramp, which needs both: per_second: 1, to: 4, over: 10m")
        if self.kind != "gamma" and self.cv != 1:
            raise ValueError("cv belongs to kind gamma")
        return self

    def rule(self, seed: int) -> RateRule:
        return RateRule(self.kind, self.per_second or 1.0, self.cv, self.to or 1.0, self.over or 0.0, seed)


class Load(Strict):
    """A closed loop of `sessions` at a time; or of `requests` in flight alone; or an open loop by `rate`. `requests` is
    also the most that are in flight with either."""

    sessions: int | None = Field(default=1, ge=1, le=100_000)
    requests: int | None = Field(default=None, ge=1)
    rate: Rate | None = None

    @pydantic.model_validator(mode="before")
    @classmethod
    def _instead(cls, data: object) -> object:
        """Where one of the others is given, one session at a time is not the default."""
        if isinstance(data, dict) and "sessions" not in data and (data.get("requests") or data.get("rate")):
            return {**data, "sessions": None}
        return data

    @pydantic.model_validator(mode="after")
    def _one(self) -> Load:
        if self.sessions is not None and self.rate is not None:
            raise ValueError("sessions are a closed loop and rate is an open one: say one of them")
        if self.sessions is None and self.rate is None and self.requests is None:
            raise ValueError("say sessions, requests or rate")
        return self


class Measure(Strict):
    """How much is played: so many sessions, so many turns of each lane, or so long; none: every session once."""

    sessions: int | None = Field(default=None, ge=1)
    turns: int | None = Field(default=None, ge=1)
    seconds: float | None = Field(default=None, gt=0)


def _measure(value: object) -> object:
    if isinstance(value, Measure):
        return value
    if value == "once":
        return Measure()
    if isinstance(value, dict):
        if list(value) not in (["sessions"], ["turns"]):
            raise ValueError("should be {sessions: N}, {turns: N}, a duration such as 10m, or once")
        return value
    try:
        return Measure(seconds=seconds(value))
    except pydantic.ValidationError:
        raise ValueError("should be longer than nothing") from None
    except ValueError as error:
        raise ValueError(f"should be {{sessions: N}}, {{turns: N}}, a duration or once: {error}") from None


def _measure_text(value: Measure) -> object:
    if value.sessions is not None:
        return {"sessions": value.sessions}
    if value.turns is not None:
        return {"turns": value.turns}
    return "once" if value.seconds is None else duration_text(value.seconds)


Extent = Annotated[
    Measure, pydantic.BeforeValidator(_measure), pydantic.PlainSerializer(_measure_text, when_used="json")
]


class Gaps(Strict):
    """`scale` multiplies every gap; the caps are the longest that a whole session, and all of them together, stay idle
    (null: no limit)."""

    scale: float = Field(default=1.0, ge=0)
    tree_idle_cap: Duration | None = None
    system_idle_cap: Duration | None = None


class Start(Strict):
    """Where the first session of each lane begins: at a share of its time or of its turns between `min` and `max`."""

    by: StartBy = "time"
    min: float = Field(default=0.0, ge=0, le=1)
    max: float = Field(default=1.0, ge=0, le=1)
    phase: StartPhase = "spread"

    @pydantic.model_validator(mode="after")
    def _ordered(self) -> Start:
        if self.min > self.max:
            raise ValueError(f"min ({self.min:g}) is above max ({self.max:g})")
        return self


class Warmup(Strict):
    """Turns that each lane sends before the run begins, with replies of one token."""

    turns: int = Field(default=0, ge=0)


class Timeouts(Strict):
    """`stall`: give a turn up when no byte came for so long. There is no limit on the whole: a turn may queue."""

    stall: Duration = 1800.0

    @pydantic.field_validator("stall")
    @classmethod
    def _some(cls, value: float) -> float:
        if value <= 0:
            raise ValueError("should be longer than nothing")
        return value


class Plan(Strict):
    """One `agentx: replay/1` file."""

    trace: str | None = None
    target: str | None = None
    seed: int = Field(default=0, ge=0)
    load: Load = Load()
    order: Literal["file", "shuffle"] = "file"
    recycle: bool = True
    start: Start | None = None
    warmup: Warmup = Warmup()
    measure: Extent = Measure()
    drain: Duration = 1800.0
    gaps: Gaps = Gaps()
    wire: WireKind = "chat"
    history: History = "recorded"
    messages: Shape = "plain"
    length: Literal["exact", "max_only"] = "exact"
    salt: Policy = "run"
    overflow: Overflow = "drop_turn"
    abort: Literal["replay", "skip"] = "replay"
    on_failure: OnFailure = "end_session"
    timeouts: Timeouts = Timeouts()
    acceptance: Acceptance | None = None
    slo: Slo = Slo()
    repeats: int = Field(default=1, ge=1, le=1000)

    @pydantic.model_validator(mode="after")
    def _goes_together(self) -> Plan:
        if self.history not in histories_of(self.wire):
            known = " or ".join(histories_of(self.wire))
            raise ValueError(f"history {self.history} does not go with the wire {self.wire}, which takes {known}")
        if self.messages == "tools" and self.wire not in TEXT_WIRES:
            raise ValueError(f"messages: tools does not go with the wire {self.wire}, which sends token ids")
        if self.load.sessions is None and (self.start or self.warmup.turns or self.measure.turns is not None):
            raise ValueError("start, warmup and measure: {turns: N} are of lanes: they need load.sessions")
        if self.load.rate is not None and self.load.rate.kind == "recorded" and self.order != "file":
            raise ValueError("load.rate.kind recorded goes with order file")
        if self.wire == "messages" and self.salt in ("field", "field-session"):
            raise ValueError(f"salt {self.salt} does not go with the wire messages: it has no cache_salt")
        return self

    @property
    def rules(self) -> Rules:
        """What of the plan decides when turns are sent."""
        start = self.start
        return Rules(
            lanes=self.load.sessions,
            requests=self.load.requests,
            rate=None if self.load.rate is None else self.load.rate.rule(self.seed),
            scale=self.gaps.scale,
            tree_idle_cap=self.gaps.tree_idle_cap,
            system_idle_cap=self.gaps.system_idle_cap,
            plays=self.measure.sessions,
            turns=self.measure.turns,
            seconds=self.measure.seconds,
            drain=math.inf if self.measure.seconds is None else self.drain,
            on_failure=self.on_failure,
            start=None if start is None else StartRule(start.by, start.min, start.max, self.seed),
            phase="spread" if start is None else start.phase,
            warmup=self.warmup.turns,
        )

    @property
    def recycles(self) -> bool:
        """Whether sessions are played again when they run out: a plan that plays each once never needs to."""
        return self.recycle and self.measure != Measure()

    def changed(self, sets: Sequence[str]) -> Plan:
        """This plan with overrides. Raises BadInput."""
        kept = self.model_dump(mode="json", exclude_unset=True)
        lines = [f"{key}: {json.dumps(value)}\n" for key, value in kept.items()]
        return load_plan(text=EMPTY + "".join(lines), sets=sets) if sets else self


def load_plan(source: Path | str | None = None, *, sets: Sequence[str] = (), text: str | None = None) -> Plan:
    """The plan in a file, in `text`, or (without both) the default one. Raises BadInput with one line per mistake.

    `sets` must not hold overrides of the target (`split_sets`).
    """
    if source is None:
        return load(Plan, "the default plan", kind="replay", text=EMPTY if text is None else text, sets=sets)
    return load(Plan, source, kind="replay", text=text, sets=sets, extended=_base)


def _base(name: str, heir: Path) -> Path:
    """The file that `extends: name` means in the plan `heir`: a path is relative to it."""
    return heir.parent / name if catalog.is_path(name) else catalog.resolve("replays", name)


def split_sets(sets: Sequence[str]) -> tuple[list[str], list[str]]:
    """(overrides of the plan, overrides of the target without their `target.`)."""
    plan = [each for each in sets if not each.strip().startswith(TARGET_PREFIX)]
    target = [each.strip().removeprefix(TARGET_PREFIX) for each in sets if each.strip().startswith(TARGET_PREFIX)]
    return plan, target
