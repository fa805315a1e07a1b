"""Subagents: a reply starts lines of context of their own; the line that started them waits for all of them.

Each has the tools and the system prompt of its type, which all subagents of that type share, a task of its own, and
ends with a report that becomes a tool result of its parent.
"""

from __future__ import annotations

from agentx.core import Gap, Output, Thread, Tool
from agentx.distributions import choose
from agentx.generator.calls import agent_habits, few, output, use_tools
from agentx.generator.line import Line
from agentx.generator.shared import Shared
from agentx.generator.spec import WorkloadSpec
from agentx.generator.spec_events import AgentType, Subagents


def spawn(parent: Line, spec: WorkloadSpec, shared: Shared, depth: int) -> tuple[Gap, tuple[Tool, ...]]:
    """Start the subagents of one reply, run them to their ends, and append their reports.

    Returns the gap and the tools of the parent's next turn, which waits for the last turn of each of them.
    """
    rules = spec.subagents
    if rules is None or parent.last is None:
        raise ValueError("only a turn of a spec with subagents starts any")
    count = few(parent, "subagents", rules.count, "a reply starts {} subagents", "subagents.count")
    names = list(rules.types)
    weights = [rules.types[name].weight for name in names]
    started = parent.last
    ends: list[int] = []
    tools: list[Tool] = []
    for _ in range(count):
        name = names[choose(weights, parent.bits("subagent_type"))]
        waits = (ends[-1],) if rules.run == "serial" and ends else (started,)
        end, report = _run(parent, name, waits, spec, shared, depth)
        ends.append(end)
        tools.append(Tool(name))
        parent.append("tool_result", report)
    parent.waits = tuple(ends)
    return Gap("tool", 0.0, "drawn"), tuple(tools)


def _run(
    parent: Line, name: str, waits: tuple[int, ...], spec: WorkloadSpec, shared: Shared, depth: int
) -> tuple[int, int]:
    """One subagent. Returns the index of its last turn, and the tokens of its report."""
    rules: Subagents = spec.subagents  # type: ignore[assignment]  # the caller has checked
    kind, draft = rules.types[name], parent.draft
    thread = Thread(len(draft.threads), parent.thread, "subagent", name)
    draft.threads.append(thread)
    line = Line(draft, spec.context_limit, thread.id, f"agent{thread.id}/", kind.model or parent.model, waits=waits)
    for segment in shared.agents[name]:
        line.add(segment)
    line.append("user", min(line.count("prompt", kind.prompt), line.room - 1))
    return _work(line, kind, spec, shared, depth)


def _work(line: Line, kind: AgentType, spec: WorkloadSpec, shared: Shared, depth: int) -> tuple[int, int]:
    habits = agent_habits(spec, kind, depth)
    turns, wait = line.count("turns", kind.turns), Gap("spawn", 0.0, "drawn")
    tools: tuple[Tool, ...] = ()
    for step in range(turns):
        made = output(line, habits, "tool" if step else "human")
        if step == turns - 1:
            report = line.count("report", kind.report)
            made = Output(min(report, line.room) if line.last is None else report)
        if not line.call(made, wait, tools):
            break
        if step < turns - 1:
            again = line.chance("spawn", habits.spawns)
            wait, tools = spawn(line, spec, shared, depth + 1) if again else use_tools(line, habits)
    last = line.last
    if last is None:
        raise ValueError("a subagent's opening always fits")
    return last, line.draft.turns[last].output.tokens
