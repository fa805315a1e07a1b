"""What one model call draws: its reply, and the tools that the reply calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agentx.core import Gap, GapKind, Output, Tool
from agentx.distributions import choose, milliseconds
from agentx.errors import BadInput
from agentx.generator.line import Line
from agentx.generator.quantities import ByGap, Counts, after
from agentx.generator.spec import ToolClass, WorkloadSpec
from agentx.generator.spec_events import AgentType

MOST = 1024  # tool calls or subagents of one reply, files, documents; a spec that wants more has a slip in it


@dataclass(frozen=True, slots=True)
class Habits:
    """How one kind of line behaves: the conversation, or a type of subagent."""

    reply: Counts | ByGap
    reasoning: Counts | ByGap
    tool_result: Counts
    parallel: Counts
    tools: Mapping[str, ToolClass]
    spawns: float  # share of the tool steps that start subagents
    own_result: bool  # whether `tool_result` goes before what the tool class says


def main_habits(spec: WorkloadSpec) -> Habits:
    tokens, spawns = spec.tokens, spec.subagents.share if spec.subagents else 0.0
    return Habits(
        tokens.reply, tokens.reasoning, tokens.tool_result, spec.turns.parallel, spec.gaps.tools, spawns, False
    )


def agent_habits(spec: WorkloadSpec, kind: AgentType, depth: int) -> Habits:
    """Those of a subagent on level `depth`, from 1; what its type leaves out is as in the conversation."""
    limit = (spec.subagents.depth if spec.subagents else None) or 1
    return Habits(
        kind.reply or spec.tokens.reply,
        kind.reasoning or spec.tokens.reasoning,
        kind.tool_result or spec.tokens.tool_result,
        kind.parallel or spec.turns.parallel,
        spec.gaps.tools,
        kind.spawns if depth < limit else 0.0,
        kind.tool_result is not None,
    )


def output(line: Line, habits: Habits, gap: GapKind) -> Output:
    """A reply; that of an opening call is cut to what fits, so that every thread has a turn."""
    visible = line.count("reply", after(habits.reply, gap))
    reasoning = line.count("reasoning", after(habits.reasoning, gap), least=0)
    if line.last is None:
        visible = min(visible, line.room)
        reasoning = min(reasoning, line.room - visible)
    return Output(visible, reasoning)


def few(line: Line, quantity: str, shape: Counts, what: str, key: str, least: int = 1) -> int:
    """A number of things, at least `least`. Raises BadInput when there are more than `MOST`."""
    count = line.count(quantity, shape, least)
    if count > MOST:
        raise BadInput(f"{what.format(count)}, the limit is {MOST}", hint=f"give {key} a max")
    return count


def use_tools(line: Line, habits: Habits) -> tuple[Gap, tuple[Tool, ...]]:
    """The tools that a reply calls: their results are appended, the gap is the longest of them."""
    names = list(habits.tools)
    weights = [habits.tools[name].weight for name in names]
    calls = []
    for _ in range(few(line, "parallel", habits.parallel, "a reply calls {} tools", "turns.parallel")):
        name = names[choose(weights, line.bits("tool"))]
        tool = habits.tools[name]
        calls.append(Tool(name, milliseconds(tool.time.draw(line.bits(f"tool_time/{name}")))))
        if tool.result is None or habits.own_result:
            line.append("tool_result", line.count("tool_result", habits.tool_result))
        else:
            line.append("tool_result", line.count(f"tool_result/{name}", tool.result))
    return Gap("tool", max(call.seconds or 0.0 for call in calls), "drawn"), tuple(calls)
