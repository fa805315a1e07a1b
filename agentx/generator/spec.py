"""The workload spec, `agentx: workload/1`: what a population of agents does, in numbers that a reader can judge.

Rule: a spec holds no randomness and no defaults that shape traffic; what it leaves out does not happen. `extends:`
names a spec that this one changes; what both together say is one `WorkloadSpec`, and nothing of the way is left in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar, Literal

import pydantic
import yaml
from pydantic import Field

from agentx import catalog, yamlspec
from agentx.distributions import check_weights
from agentx.generator.expectation import Expectation, check_name
from agentx.generator.quantities import Counts, CountsByGap, Times
from agentx.generator.spec_events import (
    Aborts,
    Arrivals,
    Compaction,
    Models,
    PullBacks,
    Resets,
    Resumed,
    SideCall,
    Subagents,
)
from agentx.generator.spec_layers import Groups, Layers
from agentx.yamlspec import Strict


class Turns(Strict):
    """How many model calls a session has."""

    user: Counts = Field(description="user messages of a session, at least 1")
    loop: Counts = Field(description="model calls for one user message, at least 1: all but the last call tools")
    parallel: Counts = Field(
        default=Counts(fixed=1), description="tool calls in one reply, at least 1; they run together"
    )


class Tokens(Strict):
    """Fresh tokens of each part, all at least 1 except `reasoning`."""

    first_message: Counts = Field(description="the user message that opens a session")
    message: Counts = Field(description="each later user message")
    tool_result: Counts = Field(description="the result of one tool call")
    reply: CountsByGap = Field(description="visible tokens of a reply")
    reasoning: CountsByGap = Field(default=Counts(fixed=0), description="reasoning tokens before them")
    strip_reasoning: bool = Field(
        default=False, description="whether each user message drops all reasoning so far; without this it stays"
    )


class ToolClass(Strict):
    """One class of tools."""

    weight: float = Field(gt=0, le=1, description="its share of the tool calls; the shares sum to 1")
    time: Times = Field(description="how long one call runs")
    result: Counts | None = Field(default=None, description="tokens of its result, instead of `tokens.tool_result`")


class Gaps(Strict):
    """Time between the end of one call and the next."""

    human: Times = Field(description="from the last reply to the next user message")
    tools: dict[str, ToolClass] = Field(
        min_length=1, description="classes of tools by name; a gap is the longest of its calls"
    )

    @pydantic.field_validator("tools")
    @classmethod
    def _shares(cls, value: dict[str, ToolClass]) -> dict[str, ToolClass]:
        check_weights([each.weight for each in value.values()])
        return value


class WorkloadSpec(Strict):
    """A population of sessions."""

    # What a spec says of itself; one that extends it does not inherit that.
    own_keys: ClassVar[tuple[str, ...]] = ("about", "expect")

    about: str = Field(default="", description="one line for people")
    sessions: int = Field(default=100, ge=1, description="sessions to make unless `--sessions` says another number")
    context_limit: int = Field(ge=1, le=2**40, description="tokens; a session ends before prompt + reply exceed it")
    content: Literal["realistic"] | None = Field(
        default=None,
        description="`realistic`: text like real agents', made with Faker and stored in the trace, where no salt "
        "changes it; without this, words that are made when they are sent",
    )
    layers: Layers = Field(default=Layers(), description="what stands in front of the conversation")
    turns: Turns = Field(description="how many model calls a session has")
    tokens: Tokens = Field(description="fresh tokens of each part")
    gaps: Gaps = Field(description="time between the end of one call and the next")
    subagents: Subagents | None = Field(default=None, description="lines of context of their own, started by a reply")
    compaction: Compaction | None = Field(default=None, description="contexts that are replaced by a summary")
    resumed: Resumed | None = Field(default=None, description="sessions that open with an old history")
    resets: Resets | None = Field(default=None, description="contexts that are cleared")
    pull_backs: PullBacks | None = Field(default=None, description="steps that lose the end of the context")
    aborts: Aborts | None = Field(default=None, description="calls that the user breaks off")
    side_calls: dict[str, SideCall] = Field(default={}, description="calls beside the conversation, by name")
    models: Models | None = Field(default=None, description="the models that are called")
    groups: Groups | None = Field(default=None, description="sessions that open alike")
    arrivals: Arrivals | None = Field(default=None, description="when sessions arrive")
    expect: dict[str, Expectation] = Field(default={}, description="statistics that `agentx check` compares")

    @pydantic.field_validator("turns")
    @classmethod
    def _makes_turns(cls, value: Turns) -> Turns:
        for name in ("user", "loop", "parallel"):
            if getattr(value, name).quantile(1 - 2**-52) < 0.5:
                raise ValueError(f"turns.{name} is always 0: the spec makes no turn")
        return value

    @pydantic.field_validator("expect")
    @classmethod
    def _known(cls, value: dict[str, Expectation]) -> dict[str, Expectation]:
        for name, each in value.items():
            check_name(name, each)
        return value

    @pydantic.model_validator(mode="after")
    def _fits(self) -> WorkloadSpec:
        shared = self.layers.tools + self.layers.system
        leading = {"layers.tools + layers.system": shared}
        if self.layers.files:
            leading["tools, system and the shortest of layers.files"] = shared + self.layers.files.shortest
        for name, kind in (self.subagents.types if self.subagents else {}).items():
            types = f"subagents.types.{name}"
            leading[f"{types}.tools + {types}.system"] = kind.tools + kind.system
        leading |= {f"side_calls.{name}.system": side.system for name, side in self.side_calls.items()}
        for what, tokens in leading.items():
            if tokens + 2 > self.context_limit:  # a message and a reply need a token each
                raise ValueError(f"{what} are {tokens} tokens, context_limit is {self.context_limit}: no turn fits")
        if self.compaction:
            self._compaction_shrinks(self.compaction)
        return self

    def _compaction_shrinks(self, compaction: Compaction) -> None:
        kept = sum(getattr(self.layers, name) for name in ("tools", "system") if name in compaction.keep)
        trigger, summary = compaction.trigger.quantile(0.5), compaction.summary.quantile(0.5)
        if kept + summary >= trigger:
            message = f"compaction leaves {kept + summary:g} tokens (kept layers {kept}, summary {summary:g})"
            raise ValueError(f"{message}, its trigger is {trigger:g}: nothing shrinks")


def load_spec(source: Path | str, *, text: str | None = None, sets: Sequence[str] = ()) -> WorkloadSpec:
    """The workload spec of that name, in a file, or in `text`. Raises BadInput that names every mistake's place."""
    if text is None and isinstance(source, str):
        source = catalog.resolve("workloads", source)
    return yamlspec.load(WorkloadSpec, source, kind="workload", text=text, sets=sets, extended=_base)


def _base(name: str, heir: Path) -> Path:
    """The file that `extends: name` means in the file `heir`: a path is relative to it."""
    return heir.parent / name if catalog.is_path(name) else catalog.resolve("workloads", name)


def spec_text(spec: WorkloadSpec) -> str:
    """The spec with all defaults written out, as text that `load_spec` reads back as an equal one."""
    body = {"agentx": "workload/1", **spec.model_dump(mode="json", exclude_none=True)}
    return yaml.safe_dump(body, sort_keys=False, width=120)
