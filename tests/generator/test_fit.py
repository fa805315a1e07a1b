"""A trace becomes a spec: what the generator was told is found again in what it made."""

from __future__ import annotations

import functools

import pytest
from making import header, linear
from specs import EVERYTHING, FIXED, made

from agentx.core import Session
from agentx.errors import BadInput
from agentx.generator.expect import Measured
from agentx.generator.fit import Fitted, fit_spec
from agentx.generator.fit_seen import Seen
from agentx.generator.sessions import sessions
from agentx.generator.spec import WorkloadSpec, load_spec


def fitted(*given: Session, **more: object) -> Fitted:
    seen, measured = Seen(), Measured()
    for session in measured.watch(given):
        seen.add(session)
    return fit_spec(seen, measured, 0.5, header(**more), "source")


@functools.cache
def everything() -> tuple[WorkloadSpec, WorkloadSpec]:
    """The spec that has everything, and what is fitted to a trace of it."""
    source = made(EVERYTHING)
    return source, load_spec("fitted", text=fitted(*sessions(source, 0, 250)).text({}))


@pytest.mark.parametrize(
    "path",
    [
        "layers.tools", "layers.system", "layers.repos.count", "layers.documents.count",
        "layers.documents.tokens.fixed",
        "layers.files.tokens.fixed", "tokens.first_message.fixed", "tokens.strip_reasoning",
        "tokens.reply.by_gap.human.fixed",
        "gaps.tools.read.time.fixed", "subagents.depth", "subagents.run", "subagents.types.Explore.tools",
        "subagents.types.general.model", "subagents.types.general.turns.fixed", "subagents.types.general.reply.fixed",
        "compaction.keep", "compaction.summary.fixed", "side_calls.title.at", "side_calls.title.system",
        "side_calls.title.model", "side_calls.summary.at", "side_calls.summary.context", "side_calls.summary.waits",
        "side_calls.topic.at", "side_calls.topic.waits", "arrivals.kind",
    ],
)  # fmt: skip
def test_what_is_fixed_is_found_exactly(path: str) -> None:
    source, found = everything()
    for part in path.split("."):
        source, found = (each[part] if isinstance(each, dict) else getattr(each, part) for each in (source, found))
    assert found == source


@pytest.mark.parametrize(
    ("path", "tolerance"),
    [
        ("gaps.tools.shell.weight", 0.03),
        ("subagents.share", 0.04),
        ("subagents.types.Explore.weight", 0.05),
        ("subagents.types.general.spawns", 0.1),
        ("resumed.share", 0.07),
        ("resets.share", 0.04),
        ("pull_backs.share", 0.05),
        ("aborts.share", 0.02),
        ("models.switch", 0.05),
        ("side_calls.topic.share", 0.05),
        ("compaction.share", 0.25),  # of the sessions that got there, which is known only roughly
        ("arrivals.per_second", 0.12),
    ],
)
def test_shares_are_found_nearly(path: str, tolerance: float) -> None:
    source, found = everything()
    for part in path.split("."):
        source, found = (each[part] if isinstance(each, dict) else getattr(each, part) for each in (source, found))
    assert found == pytest.approx(source, abs=tolerance)


def test_a_limit_that_sessions_run_into_is_told_from_none() -> None:
    loose = fitted(*sessions(made(FIXED), 0, 40)).spec["context_limit"]
    assert loose.remark.startswith("no session shows a limit")
    tight = fitted(*sessions(made(FIXED, "context_limit=700", "turns.user={geometric: {mean: 9}}"), 0, 60))
    assert 600 < tight.spec["context_limit"].value <= 700


def test_a_trace_without_turns_cannot_be_fitted() -> None:
    with pytest.raises(BadInput, match="source has no turn: nothing can be fitted"):
        fitted(linear(0))


def test_names_from_a_trace_cannot_leave_their_place() -> None:
    from dataclasses import replace

    from agentx.core import Tool

    odd = 'a: {b}"\n# c'
    session = linear(2)
    turn = replace(session.turns[1], tools=(Tool(odd, 1.0),), model=odd)
    found = fitted(replace(session, turns=(session.turns[0], turn)), replace(linear(2, id="b")))
    spec = load_spec("fitted", text=found.text({"isl_p50": 80.0}, [f"a remark on {odd}"]))
    assert odd in spec.gaps.tools
    assert spec.expect["isl_p50"].target == 80.0
