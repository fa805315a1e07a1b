"""What a workload promises: a statistic by its name, its published value, how far it may be off, and the source."""

from __future__ import annotations

import re
from typing import Annotated, Any

import pydantic
from pydantic import Discriminator, Field, Tag

from agentx import yamlspec
from agentx.distributions import Plain
from agentx.generator.quantities import Counts, Times
from agentx.yamlspec import Strict

# What is counted or measured, and over what.
QUANTITIES = {
    "turns": "model calls of each session, those of its subagents and its side calls included",
    "main_turns": "model calls of each session's main thread",
    "isl": "prompt tokens of each call",
    "osl": "reply tokens of each call, reasoning included",
    "total": "prompt + reply tokens of each call",
    "leading": "tokens of tools and system prompt in each session's first prompt",
    "first_isl": "prompt tokens of the first call of each main thread",
    "last_isl": "prompt tokens of the last call of each main thread",
    "context": "the longest prompt + reply of each session",
    "loop": "model calls of a main thread for one user message",
    "fresh": "tokens appended to the previous prompt and its reply after a tool",
    "tools": "tool calls of one reply that calls any",
    "input": "prompt tokens of each session, all its calls together",
    "output": "reply tokens of each session, all its calls together",
    "tool_gap": "gaps for tools whose time is known",
    "human_gap": "gaps for a user message",
    "compaction_before": "tokens of context before each compaction",
    "compaction_after": "tokens of context after it: what is kept, and the summary",
    "fan_out": "subagents that one reply starts",
    "subagent_turns": "model calls of each subagent",
    "subagent_isl": "prompt tokens of each call of a subagent",
    "subagent_osl": "reply tokens of each call of a subagent",
}
SHARES = {
    "possible_reuse": "prompt tokens, over all sessions, that a cache without limits need not compute",
    "subagent_share": "calls that subagents make",
    "subagent_sessions": "sessions that start a subagent",
    "side_share": "calls beside the conversation",
    "compaction_share": "sessions that compact",
    "pull_back_share": "calls after a tool whose context lost more than 10 % of its end, compactions apart",
    "tool_share": "calls that follow a tool",
    "single_turn_share": "sessions of one call",
    "multi_turn_calls": "calls that belong to sessions of more than one",
    "abort_share": "calls that are broken off",
}
_NAME = re.compile(rf"(?:({'|'.join(QUANTITIES)})_(?:mean|ks|p[1-9][0-9]?)|{'|'.join(SHARES)})\Z")


def _form(value: Any) -> str:
    if isinstance(value, dict):
        return "times" if _has_text(value) else "counts"
    if isinstance(value, Plain):
        return "times" if _has_text(value.model_dump(mode="json")) else "counts"
    return "text" if isinstance(value, str) else "number"


def _has_text(value: Any) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return isinstance(value, str) or any(_has_text(each) for each in inner)


Target = Annotated[
    Annotated[float, Tag("number")]
    | Annotated[str, Tag("text")]
    | Annotated[Counts, Tag("counts")]
    | Annotated[Times, Tag("times")],
    Discriminator(_form),
]


class Expectation(Strict):
    """A published statistic that the workload must reproduce."""

    target: Target = Field(description="its value; for gaps a duration; for `_ks` a distribution")
    tolerance: float | str = Field(description="`15%` of the target, or a difference in its unit")
    source: str = Field(min_length=1, description="where the number was published")

    @pydantic.model_validator(mode="after")
    def _readable(self) -> Expectation:
        if self.difference < 0:
            raise ValueError(f"tolerance {self.tolerance} is below 0")
        return self

    @property
    def value(self) -> float:
        """The target, in seconds if it is a duration; for a distribution the distance 0."""
        if isinstance(self.target, str):
            return yamlspec.seconds(self.target)
        return self.target if isinstance(self.target, float) else 0.0

    @property
    def difference(self) -> float:
        """How far the realised value may lie from the target."""
        if not isinstance(self.tolerance, str):
            return self.tolerance
        share = re.fullmatch(r"\s*([0-9.]+)\s*%\s*", self.tolerance)
        return abs(self.value) * float(share[1]) / 100 if share else yamlspec.seconds(self.tolerance)


def check_name(name: str, expectation: Expectation) -> None:
    """Raises ValueError for a statistic that there is not, or a target of the wrong kind."""
    if not _NAME.match(name):
        known = f"{', '.join(SHARES)}; {', '.join(QUANTITIES)} with _mean, _p1 to _p99 or _ks"
        raise ValueError(f"unknown statistic {name!r} (known: {known})")
    target = expectation.target
    if name.endswith("_ks") != isinstance(target, Plain):
        wanted = "a distribution" if name.endswith("_ks") else "a number or a duration"
        raise ValueError(f"{name}.target should be {wanted}")
    if name.endswith("_ks"):
        if isinstance(expectation.tolerance, str):
            raise ValueError(f"{name}.tolerance should be the largest distance, from 0 to 1")
    elif isinstance(target, str) != ("_gap_" in name):
        unit = "a duration such as 9s" if "_gap_" in name else "a number without a unit"
        raise ValueError(f"{name}.target should be {unit}, not {target}")
