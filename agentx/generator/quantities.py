"""The quantities of a workload spec: what is drawn, in which unit, and on what a draw may depend."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag

from agentx.core import GapKind
from agentx.distributions import Distribution
from agentx.yamlspec import Duration, Strict

Count = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]
Chance = Annotated[float, Field(gt=0, le=1)]
Counts = Distribution[Count]
Shares = Distribution[Share]
Times = Distribution[Duration]


class GapKinds(Strict):
    """One distribution for each kind of gap that a call comes after."""

    tool: Counts = Field(description="When the call follows tools or subagents.")
    human: Counts = Field(description="When it follows a user message; the opening call of a subagent, too.")


class ByGap(Strict):
    """A distribution that depends on what the call comes after."""

    by_gap: GapKinds = Field(description="One distribution after tools, another after a user message.")


def _form(value: Any) -> str:
    conditional = isinstance(value, ByGap) or (isinstance(value, dict) and "by_gap" in value)
    return "by gap" if conditional else "drawn"


CountsByGap = Annotated[
    Annotated[Counts, Tag("drawn")] | Annotated[ByGap, Tag("by gap")],
    Discriminator(_form),
]
"""A drawn quantity, or `{by_gap: {tool: …, human: …}}`."""


def after(shape: Counts | ByGap, gap: GapKind) -> Counts:
    """The distribution of `shape` for a call that comes after `gap`."""
    if not isinstance(shape, ByGap):
        return shape
    return shape.by_gap.tool if gap == "tool" else shape.by_gap.human
