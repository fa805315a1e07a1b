"""The part of a workload spec that says what befalls a session: subagents, compaction, resets, aborts and the like.

Rule: each of these is a key of its own at the top of a spec, and a spec without the key makes none of it.
"""

from __future__ import annotations

from typing import Literal

import pydantic
from pydantic import Field

from agentx.distributions import check_weights
from agentx.generator.quantities import Chance, Counts, CountsByGap, Share, Shares
from agentx.yamlspec import Duration, Strict


class AgentType(Strict):
    """One type of subagent."""

    weight: float = Field(gt=0, le=1, description="its share of the subagents; the shares sum to 1")
    tools: int = Field(default=0, ge=0, description="tokens of its tool definitions, the same in all sessions")
    system: int = Field(default=0, ge=0, description="tokens of its system prompt, the same in all sessions")
    prompt: Counts = Field(description="tokens of the task that it is given")
    turns: Counts = Field(description="its model calls, at least 1: all but the last call tools")
    report: Counts = Field(description="tokens of its last reply, which is its result for the parent")
    tool_result: Counts | None = Field(default=None, description="instead of `tokens.tool_result`")
    reply: CountsByGap | None = Field(default=None, description="instead of `tokens.reply`")
    reasoning: CountsByGap | None = Field(default=None, description="instead of `tokens.reasoning`")
    parallel: Counts | None = Field(default=None, description="instead of `turns.parallel`")
    spawns: Share = Field(default=0.0, description="share of its tool steps that start subagents of their own")
    model: str | None = Field(default=None, description="its model; without this its parent's")


class Subagents(Strict):
    """Lines of context of their own that a reply starts; the line that started them waits for all of them."""

    sessions: Chance = Field(default=1.0, description="share of the sessions that use subagents at all")
    share: Chance = Field(description="share of the tool steps, in these, that start subagents in place of tools")
    count: Counts = Field(default=Counts(fixed=1), description="subagents that one reply starts, at least 1")
    run: Literal["parallel", "serial"] = Field(
        default="parallel", description="`parallel`: they start together; `serial`: each waits for the one before"
    )
    depth: int | None = Field(
        default=None, ge=1, le=8, description="levels of subagents; required where a type `spawns`, else 1"
    )
    types: dict[str, AgentType] = Field(min_length=1, description="types of subagents by name")

    @pydantic.model_validator(mode="after")
    def _makes_sense(self) -> Subagents:
        check_weights([each.weight for each in self.types.values()])
        loose = [name for name, each in self.types.items() if each.spawns]
        if loose and self.depth is None:
            raise ValueError(f"the type {loose[0]!r} spawns subagents without a limit: give depth, for example 2")
        return self


class Compaction(Strict):
    """A context that grew too long is replaced by a summary."""

    trigger: Counts = Field(description="tokens of context from which the next call is made on a summary")
    share: Chance = Field(default=1.0, description="share of the sessions that compact; others go on to the limit")
    keep: tuple[Literal["tools", "system", "shared"], ...] = Field(
        default=("tools", "system"), description="leading layers that stay in front of the summary"
    )
    summary: Counts = Field(description="tokens of the summary, and of what is read again with it")

    @pydantic.model_validator(mode="after")
    def _shrinks(self) -> Compaction:
        if self.summary.quantile(0.5) >= self.trigger.quantile(0.5):
            summary, trigger = self.summary.quantile(0.5), self.trigger.quantile(0.5)
            raise ValueError(f"summary has a median of {summary:g} tokens, trigger one of {trigger:g}: nothing shrinks")
        return self


class Resumed(Strict):
    """Sessions that open with the history of an earlier day."""

    share: Chance = Field(description="share of the sessions that do")
    tokens: Counts = Field(description="tokens of that history: messages, replies and tool results as elsewhere")


class Resets(Strict):
    """Contexts that are cleared before a user message; tools, system and shared layers stay."""

    share: Chance = Field(description="share of the later user messages")


class PullBacks(Strict):
    """Steps that lose the end of the context and go on."""

    share: Chance = Field(description="share of the tool steps")
    lost: Shares = Field(description="the share of the context that is lost, counted from its end")
    rewritten: Share = Field(
        default=0.0, description="share of the pull-backs in which as much new content takes the place of the lost"
    )


class Aborts(Strict):
    """Calls that the user breaks off; the next user message follows."""

    share: Chance = Field(description="share of the calls")
    kept: Shares = Field(default=Shares(fixed=0), description="the share of the reply that had come; 0 is none of it")


class SideCall(Strict):
    """A call beside the conversation, such as one for a title or a summary."""

    at: Literal["start", "message", "compaction"] = Field(
        description="`start`: with the opening call; `message`: with a message's first call; `compaction`: before it"
    )
    share: Chance = Field(default=1.0, description="share of those occasions")
    context: Literal["none", "whole"] = Field(
        default="none", description="`whole`: on the context as it stands; `none`: on its own"
    )
    system: int = Field(default=0, ge=0, description="tokens of its own system prompt, the same in all sessions")
    prompt: Counts = Field(description="tokens of what it is asked")
    reply: Counts = Field(description="tokens of its reply")
    waits: bool = Field(default=False, description="whether the conversation waits for the reply")
    model: str | None = Field(default=None, description="its model; without this the conversation's")

    @pydantic.model_validator(mode="after")
    def _one_system(self) -> SideCall:
        if self.context == "whole" and self.system:
            raise ValueError("system is for context: none; the whole context has a system prompt of its own")
        return self


class Models(Strict):
    """Models by name. A switch takes the next call to another one, whose cache knows nothing of the context."""

    weights: dict[str, float] = Field(min_length=1, description="share of the sessions that begin with each model")
    switch: Share = Field(default=0.0, description="share of the later user messages that go to another model")

    @pydantic.model_validator(mode="after")
    def _shares(self) -> Models:
        check_weights(list(self.weights.values()))
        if min(self.weights.values()) < 0:
            raise ValueError("a weight is below 0")
        if self.switch and len(self.weights) < 2:
            raise ValueError("a switch needs a second model to go to")
        return self


class Step(Strict):
    """One stretch of a rate schedule."""

    lasts: Duration = Field(gt=0, description="how long this rate lasts")
    per_second: float = Field(ge=0, le=1e6, description="sessions that arrive in a second")


class Arrivals(Strict):
    """When sessions arrive. Without this key nothing is said, and the plan's closed loop decides."""

    kind: Literal["poisson", "gamma", "schedule"] = Field(
        description="`poisson`: independent; `gamma`: intervals with a variation of `cv`; `schedule`: a rate by time"
    )
    per_second: float | None = Field(default=None, gt=0, le=1e6, description="sessions a second; not for a schedule")
    cv: float | None = Field(
        default=None, gt=0, le=100, description="standard deviation over mean of the intervals; above 1 is bursty"
    )
    steps: tuple[Step, ...] = Field(default=(), description="of a schedule, one after another, then from the start")

    @pydantic.model_validator(mode="after")
    def _complete(self) -> Arrivals:
        if self.kind == "schedule":
            if not any(step.per_second for step in self.steps):
                raise ValueError("a schedule needs steps, and one with a rate above 0")
            if self.per_second is not None:
                raise ValueError("a schedule has its rates in steps, not in per_second")
        elif self.per_second is None or self.steps:
            raise ValueError(f"{self.kind} needs per_second and no steps")
        if self.kind == "gamma" and self.cv is None:
            raise ValueError("gamma needs cv; without bursts it is poisson")
        if self.kind == "poisson" and self.cv is not None:
            raise ValueError("poisson has no cv; gamma has")
        return self
