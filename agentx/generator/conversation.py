"""The main line of a session: user messages, each followed by a tool loop, until they are done or the context is full.

What befalls the context on the way stands in modules of its own; this one says in which order it happens.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from agentx.core import Gap, Output, Segment, Tool, TurnEvent
from agentx.distributions import choose, milliseconds, whole
from agentx.generator import edits
from agentx.generator.calls import Habits, few, main_habits, output, use_tools
from agentx.generator.compaction import Compactor, compactor
from agentx.generator.line import Draft, Line
from agentx.generator.resumed import history
from agentx.generator.shared import Shared
from agentx.generator.side import side_calls
from agentx.generator.spec import WorkloadSpec
from agentx.generator.subagents import spawn


@dataclass(frozen=True, slots=True)
class Talk:
    """What one conversation is made with."""

    spec: WorkloadSpec
    shared: Shared
    habits: Habits
    compactor: Compactor | None


def conversation(draft: Draft, spec: WorkloadSpec, shared: Shared, opening: Segment | None) -> None:
    """All turns of a session. `opening` is the first message that its group shares, if it is in one."""
    line = Line(draft, spec.context_limit)
    habits = main_habits(spec)
    if spec.subagents and spec.subagents.sessions < 1 and not line.chance("delegates", spec.subagents.sessions):
        habits = replace(habits, spawns=0.0)
    talk = Talk(spec, shared, habits, compactor(line, spec))
    if not _tool_loop(line, talk, _start(line, talk, opening)):
        return
    for _ in range(line.count("user_turns", spec.turns.user) - 1):
        wait = Gap("human", milliseconds(spec.gaps.human.draw(line.bits("human_gap"))), "drawn")
        if not _tool_loop(line, talk, _next_message(line, talk, wait)):
            return


def _start(line: Line, talk: Talk, opening: Segment | None) -> Gap:
    """The shared layers, what the session brings along, and the first message; an opening always fits.

    Returns the gap before the first call.
    """
    spec, shared = talk.spec, talk.shared
    for segment in shared.leading:
        line.add(segment)
    repos = spec.layers.repos
    if shared.repos and repos and (repos.share == 1 or line.chance("has_repo", repos.share)):
        line.add(shared.repos.choose(line.bits("repo")))
    if spec.models:
        names = list(spec.models.weights)
        line.model = names[choose(list(spec.models.weights.values()), line.bits("model"))]
    _documents(line, talk)
    if spec.layers.files:
        for _ in range(few(line, "files", spec.layers.files.count, "a session has {} files", "layers.files.count", 0)):
            line.append("user", max(0, min(line.count("file", spec.layers.files.tokens), line.room - 2)))
    history(line, spec)
    if opening is not None and opening.tokens < line.room:
        line.add(opening)
    else:
        # A session without a turn would be none.
        line.append("user", min(line.count("first_message", spec.tokens.first_message), line.room - 1))
    return side_calls(line, spec, shared, "start", Gap(provenance="drawn"))


def _next_message(line: Line, talk: Talk, wait: Gap) -> Gap:
    spec = talk.spec
    if spec.resets and line.chance("reset", spec.resets.share):
        edits.reset(line)
    elif spec.tokens.strip_reasoning:
        edits.strip_reasoning(line)
    if spec.models and line.chance("switch", spec.models.switch):
        others = {name: weight for name, weight in spec.models.weights.items() if name != line.model}
        line.model = list(others)[choose(list(others.values()), line.bits("model"))]
        line.event = TurnEvent("model_switch")
    _documents(line, talk)
    line.append("user", line.count("message", spec.tokens.message))
    return side_calls(line, spec, talk.shared, "message", wait)


def _documents(line: Line, talk: Talk) -> None:
    wanted = talk.spec.layers.documents
    if wanted is None or talk.shared.documents is None:
        return
    for _ in range(few(line, "documents", wanted.each, "a message has {} documents", "layers.documents.each", 0)):
        document = talk.shared.documents.choose(line.bits("document"))
        if document.tokens + 2 <= line.room:
            line.add(document)


def _tool_loop(line: Line, talk: Talk, wait: Gap) -> bool:
    """Model calls until one needs no tool. `wait` comes before the first. False when the context is full."""
    spec = talk.spec
    tools: tuple[Tool, ...] = ()
    length = line.count("loop", spec.turns.loop)
    for step in range(length):
        if step and spec.pull_backs:
            edits.pull_back(line, spec.pull_backs)
        if talk.compactor:
            wait = talk.compactor.check(line, talk.shared, wait)
        made = output(line, talk.habits, "tool" if step else "human")
        aborted = _abort(line, spec, made)
        if not line.call(aborted or made, wait, tools):
            return False
        if aborted:
            return True
        if step < length - 1:
            wait, tools = _step(line, talk)
    return True


def _step(line: Line, talk: Talk) -> tuple[Gap, tuple[Tool, ...]]:
    if line.chance("spawn", talk.habits.spawns):
        return spawn(line, talk.spec, talk.shared, depth=1)
    return use_tools(line, talk.habits)


def _abort(line: Line, spec: WorkloadSpec, made: Output) -> Output | None:
    """What had come of a reply that the user breaks off, or None. A call that begins on an edited context is not."""
    if spec.aborts is None or not line.chance("abort", spec.aborts.share) or line.event is not None:
        return None
    come = whole(spec.aborts.kept.draw(line.bits("abort_kept")) * made.tokens)
    line.event = TurnEvent("abort")
    reasoning = min(made.reasoning, come)
    return replace(made, visible=come - reasoning, reasoning=reasoning)
