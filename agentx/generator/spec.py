"""The workload spec, `agentx: workload/1`: what a population of agents does, in numbers that a reader can judge.

Rule: a spec holds no randomness and no defaults that shape traffic; what it leaves out does not happen.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import pydantic
import yaml
from pydantic import Field

from agentx import yamlspec
from agentx.distributions import Distribution, check_weights
from agentx.yamlspec import Duration, Strict

Count = Annotated[float, Field(ge=0)]
Counts = Distribution[Count]
Times = Distribution[Duration]

QUANTITIES = ("turns", "isl", "osl", "context", "tool_gap", "human_gap")
_STATISTIC = re.compile(rf"(?:({'|'.join(QUANTITIES)})_(?:mean|p[1-9][0-9]?)|possible_reuse)\Z")


class Pool(Strict):
    """A pool of contexts: each session works in one of `count`; rank r is chosen in proportion to r ** -zipf."""

    count: int = Field(ge=1, le=100_000, description="How many contexts there are.")
    tokens: Counts = Field(description="Tokens of each; drawn once a context, the same in every session that has it.")
    zipf: float = Field(default=0.0, ge=0, le=10, description="Popularity exponent; 0 chooses all alike.")


class Layers(Strict):
    """What stands in front of the conversation and is the same in many sessions."""

    tools: int = Field(default=0, ge=0, description="Tokens of the tool definitions, the same in all sessions.")
    system: int = Field(default=0, ge=0, description="Tokens of the system prompt, the same in all sessions.")
    repos: Pool | None = Field(default=None, description="Repository contexts that sessions share by chance.")


class Turns(Strict):
    """How many model calls a session has."""

    user: Counts = Field(description="User messages of a session, at least 1.")
    loop: Counts = Field(description="Model calls for one user message, at least 1: all but the last call tools.")
    parallel: Counts = Field(
        default=Counts(fixed=1), description="Tool calls in one reply, at least 1; they run together."
    )


class Tokens(Strict):
    """Fresh tokens, all at least 1 except `reasoning`."""

    first_message: Counts = Field(description="The message that opens a session.")
    message: Counts = Field(description="Each later user message.")
    tool_result: Counts = Field(description="The result of one tool call.")
    reply: Counts = Field(description="Visible tokens of one reply.")
    reasoning: Counts = Field(
        default=Counts(fixed=0), description="Reasoning tokens before them; they stay in the context."
    )


class ToolClass(Strict):
    """One class of tools."""

    weight: float = Field(gt=0, le=1, description="Its share of the tool calls; the shares sum to 1.")
    time: Times = Field(description="How long one call runs.")


class Gaps(Strict):
    """Time between the end of one model call and the next."""

    human: Times = Field(description="From the last reply to the next user message.")
    tools: dict[str, ToolClass] = Field(
        min_length=1, description="Classes of tools by name; a gap is its longest call."
    )

    @pydantic.field_validator("tools")
    @classmethod
    def _shares(cls, value: dict[str, ToolClass]) -> dict[str, ToolClass]:
        check_weights([each.weight for each in value.values()])
        return value


class Expectation(Strict):
    """A published statistic that the workload must reproduce."""

    target: float | str = Field(description="Its value; for gaps a duration.")
    tolerance: float | str = Field(description="`15%` of the target, or an absolute difference in its unit.")
    source: str = Field(min_length=1, description="Where the number was published.")

    @pydantic.model_validator(mode="after")
    def _readable(self) -> Expectation:
        if self.difference < 0:
            raise ValueError(f"tolerance {self.tolerance} is below 0")
        return self

    @property
    def value(self) -> float:
        """The target, in seconds if it is a duration."""
        return yamlspec.seconds(self.target) if isinstance(self.target, str) else self.target

    @property
    def difference(self) -> float:
        """How far the realised value may lie from the target."""
        if not isinstance(self.tolerance, str):
            return self.tolerance
        share = re.fullmatch(r"\s*([0-9.]+)\s*%\s*", self.tolerance)
        return abs(self.value) * float(share[1]) / 100 if share else yamlspec.seconds(self.tolerance)


class WorkloadSpec(Strict):
    """A population of sessions."""

    about: str = Field(default="", description="One line for people.")
    sessions: int = Field(default=100, ge=1, description="Sessions to make unless the command says another number.")
    context_limit: int = Field(ge=1, le=2**40, description="A session ends before prompt + reply would exceed it.")
    layers: Layers = Field(default=Layers(), description="Shared leading layers.")
    turns: Turns = Field(description="Numbers of model calls.")
    tokens: Tokens = Field(description="Fresh tokens of each part.")
    gaps: Gaps = Field(description="Time between calls.")
    expect: dict[str, Expectation] = Field(default={}, description="Statistics that `agentx check` compares.")

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
        for name in value:
            if not _STATISTIC.match(name):
                known = f"possible_reuse, and {', '.join(QUANTITIES)} with _mean or _p1 to _p99"
                raise ValueError(f"unknown statistic {name!r} (known: {known})")
            if isinstance(value[name].target, str) != ("_gap_" in name):
                unit = "a duration such as 9s" if "_gap_" in name else "a number without a unit"
                raise ValueError(f"{name}.target should be {unit}, not {value[name].target}")
        return value

    @pydantic.model_validator(mode="after")
    def _fits(self) -> WorkloadSpec:
        leading = self.layers.tools + self.layers.system
        if leading + 2 > self.context_limit:  # a message and a reply need a token each
            message = f"layers.tools + layers.system are {leading} tokens, context_limit is {self.context_limit}"
            raise ValueError(f"{message}: no turn fits")
        return self


def load_spec(source: Path | str, *, text: str | None = None, sets: Sequence[str] = ()) -> WorkloadSpec:
    """The workload spec in a file, or in `text`. Raises BadInput that names every mistake with its place."""
    return yamlspec.load(WorkloadSpec, source, kind="workload", text=text, sets=sets)


def spec_text(spec: WorkloadSpec) -> str:
    """The spec with all defaults written out, as text that `load_spec` reads back as an equal one."""
    body = {"agentx": "workload/1", **spec.model_dump(mode="json", exclude_none=True)}
    return yaml.safe_dump(body, sort_keys=False, width=120)
